"""Does running a statement again settle it? Six upserts of one table, each run again after a conflict until it commits.

Whoever loses has lost to a commit, and each of the others commits once: a statement needs no more attempts than there
are writers, in whatever order they come. Literals that name the partition bring it down to one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from lakerace.conflicts import classify
from lakerace.layouts import layout_from_statements
from lakerace.orders import parse_order
from lakerace.outcomes import COMMITS, LOSES_P
from lakerace.race import Expected, Race, Writer, statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakerace.engines import Engine, Table

VERSIONS = ">=4.0"
WRITERS = 6
KEYS = layout_from_statements("keys", (
    "CREATE TABLE {t} (id INT, done INT) USING delta PARTITIONED BY (id)",
    f"INSERT INTO {{t}} SELECT CAST(id AS INT) AS id, 0 AS done FROM range({WRITERS})",
))
NAMED = {"the-join": "t.id = s.id", "a-literal": "t.id = s.id AND t.id = {key}"}


def upsert(key: int, named: str) -> str:
    return (f"MERGE INTO {{t}} t USING (SELECT {key} AS id, 1 AS done) s ON {NAMED[named].format(key=key)} "
            "WHEN MATCHED THEN UPDATE SET done = t.done + s.done WHEN NOT MATCHED THEN INSERT *")


def all_held(name: str, named: str, later: Expected) -> Race:
    """All six read one version and then commit one after the other."""
    names = "ABCDEF"
    return Race(
        name=name, layout=KEYS, reports=("A15",),
        writers=tuple(Writer(name=writer, statements=(statement(upsert(key, named)),))
                      for key, writer in enumerate(names)),
        order=parse_order(" ".join(f"{writer}:{stop}" for stop in ("read", "commit") for writer in names)),
        expect=tuple((writer, later if key else COMMITS) for key, writer in enumerate(names)),
    )


RACES = (
    all_held("of-six-upserts-that-the-join-names-one-commits", "the-join", LOSES_P),
    all_held("six-upserts-that-literals-name-all-commit", "a-literal", COMMITS),
)


def test_race(case, check):
    check(case, rules=True)


@pytest.fixture
def keys(table_factory: Callable[..., Table]) -> Table:
    return table_factory(KEYS)


def assert_each_committed_once(engine: Engine, table: Table) -> None:
    seen = engine.read_back(table)
    assert [row.operation for row in seen.history] == ["MERGE"] * WRITERS
    assert seen.rows == tuple((key, 1) for key in range(WRITERS))


@pytest.mark.report("A15")
def test_at_worst_the_last_of_six_upserts_needs_six_attempts(engine, keys):
    """The join names the partition, all six read the same version in each round: one commits, the others run again."""
    waiting = list(range(WRITERS))
    while waiting:
        held = [engine.hold(keys, f"W{key}", statement(upsert(key, "the-join"))) for key in waiting]
        words = [writer.release().word for writer in held]
        assert words == ["commits", *["append"] * (len(waiting) - 1)]
        del waiting[0]
    assert_each_committed_once(engine, keys)


@pytest.mark.report("A15", "A3")
def test_with_a_literal_six_upserts_need_one_attempt_each(engine, keys):
    """All six read the same version, a literal names each one's partition: all commit."""
    held = [engine.hold(keys, f"W{key}", statement(upsert(key, "a-literal"))) for key in range(WRITERS)]
    assert [writer.release().word for writer in held] == ["commits"] * WRITERS
    assert_each_committed_once(engine, keys)


@pytest.mark.report("A15")
@pytest.mark.parametrize("named", NAMED)
def test_six_upserts_that_run_freely_commit_once_each(engine, delta, keys, named):
    """Nobody is held: every upsert commits once, after at most six attempts; with a literal at the first."""
    together = Barrier(WRITERS)

    def until_it_commits(key: int, attempt: int = 1) -> int:
        try:
            delta.sql(engine.fill(upsert(key, named), keys))
        except Exception as error:
            conflict = classify(error)
            if conflict is None or not conflict.rerun_can_help or attempt == WRITERS:
                raise
            return until_it_commits(key, attempt + 1)
        return attempt

    def start(key: int) -> int:
        together.wait(timeout=60)
        return until_it_commits(key)

    with ThreadPoolExecutor(WRITERS) as pool:
        attempts = list(pool.map(start, range(WRITERS)))
    assert named == "the-join" or attempts == [1] * WRITERS
    assert_each_committed_once(engine, keys)
