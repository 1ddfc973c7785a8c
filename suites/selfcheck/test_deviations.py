"""Is what is written down wrongly refused? Deviations and grids with a typo, out of date, or against each other."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import expect
from lakerace.deviations import Known, idle, of_races, unanswered
from lakerace.expect import (
    Deviation,
    ExpectationError,
    check_names,
    deviation_for,
    from_cell,
    load_deviations,
    read_grid,
    stale,
)
from lakerace.judge import DECLARED, MEETS, UNDECLARED, judge
from lakerace.race import Expected
from lakerace.serial.model import Explanation, Replay, Tried
from selfcheck.declared import BOTH, LINE, LOSES
from selfcheck.seen import DONE, LOST, with_commit

if TYPE_CHECKING:
    from pathlib import Path

    from lakerace.engines.lines import Line


def deviations(tmp_path: Path, text: str, chosen: Line = LINE) -> tuple[Deviation, ...]:
    file = tmp_path / "vendor.toml"
    file.write_text(text, encoding="utf-8")
    return tuple(one for one in load_deviations(chosen, [file]) if not one.ours)


ENTRY = {
    "races": '["an-update-loses-*"]',
    "versions": '">=4.4"',
    "expect": '"commits"',
    "kind": '"vendor"',
    "because": '"row level"',
}


def entry(**changes: str | None) -> str:
    fields = {**ENTRY, **changes}
    return "[[deviation]]\n" + "".join(f"{key} = {value}\n" for key, value in fields.items() if value is not None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expect": '"comits"'}, "vendor.toml, deviation 1: 'comits' is no outcome"),
        ({"expect": '"append+q"'}, "'append+q' is no outcome"),
        ({"anomaly": '"write slew"'}, "deviation 1: 'write slew' is no anomaly; use one of dirty write, dirty read"),
        ({"kind": '"whim"'}, "kind 'whim'; use one of engine-change, upstream-bug, vendor, unreviewed"),
        ({"versions": '"four"'}, "'four' is no version range"),
        ({"versions": '"=>4.4"'}, "'=>4.4' is no version range"),
        ({"because": '"  "'}, "a deviation needs a reason in `because`"),
        ({"because": None}, "missing required field `because`"),
        ({"reason": '"x"'}, "unknown field `reason`"),
        ({"races": '"an-update-*"'}, "Expected `array`"),
        ({"races": "[]"}, "a deviation needs the names of its `races`"),
        ({"races": '[" "]'}, "a deviation needs the names of its `races`"),
    ],
)
def test_a_deviation_with_a_typo_is_refused(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(ExpectationError, match=re.escape(message)):
        deviations(tmp_path, entry(**changes))


def test_a_deviation_is_applied_in_its_range_only(tmp_path: Path) -> None:
    inside = deviations(tmp_path, entry())
    outside = deviations(tmp_path, entry(versions='"<4.4"'))
    committed = replace(DONE, race=LOSES.name)
    assert judge(LOSES, committed, LINE, inside).word == DECLARED
    assert judge(LOSES, committed, LINE, outside).word == UNDECLARED
    assert outside == ()


def test_a_deviation_that_does_not_happen_is_a_difference(tmp_path: Path) -> None:
    verdict = judge(LOSES, LOST, LINE, deviations(tmp_path, entry()))
    assert verdict.word == UNDECLARED
    assert verdict.differences == ("A: expected commits, seen append (DELTA_CONCURRENT_APPEND.WITHOUT_HINT)",)
    assert verdict.deviation == "vendor: row level"


def test_a_deviation_that_declares_the_expected_is_a_difference(tmp_path: Path) -> None:
    base = {"A": from_cell("append", LINE, "flat.serializable.md"), "B": Expected(word="commits")}
    verdict = judge(LOSES, LOST, LINE, deviations(tmp_path, entry(expect='"append"')), base)
    assert verdict.differences == ("A: vendor.toml, deviation 1 declares what is expected anyway; remove it",)


def test_a_stale_deviation_is_told(tmp_path: Path) -> None:
    found = deviations(tmp_path, entry(races='["an-update-loses-*", "gone-*"]'))
    assert stale(found, [LOSES.name]) == (
        "vendor.toml, deviation 1: 'gone-*' matches no race; remove it or mend the name",
    )
    assert deviation_for("gone-2", "A", found) is not None
    assert deviation_for("gone-2", "B", found) is None


def test_a_writer_that_no_race_has_is_told(tmp_path: Path) -> None:
    found = deviations(tmp_path, entry(writer='"Q"'))
    assert tuple(unanswered(found, of_races([LOSES]), whole=True)) == (
        "vendor.toml, deviation 1: its races have no writer 'Q', they have A, B",
    )
    assert not tuple(unanswered(found, of_races([LOSES]), whole=False)), "the suite of that writer may not be collected"
    assert not tuple(unanswered(deviations(tmp_path, entry(writer='"B"')), of_races([LOSES]), whole=True))


def test_a_deviation_that_declares_the_expected_is_told_before_anything_runs(tmp_path: Path) -> None:
    grid = {"matrix/x": Known(writers=("A", "B"), expected={"A": "append", "B": "commits"})}

    def told(**changes: str) -> tuple[str, ...]:
        return tuple(idle(deviations(tmp_path, entry(races='["matrix/*"]', **changes)), grid, LINE))

    same = ("vendor.toml, deviation 1 declares of matrix/x what is expected anyway; remove it",)
    assert told(expect='"append"') == told(expect='"commits"', writer='"B"') == same
    assert told(expect='"append+p"') == told(expect='"append"', breaks='"version *"') == ()
    wide = entry(races='["matrix/*"]', expect='"append"') + entry(races='["matrix/x"]')
    assert tuple(idle(deviations(tmp_path, wide), grid, LINE)) == (), "the last deviation is the one that counts"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": '"engine-change"'}, "kind 'engine-change' needs a `link` that shows it"),
        ({"kind": '"upstream-bug"', "link": '"see the source"'}, "kind 'upstream-bug' needs a `link` that shows it"),
        ({"versions": '"<0.1"'}, "no line of 'delta-spark' is in '<0.1'; conf/engines.toml has 4.4.0, 4.0"),
    ],
)
def test_our_own_deviations_can_be_looked_up_and_speak_about_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], message: str
) -> None:
    assert deviations(tmp_path, entry(**changes)) or "versions" in changes, "others may say less"
    (tmp_path / "expect").mkdir()
    (tmp_path / "expect" / "delta-spark.toml").write_text(entry(**changes), encoding="utf-8")
    monkeypatch.setattr(expect, "conf_dir", lambda: tmp_path)
    with pytest.raises(ExpectationError, match=re.escape(f"delta-spark.toml, deviation 1: {message}")):
        load_deviations(LINE)


def test_a_typo_in_a_grid_is_refused(tmp_path: Path) -> None:
    grid = tmp_path / "flat.serializable.md"
    grid.write_text("|  | optimize |\n|---|---|\n| optimise | apend |\n", encoding="utf-8")
    with pytest.raises(ExpectationError, match="unknown row 'optimise'; did you mean 'optimize'"):
        check_names(grid, ["optimize"], ["optimize"])
    with pytest.raises(ExpectationError, match="unknown column 'optimize'"):
        check_names(grid, ["optimise"], ["zorder"])
    with pytest.raises(ExpectationError, match="'apend' is no outcome"):
        from_cell(read_grid(grid)[("optimise", "optimize")], LINE, grid.name)


def test_a_grid_row_of_another_length_is_refused(tmp_path: Path) -> None:
    grid = tmp_path / "by-date.serializable.md"
    grid.write_text("|  | a | b |\n|---|---|---|\n| a | commits |\n", encoding="utf-8")
    with pytest.raises(ExpectationError, match="line 3: 1 cells under 2 columns"):
        read_grid(grid)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("|  | a | b |\n|---|---|---|\n| a | x | y |\n| a | x | z |\n", "line 4: a second row 'a'; merge the two"),
        ("|  | a | a |\n|---|---|---|\n| a | x | y |\n", "line 1: a second column 'a'; merge the two"),
    ],
)
def test_a_name_that_stands_twice_in_a_grid_is_refused(tmp_path: Path, text: str, message: str) -> None:
    grid = tmp_path / "by-date.serializable.md"
    grid.write_text(text, encoding="utf-8")
    with pytest.raises(ExpectationError, match=message):
        read_grid(grid)


def test_an_invariant_that_a_bug_breaks_is_declared_and_must_break(tmp_path: Path) -> None:
    bug = deviations(tmp_path, entry(expect='"append"', kind='"upstream-bug"', breaks='"version 9 adds b.parquet*"'))
    broken = with_commit(LOST, 9, added=("b.parquet", "b.parquet"))
    base = {"A": from_cell("append", LINE, "flat.serializable.md"), "B": Expected(word="commits")}
    assert judge(LOSES, broken, LINE, bug, base).word == DECLARED
    assert judge(LOSES, LOST, LINE, bug, base).differences == (
        "declared to break an invariant ('version 9 adds b.parquet*'), but it holds: remove the deviation",
    )


def replayed(**found: Any) -> Replay:
    return Replay(Explanation(**found), 2, 0.1)


SKEW = replayed(
    verdict="anomaly", anomaly="write skew", witness="A did not see what B had done, nor would B have seen what A did",
    tried=(Tried(order=("B", "A"), why="expected (1, 5), seen (1, 3)"),),
)
BY_RULES = ("rows: B then A, run one after the other in the order of the history, leave 1 rows, the table holds 2",)


def test_an_anomaly_is_a_difference_until_a_deviation_names_it(tmp_path: Path) -> None:
    told = "rows: write skew: A did not see what B had done, nor would B have seen what A did"
    assert judge(BOTH, DONE, LINE, unexplained=BY_RULES, replay=SKEW).differences == (told,)
    bug = deviations(tmp_path, entry(races=f'["{BOTH.name}"]', expect='"commits"', anomaly='"write skew"'))
    assert judge(BOTH, DONE, LINE, bug, unexplained=BY_RULES, replay=SKEW).word == DECLARED
    other = deviations(tmp_path, entry(races=f'["{BOTH.name}"]', expect='"commits"', anomaly='"phantom"'))
    assert judge(BOTH, DONE, LINE, other, replay=SKEW).differences == (
        told, "declared to break an invariant ('rows: phantom: *'), but it holds: remove the deviation",
    )


def test_a_race_names_the_anomaly_that_it_shows() -> None:
    shows = replace(BOTH, anomaly="write skew")
    assert judge(shows, DONE, LINE, replay=SKEW).word == MEETS
    assert judge(shows, DONE, LINE, replay=replayed(verdict="explained")).word == UNDECLARED


def test_a_declared_anomaly_that_is_explained_after_all_is_a_difference(tmp_path: Path) -> None:
    bug = deviations(tmp_path, entry(races=f'["{BOTH.name}"]', expect='"commits"', anomaly='"write skew"'))
    explained = replayed(verdict="explained", order=("B", "A"))
    assert judge(BOTH, DONE, LINE, bug, replay=explained).differences == (
        "declared to break an invariant ('rows: write skew: *'), but it holds: remove the deviation",
    )
    unjudged = replayed(verdict="unknown", reason="A: it calls rand(), which gives other values each time")
    for silent in (None, unjudged):
        assert judge(BOTH, DONE, LINE, bug, unexplained=BY_RULES, replay=silent).word == DECLARED
        assert judge(BOTH, DONE, LINE, unexplained=BY_RULES, replay=silent).differences == BY_RULES


def test_rules_and_replay_must_agree() -> None:
    explained = replayed(verdict="explained", order=("B", "A"))
    assert judge(BOTH, DONE, LINE, replay=explained).word == MEETS
    assert judge(BOTH, DONE, LINE, unexplained=BY_RULES, replay=explained).differences == BY_RULES
