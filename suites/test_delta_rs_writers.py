"""Who loses on delta-rs? MERGE by partition, ranges of time, Z-order, attempts, application ids, first writes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import deltalog
from lakerace.conflicts import classify
from lakerace.layouts import layout, layout_from_statements
from lakerace.race import Expected, held_against

if TYPE_CHECKING:
    from pathlib import Path

    from deltalake import DeltaTable

    from lakerace.race import Layout, Race

ENGINES, VERSIONS = ("delta-rs",), ">=1.6"
FLAT, BY_DATE = layout("flat"), layout("by-date")
COMMITS = Expected(word="commits")
APPEND = Expected(word="append", surfaced="CommitFailedError")
DELETE_READ = Expected(word="delete-read", surfaced="CommitFailedError")


def merge(number: int, date: str, on: str) -> str:
    source = f"(SELECT {number} AS id, DATE'{date}' AS event_date)"
    return (f"MERGE INTO {{t}} t USING {source} s ON t.id = s.id AND {on.format(date=date)} "
            "WHEN MATCHED THEN UPDATE SET note = 'merged'")


EARLY = "(1, TIMESTAMP'2026-08-11 08:00:00'), (2, TIMESTAMP'2026-08-11 12:00:00')"
LATE = "(3, TIMESTAMP'2026-08-12 08:00:00')"
DAYS, TOGETHER = (
    layout_from_statements(name, ("CREATE TABLE {t} (id BIGINT, at TIMESTAMP) USING delta", *rows))
    for name, rows in (("two-files-of-days", [f"INSERT INTO {{t}} VALUES {row}" for row in (EARLY, LATE)]),
                       ("one-file-of-days", [f"INSERT INTO {{t}} VALUES {EARLY}, {LATE}"]))
)
OF_THE_11TH = "DELETE FROM {t} WHERE at < '2026-08-11 18:00:00'"


def in_time(name: str, winner: str, became: Expected, lies: Layout = DAYS) -> Race:
    """A DELETE of everything before an evening, against ``winner``."""
    return held_against(f"rs-a-delete-of-a-time-{name}", layout=lies, held=OF_THE_11TH, winners=[winner],
                        expect=[became, COMMITS], reports=("F11",))


OPTIMIZE = "OPTIMIZE {t}"
LITERAL, JOINED = "t.event_date = DATE'{date}'", "t.event_date = s.event_date"
RACES = (
    held_against("rs-of-two-compactions-both-commit-and-double-every-row", layout=FLAT, held=OPTIMIZE,
                 winners=[OPTIMIZE], expect=[COMMITS, COMMITS], leaves=(("id = 1", 2), ("id > 0", 32)),
                 reports=("I14",)),
    held_against("rs-merges-into-two-partitions-by-literals-both-commit", layout=BY_DATE,
                 held=merge(1, "2026-08-11", LITERAL), winners=[merge(16, "2026-08-12", LITERAL)],
                 expect=[COMMITS, COMMITS], reports=("F1",)),
    held_against("rs-a-merge-that-names-its-partition-through-the-join-loses", layout=BY_DATE,
                 held=merge(1, "2026-08-11", JOINED), winners=[merge(16, "2026-08-12", JOINED)],
                 expect=[APPEND, COMMITS], reports=("F1",)),
    held_against("rs-merges-into-one-partition-conflict", layout=BY_DATE, held=merge(1, "2026-08-11", LITERAL),
                 winners=[merge(2, "2026-08-11", LITERAL)], expect=[APPEND, COMMITS], reports=("F1",)),
    held_against("rs-zorder-loses-to-a-merge-of-its-files", layout=FLAT, held="OPTIMIZE {t} ZORDER BY (id)",
                 winners=[merge(1, "2026-08-11", "true")], expect=[DELETE_READ, COMMITS], reports=("F7",)),
    held_against("rs-zorder-passes-an-append", layout=FLAT, held="OPTIMIZE {t} ZORDER BY (id)",
                 winners=["INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"],
                 expect=[COMMITS, COMMITS], reports=("F7",)),
    in_time("outlives-that-of-a-later-one", "DELETE FROM {t} WHERE at > '2026-08-11 18:00:00'", COMMITS),
    in_time("loses-to-one-that-overlaps", "DELETE FROM {t} WHERE at < '2026-08-11 10:00:00'", APPEND),
    in_time("loses-to-that-of-a-later-one-in-the-same-file", "DELETE FROM {t} WHERE at > '2026-08-11 18:00:00'", APPEND,
            lies=TOGETHER),
    in_time("loses-to-an-insert-in-it", "INSERT INTO {t} VALUES (9, TIMESTAMP'2026-08-11 09:00:00')", APPEND),
    in_time("outlives-an-insert-after-it", "INSERT INTO {t} VALUES (9, TIMESTAMP'2026-08-12 09:00:00')", COMMITS),
)


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("F11")
def test_a_typed_time_is_refused_where_rows_are_chosen_to_be_deleted(tmp_path: Path) -> None:
    """A condition with TIMESTAMP'...' is refused before any commit, and rows stay; with the time as text it is not."""
    import pyarrow
    from deltalake import DeltaTable, write_deltalake
    from deltalake.exceptions import DeltaError

    write_deltalake(tmp_path, pyarrow.table({"at": pyarrow.array([0], pyarrow.timestamp("us", "UTC"))}))
    with pytest.raises(DeltaError, match="Invalid comparison operation"):
        DeltaTable(tmp_path).delete("at < TIMESTAMP'2026-08-11 18:00:00'")
    assert DeltaTable(tmp_path).version() == 0
    DeltaTable(tmp_path).delete("at < '2026-08-11 18:00:00'")
    assert deltalog.rows(tmp_path)[1] == ()


def append(table: DeltaTable | Path, number: int, **properties: Any) -> None:
    import pyarrow
    from deltalake import CommitProperties, write_deltalake

    rows = pyarrow.table({"id": [number]})
    write_deltalake(table, rows, mode="append", commit_properties=CommitProperties(**properties))


def load(table: DeltaTable | Path, number: int, application: str) -> None:
    from deltalake import Transaction

    append(table, number, app_transactions=[Transaction(application, number)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    append(tmp_path / "t", 0)
    return tmp_path / "t"


@pytest.mark.report("F3", "F5")
@pytest.mark.parametrize("behind", [1, 16, 40])
@pytest.mark.parametrize("compacts", [False, True], ids=["append", "compact"])
def test_one_attempt_more_is_enough_however_many_commits_came_between(
    path: Path, behind: int, compacts: bool
) -> None:
    """An append or a compaction that is 40 commits behind needs one attempt more and not one for each commit."""
    from deltalake import CommitProperties, DeltaTable

    append(path, 1)
    stale = DeltaTable(path)
    for number in range(behind):
        append(path, number + 2)
    if compacts:
        stale.optimize.compact(commit_properties=CommitProperties(max_commit_retries=1))
    else:
        append(stale, behind + 2, max_commit_retries=1)
    assert DeltaTable(path).version() == behind + 2
    assert {row for (row,) in deltalog.rows(path)[1]} == set(range(behind + 2 + (not compacts)))


@pytest.mark.report("F5")
def test_without_a_further_attempt_an_append_fails_behind_any_commit(path: Path) -> None:
    """With max_commit_retries=0 one append in between is enough: an error of the attempts, which a rerun mends."""
    from deltalake import DeltaTable
    from deltalake.exceptions import CommitFailedError

    stale = DeltaTable(path)
    append(path, 1)
    with pytest.raises(CommitFailedError) as raised:
        append(stale, 2, max_commit_retries=0)
    found = classify(raised.value)
    assert found is not None
    assert (found.kind, found.rerun_can_help) == ("attempts", True)


@pytest.mark.report("D3")
@pytest.mark.parametrize(("winner", "loser"), [(5, 6), (6, 5), (5, 5)])
def test_of_two_appends_with_one_application_id_one_wins(path: Path, winner: int, loser: int) -> None:
    """Two handles of one version: whatever the versions of the id, the second append fails; under ids of their own
    both commit."""
    from deltalake import DeltaTable
    from deltalake.exceptions import CommitFailedError

    first, second = DeltaTable(path), DeltaTable(path)
    load(first, winner, "loader")
    with pytest.raises(CommitFailedError) as raised:
        load(second, loser, "loader")
    found = classify(raised.value)
    assert found is not None
    assert (found.kind, found.rerun_can_help) == ("transaction", False)
    load(DeltaTable(path), loser, "other loader")
    assert deltalog.rows(path)[1] == tuple((number,) for number in sorted((0, winner, loser)))


@pytest.mark.report("D3")
def test_an_append_repeated_under_its_id_is_written_again(path: Path) -> None:
    """One after the other nothing is skipped: the same id and version write their rows a second time."""
    for _ in range(2):
        load(path, 5, "loader")
    assert deltalog.rows(path)[1] == ((0,), (5,), (5,))


@pytest.mark.report("F9")
def test_first_writes_fail_with_the_class_of_a_conflict(tmp_path: Path) -> None:
    """Of four threads that create one table, those that fail get CommitFailedError, and every acknowledged row is
    there."""
    from deltalake.exceptions import CommitFailedError

    together, errors, path = threading.Barrier(4), [], tmp_path / "t"

    def write(number: int) -> None:
        together.wait()
        try:
            append(path, number)
        except Exception as error:
            errors.append((number, error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = {number for number, _ in errors}
    assert [error for _, error in errors if not isinstance(error, CommitFailedError)] == []
    assert deltalog.rows(path)[1] == tuple((number,) for number in range(4) if number not in failed)
