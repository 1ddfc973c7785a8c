"""Every field report has races or tests behind it, or a reason why there are none."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from lakerace import cli_race, field, named
from lakerace.engines.lines import line, load_lines
from lakerace.field import Answered, Difference, FieldError, Report, Shown, check_reports, unanswered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakerace.ask import Asked
    from lakerace.race import Race

LINES = (line("delta-4.4"), line("delta-4.0"))
GOOD = Report(id="A1", title="a title", reported="a loss", links=("https://a.example/1",), where=("a-race",),
              advice="Do this.")
SHOWN = {"A1": (Shown(name="a-race", is_race=True, outcomes={"delta-4.4": "A append, B commits"}),)}


def changed(**fields: object) -> Report:
    return msgspec.structs.replace(GOOD, **fields)


def differing(**fields: str) -> Report:
    return changed(differs=(Difference(**{"whose": "docs", "kind": "docs-gap", "reason": "Another class.", **fields}),))


def test_every_report_is_answered_and_every_id_is_a_report() -> None:
    assert unanswered(field.load_reports(), field.evidence(tuple(load_lines().values()))) == ()


REPRODUCED = [report for report in field.load_reports() if report.reproducer]


@pytest.mark.parametrize("report", REPRODUCED, ids=lambda report: report.id)
def test_a_reproducer_is_what_the_command_line_takes(
    report: Report, told: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own parser reads the line, and every statement is one that it would race; no engine is asked."""
    if report.command is None:
        assert compile(report.reproducer, report.id, "exec")
        return
    asked: list[Race | Asked] = []
    monkeypatch.setattr(cli_race, "_one", lambda race, *_: asked.append(race) or 0)
    monkeypatch.setattr(cli_race, "_many", lambda lines, *_: asked.extend(lines) or 0)
    monkeypatch.setattr(cli_race, "hand_over", lambda _: None)
    arguments, given = report.command
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    assert told(*arguments) == (0, "", "")
    assert [getattr(one, "error", None) for one in asked] == [None]


LAST = {"A": 21, "B": 17, "C": 21, "D": 9, "E": 15, "F": 11, "G": 5, "H": 15, "I": 10}
"""The last number of each section; the collection has the odd ones, and all of I."""


def test_no_report_is_left_out() -> None:
    steps = {name: 1 if name == "I" else 2 for name in LAST}
    wanted = {f"{name}{number}" for name, last in LAST.items() for number in range(1, last + 1, steps[name])}
    assert sorted(wanted - field.known_ids()) == []


def test_reports_are_sorted_by_section_and_number() -> None:
    assert [one.id for one in check_reports([changed(id="B2"), changed(id="A10"), changed(id="A9")])] == [
        "A9", "A10", "B2",
    ]


@pytest.mark.parametrize(("liar", "said"), [
    ([GOOD, GOOD], "A1: stands twice"),
    ([changed(id="Z1")], "Z1: an id is a section, A to I, and a number"),
    ([changed(title="two\nlines")], "A1: the title is one line"),
    ([changed(reported=" ")], "A1: `reported` must say something"),
    ([changed(where=())], "A1: name races or tests in `where`, or say in `not_shown` why"),
    ([changed(not_shown="cloud")], "A1: name races or tests in `where`, or say in `not_shown` why"),
    ([changed(advice="")], "A1: `advice` is one sentence"),
    ([changed(links=())], "A1: a report has a link"),
    ([changed(links=("delta#761",))], "A1: a link starts with https://"),
    ([changed(reproducer="lakerace race")], "A1: a reproducer has a paragraph for the maintainers"),
    ([changed(reproducer="pytest", paragraph="p")], "A1: a reproducer is a `lakerace race` command, or PySpark"),
    ([changed(reproducer="lakerace race --held 'a", paragraph="p")], "A1: no shell reads the reproducer: No closing"),
    ([changed(reproducer="lakerace race --held a", paragraph="p")], "A1: a reproducer says with --expect what it"),
    ([differing(whose="somebody")], "A1: `differs` from 'somebody'; use one of docs, reporter, source guess"),
    ([differing(kind="other")], "A1: `differs` of kind 'other'; use one of by-design, docs-gap,"),
    ([differing(kind="")], "A1: `differs` of kind ''; use one of by-design, docs-gap,"),
    ([differing(reason=" ")], "A1: what differs from the docs needs one sentence in `reason`"),
])
def test_a_wrong_report_is_refused(liar: list[Report], said: str) -> None:
    with pytest.raises(FieldError, match=said):
        check_reports(liar)


