"""What a whole log tells without an error: who met, who will meet, what losers left, and what was overwritten."""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from lakerace.diagnose import evidence
from lakerace.diagnose.audit import Audit, audit, isolation
from lakerace.diagnose.bench import make_log
from lakerace.diagnose.handmade import START, add, append, by_day, created, info, metadata, remove, rewrite, write
from lakerace.diagnose.jobs import shape
from lakerace.diagnose.logread import Gap, Log, open_log
from lakerace.diagnose.store import Remote, TableUnreadable
from lakerace.diagnose.view import bytes_text
from lakerace.diagnose.view_audit import audit_text, duration

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = {"day": "2026-08-11"}, {"day": "2026-08-12"}
VECTOR = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def audited(table: Path, **more: Any) -> Audit:
    found = audit(open_log(str(table)), **more)
    assert audit_text(found)
    return found


def entry(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def lay(table: Path, *names: str, size: int = 4, age: float = 86_400) -> None:
    for name in names:
        path = table / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (time.time() - age,) * 2)


# Nothing wrong.


def test_a_quiet_table_has_nothing_to_tell(tmp_path: Path) -> None:
    found = audited(by_day(tmp_path))
    assert (found.versions, found.entries, found.partitioned, found.profile) == ((0, 5), 6, ("day",), "delta-4.4")
    assert (found.overlaps_count, found.hidden_reads_count, found.signs_count, found.orphans.count) == (0, 0, 0, 0)
    assert (found.gaps, found.broken, found.empty, found.unknown, found.meetings) == ((), (), (), (), ())
    assert (found.first_time, found.last_time) == (START, START + 5 * 60_000)
    assert audit_text(found).startswith("Nothing to worry about: no sign of writers that met")


# Writers that overlapped, hidden reads, compaction in windows.


