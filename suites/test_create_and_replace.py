"""What does replacing a table do to its writers, and they to it? CREATE OR REPLACE, REPLACE and overwriteSchema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import layout, named
from lakerace.pairs import pair
from lakerace.race import Race, Statement, Write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakerace.engines.lines import Line

    Does = str | Write | Statement

VERSIONS = ">=4.0"
FLAT = layout("flat")
NAMED = named(FLAT)
OTHER, ODD = "SELECT * FROM {other}", "SELECT 1L AS id, 'x' AS colour"
SAME_TABLE = FLAT.setup[0].replace("CREATE TABLE", "CREATE OR REPLACE TABLE")

REPLACES = {
    "replace-as": f"CREATE OR REPLACE TABLE {{t}} USING delta AS {OTHER}",
    "replace-of-a-table-as": f"REPLACE TABLE {{t}} USING delta AS {OTHER}",
    "replace-by-another-schema": f"CREATE OR REPLACE TABLE {{t}} USING delta AS {ODD}",
    "replace-by-partitions": f"CREATE OR REPLACE TABLE {{t}} USING delta PARTITIONED BY (country) AS {OTHER}",
    "overwrite-schema": Write(select=ODD, mode="overwrite", options=(("overwriteSchema", "true"),)),
}
OVERWRITES = {
    "overwrite-schema-by-the-same": Write(select=OTHER, mode="overwrite", options=(("overwriteSchema", "true"),)),
    "overwrite": Write(select=OTHER, mode="overwrite"),
}
BY_NAME = {
    "replace-without-a-query": SAME_TABLE,
    "replace-by-other-columns": "CREATE OR REPLACE TABLE {t} (id BIGINT, colour STRING) USING delta",
}
ROWS = {name: CATALOGUE[name]
        for name in ("insert-values", "update-by-key", "delete-by-key", "merge-on-key", "optimize")}
TABLE = {name: CATALOGUE[name] for name in ("set-property", "comment", "add-column")}
FEATURE = {"supported-feature": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported')"}
WRITERS = {**ROWS, **TABLE, **FEATURE}
READERS = dict.fromkeys(("update-by-key", "delete-by-key", "merge-on-key"), "append")
PASSED_BY = {**READERS, "optimize": "delete-read"}
"""What an overwrite that leaves the schema alone does to a held writer; the others pass it."""
WHY = ("The documents name ProtocolChangedException for a concurrent replace, which is what a first write gives; here "
       "the protocol stays as it is, and the metadata is compared next.")



def told(line: Line, held: str, winner: str, does: tuple[Does, Does], word: str, *reports: str, why: str = "") -> Race:
    layout_ = NAMED if {held, winner} & set(BY_NAME) else FLAT
    return pair(line, held, winner, layout_, does, word, *reports, why=why)


def of_writers(line: Line) -> Iterator[Race]:
    """A writer is held while the table is replaced or overwritten."""
    for name, does in WRITERS.items():
        for winner, replacing in {**REPLACES, **BY_NAME}.items():
            yield told(line, name, winner, (does, replacing), "metadata", "C9", why=WHY)
        for winner, overwriting in OVERWRITES.items():
            yield told(line, name, winner, (does, overwriting), PASSED_BY.get(name, "commits"), "C9")


def of_replaces(line: Line) -> Iterator[Race]:
    """A replacement is held while somebody writes to the table or changes it."""
    for name, replacing in {**REPLACES, **BY_NAME, **OVERWRITES}.items():
        for winner, does in ROWS.items():
            yield told(line, name, winner, (replacing, does), "append", "C9")
        for winner, does in TABLE.items():
            yield told(line, name, winner, (replacing, does), "metadata", "C9", "C11")
        ends = "commits" if name in OVERWRITES else "metadata"
        yield told(line, name, "supported-feature", (replacing, FEATURE["supported-feature"]), ends, "C9")


def of_both(line: Line) -> Iterator[Race]:
    """Two replacements, each by itself and by another."""
    for name, does in {**REPLACES, **BY_NAME}.items():
        yield told(line, name, name, (does, does), "metadata", "C9", why=WHY)
        yield told(line, name, "overwrite", (does, OVERWRITES["overwrite"]), "append", "C9")
    for name, does in OVERWRITES.items():
        yield told(line, name, "replace-as", (does, REPLACES["replace-as"]), "metadata", "C9")
        yield told(line, name, name, (does, does), "append", "C9")


CORE = frozenset((
    "insert-values-loses-to-replace-as", "update-by-key-loses-to-replace-of-a-table-as",
    "optimize-loses-to-replace-by-partitions", "insert-values-passes-overwrite",
    "insert-values-loses-to-overwrite-schema", "insert-values-loses-to-replace-without-a-query",
    "replace-as-loses-to-insert-values", "replace-as-loses-to-optimize", "replace-as-loses-to-comment",
    "overwrite-schema-loses-to-update-by-key", "overwrite-passes-supported-feature",
    "replace-as-loses-to-replace-as-too", "overwrite-schema-loses-to-overwrite-schema-too",
    "replace-without-a-query-loses-to-replace-without-a-query-too",
))


def races(line: Line, profile: str) -> Iterator[Race]:
    for race in (*of_writers(line), *of_replaces(line), *of_both(line)):
        if profile == "full" or race.name in CORE:
            yield race


def test_race(case, check):
    check(case, rules=True)
