"""Does auto compaction give fewer conflicts, as is said? It is an OPTIMIZE of its own right behind a write.

A writer that is held meets two winners then, and the second adds files in every partition that the first has written
to, even where the first itself is excused. By default fifty small files must have come together; here two are enough.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from lakerace.compacting import ON_11, ON_12, WRITERS, against, merge
from lakerace.free import ADDED, inserts_and_deletes, run_free
from lakerace.layouts import layout
from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE, Expected, Layout, Race, held_against, statement
from lakerace.rules.findings import by_the_rules, predicted
from lakerace.rules.settings import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
THROWS = "spark.databricks.delta.postCommitHook.throwOnError"


def turned_on(key: str, name: str = "by-date") -> Layout:
    """A layout with ``key``, auto compaction or optimized writes, turned on when all its rows are there."""
    made = layout(name)
    turn_on = f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.autoOptimize.{key}' = 'true')"
    return replace(made, name=f"{name}-{key}", meaning=f"{made.meaning}, {key} on", setup=(*made.setup, turn_on))


PLAIN, COMPACTED, OPTIMIZED = layout("by-date"), turned_on("autoCompact"), turned_on("optimizeWrite")
INSERT_11, INSERT_FROM_11 = WRITERS["an-insert"], WRITERS["an-insert-from-itself"]
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
HELD = WRITERS | {
    "an-update-of-the-other-date": UPDATE_12,
    "optimize": "OPTIMIZE {t}",
    "optimize-of-its-date": f"OPTIMIZE {{t}} WHERE {ON_11}",
    "optimize-of-the-other-date": f"OPTIMIZE {{t}} WHERE {ON_12}",
}
BY_INSERT = {"an-insert": INSERT_11}
BY_OTHERS = {
    "an-update": WRITERS["an-update"].replace("'A'", "'B'"),
    "a-merge": merge(7, f"t.id = s.id AND t.{ON_11}"),
    "a-merge-that-inserts": merge(202, f"t.id = s.id AND t.{ON_11}"),
}
CORE = frozenset((
    "an-insert~an-insert", "a-merge~an-insert", "a-delete~an-insert", "an-update~a-merge",
))
"""Of the table without deletion vectors, at WriteSerializable."""


def every_pair() -> Iterator[Race]:
    """Each writer against an INSERT that brings a compaction, one of each kind against other such writers; no outcome
    is stated."""
    kinds = ("an-insert", "an-update", "an-update-of-the-other-date", "a-delete", "a-merge", "optimize-of-its-date")
    for made, isolation in product((COMPACTED, turned_on("autoCompact", "by-date-dv")), ISOLATIONS):
        for held, winners in ((HELD, BY_INSERT), ({name: HELD[name] for name in kinds}, BY_OTHERS)):
            yield from against(f"auto-compaction/{isolation}", made, held, winners, isolation=isolation,
                               settings=((AT_ONCE, "false"),))


def races(_line: Line, profile: str) -> Iterator[Race]:
    yield from RACES
    core = {f"auto-compaction/{WRITE_SERIALIZABLE}/{COMPACTED.name}/{name}" for name in CORE}
    yield from (race for race in every_pair() if profile == "full" or race.name in core)


def test_race(case, check, engine):
    check(case, None if case.expect else by_the_rules(predicted(case, engine.line)), rules=True)


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
    table = table_factory(COMPACTED, audited=False)
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


@pytest.mark.report("B17")
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("name", "isolation"), [("by-date-dv", SERIALIZABLE), ("by-date", WRITE_SERIALIZABLE)])
def test_among_deleters_no_insert_ever_hears_of_its_compaction(engine, name, isolation):
    """Nobody is steered, since a compaction can't be held: some of them lose to a DELETE, which is chance. Each INSERT
    is acknowledged at its first attempt all the same, and every row is there or gone as its statement was told."""
    jobs = inserts_and_deletes(2, ((1, 2, 3, 4, 5, 6), (9, 10, 11, 12, 13, 14)), 6)
    found = run_free(engine, jobs, layout=turned_on("autoCompact", name), isolation=isolation)
    kept = found.acknowledged
    print(found, f"{found.versions - kept} compactions", sep=", ")
    assert found.broken == (), str(found)
    assert kept == len(found.ended) == 24
    assert [one for one in found.ended if one.job.kind == ADDED and one.conflicts] == []
