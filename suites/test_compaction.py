"""Maintenance changes no rows: does it end other writers all the same, and do they end it?

OPTIMIZE, OPTIMIZE FULL, ZORDER of a date and REORG ... APPLY (PURGE) against every kind of writer and against each
other, in both roles: with deletion vectors, without, and after a column was dropped, which a purge takes out of files.
ZORDER, VACUUM and the row tracking backfill meet every statement in the matrix.

As the winner, maintenance adds files where others read: an append check needs to know no more. As the held writer it is
checked at snapshot isolation, so nobody's new files matter; and after a conflict of any class it looks whether every
file that it rewrote is still there, under the same deletion vector, and if so commits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import deltalog
from lakerace.compacting import ON_11, ON_12, WRITERS, against, merge
from lakerace.conflicts import KINDS
from lakerace.layouts import layout, layout_from_statements
from lakerace.race import Expected, Layout, Race, held_against, statement
from lakerace.rules.findings import by_the_rules, predicted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"


def with_deleted_rows(name: str) -> Layout:
    """A layout after a DELETE that left a deletion vector on the first file of each date."""
    made = layout(name)
    return replace(made, name=f"{name}-deleted", meaning=f"{made.meaning}, a deleted row on each date",
                   setup=(*made.setup, "DELETE FROM {t} WHERE id IN (2, 10)"))


def with_dropped_column() -> Layout:
    """The layout by-date with column mapping, no deletion vectors, and a column less than its files have."""
    made = layout("by-date")
    create, *inserts = made.setup
    mapped = create.replace("TBLPROPERTIES (", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', ")
    return replace(made, name="by-date-dropped", meaning=f"{made.meaning}, a column dropped that every file has",
                   setup=(mapped, *inserts, "ALTER TABLE {t} DROP COLUMN amount"))


DELETED, CLUSTERED, FLAT = (with_deleted_rows(name) for name in ("by-date-dv", "clustered-dv", "flat-dv"))
PLAIN, DROPPED, PLAIN_CLUSTERED = layout("by-date"), with_dropped_column(), layout("clustered")
MAINTENANCE = {
    "optimize": "OPTIMIZE {t}",
    "optimize-of-its-date": f"OPTIMIZE {{t}} WHERE {ON_11}",
    "optimize-of-the-other-date": f"OPTIMIZE {{t}} WHERE {ON_12}",
    "zorder-of-its-date": f"OPTIMIZE {{t}} WHERE {ON_11} ZORDER BY (id)",
    "zorder-of-the-other-date": f"OPTIMIZE {{t}} WHERE {ON_12} ZORDER BY (id)",
    "purge": "REORG TABLE {t} APPLY (PURGE)",
    "purge-of-its-date": f"REORG TABLE {{t}} WHERE {ON_11} APPLY (PURGE)",
    "purge-of-the-other-date": f"REORG TABLE {{t}} WHERE {ON_12} APPLY (PURGE)",
}
PURGES = ("purge", "purge-of-its-date", "purge-of-the-other-date")
ON_CLUSTERED = {
    "optimize": "OPTIMIZE {t}", "optimize-full": "OPTIMIZE {t} FULL", "purge": "REORG TABLE {t} APPLY (PURGE)",
}
NARROW = {name: sql for name, sql in WRITERS.items() if "amount" not in sql and "other" not in sql} | {
    "an-insert": "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 'new')",
    "an-insert-from-itself": f"INSERT INTO {{t}} SELECT id + 1000, event_date, country, note FROM {{t}} WHERE {ON_11}",
    "a-merge": merge(5, f"t.id = s.id AND t.{ON_11}").replace("7 AS amount, ", ""),
    "a-merge-by-key": merge(5).replace("7 AS amount, ", ""),
    "an-insert-overwrite": "INSERT OVERWRITE {t} SELECT id, event_date, country, note FROM {other}",
}
"""The writers for the layout without the column ``amount``."""
ALL = WRITERS | MAINTENANCE | ON_CLUSTERED
COMMITS = Expected(word="commits")


def loses(held: str, *winners: str, by: str, made: Layout = DELETED, **more: Any) -> Race:
    """``held`` aborts with the conflict ``by``."""
    hint = "WITH_PARTITION_HINT" if made.partitioned else "WITHOUT_HINT"
    lost = Expected(word=by, condition=f"{KINDS[by].condition}.{hint}", sqlstate="2D521", attempts=1)
    return _race("loses-to", held, winners, lost, made, **more)


def outlives(held: str, *winners: str, made: Layout = DELETED, **more: Any) -> Race:
    """``held`` finds the winners there and commits at its second attempt."""
    return _race("outlives", held, winners, Expected(word="commits", attempts=2), made, **more)


def _race(verb: str, held: str, winners: tuple[str, ...], became: Expected, made: Layout, **more: Any) -> Race:
    where, said = "" if made is DELETED else f"-{made.name}", ALL | (NARROW if made is DROPPED else {})
    return held_against(
        f"{held}-{verb}-{'-and-'.join(winners)}{where}", layout=made, held=said[held],
        winners=[said[winner] for winner in winners], expect=[became, *[COMMITS] * len(winners)], **more,
    )


MERGE_AND_OPTIMIZE = (
    loses("a-merge", "optimize-of-its-date", by="append", reports=("B1",),
          why="the append check comes before the one of removed files, so the class is not ConcurrentDeleteRead"),
    outlives("a-merge", "optimize-of-the-other-date", reports=("B1",)),
    loses("a-merge", "optimize", by="append", reports=("B1",)),
    loses("a-merge-by-key", "optimize-of-the-other-date", by="append", reports=("B1",)),
    loses("optimize-of-its-date", "a-merge", by="delete-read", reports=("B1", "B4")),
    outlives("optimize-of-the-other-date", "a-merge", reports=("B1",)),
    outlives("optimize-of-the-other-date", "a-merge-by-key", reports=("B1",)),
)
APPENDS = (
    loses("an-update", "optimize", by="append", reports=("B2",)),
    outlives("an-update", "optimize-of-the-other-date", reports=("B2",)),
    loses("an-insert-from-itself", "optimize-of-its-date", by="append", reports=("B3",)),
    outlives("an-insert-from-itself", "optimize-of-the-other-date", reports=("B3",)),
    outlives("an-insert", "optimize", reports=("B2", "B3")),
    outlives("optimize", "an-insert", reports=("B2", "B3")),
    outlives("optimize", "an-insert-from-itself", reports=("B3",)),
)
BETWEEN_THEM = (
    loses("optimize-of-its-date", "optimize-of-its-date", by="delete-read", reports=("B4", "B5"),
          why="what it rewrites counts as read, and that check comes first: not ConcurrentDeleteDelete, which is what "
              "Databricks reports"),
    loses("optimize-of-its-date", "optimize", by="delete-read", reports=("B5",)),
    loses("optimize", "optimize-of-its-date", by="delete-read", reports=("B5",)),
    outlives("optimize-of-its-date", "optimize-of-the-other-date", reports=("B5",)),
    loses("optimize", "purge", by="delete-read", reports=("B5",)),
    loses("purge", "optimize", by="delete-read", reports=("B4", "B5")),
    outlives("purge-of-its-date", "optimize-of-the-other-date", reports=("B5",)),
)
VECTORS = (
    loses("optimize", "a-delete", by="delete-read", reports=("B4", "B9")),
    loses("a-delete", "optimize", by="append", reports=("B9",)),
    outlives("optimize-of-the-other-date", "a-delete", reports=("B9",)),
    loses("a-delete", "purge", by="append", reports=("B9",)),
    loses("a-delete-of-a-last-row", "purge", by="append", reports=("B9",)),
    loses("purge", "a-delete-of-a-last-row", by="delete-read", reports=("B9",)),
    outlives("purge", "a-delete", reports=("B9",),
             why="the row lies in a file without a deletion vector, which a purge leaves alone"),
    outlives("a-delete", "purge-of-the-other-date", reports=("B9",)),
)
CLUSTERS = (
    loses("an-update-by-key", "optimize-full", by="append", made=CLUSTERED),
    loses("optimize-full", "an-update-by-key", by="delete-read", made=CLUSTERED),
    outlives("optimize-full", "an-insert", made=CLUSTERED),
    loses("optimize-full", "optimize", by="delete-read", made=CLUSTERED, reports=("B5",)),
)
DROPPED_COLUMN = (
    loses("an-update", "purge", by="append", made=DROPPED),
    loses("purge", "an-update", by="delete-read", made=DROPPED),
    loses("purge", "purge", by="delete-read", made=DROPPED),
    outlives("purge", "an-insert", made=DROPPED),
    outlives("an-insert", "purge", made=DROPPED),
    outlives("an-update", "purge-of-the-other-date", made=DROPPED),
)
def after_change(name: str, column: str, change: str) -> Layout:
    """A table of two files, with ``column`` beside ``id``, after ``change``."""
    create = (f"CREATE TABLE {{t}} (id BIGINT, {column}) USING delta TBLPROPERTIES ("
              "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'false')")
    value = "named_struct('x', 1, 'y', 2)" if "STRUCT" in column else "1"
    rows = (f"INSERT INTO {{t}} SELECT {first}L + id, {value} FROM range(2)" for first in (1, 3))
    return layout_from_statements(name, (create, *rows, *change.split("; ")), "two files, and what came after")


def purge_against(name: str, column: str, change: str, winner: str, word: str) -> Race:
    """A purge, held against ``winner``."""
    return held_against(name, layout=after_change(name, column, change), held=MAINTENANCE["purge"], winners=[winner],
                        expect=[Expected(word=word), COMMITS])


def purge_of_nothing(name: str, made: Layout) -> Race:
    """A purge that finds nothing never comes to a commit: it can't be held, and no writer meets it."""
    return held_against(name, layout=made, held="DELETE FROM {t} WHERE id = 1", winners=[MAINTENANCE["purge"]],
                        expect=[Expected(word="commits", attempts=1), Expected(word="no-commit")])


