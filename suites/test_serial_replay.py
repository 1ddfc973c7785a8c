"""Is a race on a real engine judged by a replay on it, at the promised cost? On delta-rs, so no JVM."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakerace.engines import EngineError
from lakerace.layouts import LAYOUTS
from lakerace.orders import parse_order
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, Race, Reader, Statement, Writer, statement
from lakerace.run import run_race
from lakerace.serial.engine import Replayer
from lakerace.serial.history import ended, history_of
from lakerace.serial.model import ANOMALY, EXPLAINED, UNKNOWN

if TYPE_CHECKING:

    from lakerace.engines import Engine

INSERT = statement("INSERT INTO {t} VALUES (90, DATE'2026-08-11', 'DE', 1, 'new')")
OTHER_INSERT = statement("INSERT INTO {t} VALUES (91, DATE'2026-08-11', 'DE', 1, 'new')")
UPDATE = statement("UPDATE {t} SET note = 'set' WHERE id = 1")
DELETE_ALL = statement("DELETE FROM {t}")
OPTIMIZE = statement("OPTIMIZE {t}")
BUMP = Statement(
    name="bump", looks="SELECT amount FROM {t} WHERE id = 1", does="UPDATE {t} SET amount = {seen} + 1 WHERE id = 1",
)
COUNT = "SELECT count(*) AS n FROM {t}"
BOTH = "SELECT (SELECT count(*) FROM {t}) AS n, (SELECT count(*) FROM {twin}) AS m"


@pytest.fixture(scope="module")
def replayer(delta_rs: Engine) -> Replayer:
    return Replayer(delta_rs)


def race(order: str, *writers: Statement | tuple[Statement, ...], queries: tuple[str, ...] = (),
         isolation: str = SERIALIZABLE) -> Race:
    return Race(
        name="replay",
        layout=LAYOUTS["flat"],
        isolation=isolation,
        writers=tuple(Writer(name=name, statements=does if isinstance(does, tuple) else (does,))
                      for name, does in zip("ABC", writers, strict=False)),
        readers=(Reader(name="R", queries=queries),) if queries else (),
        order=parse_order(order),
    )


HELD = "A:read B:read B:commit A:commit"


@pytest.mark.parametrize(("case", "told"), [
    (race(HELD, OTHER_INSERT, INSERT), "explained by: B then A"),
    (race(HELD, OPTIMIZE, INSERT), "explained by: B; A changed no row"),
    (race(HELD, UPDATE, UPDATE), "explained by: B"),
    (race("A:read A:commit B:read B:commit", UPDATE, (INSERT, OTHER_INSERT)), "explained by: A then B.1 then B.2"),
    (race("A:look A:read A:commit B:look B:read B:commit", BUMP, BUMP), "explained by: A then B"),
    (race("R:open A:read A:commit R:again R:pinned R:latest", INSERT, queries=(COUNT,)),
     "explained by: A; R reads before all, then after A"),
    (race("A:look B:look B:read B:commit A:read A:commit", BUMP, BUMP),
     "lost update: A (UPDATE {t} SET amount = 10 + 1 WHERE id = 1) overwrote what B (UPDATE {t} SET amount = 10 + 1 "),
    (race(HELD, DELETE_ALL, INSERT),
     "phantom: A (DELETE FROM {t}) did not see what B (INSERT INTO {t} VALUES (90, "),
    (race(HELD, DELETE_ALL, INSERT, isolation=WRITE_SERIALIZABLE), "explained by: A then B"),
    (race(HELD, OPTIMIZE, OPTIMIZE),
     "content changed by compaction: A (OPTIMIZE {t}) must change no row: expected (1, 2026-08-11, DE, 10, base)"),
    (race("R:open A:read A:commit R:open", INSERT, queries=(COUNT, COUNT)),
     "non-repeatable read: R:open saw it as it was before all, R:open as it was after A (INSERT INTO {t} VALUES (90, "),
    (race("A:read A:commit B:read B:commit R:open", INSERT, replace(INSERT, does=INSERT.text.replace("{t}", "{twin}")),
          queries=(BOTH,)), "explained by: A then B; R reads after B"),
    (race(HELD, statement("UPDATE {t} SET amount = rand() WHERE id = 1"), UPDATE), "explained by: B"),
    (race(HELD, statement("UPDATE {t} SET amount = 1 + random() WHERE id = 16"), UPDATE),
     "can't be judged: A: it calls rand(), which gives other values each time"),
])  # fmt: skip
def test_a_race_is_explained_or_its_anomaly_named(delta_rs: Engine, replayer: Replayer, case: Race, told: str) -> None:
    seen = run_race(case, delta_rs)
    assert seen.error is seen.unsteerable is None
    found = replayer.explain(case, seen)
    assert found is not None
    assert found.explanation.lines[0].startswith(told)
    history = [one.name for one in history_of(case, seen, ended(case, seen)).committed if not one.keeps]
    assert list(found.explanation.order) != history or found.statements <= len(history)


def test_what_began_alike_is_run_once(delta_rs: Engine) -> None:
    replayer = Replayer(delta_rs)
    counts = []
    for held, winner in (
        (UPDATE, INSERT), (OTHER_INSERT, INSERT), (OTHER_INSERT, INSERT), (OPTIMIZE, INSERT), (UPDATE, INSERT),
        (INSERT, UPDATE), (INSERT, OTHER_INSERT), (OTHER_INSERT, OPTIMIZE), (INSERT, OPTIMIZE),
    ):
        case = race(HELD, held, winner, isolation=WRITE_SERIALIZABLE)
        found = replayer.explain(case, run_race(case, delta_rs))
        assert found is not None
        assert found.explanation.verdict == EXPLAINED
        counts.append(found.statements)
    # An INSERT that is known alone adds the same rows to whatever is there.
    assert counts == [2, 1, 0, 0, 0, 1, 1, 0, 0]


class Dying:
    """An engine that dies when it is to run a statement."""

    alive = False

    def __init__(self, engine: Engine, error: Exception) -> None:
        self._engine, self._error = engine, error

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def run(self, *_: object) -> object:
        raise self._error


@pytest.mark.parametrize(("error", "reason"), [
    (EngineError("the JVM died while replay ran insert"), "the replay broke: the JVM died while replay ran insert"),
    (ConnectionError(), "the JVM died during the replay (ConnectionError)"),
])
def test_an_engine_that_dies_judges_nothing(delta_rs: Engine, error: Exception, reason: str) -> None:
    case = race(HELD, OTHER_INSERT, INSERT)
    found = Replayer(Dying(delta_rs, error)).explain(case, run_race(case, delta_rs))  # type: ignore[arg-type]
    assert found is not None
    assert (found.explanation.verdict, found.explanation.reason) == (UNKNOWN, reason)


def test_what_was_not_seen_is_not_explained(delta_rs: Engine, replayer: Replayer) -> None:
    case = race(HELD, OTHER_INSERT, INSERT)
    assert replayer.explain(case, replace(run_race(case, delta_rs), error="the JVM died")) is None


def test_a_lie_is_not_explained(delta_rs: Engine, replayer: Replayer) -> None:
    case = race(HELD, OTHER_INSERT, INSERT)
    seen = run_race(case, delta_rs)
    for lie in (
        replace(seen, rows_after=seen.rows_after[1:]),
        replace(seen, rows_after=(*seen.rows_after, seen.rows_after[0])),
        replace(seen, between=tuple(replace(one, rows=seen.rows_before) for one in seen.between)),
    ):
        found = replayer.explain(case, lie)
        assert found is not None
        assert found.explanation.verdict == ANOMALY
