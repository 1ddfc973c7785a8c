"""The arithmetic of contention against drawn and counted cases, its advice, and the command line."""

from __future__ import annotations

import json
import math
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lakerace.contention import carried, plots, scenarios
from lakerace.contention.advice import GOAL, REDESIGN_ABOVE, TAGS, outlook
from lakerace.contention.arithmetic import (
    Beat,
    Fleet,
    Load,
    LoadError,
    in_lanes,
    in_step,
    in_turn,
    needed,
    within,
)
from lakerace.contention.page import page
from lakerace.contention.scenarios import TOGETHER, Dot, Measured, Tally
from lakerace.engines import EngineError
from lakerace.engines.lines import line
from lakerace.observe import Outcome
from lakerace.race import SERIALIZABLE

if TYPE_CHECKING:
    from collections.abc import Callable

LOADS = tuple(Load(commits_per_hour=rate, minutes=7, overlap=share) for rate in (3, 11, 40) for share in (0.1, 1))


def drawn(load: Load, times: int, gaps: Callable[[random.Random], float]) -> float:
    """The share of attempts that meet no conflicting commit when the gaps between commits are drawn, in minutes."""
    lot = random.Random(20260811)  # noqa: S311 - drawn the same way every time, and no secret
    clear, now, after = 0, lot.random() * 60 / load.commits_per_hour, 0.0
    for _ in range(times):
        end, hit = after + load.minutes, False
        while now <= end:
            hit = hit or lot.random() < load.overlap
            now += gaps(lot)
        clear, after = clear + (not hit), end
    return clear / times


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_commits_at_random_leave_as_many_attempts_alone_as_computed(load: Load) -> None:
    seen = drawn(load, 4000, lambda lot: lot.expovariate(load.commits_per_hour / 60))
    assert seen == pytest.approx(load.success, abs=0.03)


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_commits_in_a_fixed_beat_do_too(load: Load) -> None:
    seen = drawn(load, 4000, lambda _: 60 / load.commits_per_hour)
    assert seen == pytest.approx(load.success_in_beat, abs=0.03)


def test_attempts_are_those_of_a_coin() -> None:
    load = Load(commits_per_hour=60 * math.log(2), minutes=1)
    assert (load.success, load.attempts) == (pytest.approx(0.5), pytest.approx(2))
    assert [load.within(count) for count in (1, 2, 3)] == pytest.approx([0.5, 0.75, 0.875])
    assert needed(0.5, 0.99) == 7
    assert within(0.5, 7) > 0.99 > within(0.5, 6)


def test_numbers_beyond_a_float_are_infinite() -> None:
    hopeless = Load(commits_per_hour=1e6, minutes=600)
    assert (hopeless.success, hopeless.attempts, needed(hopeless.success, 0.5)) == (0, math.inf, math.inf)
    assert hopeless.within(10**6) == 0


@pytest.mark.parametrize("writers", range(1, 17))
def test_writers_together_need_between_the_bounds(writers: int) -> None:
    """Counted by playing it: the worst case lets each loser lose once to each commit, the best once to the first."""
    worst = sum(range(1, writers + 1))
    assert (in_step(writers), in_turn(writers)) == (worst, writers + (writers - 1))
    assert writers <= in_turn(writers) <= in_step(writers)
    assert [in_lanes(writers, 1), in_lanes(writers, writers)] == [worst, writers]
    for lanes in range(1, writers + 1):
        crowded = [sum(number % lanes == lane for number in range(writers)) for lane in range(lanes)]
        assert in_lanes(writers, lanes) == sum(map(in_step, crowded))


def test_a_beat_gives_every_commit_to_one_attempt() -> None:
    beat = Beat(minutes=24, every=7)
    assert [list(beat.commits(number)) for number in range(3)] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9, 10]]
    assert beat.attempts(lambda number: number < 5, limit=9) == 3
    assert beat.attempts(lambda number: number < 5, limit=9, after=2) == 1
    assert beat.attempts(lambda _: True, limit=9) is None


@pytest.mark.parametrize(("numbers", "said"), [
    ({"commits_per_hour": -1}, "commits per hour: -1 can't be; give at least 0"),
    ({"commits_per_hour": math.nan}, "commits per hour: nan"),
    ({"minutes": 0}, "minutes: 0 can't be; give more than 0"),
    ({"minutes": math.inf}, "minutes: inf"),
    ({"overlap": 1.5}, "overlap: 1.5 can't be; give at least 0 and at most 1"),
])
def test_a_load_that_cannot_be_is_refused(numbers: dict[str, float], said: str) -> None:
    with pytest.raises(LoadError, match=said):
        Load(**{"commits_per_hour": 1, "minutes": 1, **numbers})