DROP_S, DELETE_1 = "ALTER TABLE {t} DROP COLUMN s", "DELETE FROM {t} WHERE id = 1"
WHAT_IS_PURGED = (
    purge_against("a-purge-takes-out-a-field-of-a-struct", "s STRUCT<x: INT, y: INT>",
                  "ALTER TABLE {t} DROP COLUMN s.x", DELETE_1, "delete-read"),
    purge_against("a-purge-takes-out-what-replaced-columns-left", "s INT",
                  "ALTER TABLE {t} REPLACE COLUMNS (id BIGINT)", DELETE_1, "delete-read"),
    purge_against("a-purge-leaves-files-alone-that-an-update-wrote-since", "s INT",
                  f"{DROP_S}; UPDATE {{t}} SET id = 9 WHERE id = 2", DELETE_1, "commits"),
    purge_against("a-purge-leaves-files-alone-that-were-added-since", "s INT",
                  f"{DROP_S}; INSERT INTO {{t}} VALUES (5)", "DELETE FROM {t} WHERE id = 5", "commits"),
    purge_of_nothing("a-purge-leaves-renamed-columns-alone",
                     after_change("renamed", "s INT", "ALTER TABLE {t} RENAME COLUMN s TO r")),
    purge_of_nothing("a-purge-without-vectors-and-dropped-columns-commits-nothing", PLAIN),
)
WITHOUT_VECTORS = (
    loses("an-update", "zorder-of-its-date", by="append", made=PLAIN),
    outlives("an-update", "zorder-of-the-other-date", made=PLAIN),
    loses("zorder-of-its-date", "an-update", by="delete-read", made=PLAIN),
    loses("optimize-of-its-date", "an-update", by="delete-read", made=PLAIN),
    outlives("zorder-of-its-date", "an-insert", made=PLAIN),
    loses("optimize-full", "an-update-by-key", by="delete-read", made=PLAIN_CLUSTERED),
)