def test_writers_that_overlapped(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet")
    append(tmp_path, 2, "b.parquet")
    rewrite(tmp_path, 3, "UPDATE", "a.parquet", "c.parquet", read=0)
    append(tmp_path, 4, "d.parquet", read=3)
    found = audited(tmp_path)
    assert found.overlaps_count == 1
    one = found.overlaps[0]
    assert (one.version, one.operation, one.read_version, one.commits_between) == (3, "UPDATE", 0, 2)
    assert one.between == ("1 WRITE", "2 WRITE")
    assert "version 3 UPDATE read version 0; meanwhile came 1 WRITE, 2 WRITE" in audit_text(found)


def test_hidden_reads_and_unmarked_appends(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet", blind=False)
    append(tmp_path, 2, "b.parquet", blind=None)
    append(tmp_path, 3, "c.parquet")
    write(tmp_path, 4, info(4, "WRITE", mode="Overwrite"), remove("a.parquet"), add("d.parquet"))
    found = audited(tmp_path)
    assert (found.hidden_reads, found.hidden_reads_count, found.unmarked_count) == ((1,), 1, 1)


@pytest.mark.parametrize(
    ("who", "read", "count"),
    [("writer", 1, 1), ("compaction", 0, 1), ("neither", 2, 0)],
)
def test_compaction_inside_a_write_window(tmp_path: Path, who: str, read: int, count: int) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet")
    rewrite(tmp_path, 2, "OPTIMIZE", "a.parquet", "b.parquet", change=False, read=0 if who == "compaction" else 1)
    rewrite(tmp_path, 3, "UPDATE", "b.parquet", "c.parquet", read=2 if who == "compaction" else read)
    found = audited(tmp_path)
    assert (found.compactions_count, found.compactions_in_windows_count) == (1, count)


def test_without_read_versions_overlaps_cannot_be_known(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pyarrow.table({"id": [1]}))
    write_deltalake(tmp_path, pyarrow.table({"id": [2]}), mode="append")
    found = audited(tmp_path)
    assert found.profile == "delta-rs"
    assert any("do not record which version they read" in line for line in found.unknown)
    assert "as far as this log tells" in audit_text(found)


# Recurring jobs.


@pytest.mark.parametrize(
    ("recorded", "plain"),
    [
        ('["(id#32253L = 1)"]', "(id = ?)"),
        ('["((event_date#12 = 2026-08-11) AND (id#3L = 1))"]', "((event_date = ?) AND (id = ?))"),
        ('["((id#1L = id#2L) AND (event_date#3 = event_date#9))"]', "((id = id) AND (event_date = event_date))"),
        ('["(country#4 = New York)"]', "(country = ?)"),
        ('["id#1L IN (3,9)"]', "id IN (?)"),
        ("[\"('event_date = 2026-08-11)\"]", "(event_date = ?)"),
        ("target.id = source.id AND target.d = '2026-08-11'", "target.id = source.id AND target.d = ?"),
        ("[]", ""),
        ('["true"]', ""),
        (None, ""),
        (["(id#1 = 2)"], "(id = ?)"),
    ],
)
def test_the_shape_of_a_predicate(recorded: Any, plain: str) -> None:
    assert shape(recorded) == plain


def nightly(table: Path, *, partitioned: bool) -> None:
    """A stream of appends, an UPDATE each fourth version, an OPTIMIZE each ninth."""
    created(table, *(("day",) if partitioned else ()))
    values = FIRST if partitioned else None
    last = "p-0.parquet"
    append(table, 1, last, values)
    for version in range(2, 40):
        new = f"p-{version}.parquet"
        if version % 9 == 0:
            rewrite(table, version, "OPTIMIZE", last, new, values, change=False)
        elif version % 4 == 0:
            rewrite(table, version, "UPDATE", last, new, values, predicate=f'["(id#1L = {version})"]',
                    read=version - 2 if version == 16 else None)
        else:
            append(table, version, new, values)
            continue
        last = new


def test_jobs_are_told_apart_and_counted(tmp_path: Path) -> None:
    nightly(tmp_path, partitioned=False)
    found = audited(tmp_path)
    assert [(job.name, job.count, job.blind) for job in found.jobs] == [
        ("WRITE Append", 27, True), ("UPDATE on (id = ?)", 8, False), ("OPTIMIZE", 4, False)
    ]
    update = found.jobs[1]
    assert (update.first, update.last, update.every, update.window) == (4, 32, 240.0, 120.0)


def test_the_jobs_that_databricks_records_are_told_apart(tmp_path: Path) -> None:
    created(tmp_path)
    for version in range(1, 7):
        about = info(version, "MERGE", predicate='["(t.id = s.id)"]', engine="Databricks-Runtime/15.4.x")
        about["commitInfo"] |= {"job": {"jobId": str(version % 2), "jobName": "nightly"}} if version < 5 else {
            "notebook": {"notebookId": "7"}}
        write(tmp_path, version, about, remove(f"{version}.parquet"), add(f"{version + 1}.parquet"))
    assert [job.name for job in audited(tmp_path).jobs] == [
        f"MERGE on (t.id = s.id) by {who}" for who in ("job 1 (nightly)", "job 0 (nightly)", "notebook 7")
    ]


def test_conflicts_waiting_to_happen(tmp_path: Path) -> None:
    nightly(tmp_path, partitioned=False)
    waiting = {(one.held, one.winner): one for one in audited(tmp_path).meetings}
    update, appends, optimize = "UPDATE on (id = ?)", "WRITE Append", "OPTIMIZE"
    assert waiting.keys() == {(update, update), (update, appends), (update, optimize), (optimize, update),
                              (optimize, optimize)}
    assert (waiting[update, appends].kind, waiting[update, appends].unit) == ("append", "table")
    assert waiting[optimize, update].kind == "delete-read"
    assert waiting[update, appends].overlapped == 1
    assert next(iter(waiting)) == (update, appends)


def test_jobs_on_partitions_of_their_own_do_not_meet(tmp_path: Path) -> None:
    created(tmp_path, "day")
    for version in range(1, 9):
        values = FIRST if version % 2 else SECOND
        operation = "DELETE" if version % 2 else "UPDATE"
        rewrite(tmp_path, version, operation, f"{version}.parquet", f"{version}n.parquet", values,
                predicate=f'["(day#1 = {values["day"]})"]')
    meetings = {(one.held.partition(" ")[0], one.winner.partition(" ")[0]) for one in audited(tmp_path).meetings}
    assert meetings == {("DELETE", "DELETE"), ("UPDATE", "UPDATE")}


def test_hostile_histories_have_few_jobs(tmp_path: Path) -> None:
    created(tmp_path)
    for version in range(1, 200):
        write(tmp_path, version, info(version, f"OPERATION {version}"), add(f"{version}.parquet"))
    assert len(audited(tmp_path).jobs) <= 61


# Isolation.


@pytest.mark.parametrize(
    ("properties", "level", "problem"),
    [
        ({}, "serializable", ""),
        ({"delta.isolationLevel": "Serializable"}, "serializable", ""),
        ({"delta.isolationLevel": "WriteSerializable"}, "write-serializable", ""),
        ({"delta.isolationLevel": "writeserializable"}, "write-serializable", "is read as WriteSerializable"),
        ({"delta.isolationLevel": "Snapshot"}, "serializable", "'Snapshot' is no level"),
        ({"delta.isolationlevel": "WriteSerializable"}, "serializable", "the property is spelled delta.isolationlevel"),
        ({"isolation_level": "WriteSerializable"}, "serializable", ("spelled isolation_level; only "
                                                                   "delta.isolationLevel")),
        ({"Delta.IsolationLevel": "x", "delta.isolationLevel": "Serializable"}, "serializable", ("spelled "
                                                                                                "Delta.IsolationLevel")),
    ],
)
def test_the_isolation_level_and_its_spelling(
    tmp_path: Path, properties: dict[str, str], level: str, problem: str
) -> None:
    created(tmp_path, properties=properties)
    append(tmp_path, 1, "a.parquet")
    found = audited(tmp_path).isolation
    assert (found.level, found.recorded) == (level, {"Serializable": 2})
    assert problem in found.problem
    assert bool(problem) == bool(found.problem)
    assert isolation(properties, level, {}).problem == found.problem


# Orphans.


def test_orphans_are_counted_with_their_bytes(tmp_path: Path) -> None:
    by_day(tmp_path)
    named = [f"day=2026-08-1{day}/{name}.parquet" for day, names in ((1, "ade"), (2, "bc")) for name in names]
    lay(tmp_path, *named, "_delta_log/x.parquet", "_hidden/y.parquet", ".z.parquet", "notes.txt")
    lay(tmp_path, "day=2026-08-11/lost.parquet", VECTOR, size=100)
    lay(tmp_path, "day=2026-08-11/running.parquet", size=7, age=60)
    found = audited(tmp_path).orphans
    assert (found.count, found.size, found.vectors, found.recent, found.untold) == (3, 207, 1, 1, 0)
    assert found.on_disk == 8
    assert found.examples == ("day=2026-08-11/lost.parquet", "day=2026-08-11/running.parquet", VECTOR)


def test_what_the_log_names_in_any_form_is_no_orphan(tmp_path: Path) -> None:
    descriptor = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    created(tmp_path)
    write(
        tmp_path, 1, info(1, "WRITE", mode="Append"), add("a%20b.parquet"), add("ts=1%253A2/c.parquet"),
        add((tmp_path / "absolute.parquet").as_uri()), add("d.parquet", deletionVector=descriptor),
        {"cdc": {"path": "_change_data/e.parquet", "partitionValues": {}, "size": 1}},
    )
    lay(tmp_path, "a b.parquet", "ts=1%3A2/c.parquet", "absolute.parquet", "d.parquet", f"ab/{VECTOR}",
        "_change_data/e.parquet")
    found = audited(tmp_path).orphans
    assert (found.on_disk, found.count, found.examples) == (6, 0, ())


def test_what_is_older_than_a_cleaned_up_log_cannot_be_told(tmp_path: Path) -> None:
    by_day(tmp_path)
    for version in range(4):
        entry(tmp_path, version).unlink()
    started = (START + 4 * 60_000) / 1000
    lay(tmp_path, "day=2026-08-12/b.parquet", age=time.time() - started + 1000)
    lay(tmp_path, "day=2026-08-12/lost.parquet", age=time.time() - started - 10, size=9)
    found = audited(tmp_path)
    assert (found.orphans.count, found.orphans.size, found.orphans.untold, found.orphans.untold_size) == (1, 9, 1, 4)
    assert found.unknown[0].startswith("the log begins with version 4: what versions 0 to 3 did")


def test_the_files_of_a_real_loser(tmp_path: Path) -> None:
    for number in (1, 2):
        write_deltalake(tmp_path, pyarrow.table({"id": [number], "note": ["a"]}), mode="append")
    stale = DeltaTable(tmp_path)
    DeltaTable(tmp_path).update(updates={"note": "'b'"}, predicate="id = 1")
    with pytest.raises(Exception, match="Failed to commit transaction"):
        stale.update(updates={"note": "'c'"}, predicate="id = 1")
    log = open_log(str(tmp_path))
    named = {file.path for version in range(3) for file in log.entry(version).adds}
    lost = [path for path in tmp_path.glob("*.parquet") if path.name not in named]
    found = audited(tmp_path).orphans
    assert len(lost) == 1
    assert (found.count, found.size, found.recent) == (1, lost[0].stat().st_size, 1)


# Missing, broken and overwritten entries.


def test_missing_broken_and_empty_entries(tmp_path: Path) -> None:
    by_day(tmp_path)
    entry(tmp_path, 1).unlink()
    entry(tmp_path, 2).write_text("")
    entry(tmp_path, 4).write_text('{"commitInfo"')
    found = audited(tmp_path)
    assert (found.gaps, found.empty, found.broken_count) == ((Gap(1, 1),), (2,), 1)
    assert found.broken[0].startswith("log entry 00000000000000000004.json, line 1 is no JSON")
    assert "1 gap in the log; 1 broken entry" in audit_text(found)


def test_a_log_without_one_readable_entry_is_one_line(tmp_path: Path) -> None:
    by_day(tmp_path)
    for version in range(6):
        entry(tmp_path, version).write_text("{")
    with pytest.raises(TableUnreadable, match=r"^[^\n]* none of its 6 log entries can be read; the newest: [^\n]*$"):
        audit(open_log(str(tmp_path)))


def test_a_table_elsewhere_is_audited_alike(tmp_path: Path) -> None:
    make_log(tmp_path, 80)
    entry(tmp_path, 7).write_text("{")
    lay(tmp_path, "day=2026-08-11/a.parquet", "day=2026-08-11/lost.parquet")
    here, there = audited(tmp_path), audit(Log(Remote(tmp_path.as_uri())))
    assert replace(there, table=here.table) == here


def test_an_entry_that_read_itself_was_written_anew(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet", read=1)
    assert [(sign.version, sign.what) for sign in audited(tmp_path).signs] == [
        (1, "says that it read version 1, its own or a later one: the entry was written anew")
    ]


def test_a_file_that_no_entry_added_points_to_an_overwritten_one(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet")
    rewrite(tmp_path, 2, "UPDATE", "gone.parquet", "b.parquet")
    assert "removes gone.parquet, which no entry added" in audited(tmp_path).signs[0].what


def test_a_file_removed_twice_is_rows_twice(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet")
    rewrite(tmp_path, 2, "OPTIMIZE", "a.parquet", "b.parquet")
    rewrite(tmp_path, 3, "OPTIMIZE", "a.parquet", "c.parquet")
    found = audited(tmp_path)
    assert found.signs_count == 1
    assert "removes a.parquet, which version 2 had removed" in found.signs[0].what


def test_a_file_may_be_removed_again_after_it_was_added_again(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet")
    write(tmp_path, 2, info(2, "DELETE"), remove("a.parquet"), add("a.parquet", deletionVector={
        "storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1}))
    rewrite(tmp_path, 3, "OPTIMIZE", "a.parquet", "c.parquet")
    assert audited(tmp_path).signs == ()


def test_in_commit_timestamps_grow_and_transaction_ids_differ(tmp_path: Path) -> None:
    created(tmp_path)
    for version, (when, name) in enumerate(((10, "a"), (10, "b"), (11, "a")), 1):
        write(tmp_path, version, {"commitInfo": {"operation": "WRITE", "inCommitTimestamp": when, "txnId": name}},
              add(f"{version}.parquet"))
    assert [sign.version for sign in audited(tmp_path).signs] == [2, 3]


def test_deltas_own_checksum_contradicts_an_overwritten_entry(tmp_path: Path) -> None:
    by_day(tmp_path)
    for version in range(6):
        name = f"00000000-0000-4000-8000-{version if version != 3 else 99:012d}"
        entry(tmp_path, version).with_suffix(".crc").write_text(json.dumps({"txnId": name, "numFiles": 1}))
    found = audited(tmp_path)
    assert [sign.version for sign in found.signs] == [3]
    assert "its checksum file notes another transaction id" in found.signs[0].what


def test_hadoops_checksum_contradicts_changed_bytes(tmp_path: Path) -> None:
    by_day(tmp_path)
    for version in range(6):
        text = entry(tmp_path, version).read_bytes()
        parts = [text[start : start + 512] for start in range(0, len(text), 512)]
        sums = b"crc\x00" + struct.pack(">i", 512) + b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts)
        (tmp_path / "_delta_log" / f".{version:020d}.json.crc").write_bytes(sums)
    assert audited(tmp_path).signs == ()
    append(tmp_path, 4, "another.parquet", FIRST)
    found = audited(tmp_path)
    assert next(sign.version for sign in found.signs) == 4
    assert "Hadoop" in found.signs[0].what


def test_many_signs_are_counted_and_few_are_shown(tmp_path: Path) -> None:
    created(tmp_path)
    for version in range(1, evidence.MOST + 20):
        append(tmp_path, version, f"{version}.parquet", read=version)
    found = audited(tmp_path)
    assert (len(found.signs), found.signs_count) == (evidence.MOST, evidence.MOST + 19)


# The whole.


def test_a_made_log_of_some_length(tmp_path: Path) -> None:
    make_log(tmp_path, 500)
    found = audited(tmp_path)
    assert (found.entries, found.signs, found.gaps) == (500, (), ())
    assert found.overlaps_count == 20
    assert {job.operation: job.count for job in found.jobs} == {"WRITE": 470, "UPDATE": 20, "OPTIMIZE": 9}


def test_an_audit_writes_nothing(tmp_path: Path) -> None:
    by_day(tmp_path)
    lay(tmp_path, "day=2026-08-11/lost.parquet")
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")}
    audited(tmp_path)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")} == before


def test_numbers_for_people() -> None:
    assert [bytes_text(size) for size in (0, 999, 1500, 2_000_000, 10**18)] == [
        "0 bytes", "999 bytes", "1.5 kB", "2.0 MB", "1000.0 PB"
    ]
    assert [duration(seconds) for seconds in (1.5, 300, 7200, 200_000)] == ["1.5 s", "5.0 min", "2.0 h", "2.3 d"]


def test_metadata_changes_are_no_jobs(tmp_path: Path) -> None:
    created(tmp_path)
    for version in range(1, 4):
        write(tmp_path, version, info(version, "SET TBLPROPERTIES"), metadata(properties={"delta.x": str(version)}))
    assert audited(tmp_path).jobs == ()
