"""Which commit won, by which check, and what is said where the log can't tell? On logs by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lakerace.conflicts import (
    APPEND,
    ATTEMPTS,
    DELETE_DELETE,
    DELETE_READ,
    METADATA,
    PROTOCOL,
    REVALIDATION,
    TRANSACTION,
    WRITE,
)
from lakerace.diagnose.handmade import (
    START,
    add,
    append,
    created,
    info,
    metadata,
    protocol,
    remove,
    write,
)
from lakerace.diagnose.reported import Reported
from lakerace.diagnose.texts import read_text
from lakerace.diagnose.view import diagnosis_text, sentence
from selfcheck.diagnosing import FIRST, MERGE, SECOND, diagnosed, said, won

if TYPE_CHECKING:
    from pathlib import Path


def test_the_version_that_the_error_names(orders: Path) -> None:
    found = diagnosed(orders, reported=said(APPEND, version=3, operation="UPDATE", partition=SECOND))
    assert found.winner is not None
    assert found.winner.sure
    assert (won(found), found.winner.operation, found.winner.predicate) == (3, "UPDATE", "(id = 9)")
    assert (found.winner.blind, found.winner.read_version) == (False, 2)
    assert [(one.partition, one.added, one.removed, one.added_bytes) for one in found.winner.touched] == [
        ("day=2026-08-12", 1, 1, 1000)
    ]
    assert found.check is not None
    assert (found.check.name, found.check.kind, found.check.partition) == ("added-files", APPEND, "day=2026-08-12")
    assert found.check.source == "ConflictChecker.checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn"
    assert (found.read_version, found.read_how) == (2, "assumed: the version before the winner")
    assert found.rerun_can_help is True


def test_who_it_was_where_the_log_says_so(tmp_path: Path) -> None:
    created(tmp_path)
    about = info(1, "MERGE", engine="Databricks-Runtime/15.4.x")
    about["commitInfo"] |= {"job": {"jobId": "42", "jobName": "nightly"}, "userName": "a@example.com"}
    write(tmp_path, 1, about, add("a.parquet"))
    found = diagnosed(tmp_path, reported=said(APPEND, version=1))
    assert found.winner is not None
    assert found.winner.by == "job 42 (nightly), a@example.com"
    assert "by job 42 (nightly), a@example.com" in " ".join(diagnosis_text(found).split())


@pytest.mark.parametrize("by", ["txnId", "timestamp"])
def test_the_commit_that_the_error_prints(orders: Path, by: str) -> None:
    commit = {"operation": "UPDATE", "readVersion": 2, by: {"txnId": "00000000-0000-4000-8000-000000000003",
                                                            "timestamp": START + 180_000}[by]}
    found = diagnosed(orders, reported=said(APPEND, commit=commit))
    assert found.winner is not None
    assert (won(found), found.winner.sure) == (3, True)


def test_the_first_commit_after_the_read_version_that_fits(orders: Path) -> None:
    found = diagnosed(orders, reported=said(DELETE_READ), read_version=0)
    assert won(found) == 3
    assert [(one.version, one.operation) for one in found.passed] == [(1, "WRITE"), (2, "WRITE")]
    assert won(diagnosed(orders, reported=said(DELETE_READ), read_version=3)) == 5
    assert won(diagnosed(orders, reported=said(APPEND, partition=FIRST), read_version=2)) == 4


def test_the_newest_commit_that_fits_up_to_a_time(orders: Path) -> None:
    assert won(diagnosed(orders, reported=said(APPEND))) == 5
    assert won(diagnosed(orders, reported=said(APPEND), time=START + 4 * 60_000 + 1)) == 4
    assert won(diagnosed(orders, reported=said(DELETE_READ), time=START + 4 * 60_000 + 1)) == 3
    assert won(diagnosed(orders, reported=said(APPEND, partition=SECOND))) == 3
    assert won(diagnosed(orders, reported=said(DELETE_DELETE, file="day=2026-08-12/b.parquet"))) == 3


def test_the_rules_find_it_from_the_statement_alone(orders: Path) -> None:
    statement = "UPDATE orders SET note = 'x' WHERE day = '2026-08-12' AND id = 9"
    found = diagnosed(orders, statement=statement, read_version=2)
    assert (won(found), found.kind, found.usable) == (3, APPEND, ("day = '2026-08-12'",))
    nothing = diagnosed(orders, statement=statement, read_version=3)
    assert won(nothing) is None
    assert sentence(nothing) == (
        "No conflict found: by the rules no commit after version 3 stands in the statement's way."
    )


def test_the_readers_own_log_lines_give_its_read_version(orders: Path) -> None:
    text = (
        "26/08/12 02:14:05 INFO OptimisticTransaction: [tableId=a,txnId=b] Attempting to commit version 3 with 4 "
        "actions "
        "with Serializable isolation level\n26/08/12 02:14:06 ERROR "
        "x\nio.delta.exceptions.ConcurrentDeleteReadException: "
        "[DELTA_CONCURRENT_DELETE_READ] This transaction attempted to read one or more files that were deleted\n"
    )
    found = diagnosed(orders, reported=read_text(text))
    assert (won(found), found.read_version, found.read_how) == (3, 2, "from the writer's own log")


@pytest.mark.parametrize(
    ("reported", "read_version", "problem"),
    [
        (said(APPEND, version=42), None, "the error names version 42, but this log ends with version 5"),
        (said(APPEND, commit={"txnId": "other", "readVersion": 1}), None, "that is not in this log"),
        (said(PROTOCOL), 3, "no commit after version 3 can have raised AnException"),
        (said(APPEND), 5, "no commit came after version 5"),
        (said(APPEND, partition={"day": "1999-01-01"}), None, "no commit in this log can have raised"),
    ],
)
def test_no_winner_is_said_with_the_reason(
    orders: Path, reported: Reported, read_version: int | None, problem: str
) -> None:
    found = diagnosed(orders, reported=reported, read_version=read_version)
    assert won(found) is None
    assert problem in found.unknown[0]
    assert problem in sentence(found)
    assert found.check is not None
    assert found.change is not None


def test_a_cleaned_up_log_says_what_cannot_be_known(orders: Path) -> None:
    for version in range(4):
        (orders / "_delta_log" / f"{version:020d}.json").unlink()
    found = diagnosed(orders, reported=said(APPEND, version=3))
    assert won(found) is None
    assert found.unknown[0] == (
        "the error names version 3, but the log was cleaned up to version 4: what that commit did can't be known any "
        "more"
    )
    older = diagnosed(orders, reported=said(APPEND), read_version=1)
    assert "the commits after version 1 are cleaned up" in older.unknown[0]
    younger = diagnosed(orders, reported=said(DELETE_READ, version=5), statement="DELETE FROM orders WHERE id = 1")
    assert won(younger) == 5
    assert any("no checkpoint is left from before" in line for line in younger.unknown)


def test_another_operation_than_the_error_says_is_pointed_out(orders: Path) -> None:
    found = diagnosed(orders, reported=said(APPEND, version=3, operation="MERGE"))
    assert "the error says MERGE, the log says UPDATE: is this the table?" in found.notes


def test_a_commit_that_cannot_have_raised_the_error_is_pointed_out(orders: Path) -> None:
    found = diagnosed(orders, reported=said(DELETE_READ, version=4, path="s3://lake/invoices/"))
    assert found.notes == (
        "what version 4 wrote can't raise this error: another table, or an entry overwritten",
        "the error is about the table at s3://lake/invoices/",
    )


def test_the_file_that_the_drivers_log_names(orders: Path) -> None:
    text = (
        "26/08/12 02:14:06 INFO ConflictChecker: Partition predicate is matching a file changed by the winning "
        "transaction: predicate=Vector('day = 2026-08-11), matchingFile=day=2026-08-11/d.parquet"
    )
    found = diagnosed(orders, reported=read_text(text))
    assert found.winner is not None
    assert (won(found), found.winner.sure) == (4, True)
    assert found.why_no_filter == (
        "it was used, and covers what the winner wrote: the engine's predicate was day = 2026-08-11; both met in "
        "day=2026-08-11"
    )


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    """Versions 1 to 4: a property, a feature, a stream's append, a compaction."""
    created(tmp_path)
    write(tmp_path, 1, info(1, "SET TBLPROPERTIES", blind=True), metadata(properties={"delta.appendOnly": "false"}))
    write(tmp_path, 2, info(2, "UPGRADE PROTOCOL", blind=True), protocol(1, 7, writerFeatures=["rowTracking"]))
    write(tmp_path, 3, info(3, "STREAMING UPDATE", blind=True, outputMode="Append"),
          {"txn": {"appId": "query-1", "version": 7}}, add("a.parquet"))
    write(tmp_path, 4, info(4, "OPTIMIZE", predicate="[]"), remove("a.parquet", change=False),
          add("b.parquet", change=False))
    return tmp_path