def again(name: str, held: str, *winners: str, lost: str = "", made: Layout = DELETED, why: str = "") -> Race:
    """``held`` meets a conflict and looks whether its files are still there; it commits unless it is ``lost``."""
    became = Expected(word=lost) if lost else COMMITS
    return held_against(name, layout=made, held=held, winners=list(winners), why=why,
                        expect=[became, *[COMMITS] * len(winners)])


OPTIMIZE = MAINTENANCE["optimize"]
SET_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('owner.team' = 'night shift')"
ADD_COLUMN = "ALTER TABLE {t} ADD COLUMN (extra INT)"
ROW_TRACKING = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
DELETE, RESTORE = WRITERS["a-delete"], "RESTORE TABLE {t} TO VERSION AS OF 9"
BY_NAME = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
AGAIN = (
    again("optimize-goes-on-after-a-property", OPTIMIZE, SET_PROPERTY),
    again("a-purge-goes-on-after-a-property", MAINTENANCE["purge"], SET_PROPERTY),
    again("optimize-goes-on-after-a-new-column", OPTIMIZE, ADD_COLUMN),
    again("optimize-goes-on-after-a-new-column-and-a-row-that-fills-it", OPTIMIZE, ADD_COLUMN,
          "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new', 5)"),
    again("optimize-does-not-go-on-after-a-new-column-and-a-delete", OPTIMIZE, ADD_COLUMN, DELETE, lost="metadata"),
    again("optimize-of-one-date-goes-on-after-a-property-and-an-update-elsewhere",
          MAINTENANCE["optimize-of-the-other-date"], SET_PROPERTY, WRITERS["an-update"]),
    again("optimize-goes-on-after-a-delete-that-was-taken-back", OPTIMIZE, DELETE, RESTORE),
    again("optimize-goes-on-after-row-tracking-and-a-property", OPTIMIZE, ROW_TRACKING, SET_PROPERTY),
    again("optimize-does-not-go-on-after-column-mapping-and-a-property", OPTIMIZE, BY_NAME, SET_PROPERTY,
          lost="metadata",
          why="it compares the partition columns with all their properties, and column mapping gave them new ones"),
    again("without-partitions-optimize-goes-on-after-column-mapping-and-a-property", OPTIMIZE, BY_NAME, SET_PROPERTY,
          made=FLAT),
)
RACES = (*MERGE_AND_OPTIMIZE, *APPENDS, *BETWEEN_THEM, *VECTORS, *CLUSTERS, *DROPPED_COLUMN, *WHAT_IS_PURGED,
         *WITHOUT_VECTORS, *AGAIN)