def test_a_fleet_cannot_commit_more_than_its_lanes_hold() -> None:
    fleet = Fleet(writers=10, each_per_hour=6, minutes=5, overlap=0.5)
    assert (fleet.most_per_hour, fleet.use, fleet.load.commits_per_hour) == (24, 2.5, 54)
    with pytest.raises(LoadError, match="writers: 0"):
        Fleet(writers=0, each_per_hour=6, minutes=5)


@pytest.mark.parametrize("load", [
    Load(commits_per_hour=rate, minutes=minutes, overlap=share)
    for rate in (6, 120, 2000) for minutes in (1, 20) for share in (0.02, 0.3, 1)
], ids=str)
def test_each_piece_of_advice_reaches_the_goal_and_has_a_tag(load: Load) -> None:
    found = outlook(load, 5)
    assert {one.tag for one in found.advice} <= set(TAGS)
    assert bool(found.advice) == (load.success < GOAL)
    assert all(one.load.success >= GOAL - 1e-9 for one in found.advice)
    assert (found.warning is not None) == (load.attempts > REDESIGN_ABOVE)


def test_it_is_carried_to_hundreds_of_writers_and_thousands_of_commits() -> None:
    rows = carried.carried()
    assert max(row.fleet.writers for row in rows) >= 500
    assert max(row.fleet.writers * row.fleet.each_per_hour for row in rows) >= 5000
    assert {row.word for row in rows} == {"impossible", "redesign", "retrying does"}


# What is measured is counted; a liar among the outcomes is heard.

SEEN = Measured(scenario=TOGETHER, question="How many?", x="writers", engine="delta-rs", dots=(
    Dot(series="one", x=2, attempts=3, commits=2, predicted=3, refused=("append",), wasted=1015),
    Dot(series="one", x=4, attempts=9, commits=4, predicted=10),
))


def test_an_outcome_that_is_no_conflict_ends_a_scenario() -> None:
    failed = Outcome(writer="A", statement="s", text="UPDATE", held=True, outcome="fails", message="no such column")
    with pytest.raises(EngineError, match="A: UPDATE: fails \\(no such column\\)"):
        Tally().add(failed)


def test_what_the_rules_say_nothing_of_is_not_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "predicted", lambda race, line: {})
    engine = SimpleNamespace(line=line("delta-rs"))
    with pytest.raises(EngineError, match="no rules for UPDATE against DELETE on delta-rs"):
        scenarios.conflict(engine, scenarios.FLAT, SERIALIZABLE, "UPDATE", "DELETE")  # type: ignore[arg-type]


def test_a_plot_is_the_same_every_time_and_needs_nobody() -> None:
    svg = plots.plot(SEEN)
    assert svg == plots.plot(SEEN)
    assert "<script" not in svg
    assert "://" not in svg.replace("http://www.w3.org/", "")
    assert ">one</text>" in svg


def test_the_page_says_how_many_numbers_are_predicted() -> None:
    text = page([SEEN])
    assert "1 of 2 numbers are those of the arithmetic" in text
    assert "://" not in text.replace("http://www.w3.org/", "")


# The command line.


def test_a_load_is_computed_without_an_engine(told) -> None:
    load = ("--commits-per-hour", "2000", "--slow-minutes", "20", "--overlap", "0.3")
    code, out, err = told("contention", *load, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["conflicting_commits_per_attempt"] == pytest.approx(200)
    assert found["redesign"] is True
    assert err.startswith("lakerace: warning: redesign, don't retry harder: ")
    assert {one["tag"] for one in found["advice"]} <= set(TAGS)


def test_a_quiet_table_needs_no_advice(told) -> None:
    code, out, err = told("contention", "--commits-per-hour", "2", "--slow-minutes", "1")
    assert (code, err) == (0, "")
    assert "what helps" not in out


@pytest.mark.parametrize(("given", "said"), [
    (("--commits-per-hour", "5"), "give --commits-per-hour and --slow-minutes"),
    (("--commits-per-hour", "5", "--slow-minutes", "0"), "minutes: 0 can't be"),
    (("--commits-per-hour", "5", "--slow-minutes", "1", "--overlap", "2"), "overlap: 2 can't be"),
    (("--commits-per-hour", "5", "--slow-minutes", "1", "--attempts", "0"), "--attempts 0: at least one"),
    (("--commits-per-hour", "5", "--slow-minutes", "1", "--engine", "delta-rs"), "not both"),
    (("--commits-per-hour", "many"), "--commits-per-hour"),
    (("--writers", "17"), "--writers 17: 2 to 16"),
    (("--scenario", "storm"), "unknown scenario 'storm'; use one of starvation, together, compaction"),
    (("--scenario", "compaction", "--writers", "4"), "--writers is about the scenario together"),
    (("--engine", "delta-9"), "delta-9"),
])
def test_what_cannot_be_computed_or_measured_is_refused(refused, given: tuple[str, ...], said: str) -> None:
    assert said in refused("contention", *given)
