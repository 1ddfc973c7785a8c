"""Does a free race notice what must never be? Its invariants against planted liars, without an engine."""

from __future__ import annotations

import pytest

from lakerace.engines import Reading
from lakerace.free import (
    ADDED,
    COMPACTED,
    COUNTED,
    REMOVED,
    Ended,
    FreeRun,
    Job,
    broken,
    inserts_and_deletes,
    workload,
)
from lakerace.observe import Commit, Files, HistoryRow
from lakerace.race import Statement
from lakerace.soak import seconds_of, seeds

BEFORE = {1: 10, 9: 90}
SQL = Statement(name="any", does="UPDATE {t} SET amount = 1")


def ended(kind, key, acknowledged=True, **more):
    return Ended(writer="W1", job=Job(kind=kind, key=key, statement=SQL), acknowledged=acknowledged, **more)


HONEST = (
    ended(ADDED, 1000), ended(ADDED, 1001, acknowledged=False),
    ended(COUNTED, 1), ended(COUNTED, 1), ended(COMPACTED, 0),
)
OPERATIONS = ("WRITE", "UPDATE", "UPDATE", "OPTIMIZE")


def left(amounts, operations=OPERATIONS, versions=None, missing=(), removed=()):
    numbers = versions or range(9, 9 + len(operations))
    commits = tuple(
        Commit(version=version, operation=operation, added=(f"f-{version}",), removed=removed)
        for version, operation in zip(numbers, operations, strict=True)
    )
    history = tuple(HistoryRow(version=one.version, operation=str(one.operation)) for one in reversed(commits))
    rows = tuple((key, amount) for key, amount in amounts)
    return Reading(("id", "amount"), rows, "hand", history, commits, Files(live=1, on_disk=1, missing=missing))


TRUE = ((1, 12), (9, 90), (1000, 0))


def test_an_honest_race_keeps_every_promise():
    assert list(broken(HONEST, BEFORE, left(TRUE), 8)) == []


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (left(((1, 11), (9, 90), (1000, 0))), "lost update: row 1 had 10, 2 were counted, it has 11"),
        (left(((1, 12), (9, 91), (1000, 0))), "lost update: row 9 had 90, 0 were counted, it has 91"),
        (left(((1, 12), (9, 90))), "row 1000: adding it was acknowledged, and it is there 0 times"),
        (left((*TRUE, (1000, 0))), "row 1000: adding it was acknowledged, and it is there 2 times"),
        (left((*TRUE, (1001, 0))), "row 1001: adding it was not acknowledged, and it is there 1 times"),
        (left(((9, 90), (1000, 0))), "row 1: it was there once, and is there 0 times"),
        (left(TRUE, OPERATIONS[1:]), "3 commits were acknowledged, the history has 2"),
        (left(TRUE, versions=(9, 10, 12, 13)), "versions have gaps: [9, 10, 12, 13] after 8"),
        (left(TRUE, missing=("part-1.parquet",)), "the latest version holds part-1.parquet, which is not on disk"),
        (left(TRUE, removed=("f",)), "version 10 removes f, which version 9 had removed"),
    ],
)
def test_a_lying_table_is_caught(found, message):
    assert any(line.startswith(message) for line in broken(HONEST, BEFORE, found, 8)), list(
        broken(HONEST, BEFORE, found, 8)
    )


@pytest.mark.parametrize(("acknowledged", "rows", "message"), [
    (True, TRUE, "row 9: removing it was acknowledged, and it is there 1 times"),
    (False, ((1, 12), (1000, 0)), "row 9: it was there once, and is there 0 times"),
])
def test_a_row_is_gone_if_and_only_if_its_delete_was_acknowledged(acknowledged, rows, message):
    jobs, operations = (*HONEST, ended(REMOVED, 9, acknowledged)), (*OPERATIONS, *(["DELETE"] * acknowledged))
    honest = TRUE if not acknowledged else ((1, 12), (1000, 0))
    assert list(broken(jobs, BEFORE, left(honest, operations), 8)) == []
    assert list(broken(jobs, BEFORE, left(rows, operations), 8)) == [message]


def test_inserters_and_deleters_have_rows_of_their_own():
    jobs = inserts_and_deletes(2, ((1, 2), (9,)), 3)
    assert {name: [(job.kind, job.key) for job in mine] for name, mine in jobs.items()} == {
        "I1": [(ADDED, key) for key in (1000, 1001, 1002)], "I2": [(ADDED, key) for key in (1003, 1004, 1005)],
        "D1": [(REMOVED, 1), (REMOVED, 2)], "D2": [(REMOVED, 9)],
    }


def test_an_error_that_is_no_conflict_is_told():
    failed = (*HONEST, ended(COUNTED, 9, acknowledged=False, error="ValueError: no"))
    assert list(broken(failed, BEFORE, left(TRUE), 8)) == ["W1: any failed: ValueError: no"]


def test_the_jobs_are_the_same_for_the_same_seed():
    jobs = workload(4, 6, seed=5)
    assert jobs == workload(4, 6, seed=5) != workload(4, 6, seed=6)
    keys = [job.key for found in jobs.values() for job in found if job.kind == ADDED]
    assert len(set(keys)) == len(keys)
    assert {job.kind for found in jobs.values() for job in found} == {ADDED, COUNTED, COMPACTED}


def test_a_broken_run_says_how_to_run_it_again():
    run = FreeRun(
        engine="delta-rs", layout="flat", isolation="serializable", seed=7, ended=HONEST, versions=4, broken=("rows",)
    )
    assert str(run).endswith("again: lakerace soak --engine delta-rs --mode free --writers 1 --seed 7")


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("1.5", 1.5)])
def test_times_are_read(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1s", "0", "inf", "nan", "1d"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="is no time; write 90s, 10m or 2h"):
        seconds_of(text)


def test_at_least_one_seed_is_tried():
    assert list(seeds(7, 0.0)) == [7]