@pytest.mark.parametrize(
    ("reported", "version", "check", "change", "rerun"),
    [
        (said(METADATA), 1, "metadata", "run SET TBLPROPERTIES when no writer runs", True),
        (said(PROTOCOL), 2, "protocol", "upgrade or drop table features when no writer runs", True),
        (said(TRANSACTION), 3, "transaction-id", "stop the second copy of the stream", False),
        (said(DELETE_READ), 4, "deleted-read", "keep OPTIMIZE out of this job's window", True),
        (said(DELETE_DELETE), 4, "deleted-deleted", "keep OPTIMIZE out of this job's window", True),
        (said(APPEND), 4, "added-files", "keep OPTIMIZE out of this job's window", True),
        (said(WRITE), 4, "no-checks", "run RESTORE or CLONE while nobody writes", True),
        (said(REVALIDATION, version=1), 1, "protocol", "keep SET TBLPROPERTIES away while", True),
        (said(ATTEMPTS, version=3), 3, "attempts", "commit less often", True),
    ],
    ids=lambda value: value.kind if isinstance(value, Reported) else "",
)
def test_each_kind_has_its_check_and_its_change(
    changes: Path, reported: Reported, version: int, check: str, change: str, rerun: bool
) -> None:
    found = diagnosed(changes, reported=reported, read_version=0 if reported.kind in (METADATA, PROTOCOL) else None)
    assert (won(found), found.rerun_can_help) == (version, rerun)
    assert found.check is not None
    assert found.check.name == check
    assert found.change is not None
    assert found.change.what.startswith(change)


