"""Does the judge weigh only what was declared, and hold to what must always be?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakerace.engines.lines import line
from lakerace.judge import MEETS, UNDECLARED, compare, invariants, judge
from lakerace.layouts import LAYOUTS
from lakerace.observe import Commit, Event, HistoryRow
from lakerace.race import Expected, Writer, held_against, on, statement
from lakerace.rules.settings import AUTO_MERGE
from selfcheck.seen import lost, observed, won

SPARK, OLD = line("delta-4.4"), line("delta-4.0")
RACE = held_against(
    "r",
    layout=LAYOUTS["flat"],
    held="UPDATE {t} SET note = 'x'",
    winners=["INSERT INTO {t} VALUES (1)"],
    expect=[Expected(word="append", condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT"), Expected(word="commits")],
)
ABORTED, WON = lost(), won()
SEEN = observed(
    ABORTED, WON,
    race="r",
    history=(HistoryRow(version=9, operation="WRITE"),),
    commits=(Commit(version=9, operation="WRITE", added=("f",)),),
    rows_before=((1,),),
    rows_at_release=((1,), (2,)),
    rows_after=((1,), (2,)),
    timeline=(Event(writer="A", what="append", version=9, at=1.0),),
)


def test_what_is_not_stated_is_not_compared() -> None:
    odd = replace(ABORTED, surfaced="Odd", sqlstate="00000", attempts=7, parameters={"x": "y"}, message="whatever")
    assert list(compare(Expected(word="append"), odd, SEEN)) == []


def test_a_message_is_never_compared() -> None:
    assert judge(RACE, replace(SEEN, writers=(replace(ABORTED, message="other words"), WON)), SPARK).word == MEETS


def test_a_writer_without_a_declared_outcome_is_a_difference() -> None:
    verdict = judge(on(RACE, expect=RACE.expect[:1]), SEEN, SPARK)
    assert verdict.differences == ("B: no outcome is declared for it",)
    assert verdict.word == UNDECLARED


def test_an_engine_without_sub_conditions_is_asked_for_none() -> None:
    plain = replace(SEEN, writers=(replace(ABORTED, condition="DELTA_CONCURRENT_APPEND"), WON))
    assert judge(RACE, plain, OLD).word == MEETS
    assert judge(RACE, plain, SPARK).word == UNDECLARED


def test_the_sources_of_an_expectation_are_told() -> None:
    base = {"A": replace(RACE.expected["A"], source="flat.serializable.md"), "B": RACE.expected["B"]}
    assert judge(RACE, SEEN, SPARK, base=base).source == "flat.serializable.md, inline"


def test_a_winner_that_commits_several_times_owns_all_its_commits() -> None:
    twice = on(
        RACE, writers=(RACE.writers[0], Writer(name="B", statements=(statement("INSERT INTO {t} VALUES (1)"),) * 2))
    )
    seen = replace(
        SEEN,
        writers=(ABORTED, replace(WON, version=10, earlier=(WON,))),
        history=(HistoryRow(version=10, operation="WRITE"), *SEEN.history),
        commits=(*SEEN.commits, Commit(version=10, operation="WRITE", added=("g",))),
    )
    assert judge(twice, seen, SPARK).differences == ()
    assert judge(RACE, seen, SPARK).differences == ("B: 2 outcomes were seen of 1 statements",)
    silent = replace(seen, writers=(ABORTED, replace(WON, version=10)))
    assert judge(twice, silent, SPARK).differences == (
        "versions [9] are in the log, but no writer says that it committed them",
    )


def test_maintenance_may_commit_more_than_once() -> None:
    seen = replace(
        SEEN,
        writers=(ABORTED, replace(WON, version=10)),
        history=(HistoryRow(version=10, operation="VACUUM END"), HistoryRow(version=9, operation="VACUUM START")),
        commits=(Commit(version=9, operation="VACUUM START"), Commit(version=10, operation="VACUUM END")),
        rows_after=SEEN.rows_before,
        rows_at_release=SEEN.rows_before,
    )
    assert judge(RACE, seen, SPARK).differences == ()


@pytest.mark.parametrize("change", [{"added": ("f",)}, {"removed": ("f",)}, {"metadata": True}, {"protocol": True}])
def test_rows_may_change_with_any_action_that_touches_the_table(change: dict[str, object]) -> None:
    commits = (Commit(version=9, operation="X", **change),)
    assert list(invariants(replace(SEEN, commits=commits))) == []


def test_a_committed_writer_may_change_the_rows_it_found() -> None:
    both = replace(
        SEEN,
        writers=(replace(ABORTED, outcome="commits", kind=None, version=10), WON),
        history=(HistoryRow(version=10, operation="UPDATE"), *SEEN.history),
        commits=(*SEEN.commits, Commit(version=10, operation="UPDATE", added=("g",), removed=("f",))),
        rows_after=((7,),),
        timeline=(Event(writer="A", what="commits", version=10, at=1.0),),
    )
    assert list(invariants(both)) == []


@pytest.mark.parametrize(
    ("settings", "text", "version", "changes", "lawful"),
    [
        ((), "INSERT ...", 9, ("schemaString",), False),
        ((), "df.write.option('mergeSchema', 'true')", 9, ("schemaString",), True),
        ((), "df.write.option('overwriteSchema', 'true')", 9, ("partitionColumns", "schemaString"), True),
        ((), "INSERT WITH SCHEMA EVOLUTION INTO {t} TABLE s", 9, ("schemaString",), True),
        ((), "INSERT ...", 9, ("identity",), True),
        ((), "df.write.save({t})", 0, ("id", "schemaString"), True),
        (((AUTO_MERGE, "TRUE"),), "INSERT ...", 9, ("schemaString",), True),
        (((AUTO_MERGE, "false"),), "INSERT ...", 9, ("schemaString",), False),
    ],
)
def test_an_append_may_change_the_metadata_only_where_that_was_asked_for(
    settings: tuple[tuple[str, str], ...], text: str, version: int, changes: tuple[str, ...], lawful: bool
) -> None:
    seen = replace(
        SEEN,
        writers=(ABORTED, replace(WON, version=version, text=text)),
        base_version=version - 1,
        history=(HistoryRow(version=version, operation="WRITE"),),
        commits=(Commit(version=version, operation="WRITE", added=("f",), metadata=True, changes=changes),),
        timeline=(),
    )
    told = [line for line in judge(on(RACE, settings=settings), seen, SPARK).differences if "does not ask for" in line]
    assert len(told) == (not lawful)
