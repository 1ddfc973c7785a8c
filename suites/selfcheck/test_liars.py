"""Does the judge catch a liar? Honest observations made by hand pass; each with one lie in it is caught by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.judge import ERROR, MEETS, UNDECLARED, UNSTEERABLE, judge
from lakerace.observe import Commit, Files, HistoryRow, Observation
from selfcheck.declared import BOTH, LINE, LOSES
from selfcheck.seen import A_ABORTS, A_COMMITS, B_COMMITS, BASE, C9, DONE, H9, H10, LOST, WON, with_commit

if TYPE_CHECKING:
    from lakerace.race import Race


def with_a(seen: Observation, **changes: Any) -> Observation:
    return replace(seen, writers=(replace(seen.writers[0], **changes), *seen.writers[1:]))


def with_b(seen: Observation, **changes: Any) -> Observation:
    return replace(seen, writers=(seen.writers[0], replace(seen.writers[1], **changes)))


def with_row(seen: Observation, version: int, **changes: Any) -> Observation:
    rows = tuple(replace(row, **changes) if row.version == version else row for row in seen.history)
    return replace(seen, history=rows)


EXTRA = HistoryRow(version=11, operation="WRITE")
GHOST = Commit(version=10, operation="UPDATE", added=("ghost.parquet",))

LIES: dict[str, tuple[Race, Observation, str]] = {
    # What became of a writer.
    "an abort told as nothing committed": (
        LOSES, with_a(LOST, outcome="no-commit", kind=None),
        "A: expected append, seen no-commit",
    ),
    "an abort told as another failure": (
        LOSES, with_a(LOST, outcome="fails", kind=None, condition="DIVIDE_BY_ZERO"),
        "A: expected append, seen fails (DIVIDE_BY_ZERO)",
    ),
    "an abort told as a commit": (
        LOSES, replace(LOST, writers=(A_COMMITS, B_COMMITS)),
        "A: expected append, seen commits",
    ),
    "a commit told as an abort": (
        BOTH, replace(DONE, writers=(A_ABORTS, B_COMMITS)),
        "A: expected commits, seen append (DELTA_CONCURRENT_APPEND.WITHOUT_HINT)",
    ),
    "another kind of conflict": (
        LOSES, with_a(LOST, kind="delete-read", condition="DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"),
        "A: expected append, seen delete-read (DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT)",
    ),
    "another error condition": (
        LOSES, with_a(LOST, condition="DELTA_CONCURRENT_WRITE"),
        "A: error condition: expected DELTA_CONCURRENT_APPEND.WITHOUT_HINT, seen DELTA_CONCURRENT_WRITE",
    ),
    "another sub-condition": (
        LOSES, with_a(LOST, condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"),
        "A: error condition: expected DELTA_CONCURRENT_APPEND.WITHOUT_HINT, seen DELTA_CONCURRENT_APPEND.WITH_PAR",
    ),
    "the sub-condition left out": (
        LOSES, with_a(LOST, condition="DELTA_CONCURRENT_APPEND"),
        "A: error condition: expected",
    ),
    "another root class": (
        LOSES, with_a(LOST, root="io.delta.exceptions.ConcurrentWriteException"),
        "A: root class: expected io.delta.exceptions.ConcurrentAppendException, seen io.delta.exceptions.Concurrent",
    ),
    "another surfaced class": (
        LOSES, with_a(LOST, surfaced="ConcurrentWriteException"),
        "A: surfaced class: expected ConcurrentAppendException, seen ConcurrentWriteException",
    ),
    "a conflict that came wrapped": (
        LOSES, with_a(LOST, surfaced="Py4JJavaError"),
        "A: surfaced class: expected ConcurrentAppendException, seen Py4JJavaError",
    ),
    "another SQLSTATE": (LOSES, with_a(LOST, sqlstate="40001"), "A: SQLSTATE: expected 2D521, seen 40001"),
    "another parameter": (
        LOSES, with_a(LOST, parameters={"operation": "MERGE"}),
        "A: parameter operation: expected WRITE, seen MERGE",
    ),
    "a parameter left out": (LOSES, with_a(LOST, parameters={}), "A: parameter operation: expected WRITE, seen None"),
    "another read version": (BOTH, with_a(DONE, read_version=9), "A: read version: expected 8, seen 9"),
    "another number of attempts": (BOTH, with_a(DONE, attempts=1), "A: attempts: expected 2, seen 1"),
    "another version of the winner": (
        LOSES, replace(with_b(LOST, version=8), timeline=()),
        "B: version: expected 9, seen 8",
    ),
    "a writer left out": (LOSES, replace(LOST, writers=(A_ABORTS,)), "B: nothing was seen of it"),
    "a writer too many": (
        LOSES, replace(LOST, writers=(A_ABORTS, B_COMMITS, replace(A_ABORTS, writer="C"))),
        "C: is no writer of this race",
    ),
    "a writer told twice": (LOSES, replace(LOST, writers=(A_ABORTS, B_COMMITS, A_ABORTS)), "A: two outcomes were seen"),
    "a loser whose commit stayed": (LOSES, with_a(LOST, version=10), "A: it aborted, but version 10 is its commit"),
    # What the history says.
    "a commit without its history row": (
        BOTH, replace(DONE, history=(H9,)),
        "A: its commit 10 is acknowledged but missing from the history",
    ),
    "a commit without its log entry": (
        BOTH, replace(DONE, commits=(C9,)),
        "A: its commit 10 is acknowledged but missing from the log",
    ),
    "a commit without its number": (
        BOTH, with_a(DONE, version=None),
        "A: its commit None is acknowledged but missing from the log",
    ),
    "a history row too many": (
        BOTH, replace(DONE, history=(EXTRA, H10, H9)),
        "history has versions [9, 10, 11], the log has [9, 10]",
    ),
    "a log entry too many": (
        LOSES, replace(LOST, commits=(C9, GHOST)),
        "history has versions [9], the log has [9, 10]",
    ),
    "a commit that nobody owns up to": (
        LOSES, replace(LOST, commits=(C9, GHOST), history=(H10, H9)),
        "versions [10] are in the log, but no writer says that it committed them",
    ),
    "two writers at one version": (BOTH, with_a(DONE, version=9), "two writers hold the same version: [9, 9]"),
    "a gap between versions": (
        LOSES, replace(LOST, commits=(replace(C9, version=10),)),
        "versions have gaps: [10] after 8",
    ),
    "another operation": (
        LOSES, with_row(LOST, 9, operation="MERGE"),
        "B: history operation: expected WRITE, seen MERGE",
    ),
    "an append that read": (
        LOSES, with_row(LOST, 9, isBlindAppend=False),
        "B: history isBlindAppend: expected True, seen False",
    ),
    "an update that is blind": (
        BOTH, with_row(DONE, 10, isBlindAppend=True),
        "A: history isBlindAppend: expected False, seen True",
    ),
    "another isolation level": (
        BOTH, with_row(DONE, 10, isolationLevel="WriteSerializable"),
        "A: history isolationLevel: expected Serializable, seen WriteSerializable",
    ),
    "another predicate": (
        BOTH, with_row(DONE, 10, predicate="(id = 2)"),
        "A: history predicate: expected (id = 1), seen (id = 2)",
    ),
    # What lies in the log and in the table.
    "a file added twice": (
        LOSES, with_commit(LOST, 9, added=("b.parquet", "b.parquet")),
        "version 9 adds b.parquet 2 times",
    ),
    "a file removed twice": (
        BOTH, with_commit(DONE, 9, removed=("a.parquet",)),
        "version 10 removes a.parquet, which version 9 had removed",
    ),
    "metadata repeated by an append": (
        LOSES, with_commit(LOST, 9, metadata=True),
        "version 9 (WRITE) repeats the metadata and changes nothing of it",
    ),
    "metadata changed by an append that asked for none": (
        LOSES, with_commit(LOST, 9, metadata=True, changes=("configuration", "schemaString")),
        "version 9 (WRITE) changes the metadata (configuration, schemaString), which its statement does not ask for",
    ),
    "metadata changed by a stream": (
        LOSES, with_commit(with_row(LOST, 9, operation="STREAMING UPDATE"), 9, operation="STREAMING UPDATE",
                           metadata=True, changes=("schemaString",)),
        "version 9 (STREAMING UPDATE) changes the metadata (schemaString), which its statement does not ask for",
    ),
    "row ids given twice": (
        LOSES, replace(LOST, files=Files(live=2, on_disk=2, row_ids=("the row ids 0 to 1 belong to a and to b",))),
        "the row ids 0 to 1 belong to a and to b",
    ),
    "a live file that is gone": (
        LOSES, replace(LOST, files=Files(live=2, on_disk=1, missing=("b.parquet",))),
        "the latest version holds b.parquet, which is not on disk",
    ),
    "a file under two deletion vectors": (
        LOSES, replace(LOST, files=Files(live=2, on_disk=1, doubled=("b.parquet",))),
        "the latest version holds b.parquet with two deletion vectors",
    ),
    "the loser's file in the log": (
        LOSES, with_a(LOST, staged=("b.parquet",)),
        "A did not commit, but version 9 names b.parquet of its files",
    ),
    "the loser's change data in the log": (
        LOSES,
        with_a(with_commit(LOST, 9, change_data=("_change_data/c.parquet",)), staged=("_change_data/c.parquet",)),
        "A did not commit, but version 9 names _change_data/c.parquet of its files",
    ),
    "the loser's deletion vector in the log": (
        LOSES, with_a(with_commit(LOST, 9, added=("b.parquet with deletion vector v.bin@1",)), staged=("v.bin",)),
        "A did not commit, but version 9 names v.bin of its files",
    ),
    "a version removed under its old deletion vector": (
        BOTH,
        with_commit(with_commit(DONE, 9, removed=("a.parquet",), added=("a.parquet with deletion vector v@1",)),
                    10, removed=("a.parquet",)),
        "version 10 removes a.parquet, which version 9 had removed",
    ),
    "a transaction id used twice": (
        BOTH, with_commit(with_commit(DONE, 9, transactions=("app=1",)), 10, transactions=("app=1",)),
        "version 10 uses transaction app=1, as version 9 had",
    ),
    "the loser's row is there": (
        LOSES, replace(LOST, rows_after=(*WON, (3, "ghost"))),
        "A aborted but left a trace: 1 new rows [(3, 'ghost')], 0 gone",
    ),
    "the winner's row is gone": (
        LOSES, replace(LOST, rows_after=BASE),
        "A aborted but left a trace: 0 new rows [], 1 gone [(2, 'new')]",
    ),
    "rows changed without a file": (
        LOSES, with_commit(LOST, 9, added=()),
        "the rows changed although no commit touched a file",
    ),
    "a row more than declared": (
        replace(LOSES, leaves=(("id > 0", 3),)), LOST, "rows where id > 0: expected 3, seen 2",
    ),
    "rows declared unchanged": (replace(LOSES, rows="unchanged"), LOST, "rows: declared unchanged, but they changed"),
    # Whether it was a race at all.
    "a serial run posing as a race": (
        LOSES, replace(LOST, overlap=False, overlap_proof="nobody was held"),
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