def few(named: dict[str, str], *names: str) -> dict[str, str]:
    return {name: named[name] for name in names}


def every_pair(made: Layout, writers: dict[str, str], maintenance: dict[str, str]) -> Iterator[Race]:
    """Each writer against each maintenance in both roles, and maintenance against maintenance; no outcome is stated."""
    yield from against("maintenance", made, writers, maintenance)
    yield from against("maintenance", made, maintenance, writers | maintenance)


def races(_line: Line, profile: str) -> Iterator[Race]:
    yield from RACES
    if profile == "full":
        anywhere = {name: sql for name, sql in WRITERS.items() if "event_date =" not in sql}
        kinds, zorder = ("an-insert", "an-update", "a-delete", "a-merge"), "zorder-of-the-other-date"
        for made, writers, maintenance in (
            (DELETED, WRITERS, MAINTENANCE), (CLUSTERED, anywhere, ON_CLUSTERED),
            (DROPPED, few(NARROW, *kinds), few(MAINTENANCE, "optimize", *PURGES)),
            (PLAIN, few(WRITERS, *kinds), few(MAINTENANCE, "optimize", "zorder-of-its-date", zorder)),
            (PLAIN_CLUSTERED, anywhere, few(ON_CLUSTERED, "optimize", "optimize-full")),
        ):
            yield from every_pair(made, writers, maintenance)


def test_race(case, check, engine):
    check(case, None if case.expect else by_the_rules(predicted(case, engine.line)), rules=True)


def row_ids(engine, table) -> dict[int, int]:
    """The stable row id of each id."""
    return dict(engine.spark.sql(engine.fill("SELECT id, _metadata.row_id FROM {t}", table)).collect())


@pytest.mark.report("I11")
@pytest.mark.parametrize(("winners", "says"), [([ROW_TRACKING], "false"), ([ROW_TRACKING, SET_PROPERTY], "true")],
                         ids=["checked", "run-again"])
def test_optimize_that_runs_again_says_that_it_kept_row_ids_and_has_not(engine, table_factory, winners, says):
    """It read its files before row tracking was turned on, so every row gets a new id. Where the conflict check lets it
    pass it says so; where it runs its commit again, it takes the tag from the newer snapshot and says the contrary."""
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(OPTIMIZE))
    for text in winners:
        engine.run(table, "B", statement(text))
    before = row_ids(engine, table)
    outcome = held.release()
    after = row_ids(engine, table)
    assert outcome.word == "commits"
    assert [one for one in before if before[one] == after[one]] == []
    tags = deltalog.commit_infos(table.path, outcome.version - 1)[outcome.version]["tags"]
    assert tags["delta.rowTracking.preserved"] == says


def test_statistics_computed_anew_end_an_update(delta, engine, table_factory):
    """SQL refuses ANALYZE; Delta's own call adds every file again, and to the append check that is an append."""
    table = table_factory("flat")
    assert engine.run(table, "A", statement("ANALYZE TABLE {t} COMPUTE STATISTICS")).word == "fails"
    held = engine.hold(table, "A", statement(WRITERS["an-update-by-key"]))
    scala, inside = delta._jvm.scala, delta._jvm.org.apache.spark.sql
    statistics = getattr(getattr(inside.delta.stats, "StatisticsCollection$"), "MODULE$")
    everywhere = delta._jvm.java.util.Collections.singletonList(inside.catalyst.expressions.Literal.TrueLiteral())
    statistics.recompute(
        delta._jsparkSession, inside.delta.DeltaLog.forTable(delta._jsparkSession, str(table.path)),
        getattr(getattr(scala, "None$"), "MODULE$"), scala.jdk.javaapi.CollectionConverters.asScala(everywhere).toSeq(),
        getattr(statistics, "recompute$default$5")(),
    )
    assert [row.operation for row in engine.history(table)] == ["COMPUTE STATS"]
    assert held.release().word == "append"