@pytest.mark.parametrize(("reports", "shown", "said"), [
    ([], SHOWN, "a-race carries A1, which is no report"),
    ([GOOD], {}, "A1: `where` names 'a-race', but nothing of that name carries the id"),
    ([changed(where=("a-race", "b-*"))], SHOWN, "A1: `where` names 'b-*', but nothing of that name carries the id"),
    ([changed(where=(), not_shown="cloud")], SHOWN, "A1: a-race carries the id, but `where` doesn't name it"),
], ids=["unknown", "nothing", "stale", "unnamed"])
def test_a_report_and_its_races_must_name_each_other(
    reports: list[Report], shown: dict[str, tuple[Shown, ...]], said: str
) -> None:
    assert unanswered(reports, shown) == (said,)


def test_case_and_control_stand_before_the_other_outcomes_and_tests_last() -> None:
    told = (("loses", "append", 1), ("is-told", "metadata", 1), ("is-sent-away", "write", 2), ("passes", "commits", 1))
    races = [Shown(name=f"{name}-{number}", is_race=True, outcomes={"delta-4.4": f"A {word}, B commits"})
             for name, word, count in told for number in range(count)]
    tests = [Shown(name=name, is_race=False, outcomes={"delta-4.4": "So it is."}) for name in ("test_a", "test_b")]
    found = Answered(report=GOOD, shown=(*races, *tests)).groups
    assert [(group[0].name, len(group)) for group in found] == [
        ("loses-0", 1), ("passes-0", 1), ("is-sent-away-0", 2), ("is-told-0", 1), ("test_a", 1), ("test_b", 1),
    ]


def test_writers_that_end_alike_are_told_together() -> None:
    told = {"a": "A append, B commits, C commits, D commits", "b": "A append, B commits, C commits, D commits",
            "c": "A commits, B commits"}
    assert field.by_outcome(told) == (("a, b", "A append, B to D commits"), ("c", "A commits, B commits"))


def test_a_report_is_told_with_its_addresses_wherever_a_race_carries_it() -> None:
    assert field.told(("B5", "Z9")) == (
        "B5 Two maintenance jobs of one table end each other",
        "   https://github.com/databrickslabs/overwatch/issues/1152",
        "   https://github.com/databrickslabs/overwatch/issues/1166",
        "Z9",
    )


SUITE = '''"""Who is first?"""
import pytest
from lakerace.layouts import LAYOUTS
from lakerace.race import Expected, held_against
VERSIONS = ">=4.0"
RACES = (
    held_against("r", layout=LAYOUTS["flat"], held="UPDATE {t} SET id = 1", winners=["OPTIMIZE {t}"], reports=("A1",),
                 expect=[Expected(word="append", condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"),
                         Expected(word="commits")]),
)
def test_race(case, check):
    check(case)
@pytest.mark.report("A1", "A2")
def test_it_is_so():
    """What it
    says."""
'''


def test_the_measured_outcome_is_what_the_race_expects_there(
    told: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "test_first.py").write_text(SUITE, encoding="utf-8")
    # The tests of a suite whose packages are not installed can't run here, and so answer nothing.
    other = "import pytest, not_installed\n@pytest.mark.report('A1')\ndef test_other(): pass\n"
    (tmp_path / "test_other.py").write_text(other, encoding="utf-8")
    monkeypatch.setattr(named, "suites_dir", lambda: tmp_path)
    race = Shown(name="r", is_race=True, outcomes={
        "delta-4.4": "A append+p, B commits", "delta-4.0": "A append, B commits",
    })
    test = Shown(name="test_it_is_so", is_race=False, outcomes={
        "delta-4.4": "What it says.", "delta-4.0": "What it says.",
    })
    assert field.evidence(LINES) == {"A1": (race, test), "A2": (test,)}
    answer = msgspec.structs.replace(differing(), where=("r", "test_it_is_so"))
    monkeypatch.setattr(field, "load_reports", lambda: (answer,))
    told_text = told("list", "--field")[1]
    assert all(word in told_text for word in (
        "A1  a title\n    https://a.example/1\n", "append+p", "What it says.", "Do this.", "1 reports, 0 of",
        "! Not as the documents say (docs-gap): Another class.",
    ))
    (row,) = json.loads(told("list", "--field", "--json")[1])
    assert row["differs"] == [{"from": "docs", "kind": "docs-gap", "reason": "Another class."}]
    assert row["shown"][0] == {
        "name": "r", "delta-4.4": "A append+p, B commits", "delta-4.0": "A append, B commits", "delta-rs": None,
    }