def test_a_metadata_domain_has_a_check_of_its_own(tmp_path: Path) -> None:
    created(tmp_path)
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}', "removed": False}
    write(tmp_path, 1, info(1, "CLUSTER BY"), {"domainMetadata": domain})
    append(tmp_path, 2, "a.parquet")
    found = diagnosed(tmp_path, reported=said(TRANSACTION, domain="delta.clustering"))
    assert found.check is not None
    assert (won(found), found.check.name) == (1, "domain-metadata")
    assert found.change is not None
    assert "one command at a time change delta.clustering" in found.change.what
    assert (found.rerun_can_help, "same metadata domain" in found.meaning) == (True, True)


@pytest.mark.parametrize(("key", "agrees"), [("delta.constraints.small", True), ("team", False)])
def test_a_dropped_feature_is_in_use_again_when_the_winner_s_metadata_needs_it(
    tmp_path: Path, key: str, agrees: bool
) -> None:
    features = protocol(1, 7, writerFeatures=["checkConstraints", "appendOnly", "invariants"])
    write(tmp_path, 0, info(0, "CREATE TABLE"), features, metadata())
    write(tmp_path, 1, info(1, "SET TBLPROPERTIES", blind=True), metadata(properties={key: "amount < 9"}))
    found = diagnosed(tmp_path, reported=said(REVALIDATION, version=1), read_version=0,
                      statement="ALTER TABLE t DROP FEATURE checkConstraints")
    assert (won(found), found.agrees) == (1, agrees)


def test_a_table_made_twice(tmp_path: Path) -> None:
    created(tmp_path)
    found = diagnosed(tmp_path, reported=said(PROTOCOL, version=0))
    assert found.change is not None
    assert found.change.what.startswith("create the table once, before the writers start")


@pytest.mark.parametrize(
    ("sub", "filter_said", "change"),
    [
        ("ROW_LEVEL_CHANGES", "the same rows changed by both", "split the work"),
        ("WHOLE_TABLE_READ", "whole table counts as read", "give the statement a filter"),
        ("EMPTY_READ_PREDICATES", "no filter", "give the statement a filter"),
        ("PREDICATES_NEED_REWRITE", "can't be applied to single rows", "write the condition without structs"),
        ("PARTITIONED_TABLE_WITHOUT_MERGE_SOURCE", "rules row-level detection out", "name the partition by a literal"),
        ("ALLOTTED_TIME_EXCEEDED", "lack of time", "run the statement again"),
        ("CHANGE_TYPE_COLUMN", "_change_type", "rename the column _change_type"),
        ("WHOLE_TABLE_REPLACE", "replaced all data", "keep the job that replaces"),
    ],
)
def test_what_databricks_says_decides(orders: Path, sub: str, filter_said: str, change: str) -> None:
    found = diagnosed(orders, reported=said(APPEND, version=3, sub_condition=sub, engine="databricks"))
    assert found.profile == "databricks"
    assert filter_said in found.why_no_filter
    assert found.change is not None
    assert found.change.what.startswith(change)


def test_a_diagnosis_is_plain_json(orders: Path) -> None:
    import msgspec

    found = diagnosed(orders, reported=said(APPEND, version=3), statement=MERGE)
    told = json.loads(msgspec.json.encode(found))
    assert told["winner"]["version"] == 3
    assert told["check"]["name"] == "added-files"
    assert told["change"]["kind"] == "predicate"
