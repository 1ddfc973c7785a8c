"""Planted lies between the three sources: grid, rules and engine. Each must be caught, with what all three say."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from packaging.specifiers import SpecifierSet

from lakerace.engines.lines import line
from lakerace.expect import ExpectationError
from lakerace.judge import DECLARED, MEETS, UNDECLARED, judge
from lakerace.layouts import LAYOUTS
from lakerace.matrix import race_of
from lakerace.observe import COMMITS, Commit, Event, HistoryRow
from lakerace.race import Expected
from lakerace.rules import delta, findings
from lakerace.rules.findings import Finding, finding_for, load_findings, predicted, unexplained
from lakerace.rules.model import Prediction
from lakerace.rules.tables import table_of
from selfcheck.seen import lost, observed, won

LINE = line("delta-4.4")
RACE = race_of(("flat", "serializable", "update-by-key", "insert-values"))
APPEND = "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"
LOST, WON = lost(statement="update-by-key", text=""), won(statement="insert-values", text="")
SEEN = observed(
    LOST, WON,
    race=RACE.name,
    history=(HistoryRow(version=9, operation="WRITE", readVersion=8),),
    commits=(Commit(version=9, operation="WRITE", added=("new",)),),
    timeline=(Event(writer="A", what="hold", version=8, at=0.0),),
)
BASE = {"A": Expected(word="append", condition=APPEND, source="flat.serializable.md"), "B": Expected(word="commits")}
RULES = predicted(RACE, LINE)


def verdict(seen=SEEN, base=BASE, rules=RULES, found=()):
    return judge(RACE, seen, LINE, base=base, predicted=rules, findings=found)


def finding(**changes):
    return Finding(**{
        "races": ("matrix/flat/*",), "engine": "delta-spark", "versions": SpecifierSet(">=4"), "rules": "append",
        "seen": "commits", "kind": "upstream-bug", "because": "it does", "evidence": "a race",
        "source": "rules.toml, finding 1", **changes,
    })


def test_three_that_agree_meet():
    assert verdict().word == MEETS


def test_rules_that_lie_are_caught_with_what_all_three_say():
    lying = {**RULES, "A": Prediction(word="commits", sentence="A commits", profile="delta-4.4")}
    found = verdict(rules=lying)
    assert found.word == UNDECLARED
    assert found.differences == (
        f"A: the rules predict commits; flat.serializable.md says append; the engine gives {APPEND}",
    )


def test_a_wrong_sub_condition_of_the_rules_is_caught():
    lying = {**RULES, "A": replace(RULES["A"], condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")}
    assert "the rules predict DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT" in verdict(rules=lying).differences[0]


def test_a_grid_that_was_bent_to_a_wrong_engine_is_caught_by_the_rules():
    committed = replace(LOST, outcome=COMMITS, kind=None, version=10, condition=None, surfaced=None, root=None)
    seen = replace(SEEN, writers=(committed, WON), history=(*SEEN.history, HistoryRow(version=10, operation="UPDATE")))
    found = verdict(seen=seen, base={**BASE, "A": Expected(word="commits", source="flat.serializable.md")})
    assert found.word == UNDECLARED
    assert any("the rules predict DELTA_CONCURRENT_APPEND" in text for text in found.differences)


def test_a_finding_declares_the_difference_and_nothing_else():
    committed = replace(LOST, outcome=COMMITS, kind=None, version=10, condition=None, surfaced=None, root=None)
    seen = replace(
        SEEN,
        writers=(committed, WON),
        history=(*SEEN.history, HistoryRow(version=10, operation="UPDATE")),
        commits=(*SEEN.commits, Commit(version=10, operation="UPDATE")),
    )
    base = {**BASE, "A": Expected(word="commits", source="flat.serializable.md")}
    found = verdict(seen=seen, base=base, found=[finding()])
    assert found.word == DECLARED
    assert "documented, but not so" in found.deviation


def test_a_finding_that_no_longer_holds_is_an_error():
    assert "no longer holds" in verdict(found=[finding()]).differences[0]


def test_a_finding_about_another_engine_or_release_is_not_used():
    assert verdict(found=[finding(engine="delta-rs"), finding(versions=SpecifierSet("<4"))]).word == MEETS
    assert finding_for("matrix/flat/x/y", LINE, [finding(engine="delta-rs")]) is None


def test_a_rule_turned_around_disagrees_with_the_engine(monkeypatch):
    monkeypatch.setattr(delta, "_is_read", lambda *_: False)
    assert any("the rules predict commits" in text for text in verdict(rules=predicted(RACE, LINE)).differences)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('rules = "apend"', "'apend' is no outcome"),
        ('rules = "commits"', "rules and engine agree"),
        ('kind = "mood"', "kind 'mood'"),
        ('link = ""', "finding 1: kind 'upstream-bug' needs a `link` that shows it"),
        ('versions = "<0.1"', "finding 1: no line of 'delta-rs' is in '<0.1'; conf/engines.toml has 1.6.6"),
        ('evidence = " "', "a finding needs its `evidence`"),
        ('because = " "', "a finding needs a reason"),
        ('source = "here"', "unknown field `source`"),
        ('versions = "new"', "'new' is no version range"),
        ('colour = "red"', "colour"),
    ],
)
def test_a_finding_with_a_typo_is_an_error(tmp_path, monkeypatch, text, says):
    entry = {
        "races": '["matrix/*"]',
        "engine": '"delta-rs"',
        "versions": '">=1"',
        "rules": '"append"',
        "seen": '"commits"',
        "kind": '"upstream-bug"',
        "because": '"so"',
        "evidence": '"a race"',
        "link": '"https://example.org/source"',
    }
    name, _, value = text.partition(" = ")
    entry[name] = value
    (tmp_path / "expect").mkdir()
    (tmp_path / "expect" / "rules.toml").write_text(
        "[[finding]]\n" + "\n".join(f"{key} = {value}" for key, value in entry.items()), encoding="utf-8"
    )
    monkeypatch.setattr(findings, "conf_dir", lambda: tmp_path)
    load_findings.cache_clear()
    try:
        with pytest.raises(ExpectationError, match=says):
            load_findings()
    finally:
        load_findings.cache_clear()


def rows_of(table):
    return tuple(tuple(row.values()) for file in table.files for row in file.rows)


BASE_ROWS = rows_of(table_of(LAYOUTS["flat"]))
NEW = (201, date(2026, 8, 11), "DE", 1, "new")
COLUMNS = ("id", "event_date", "country", "amount", "note")


def left(*rows):
    return unexplained(RACE, replace(SEEN, columns=COLUMNS, rows_after=(*BASE_ROWS, *rows)), LINE)


def test_rows_that_the_committed_statements_leave_are_explained():
    assert left(NEW) == ()
    wider = tuple((*row, None) for row in (*BASE_ROWS, NEW))
    assert unexplained(RACE, replace(SEEN, columns=(*COLUMNS, "extra"), rows_after=wider), LINE) == ()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ((), "leave 17 rows, the table holds 16; missing: "),
        ((NEW, NEW), "too many: amount=1"),
        (
            ((202, *NEW[1:]),),
            "missing: amount=1, country='DE', event_date='2026-08-11', id=201, note='new'; too",
        ),
        (((*NEW[:3], 2, "new"),), "too many: amount=2"),
    ],
)
def test_rows_lost_doubled_or_bent_are_caught_with_the_smallest_example(rows, says):
    (told,) = left(*rows)
    assert told.startswith("rows: B, run one after the other in the order of the history, ")
    assert says in told
    assert told in verdict_on(told).differences


def verdict_on(*broken):
    return judge(RACE, SEEN, LINE, base=BASE, predicted=RULES, unexplained=broken)


def test_a_loser_whose_rows_stayed_is_caught():
    updated = ((1, date(2026, 8, 11), "DE", 10, "updated"), *BASE_ROWS[1:], NEW)
    (told,) = unexplained(RACE, replace(SEEN, columns=COLUMNS, rows_after=updated), LINE)
    assert "note='updated'" in told


def test_under_write_serializable_any_order_of_the_committed_explains():
    race = race_of(("flat", "write-serializable", "update-all", "insert-values"))
    both = (replace(LOST, outcome=COMMITS, kind=None, version=10), WON)
    rows = tuple((*row[:4], "updated") for row in BASE_ROWS)
    blind = replace(SEEN, writers=both, columns=COLUMNS, rows_after=(*rows, NEW))
    assert unexplained(race, blind, LINE) == ()
    strict = race_of(("flat", "serializable", "update-all", "insert-values"))
    (told,) = unexplained(strict, blind, LINE)
    assert "B then A" in told


def test_a_statement_whose_rows_are_open_is_not_judged_by_them():
    race = race_of(("flat", "serializable", "insert-not-exists", "update-by-key"))
    assert (
        unexplained(race, replace(SEEN, columns=COLUMNS, writers=(replace(LOST, outcome=COMMITS, version=10),)), LINE)
        == ()
    )
