"""Does auto compaction give fewer conflicts, as is said? It is an OPTIMIZE of its own right behind a write.

A writer that is held meets two winners then, and the second adds files in every partition that the first has written
to, even where the first itself is excused. By default fifty small files must have come together; here two are enough.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakerace.layouts import layout
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, Expected, Layout, Race, held_against, statement
from lakerace.rules.settings import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = ">=4.0"
THROWS = "spark.databricks.delta.postCommitHook.throwOnError"


def turned_on(key: str, name: str = "by-date") -> Layout:
    """A layout with ``key``, auto compaction or optimized writes, turned on when all its rows are there."""
    made = layout(name)
    turn_on = f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.autoOptimize.{key}' = 'true')"
    return replace(made, name=f"{name}-{key}", meaning=f"{made.meaning}, {key} on", setup=(*made.setup, turn_on))


PLAIN, COMPACTED, OPTIMIZED = layout("by-date"), turned_on("autoCompact"), turned_on("optimizeWrite")
ON_11, ON_12 = "event_date = DATE'2026-08-11'", "event_date = DATE'2026-08-12'"
INSERT_11 = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_FROM_11 = f"INSERT INTO {{t}} SELECT id + 1000, event_date, country, amount, note FROM {{t}} WHERE {ON_11}"
UPDATE_11 = f"UPDATE {{t}} SET note = 'A' WHERE {ON_11} AND id = 1"
UPDATE_12 = f"UPDATE {{t}} SET note = 'A' WHERE {ON_12} AND id = 9"
COMMITS = Expected(word="commits")


def lost_to(version: int, operation: str, by: str = "append", condition: str = "DELTA_CONCURRENT_APPEND") -> Expected:
    return Expected(word=by, condition=f"{condition}.WITH_PARTITION_HINT", attempts=1,
                    parameters=(("version", str(version)), ("operation", operation)))


def insert_against(name: str, held: str, became: Expected, made: Layout, isolation: str = SERIALIZABLE) -> Race:
    return held_against(name, layout=made, held=held, winners=[INSERT_11], expect=[became, COMMITS],
                        isolation=isolation, settings=((AT_ONCE, "false"),), reports=("B17",))


RACES = (
    insert_against("an-update-loses-to-an-insert-before-it-is-compacted", UPDATE_11, lost_to(10, "WRITE"), COMPACTED),
    insert_against("without-compaction-the-level-excuses-the-insert", UPDATE_11, COMMITS, PLAIN, WRITE_SERIALIZABLE),
    insert_against("the-compaction-of-an-excused-insert-ends-an-update", UPDATE_11, lost_to(11, "OPTIMIZE"), COMPACTED,
                   WRITE_SERIALIZABLE),
    insert_against("the-compaction-of-an-excused-insert-ends-a-read-then-append", INSERT_FROM_11,
                   lost_to(11, "OPTIMIZE"), COMPACTED, WRITE_SERIALIZABLE),
    insert_against("the-compaction-of-an-insert-ends-optimize", f"OPTIMIZE {{t}} WHERE {ON_11}",
                   lost_to(11, "OPTIMIZE", "delete-read", "DELTA_CONCURRENT_DELETE_READ"), COMPACTED),
    insert_against("an-update-of-another-date-outlives-an-insert-and-its-compaction", UPDATE_12, COMMITS, COMPACTED),
    insert_against("an-optimized-insert-is-excused-all-the-same", UPDATE_11, COMMITS, OPTIMIZED, WRITE_SERIALIZABLE),
    insert_against("an-update-loses-to-an-optimized-insert", UPDATE_11, lost_to(10, "WRITE"), OPTIMIZED),
)


def test_race(case, check):
    check(case, rules=True)


@pytest.fixture
def at_once(setting: Callable[[str, str], None]) -> None:
    setting(AT_ONCE, "false")


@pytest.mark.report("B17")
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("throws", [False, True])
def test_a_compaction_that_fails_is_not_heard_of(engine, table_factory, setting, throws):
    """Its input is gone, so it can't end well: the INSERT is acknowledged, and a row of the history is all that lacks.

    A setting that only Delta's own tests turn on raises instead, and the INSERT has committed all the same.
    """
    setting(THROWS, str(throws).lower())
    table = table_factory(COMPACTED)
    next(table.path.glob("event_date=2026-08-11/*.parquet")).unlink()
    outcome = engine.run(table, "A", statement(INSERT_11))
    assert outcome.word == ("fails" if throws else "commits")
    assert [row.operation for row in engine.history(table)] == ["WRITE"]


@pytest.mark.report("B17")
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", ["by-date", "by-date-dv"])
def test_a_compaction_that_ends_well_is_a_commit_of_its_own(engine, table_factory, name):
    """The control; a row that was deleted before, by a deletion vector too, stays so."""
    made = turned_on("autoCompact", name)
    table = table_factory([*made.setup, f"DELETE FROM {{t}} WHERE {ON_11} AND id = 1"])
    engine.run(table, "A", statement(INSERT_11))
    assert [row.operation for row in reversed(engine.history(table))] == ["WRITE", "OPTIMIZE"]
    assert sorted(row[0] for row in engine.rows(table)[1]) == [*range(2, 17), 201]
