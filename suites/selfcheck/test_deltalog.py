"""The log reader against logs written by hand: every action, path form and liar it must know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import deltalog
from lakerace.observe import Commit

if TYPE_CHECKING:
    from pathlib import Path

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
VECTOR_FILE = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def entry(table: Path, version: int, *actions: dict[str, Any]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "dataChange": True, **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, **more}}


def lay(table: Path, *names: str) -> None:
    for name in names:
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_bytes(b"1234")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    entry(tmp_path, 0, {"commitInfo": {"operation": "CREATE TABLE"}}, {"protocol": {"minReaderVersion": 1}},
          {"metaData": {"id": "x", "configuration": {"delta.appendOnly": "false"}}})
    entry(tmp_path, 1, {"commitInfo": {"operation": "WRITE"}}, add("a.parquet"), add("d=1%253A2/b.parquet"))
    return tmp_path


def test_commits_after_a_version(table: Path) -> None:
    entry(table, 2, {"commitInfo": {"operation": "STREAMING UPDATE"}}, {"txn": {"appId": "q", "version": 7}},
          remove("a.parquet"), add("c%20c.parquet"))
    assert deltalog.latest_version(table) == 2
    assert deltalog.read_commits(table, 1) == (
        Commit(version=2, operation="STREAMING UPDATE", added=("c c.parquet",), removed=("a.parquet",),
               transactions=("q=7",)),
    )
    first = deltalog.read_commits(table, -1)[0]
    assert (first.metadata, first.protocol) == (True, True)
    assert set(deltalog.commit_infos(table, 0)) == {1, 2}


def test_versions_sort_by_number_and_other_files_are_no_entries(table: Path) -> None:
    entry(table, 10)
    lay(table, "_delta_log/00000000000000000011.crc", "_delta_log/_commits/00000000000000000012.uuid.json",
        "_delta_log/00000000000000000000.00000000000000000011.compacted.json")
    assert deltalog.latest_version(table) == 10
    assert [commit.version for commit in deltalog.read_commits(table, -1)] == [0, 1, 10]


def test_files_staged_by_a_loser_are_on_disk_and_in_no_entry(table: Path) -> None:
    lay(table, "a.parquet", "d=1%3A2/b.parquet", "d=1%3A2/staged.parquet", ".a.parquet.crc", "_delta_log/x.parquet",
        "_change_data/cdc-1.parquet")
    entry(table, 2, {"cdc": {"path": "_change_data/cdc-1.parquet"}}, remove("a.parquet"))
    files = deltalog.files(table)
    assert (files.live, files.on_disk) == (1, 4)
    assert files.unreferenced == ("d=1%3A2/staged.parquet",)
    assert files.unreferenced_bytes == 4


def test_a_deletion_vector_makes_another_logical_file_of_the_same_path(table: Path) -> None:
    other = {**VECTOR, "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^"}
    entry(table, 2, add("a.parquet", deletionVector=VECTOR), remove("a.parquet"))
    entry(table, 3, remove("a.parquet", deletionVector=VECTOR), add("a.parquet", deletionVector=other))
    lay(table, "a.parquet", VECTOR_FILE, VECTOR_FILE.removeprefix("ab/"), "deletion_vector_stray.bin")
    files = deltalog.files(table)
    assert files.live == 2
    assert files.unreferenced == ("deletion_vector_stray.bin",)


def test_a_file_that_is_live_twice_or_gone_from_the_disk_is_told(table: Path) -> None:
    entry(table, 2, add("a.parquet", deletionVector=VECTOR))
    lay(table, "a.parquet")
    files = deltalog.files(table)
    assert files.doubled == ("a.parquet",)
    assert files.missing == (VECTOR_FILE, "d=1%3A2/b.parquet")


def test_a_commit_names_vectors_and_change_data_and_says_whether_its_metadata_is_new(table: Path) -> None:
    same = {"metaData": {"id": "x", "configuration": {"delta.appendOnly": "false"}}}
    entry(table, 2, same, remove("a.parquet"), add("a.parquet", deletionVector=VECTOR), {"cdc": {"path": "c%20d"}})
    entry(table, 3, {"metaData": {"id": "x", "configuration": {}}})
    second, third = deltalog.read_commits(table, 1)
    assert second.added == (f"a.parquet with deletion vector {VECTOR_FILE}@{VECTOR.get('offset')}",)
    assert (second.removed, second.change_data) == (("a.parquet",), ("c d",))
    assert (second.metadata, second.changes, second.repeats_metadata) == (True, (), True)
    assert (third.metadata, third.changes, third.repeats_metadata) == (True, ("configuration",), False)


def test_the_next_number_of_an_identity_column_is_no_change_of_the_schema(table: Path) -> None:
    def numbered(name: str, mark: int) -> dict[str, Any]:
        column = {"name": name, "type": "long", "metadata": {"delta.identity.highWaterMark": mark}}
        return {"metaData": {"id": "x", "schemaString": json.dumps({"type": "struct", "fields": [column]})}}

    for version, made in enumerate((numbered("a", 1), numbered("a", 2), numbered("b", 3)), 2):
        entry(table, version, made)
    assert [commit.changes for commit in deltalog.read_commits(table, 2)] == [("identity",), ("schemaString",)]


@pytest.mark.parametrize(
    ("descriptor", "name"),
    [
        (VECTOR, VECTOR_FILE),
        ({"storageType": "u", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^"}, VECTOR_FILE.removeprefix("ab/")),
        ({"storageType": "p", "pathOrInlineDv": "file:///data/d%20v.bin"}, "/data/d v.bin"),
        ({"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}, None),
    ],
    ids=["folder", "no folder", "absolute", "inline"],
)
def test_where_a_deletion_vector_lies(descriptor: dict[str, Any], name: str | None) -> None:
    assert deltalog.deletion_vector_file(descriptor) == name


def test_absolute_paths_of_a_clone_count_as_live(table: Path) -> None:
    entry(table, 2, add("file:///elsewhere/part%201.parquet"), add(f"file://{table.as_posix()}/own.parquet"))
    lay(table, "own.parquet")
    files = deltalog.files(table)
    assert (files.live, files.unreferenced) == (4, ())


def test_state_from_a_checkpoint_where_the_first_entries_are_gone(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    pyarrow = pytest.importorskip("pyarrow")
    target = tmp_path / "t"
    for number in range(4):
        deltalake.write_deltalake(target, pyarrow.table({"id": [number]}), mode="append")
    handle = deltalake.DeltaTable(target)
    handle.delete("id = 0")
    handle.create_checkpoint()
    handle.delete("id = 1")
    complete = deltalog.files(target)
    for version in range(5):
        (target / "_delta_log" / f"{version:020d}.json").unlink()
    assert deltalog.files(target) == complete
    assert (complete.live, complete.unreferenced) == (2, ())


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ('["(id#1L = 1)"]', "(id = 1)"),
        ('["(id#32253 = 1)","(note#7 = x#2)"]', "(id = 1) AND (note = x)"),
        ("[]", "[]"),
        ("event_date = DATE '2026-08-11'", "event_date = DATE '2026-08-11'"),
        ("[not json #1", "[not json #1"),
        ("(note = 'ticket #12')", "(note = 'ticket #12')"),
    ],
)
def test_predicates_are_the_same_in_every_run(text: str, normal: str) -> None:
    assert deltalog.normalise_predicate(text) == normal


def test_history_row_keeps_counts_and_tells_no_predicate_from_an_empty_one() -> None:
    info = {
        "operation": "UPDATE", "readVersion": 3, "isolationLevel": "Serializable", "isBlindAppend": False,
        "operationParameters": {"predicate": '["(id#1L = 1)"]'}, "engineInfo": "x",
        "operationMetrics": {"numUpdatedRows": "1", "numAddedBytes": "99", "scanTimeMs": "5", "num_added_files": 2,
                             "execution_time_ms": 3, "minFileSize": "3", "numDeletionVectorsAdded": "1",
                             "filesAdded": '{"avg":1.0}', "num_retries": 0},
    }
    row = deltalog.history_row(4, info)
    assert row.metrics == {"numUpdatedRows": "1", "num_added_files": "2", "numDeletionVectorsAdded": "1"}
    assert (row.readVersion, row.isolationLevel, row.isBlindAppend) == (3, "Serializable", False)
    assert row.predicate == "(id = 1)"
    assert deltalog.history_row(4, {"operation": "WRITE"}).predicate is None
    assert deltalog.history_row(4, {"operationParameters": {"predicate": "[]"}}).predicate == "[]"


def test_history_is_newest_first(table: Path) -> None:
    assert [(row.version, row.operation) for row in deltalog.history(table, -1)] == [(1, "WRITE"), (0, "CREATE TABLE")]


def test_write_serializable_is_written_into_every_metadata_action(table: Path) -> None:
    entry(table, 2, {"metaData": {"id": "x"}}, add("c.parquet"))
    lay(table, "_delta_log/00000000000000000001.crc", "_delta_log/.00000000000000000001.json.crc",
        "_delta_log/00000000000000000001.checkpoint.parquet", "_delta_log/_last_checkpoint")
    before = deltalog.actions(table, 1)
    deltalog.set_write_serializable(table)
    found = [action for version in (0, 2) for action in deltalog.actions(table, version)]
    configured = [action["metaData"]["configuration"] for action in found if "metaData" in action]
    assert configured == [{"delta.appendOnly": "false", "delta.isolationLevel": "WriteSerializable"},
                          {"delta.isolationLevel": "WriteSerializable"}]
    assert deltalog.actions(table, 1) == before
    assert sorted(found.suffix for found in (table / "_delta_log").iterdir()) == [".json"] * 3


MARKED = f"a.parquet with deletion vector {VECTOR_FILE}@4"


@pytest.mark.parametrize(
    ("second", "missed"),
    [
        ([remove("a.parquet", deletionVector=VECTOR), add("c.parquet")], ()),
        ([remove("a.parquet"), add("c.parquet")], ("a.parquet",)),
        ([add("a.parquet", deletionVector={**VECTOR, "offset": 9}), remove("a.parquet", deletionVector=VECTOR)], ()),
        ([remove("d=1%253A2/b.parquet")], ()),
    ],
    ids=["as it is", "without its vector", "under another vector", "another file"],
)
def test_a_file_is_its_path_and_its_deletion_vector(
    table: Path, second: list[dict[str, Any]], missed: tuple[str, ...]
) -> None:
    entry(table, 2, remove("a.parquet"), add("a.parquet", deletionVector=VECTOR))
    entry(table, 3, *second)
    marked, found = deltalog.read_commits(table, 1)
    assert (marked.removed, marked.added, marked.missed) == (("a.parquet",), (MARKED,), ())
    assert found.missed == missed
    broken = tuple(f"version 3 removes {name}, which version 2 had removed" for name in missed)
    assert deltalog.duplicate_actions((marked, found)) == broken


def commit(version: int, *, does: str = "X", used: tuple[str, ...] = (), **files: tuple[str, ...]) -> Commit:
    return Commit(version=version, operation=does, transactions=used, **files)


@pytest.mark.parametrize(
    ("commits", "wrong"),
    [
        ([commit(1, added=("a",)), commit(2, removed=("a",), added=("b",)), commit(3, removed=("b",))], ()),
        ([commit(1, removed=("a",)), commit(2, added=("a",)), commit(3, removed=("a",))], ()),
        ([commit(1, added=("a",)), commit(2, added=("a",))], ()),
        ([commit(1, removed=("a",)), commit(2, removed=("a",))], ("version 2 removes a, which version 1 had removed",)),
        ([commit(1, added=("a", "a"))], ("version 1 adds a 2 times",)),
        ([commit(1, used=("q=1",)), commit(2, used=("q=1",))],
         ("version 2 uses transaction q=1, as version 1 had",)),
        ([commit(1, removed=("a",), missed=("a",))], ("version 1 removes a, which was not there",)),
        ([commit(1, does=deltalog.TOMBSTONES, removed=("a",), missed=("a",))], ()),
        ([commit(1, removed=("a",)), commit(2, removed=("a",), missed=("a",))],
         ("version 2 removes a, which version 1 had removed",)),
    ],
    ids=["clean", "restored", "re-added", "removed twice", "listed twice", "transaction twice", "not there",
         "tombstone",
         "not there any more"],
)
def test_what_no_order_can_explain(commits: list[Commit], wrong: tuple[str, ...]) -> None:
    assert deltalog.duplicate_actions(commits) == wrong


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "has no _delta_log"),
        (lambda path: (path / "_delta_log").mkdir(), "holds no entry"),
    ],
    ids=["no log", "empty log"],
)
def test_a_folder_that_is_no_table(tmp_path: Path, make: Any, message: str) -> None:
    make(tmp_path)
    with pytest.raises(deltalog.LogUnreadable, match=message):
        deltalog.latest_version(tmp_path)


def test_a_table_that_is_about_to_be_has_a_version_before_the_first(tmp_path: Path, table: Path) -> None:
    assert deltalog.version_now(tmp_path / "nothing") == deltalog.NO_TABLE == -1
    (tmp_path / "begun" / "_delta_log").mkdir(parents=True)
    assert deltalog.version_now(tmp_path / "begun") == deltalog.NO_TABLE
    assert deltalog.version_now(table) == deltalog.latest_version(table)


def test_a_torn_entry_is_named(table: Path) -> None:
    (table / "_delta_log" / f"{2:020d}.json").write_text('{"add": {"path"')
    with pytest.raises(deltalog.LogUnreadable, match=r"00000000000000000002\.json, line 1"):
        deltalog.read_commits(table, 1)


def test_isolation_cannot_be_rewritten_without_version_0(table: Path) -> None:
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(deltalog.LogUnreadable, match="does not start at version 0"):
        deltalog.set_write_serializable(table)


TRACKED = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}}


def numbered(path: str, first: int | None, rows: int = 2) -> dict[str, Any]:
    return add(path, stats=json.dumps({"numRecords": rows}), **({} if first is None else {"baseRowId": first}))


def mark(highest: int) -> dict[str, Any]:
    configuration = json.dumps({"rowIdHighWaterMark": highest})
    return {"domainMetadata": {"domain": "delta.rowTracking", "configuration": configuration, "removed": False}}


def properties(**given: str) -> dict[str, Any]:
    return {"metaData": {"id": "x", "configuration": {f"delta.{key}": value for key, value in given.items()}}}


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ([numbered("c", 0), numbered("d", 2), mark(3)], []),
        ([numbered("c", 0), numbered("d", 1), mark(2)], ["the row ids 1 to 1 belong to c and to d"]),
        ([numbered("c", 0, 9), numbered("d", 1), numbered("e", 5), mark(8)],
         ["the row ids 1 to 2 belong to c and to d", "the row ids 5 to 6 belong to c and to e"]),
        ([numbered("c", 0), mark(0)], ["the high-water mark of row ids is 0, and c has them to 1"]),
        ([numbered("c", 0)], ["the high-water mark of row ids is missing, and c has them to 1"]),
        ([numbered("c", None)], ["version 3 adds c without row ids, which the protocol demands"]),
        ([numbered("c", None), properties(rowTrackingSuspended="true")], []),
        ([properties(enableRowTracking="true")],
         [f"the latest version holds {path} without row ids, though row tracking is enabled"
          for path in ("a.parquet", "d=1%253A2/b.parquet")]),
    ],
    ids=["honest", "overlap", "inside", "mark too low", "no mark", "no ids", "suspended", "not backfilled"],
)
def test_row_ids_are_unique_below_their_mark_and_given_to_every_file(
    table: Path, more: list[dict[str, Any]], wrong: list[str]
) -> None:
    entry(table, 2, TRACKED)
    entry(table, 3, *more)
    assert list(deltalog.files(table).row_ids) == wrong
    (table / "_delta_log" / f"{2:020d}.json").write_text("")
    assert deltalog.files(table).row_ids == ()
