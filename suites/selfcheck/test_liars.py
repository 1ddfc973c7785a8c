"""Does the judge catch a liar? Honest observations made by hand pass; each with one lie in it is caught by name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.engines.lines import Line, line
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
from lakerace.judge import DECLARED, ERROR, MEETS, UNDECLARED, UNSTEERABLE, judge
from lakerace.layouts import LAYOUTS
from lakerace.observe import Commit, Event, Files, HistoryRow, Observation, Outcome, Rows
from lakerace.race import Expected, Race, held_against
from lakerace.run import prove_overlap

if TYPE_CHECKING:
    from pathlib import Path

LINE = line("delta-4.4")
APPEND = Expected(
    word="append",
    surfaced="ConcurrentAppendException",
    root="io.delta.exceptions.ConcurrentAppendException",
    condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
    sqlstate="2D521",
    parameters=(("operation", "WRITE"),),
    read_version=8,
    attempts=1,
)
INSERTED = Expected(
    word="commits", version=9, read_version=8, attempts=1, operation="WRITE", blind=True, isolation="Serializable"
)
UPDATED = Expected(
    word="commits",
    version=10,
    read_version=8,
    attempts=2,
    operation="UPDATE",
    blind=False,
    isolation="Serializable",
    predicate="(id = 1)",
)
LOSES = held_against(
    "an-update-loses-to-an-insert",
    layout=LAYOUTS["flat"],
    held="UPDATE {t} SET note = 'x' WHERE id = 1",
    winners=["INSERT INTO {t} VALUES (2)"],
    expect=[APPEND, INSERTED],
)
BOTH = held_against(
    "an-update-survives-an-insert",
    layout=LAYOUTS["flat"],
    held="UPDATE {t} SET note = 'x' WHERE id = 1",
    winners=["INSERT INTO {t} VALUES (2)"],
    expect=[UPDATED, INSERTED],
)

BASE: Rows = ((1, "base"),)
WON: Rows = ((1, "base"), (2, "new"))
A_UPDATED: Rows = ((1, "x"), (2, "new"))
B_COMMITS = Outcome(
    writer="B",
    statement="insert",
    text="INSERT ...",
    held=False,
    outcome="commits",
    version=9,
    read_version=8,
    attempts=1,
)
A_ABORTS = Outcome(
    writer="A",
    statement="update",
    text="UPDATE ...",
    held=True,
    outcome="aborts",
    kind="append",
    read_version=8,
    attempts=1,
    surfaced="ConcurrentAppendException",
    root="io.delta.exceptions.ConcurrentAppendException",
    condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
    sqlstate="2D521",
    parameters={"operation": "WRITE", "version": "9"},
)
A_COMMITS = Outcome(
    writer="A",
    statement="update",
    text="UPDATE ...",
    held=True,
    outcome="commits",
    version=10,
    read_version=8,
    attempts=2,
)
H9 = HistoryRow(version=9, operation="WRITE", readVersion=8, isolationLevel="Serializable", isBlindAppend=True)
H10 = HistoryRow(
    version=10,
    operation="UPDATE",
    readVersion=8,
    isolationLevel="Serializable",
    isBlindAppend=False,
    predicate="(id = 1)",
)
C9 = Commit(version=9, operation="WRITE", added=("b.parquet",))
C10 = Commit(version=10, operation="UPDATE", added=("a2.parquet",), removed=("a.parquet",))


def timeline(end: str, stood: int = 8, released: int = 9) -> tuple[Event, ...]:
    steps = (("A", "read", stood), ("A", "hold", stood), ("B", "read", 8), ("B", "commits", 9), ("A", end, released))
    return tuple(
        Event(writer=name, what=what, version=version, at=at) for at, (name, what, version) in enumerate(steps)
    )


def observation(race: Race, **seen: Any) -> Observation:
    return Observation(
        race=race.name,
        engine=LINE.name,
        versions={},
        driver="phases",
        layout="flat",
        isolation="serializable",
        order="A:read B:read B:commit A:commit",
        overlap=True,
        overlap_proof="A read 8 < 9",
        columns=("id", "note"),
        rows_before=BASE,
        rows_at_release=WON,
        rows_read_by="a hand",
        files=Files(live=2, on_disk=3),
        base_version=8,
        **seen,
    )


LOST = observation(
    LOSES, writers=(A_ABORTS, B_COMMITS), history=(H9,), commits=(C9,), rows_after=WON, timeline=timeline("append")
)
DONE = observation(
    BOTH,
    writers=(A_COMMITS, B_COMMITS),
    history=(H10, H9),
    commits=(C9, C10),
    rows_after=A_UPDATED,
    timeline=timeline("commits", released=10),
)


def with_a(seen: Observation, **changes: Any) -> Observation:
    return replace(seen, writers=(replace(seen.writers[0], **changes), *seen.writers[1:]))


def with_b(seen: Observation, **changes: Any) -> Observation:
    return replace(seen, writers=(seen.writers[0], replace(seen.writers[1], **changes)))


def with_row(seen: Observation, version: int, **changes: Any) -> Observation:
    rows = tuple(replace(row, **changes) if row.version == version else row for row in seen.history)
    return replace(seen, history=rows)


def with_commit(seen: Observation, version: int, **changes: Any) -> Observation:
    found = tuple(replace(one, **changes) if one.version == version else one for one in seen.commits)
    return replace(seen, commits=found)


EXTRA = HistoryRow(version=11, operation="WRITE")
GHOST = Commit(version=10, operation="UPDATE", added=("ghost.parquet",))

LIES: dict[str, tuple[Race, Observation, str]] = {
    # What became of a writer.
    "an abort told as nothing committed": (
        LOSES,
        with_a(LOST, outcome="no-commit", kind=None),
        "A: expected append, seen no-commit",
    ),
    "an abort told as another failure": (
        LOSES,
        with_a(LOST, outcome="fails", kind=None, condition="DIVIDE_BY_ZERO"),
        "A: expected append, seen fails (DIVIDE_BY_ZERO)",
    ),
    "an abort told as a commit": (
        LOSES,
        replace(LOST, writers=(A_COMMITS, B_COMMITS)),
        "A: expected append, seen commits",
    ),
    "a commit told as an abort": (
        BOTH,
        replace(DONE, writers=(A_ABORTS, B_COMMITS)),
        "A: expected commits, seen append (DELTA_CONCURRENT_APPEND.WITHOUT_HINT)",
    ),
    "another kind of conflict": (
        LOSES,
        with_a(LOST, kind="delete-read", condition="DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"),
        "A: expected append, seen delete-read (DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT)",
    ),
    "another error condition": (
        LOSES,
        with_a(LOST, condition="DELTA_CONCURRENT_WRITE"),
        "A: error condition: expected DELTA_CONCURRENT_APPEND.WITHOUT_HINT, seen DELTA_CONCURRENT_WRITE",
    ),
    "another sub-condition": (
        LOSES,
        with_a(LOST, condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"),
        "A: error condition: expected DELTA_CONCURRENT_APPEND.WITHOUT_HINT, seen DELTA_CONCURRENT_APPEND.WITH_PAR",
    ),
    "the sub-condition left out": (
        LOSES,
        with_a(LOST, condition="DELTA_CONCURRENT_APPEND"),
        "A: error condition: expected",
    ),
    "another root class": (
        LOSES,
        with_a(LOST, root="io.delta.exceptions.ConcurrentWriteException"),
        "A: root class: expected io.delta.exceptions.ConcurrentAppendException, seen io.delta.exceptions.Concurrent",
    ),
    "another surfaced class": (
        LOSES,
        with_a(LOST, surfaced="ConcurrentWriteException"),
        "A: surfaced class: expected ConcurrentAppendException, seen ConcurrentWriteException",
    ),
    "a conflict that came wrapped": (
        LOSES,
        with_a(LOST, surfaced="Py4JJavaError"),
        "A: surfaced class: expected ConcurrentAppendException, seen Py4JJavaError",
    ),
    "another SQLSTATE": (LOSES, with_a(LOST, sqlstate="40001"), "A: SQLSTATE: expected 2D521, seen 40001"),
    "another parameter": (
        LOSES,
        with_a(LOST, parameters={"operation": "MERGE"}),
        "A: parameter operation: expected WRITE, seen MERGE",
    ),
    "a parameter left out": (LOSES, with_a(LOST, parameters={}), "A: parameter operation: expected WRITE, seen None"),
    "another read version": (BOTH, with_a(DONE, read_version=9), "A: read version: expected 8, seen 9"),
    "another number of attempts": (BOTH, with_a(DONE, attempts=1), "A: attempts: expected 2, seen 1"),
    "another version of the winner": (
        LOSES,
        replace(with_b(LOST, version=8), timeline=()),
        "B: version: expected 9, seen 8",
    ),
    "a writer left out": (LOSES, replace(LOST, writers=(A_ABORTS,)), "B: nothing was seen of it"),
    "a writer too many": (
        LOSES,
        replace(LOST, writers=(A_ABORTS, B_COMMITS, replace(A_ABORTS, writer="C"))),
        "C: is no writer of this race",
    ),
    "a writer told twice": (LOSES, replace(LOST, writers=(A_ABORTS, B_COMMITS, A_ABORTS)), "A: two outcomes were seen"),
    "a loser whose commit stayed": (LOSES, with_a(LOST, version=10), "A: it aborted, but version 10 is its commit"),
    # What the history says.
    "a commit without its history row": (
        BOTH,
        replace(DONE, history=(H9,)),
        "A: its commit 10 is acknowledged but missing from the history",
    ),
    "a commit without its log entry": (
        BOTH,
        replace(DONE, commits=(C9,)),
        "A: its commit 10 is acknowledged but missing from the log",
    ),
    "a commit without its number": (
        BOTH,
        with_a(DONE, version=None),
        "A: its commit None is acknowledged but missing from the log",
    ),
    "a history row too many": (
        BOTH,
        replace(DONE, history=(EXTRA, H10, H9)),
        "history has versions [9, 10, 11], the log has [9, 10]",
    ),
    "a log entry too many": (
        LOSES,
        replace(LOST, commits=(C9, GHOST)),
        "history has versions [9], the log has [9, 10]",
    ),
    "a commit that nobody owns up to": (
        LOSES,
        replace(LOST, commits=(C9, GHOST), history=(H10, H9)),
        "versions [10] are in the log, but no writer says that it committed them",
    ),
    "two writers at one version": (BOTH, with_a(DONE, version=9), "two writers hold the same version: [9, 9]"),
    "a gap between versions": (
        LOSES,
        replace(LOST, commits=(replace(C9, version=10),)),
        "versions have gaps: [10] after 8",
    ),
    "another operation": (
        LOSES,
        with_row(LOST, 9, operation="MERGE"),
        "B: history operation: expected WRITE, seen MERGE",
    ),
    "an append that read": (
        LOSES,
        with_row(LOST, 9, isBlindAppend=False),
        "B: history isBlindAppend: expected True, seen False",
    ),
    "an update that is blind": (
        BOTH,
        with_row(DONE, 10, isBlindAppend=True),
        "A: history isBlindAppend: expected False, seen True",
    ),
    "another isolation level": (
        BOTH,
        with_row(DONE, 10, isolationLevel="WriteSerializable"),
        "A: history isolationLevel: expected Serializable, seen WriteSerializable",
    ),
    "another predicate": (
        BOTH,
        with_row(DONE, 10, predicate="(id = 2)"),
        "A: history predicate: expected (id = 1), seen (id = 2)",
    ),
    # What lies in the log and in the table.
    "a file added twice": (
        LOSES,
        with_commit(LOST, 9, added=("b.parquet", "b.parquet")),
        "version 9 adds b.parquet 2 times",
    ),
    "a file removed twice": (
        BOTH,
        with_commit(DONE, 9, removed=("a.parquet",)),
        "version 10 removes a.parquet, which version 9 had removed",
    ),
    "metadata repeated by an append": (
        LOSES,
        with_commit(LOST, 9, metadata=True, repeats_metadata=True),
        "version 9 (WRITE) repeats the metadata and changes nothing of it",
    ),
    "a live file that is gone": (
        LOSES,
        replace(LOST, files=Files(live=2, on_disk=1, missing=("b.parquet",))),
        "the latest version holds b.parquet, which is not on disk",
    ),
    "a file under two deletion vectors": (
        LOSES,
        replace(LOST, files=Files(live=2, on_disk=1, doubled=("b.parquet",))),
        "the latest version holds b.parquet with two deletion vectors",
    ),
    "the loser's file in the log": (
        LOSES,
        with_a(LOST, staged=("b.parquet",)),
        "A did not commit, but version 9 names b.parquet of its files",
    ),
    "the loser's change data in the log": (
        LOSES,
        with_a(with_commit(LOST, 9, change_data=("_change_data/c.parquet",)), staged=("_change_data/c.parquet",)),
        "A did not commit, but version 9 names _change_data/c.parquet of its files",
    ),
    "the loser's deletion vector in the log": (
        LOSES,
        with_a(with_commit(LOST, 9, added=("b.parquet with deletion vector v.bin@1",)), staged=("v.bin",)),
        "A did not commit, but version 9 names v.bin of its files",
    ),
    "a version removed under its old deletion vector": (
        BOTH,
        with_commit(with_commit(DONE, 9, removed=("a.parquet",), added=("a.parquet with deletion vector v@1",)),
                    10, removed=("a.parquet",)),
        "version 10 removes a.parquet, which version 9 had removed",
    ),
    "a transaction id used twice": (
        BOTH,
        with_commit(with_commit(DONE, 9, transactions=("app=1",)), 10, transactions=("app=1",)),
        "version 10 uses transaction app=1, as version 9 had",
    ),
    "the loser's row is there": (
        LOSES,
        replace(LOST, rows_after=(*WON, (3, "ghost"))),
        "A aborted but left a trace: 1 new rows [(3, 'ghost')], 0 gone",
    ),
    "the winner's row is gone": (
        LOSES,
        replace(LOST, rows_after=BASE),
        "A aborted but left a trace: 0 new rows [], 1 gone [(2, 'new')]",
    ),
    "rows changed without a file": (
        LOSES,
        with_commit(LOST, 9, added=()),
        "the rows changed although no commit touched a file",
    ),
    "rows declared unchanged": (replace(LOSES, rows="unchanged"), LOST, "rows: declared unchanged, but they changed"),
    # Whether it was a race at all.
    "a serial run posing as a race": (
        LOSES,
        replace(LOST, overlap=False, overlap_proof="nobody was held"),
        "the writers did not overlap: nobody was held",
    ),
}


@pytest.mark.parametrize(("race", "seen"), [(LOSES, LOST), (BOTH, DONE)], ids=["loses", "both"])
def test_an_honest_observation_meets_its_race(race: Race, seen: Observation) -> None:
    verdict = judge(race, seen, LINE)
    assert verdict.differences == ()
    assert verdict.word == MEETS


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_caught_by_its_name(lie: str) -> None:
    race, seen, message = LIES[lie]
    verdict = judge(race, seen, LINE)
    assert verdict.word == UNDECLARED
    assert not verdict.good
    assert any(found.startswith(message) for found in verdict.differences), verdict.differences


def test_there_are_enough_liars() -> None:
    assert len(LIES) >= 25


def test_a_broken_run_is_an_error_and_never_a_pass() -> None:
    assert judge(LOSES, replace(LOST, error="the JVM died"), LINE).word == ERROR
    assert judge(LOSES, replace(LOST, unsteerable="no phase locks"), LINE).word == UNSTEERABLE
    assert not judge(LOSES, replace(LOST, error="the JVM died"), LINE).good


# Proof of overlap, from outcomes and the driver's trace.
PROOFS: dict[str, tuple[Outcome, Outcome, tuple[Event, ...], str]] = {
    "the winner committed before the hold": (
        A_COMMITS,
        B_COMMITS,
        timeline("commits", stood=9, released=10),
        "A was held at version 9, and nobody committed before it was released",
    ),
    "the winner committed after the held writer": (
        replace(A_COMMITS, version=9, attempts=1),
        replace(B_COMMITS, version=10),
        timeline("commits"),
        "A was held at version 8, and nobody committed before it was released",
    ),
    "the winner committed nothing": (
        A_COMMITS,
        replace(B_COMMITS, outcome="no-commit", version=None),
        timeline("commits"),
        "A was held at version 8, and nobody committed before it was released",
    ),
    "the abort names a version it had read": (
        replace(A_ABORTS, parameters={"version": "8"}),
        B_COMMITS,
        timeline("append"),
        "A aborted because of version 8, which it had read",
    ),
    "the held writer read after the winner": (
        replace(A_COMMITS, read_version=9, attempts=1),
        B_COMMITS,
        timeline("commits"),
        "A was held at version 8, but read 9 and committed at its first attempt",
    ),
    "the held writer never stood": (
        A_COMMITS,
        B_COMMITS,
        tuple(event for event in timeline("commits") if event.what != "hold"),
        "A ended before it reached its commit",
    ),
}


@pytest.mark.parametrize("lie", PROOFS)
def test_a_serial_run_proves_no_overlap(lie: str) -> None:
    held, winner, events, message = PROOFS[lie]
    assert prove_overlap(BOTH, {"A": held, "B": winner}, list(events)) == (False, message)


def test_an_honest_run_proves_its_overlap() -> None:
    assert prove_overlap(BOTH, {"A": A_COMMITS, "B": B_COMMITS}, list(timeline("commits"))) == (
        True,
        "A read 8 < 9 < 10",
    )
    lost = prove_overlap(LOSES, {"A": A_ABORTS, "B": B_COMMITS}, list(timeline("append")))
    assert lost == (True, "A read 8 < 9, then aborted")
    again = replace(A_COMMITS, read_version=9, attempts=2)
    assert prove_overlap(BOTH, {"A": again, "B": B_COMMITS}, list(timeline("commits"))) == (
        True,
        "A read 8 < 9 < 10, then re-read at 9",
    )


def test_without_a_held_writer_nothing_overlaps() -> None:
    from lakerace.orders import parse_order

    serial = replace(BOTH, order=parse_order("B:read B:commit A:read A:commit"))
    found, reason = prove_overlap(serial, {"A": A_COMMITS, "B": B_COMMITS}, list(timeline("commits")))
    assert not found
    assert reason == "no writer was held, so nothing can overlap"


# What is written down wrongly.
def deviations(tmp_path: Path, text: str, chosen: Line = LINE) -> tuple[Deviation, ...]:
    file = tmp_path / "vendor.toml"
    file.write_text(text, encoding="utf-8")
    return load_deviations(chosen, [file])


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
        ({"kind": '"whim"'}, "kind 'whim'; use one of engine-change, upstream-bug, vendor, unreviewed"),
        ({"versions": '"four"'}, "'four' is no version range"),
        ({"versions": '"=>4.4"'}, "'=>4.4' is no version range"),
        ({"because": '"  "'}, "a deviation needs a reason in `because`"),
        ({"because": None}, "missing required field `because`"),
        ({"reason": '"x"'}, "unknown field `reason`"),
        ({"races": '"an-update-*"'}, "Expected `array`"),
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


def test_an_invariant_that_a_bug_breaks_is_declared_and_must_break(tmp_path: Path) -> None:
    bug = deviations(tmp_path, entry(expect='"append"', kind='"upstream-bug"', breaks='"version 9 adds b.parquet*"'))
    broken = with_commit(LOST, 9, added=("b.parquet", "b.parquet"))
    base = {"A": from_cell("append", LINE, "flat.serializable.md"), "B": Expected(word="commits")}
    assert judge(LOSES, broken, LINE, bug, base).word == DECLARED
    assert judge(LOSES, LOST, LINE, bug, base).differences == (
        "declared to break an invariant ('version 9 adds b.parquet*'), but it holds: remove the deviation",
    )
