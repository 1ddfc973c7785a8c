"""What if another writer commits without the checks? Hand-made log entries, read by Spark and by delta-rs.

Such an entry is what a writer of another engine has left behind. No reader can repair it: both show the rows twice,
without a word. What would have told is in the log, and every race is held to it: a file is removed once, and only when
it is there, under the deletion vector that it has. No statement of Spark writes such an entry, so these are tests and
no races.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import deltalog
from lakerace.layouts import COLUMNS, layout_from_statements
from lakerace.race import Layout, statement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakerace.engines import Table
    from lakerace.engines.delta_spark import DeltaSpark

VERSIONS = ">=4.0"


def of_four_rows(vectors: bool) -> Layout:
    """Two files of four rows: ids 1 to 4, and 5 to 8."""
    rows = [f"SELECT id, DATE'2026-08-11', 'DE', 1, 'base' FROM range({first}, {first + 4})" for first in (1, 5)]
    create = (f"CREATE TABLE {{t}} ({COLUMNS}) USING delta "
              f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(vectors).lower()}')")
    return layout_from_statements(f"two-files-{'vectors' if vectors else 'rewritten'}",
                                  (create, *(f"INSERT INTO {{t}} {query}" for query in rows)))


REWRITTEN, VECTORS = of_four_rows(vectors=False), of_four_rows(vectors=True)
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
UPDATE_1, UPDATE_2 = (f"UPDATE {{t}} SET note = 'A' WHERE id = {row}" for row in (1, 2))
DELETE_1, DELETE_2 = (f"DELETE FROM {{t}} WHERE id = {row}" for row in (1, 2))
OPTIMIZE = "OPTIMIZE {t}"


def write_entry(engine: DeltaSpark, table: Table, version: int, actions: Iterable[Any]) -> None:
    """Write a log entry by hand, over what may stand there; the checksum beside it would be that of another state."""
    log = table.path / "_delta_log"
    (log / f"{version:020d}.json").write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    for checksum in log.glob(f"*{version:020d}*.crc"):
        checksum.unlink()
    engine.forget(table.path)


def commit_unchecked(engine: DeltaSpark, table: Table, text: str, read: Table) -> None:
    """Commit to ``table`` what ``text`` does to ``read``, a copy of an earlier version: nothing is checked."""
    engine.run(read, "B", statement(text))
    for found in read.path.rglob("*"):
        place = table.path / found.relative_to(read.path)
        if found.is_file() and "_delta_log" not in found.parts and not place.exists():
            shutil.copy(found, place)
    entry = deltalog.actions(read.path, deltalog.latest_version(read.path))
    write_entry(engine, table, deltalog.latest_version(table.path) + 1, entry)


def times(engine: DeltaSpark, table: Table) -> Counter[int]:
    """How often Spark shows each id."""
    return Counter(row[0] for row in engine.spark.sql(engine.fill("SELECT id FROM {t}", table)).collect())


def told(table: Table) -> list[str]:
    """What the invariants say about the entries after the base version, without file names."""
    broken = deltalog.duplicate_actions(deltalog.read_commits(table.path, table.base_version))
    return [" ".join(word for word in line.split() if ".parquet" not in word) for line in broken]


@pytest.mark.report("B15", "B12")
@pytest.mark.parametrize("names_vector", [True, False])
def test_a_compaction_that_names_no_vector_leaves_the_old_rows_too(engine, table_factory, names_vector):
    """Removed is the file as it was before its deletion vector, so nothing is: readers show old and compacted rows."""
    table = table_factory(VECTORS, audited=False)
    engine.run(table, "A", statement(DELETE_1))
    engine.run(table, "B", statement(OPTIMIZE))
    version = deltalog.latest_version(table.path)
    actions = [json.loads(json.dumps(action)) for action in deltalog.actions(table.path, version)]
    for action in actions if not names_vector else ():
        action.get("remove", {}).pop("deletionVector", None)
    write_entry(engine, table, version, actions)
    again = [] if names_vector else [2, 3, 4]
    assert times(engine, table) == Counter([*range(2, 9), *again])
    assert Counter(row[0] for row in deltalog.rows(table.path)[1]) == times(engine, table)
    broken = [] if names_vector else [f"version {version} removes which version {version - 1} had removed"]
    assert told(table) == broken


UNCHECKED = {
    "an-insert-and-an-update": (REWRITTEN, INSERT, UPDATE_2, [], []),
    "two-updates": (REWRITTEN, UPDATE_1, UPDATE_2, [1, 2, 3, 4], []),
    "two-deletes": (REWRITTEN, DELETE_1, DELETE_2, [3, 4], [1, 2]),
    "two-compactions": (REWRITTEN, OPTIMIZE, OPTIMIZE, [1, 2, 3, 4, 5, 6, 7, 8], []),
    "a-compaction-and-a-delete": (REWRITTEN, OPTIMIZE, DELETE_2, [1, 3, 4], [2]),
    "a-delete-and-a-compaction": (REWRITTEN, DELETE_2, OPTIMIZE, [1, 3, 4], [2]),
    "an-insert-and-a-vector": (VECTORS, INSERT, DELETE_2, [], []),
    "two-vectors": (VECTORS, DELETE_1, DELETE_2, [3, 4], [1, 2]),
    "the-same-vector": (VECTORS, DELETE_1, DELETE_1, [2, 3, 4], []),
    "a-compaction-and-a-vector": (VECTORS, OPTIMIZE, DELETE_2, [1, 3, 4], [2]),
    "a-vector-and-a-compaction": (VECTORS, DELETE_2, OPTIMIZE, [1, 3, 4], [2]),
}
"""Layout, first writer, second writer, ids shown twice, ids shown although their delete was acknowledged."""


@pytest.mark.report("B11", "B12")
@pytest.mark.parametrize("pair", UNCHECKED)
def test_who_commits_unchecked_doubles_rows_and_brings_deleted_ones_back(engine, table_factory, pair):
    """Two commits that remove one file: what both leave of it is there twice, what one of them deleted is there."""
    made, first, second, twice, back = UNCHECKED[pair]
    table, read = table_factory(made, audited=False), table_factory(made)
    engine.run(table, "A", statement(first))
    commit_unchecked(engine, table, second, read)
    found = times(engine, table)
    assert sorted(row for row, count in found.items() if count > 1) == twice
    assert [row for row in back if found[row] == 1] == back
    assert bool(told(table)) == bool(twice)
