"""Reading any log: checkpoints of every kind, column mapping, deletion vectors, clean-ups, gaps, and what is none."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet
import pytest

from lakerace.diagnose.entries import Entry, EntryUnreadable, info_of, parse, time_text
from lakerace.diagnose.handmade import START, add, append, by_day, created, info, metadata, protocol, remove, write
from lakerace.diagnose.logread import Gap, open_log
from lakerace.diagnose.state import known_at
from lakerace.diagnose.store import Remote, TableUnreadable

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = {"day": "2026-08-11"}, {"day": "2026-08-12"}


def log_file(table: Path, name: str) -> Path:
    return table / "_delta_log" / name


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """A checkpoint file: a column for each kind of action, maps as Parquet maps."""
    text = pyarrow.string()
    pairs = pyarrow.map_(text, text)
    kinds = {
        "add": pyarrow.struct([("path", text), ("partitionValues", pairs), ("size", pyarrow.int64()),
                               ("dataChange", pyarrow.bool_()), ("stats", text)]),
        "remove": pyarrow.struct([("path", text), ("dataChange", pyarrow.bool_())]),
        "metaData": pyarrow.struct([("id", text), ("schemaString", text), ("partitionColumns", pyarrow.list_(text)),
                                    ("configuration", pairs)]),
        "protocol": pyarrow.struct([("minReaderVersion", pyarrow.int32()), ("minWriterVersion", pyarrow.int32())]),
        "sidecar": pyarrow.struct([("path", text), ("sizeInBytes", pyarrow.int64())]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        kind: pyarrow.array([_pairs(row.get(kind)) for row in rows], type=type_)
        for kind, type_ in kinds.items()
        if any(kind in row for row in rows)
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def _pairs(found: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if found is None else {
        name: list(value.items()) if isinstance(value, dict) else value for name, value in found.items()
    }


STATE = [metadata("day", properties={"delta.x": "1"}), protocol(), add("day=2026-08-11/a.parquet", FIRST),
         add("day=2026-08-12/b.parquet", SECOND, stats='{"numRecords":2,"minValues":{"id":1},"maxValues":{"id":9}}')]


def cleaned(table: Path, *, up_to: int = 3) -> None:
    """Entries 4 and 5 of :func:`by_day`, as a clean-up leaves them."""
    by_day(table)
    for version in range(up_to + 1):
        log_file(table, f"{version:020d}.json").unlink()


def paths(table: Path, version: int) -> list[str]:
    return sorted(file.path for file in known_at(open_log(str(table)), version).table().files)


def test_a_complete_log(tmp_path: Path) -> None:
    log = open_log(str(by_day(tmp_path)))
    assert (log.first, log.last, log.complete, log.gaps(), log.checkpoints) == (0, 5, True, (), ())
    assert [entry.version for entry in log.entries(2, 4) if isinstance(entry, Entry)] == [2, 3, 4]
    assert log.info(3).predicate == "(id = 9)"
    assert log.info(3).when == time_text(START + 180_000)
    assert paths(tmp_path, 2) == ["day=2026-08-11/a.parquet", "day=2026-08-12/b.parquet"]
    assert paths(tmp_path, 5) == ["day=2026-08-11/e.parquet", "day=2026-08-12/c.parquet"]
    table = known_at(log, 5).table()
    assert table.partitioned == ("day",)
    assert table.columns == {"id": "bigint", "day": "date", "note": "string"}
    assert {file.partition["day"] for file in table.files} == {date(2026, 8, 11), date(2026, 8, 12)}


def test_the_version_at_a_time(tmp_path: Path) -> None:
    log = open_log(str(by_day(tmp_path)))
    assert log.version_at(START - 1) is None
    assert log.version_at(START) == 0
    assert log.version_at(START + 3 * 60_000 + 1) == 3
    assert log.version_at(START + 10**9) == 5


@pytest.mark.parametrize("kind", ["classic", "parts", "v2-json", "v2-parquet"])
def test_every_kind_of_checkpoint(tmp_path: Path, kind: str) -> None:
    cleaned(tmp_path)
    name = f"{3:020d}.checkpoint"
    top = [STATE[0], STATE[1], {"sidecar": {"path": "one.parquet", "sizeInBytes": 1}},
           {"sidecar": {"path": "_delta_log/_sidecars/two.parquet", "sizeInBytes": 1}}]
    if kind == "classic":
        parquet(log_file(tmp_path, f"{name}.parquet"), STATE)
    elif kind == "parts":
        parquet(log_file(tmp_path, f"{name}.0000000001.0000000002.parquet"), STATE[:3])
        parquet(log_file(tmp_path, f"{name}.0000000002.0000000002.parquet"), STATE[3:])
    else:
        parquet(log_file(tmp_path, "_sidecars/one.parquet"), STATE[2:3])
        parquet(log_file(tmp_path, "_sidecars/two.parquet"), STATE[3:])
        unique = f"{name}.80a083e8-7026-4e79-81be-64bd76c43a11"
        if kind == "v2-json":
            log_file(tmp_path, f"{unique}.json").write_text("".join(json.dumps(line) + "\n" for line in top))
        else:
            parquet(log_file(tmp_path, f"{unique}.parquet"), top)
    log = open_log(str(tmp_path))
    assert (log.first, log.last, [one.version for one in log.checkpoints]) == (4, 5, [3])
    known = known_at(log, 3)
    assert known.unknown == ""
    assert known.properties == {"delta.x": "1"}
    found = {file.path: file for file in known.table().files}
    assert sorted(found) == ["day=2026-08-11/a.parquet", "day=2026-08-12/b.parquet"]
    assert found["day=2026-08-12/b.parquet"].bounds == {"id": (1, 9)}
    assert paths(tmp_path, 5) == ["day=2026-08-11/e.parquet", "day=2026-08-12/b.parquet"]


def test_a_checkpoint_of_which_a_part_is_missing_is_none(tmp_path: Path) -> None:
    cleaned(tmp_path)
    parquet(log_file(tmp_path, f"{3:020d}.checkpoint.0000000001.0000000002.parquet"), STATE)
    known = known_at(open_log(str(tmp_path)), 4)
    assert "begins with version 4 and no checkpoint is left from before" in known.unknown
    assert known.files == {}


def test_after_a_clean_up_the_schema_comes_from_a_later_checkpoint(tmp_path: Path) -> None:
    cleaned(tmp_path)
    parquet(log_file(tmp_path, f"{5:020d}.checkpoint.parquet"), STATE)
    known = known_at(open_log(str(tmp_path)), 4)
    assert known.partitioned == ("day",)
    assert "can't be known" in known.unknown


def test_a_broken_checkpoint_is_one_line(tmp_path: Path) -> None:
    cleaned(tmp_path)
    log_file(tmp_path, f"{3:020d}.checkpoint.parquet").write_bytes(b"no parquet")
    with pytest.raises(TableUnreadable, match=r"^checkpoint file _delta_log/0{19}3.checkpoint.parquet: [^\n]+$"):
        known_at(open_log(str(tmp_path)), 5)


def test_column_mapping_gives_logical_names(tmp_path: Path) -> None:
    fields = [
        {"name": "Day", "type": "date", "nullable": True, "metadata": {"delta.columnMapping.physicalName": "col-1"}},
        {"name": "id", "type": "long", "nullable": True, "metadata": {"delta.columnMapping.physicalName": "col-2"}},
    ]
    told = {"numRecords": 3, "minValues": {"col-2": 1}, "maxValues": {"col-2": 5}, "nullCount": {"col-1": 3}}
    stats = json.dumps(told)
    write(tmp_path, 0, metadata("Day", schema={"type": "struct", "fields": fields}),
          protocol(3, 7, readerFeatures=["columnMapping"], writerFeatures=["columnMapping"]),
          add("Ab/x.parquet", {"col-1": "2026-08-11"}, stats=stats), add("Ab/y.parquet", {"col-1": ""}))
    table = known_at(open_log(str(tmp_path)), 0).table()
    assert table.partitioned == ("day",)
    assert [file.partition for file in table.files] == [{"day": date(2026, 8, 11)}, {"day": None}]
    assert table.files[0].bounds == {"id": (1, 5), "day": (None, None)}
    assert "columnMapping" in table.features


def test_a_deletion_vector_replaces_its_file(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    created(tmp_path)
    append(tmp_path, 1, "a%20b.parquet")
    write(tmp_path, 2, info(2, "DELETE"), add("a%20b.parquet", deletionVector=vector), remove("a%20b.parquet"))
    files = known_at(open_log(str(tmp_path)), 2).table().files
    assert [(file.path, file.vector) for file in files] == [("a b.parquet", "uab^-aqEH.-t@S}K{vb[*k^@4")]


def test_gaps_and_what_is_newer_than_the_newest_entry(tmp_path: Path) -> None:
    by_day(tmp_path)
    log_file(tmp_path, f"{2:020d}.json").unlink()
    log_file(tmp_path, f"{3:020d}.json").unlink()
    log_file(tmp_path, f"{7:020d}.crc").write_text("{}")
    log = open_log(str(tmp_path))
    assert log.gaps() == (Gap(2, 3), Gap(6, 7))
    assert [str(gap) for gap in log.gaps()] == ["versions 2 to 3", "versions 6 to 7"]
    assert not log.complete
    assert known_at(log, 5).unknown == "version 2 is missing from the log"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"commitInfo":{}}\n{"add":{"path":"x","si', "line 2 is no JSON"),
        (b"not json at all", "line 1 is no JSON"),
        (b'{"add":{"path":7}}\n', "line 1 is no action of the Delta protocol"),
        (b'{"metaData":{"partitionColumns":"day"}}', "line 1 is no action of the Delta protocol"),
        (b"\xff\xfe\x00", "line 1 is no JSON"),
        (b"[" * 100_000, "line 1 is no"),
        (b'{"add":"' + b"x" * 5_000_000, "line 1 is no JSON"),
    ],
)
def test_a_broken_entry_is_one_short_line(content: bytes, said: str) -> None:
    with pytest.raises(EntryUnreadable) as told:
        parse(content, "00000000000000000007.json")
    line = str(told.value)
    assert line.startswith("log entry 00000000000000000007.json, ")
    assert said in line
    assert "\n" not in line
    assert len(line) < 600


def test_a_broken_entry_does_not_stop_the_others(tmp_path: Path) -> None:
    by_day(tmp_path)
    log_file(tmp_path, f"{3:020d}.json").write_text('{"commitInfo":{"oper')
    found = list(open_log(str(tmp_path)).entries())
    assert [type(one).__name__ for one in found] == ["Entry"] * 3 + ["EntryUnreadable"] + ["Entry"] * 2


def test_blank_lines_marks_and_empty_entries() -> None:
    assert parse(b"", "x") == []
    assert parse(b"\n\n", "x") == []
    assert len(parse(b'\xef\xbb\xbf{"txn":{"appId":"a","version":1}}\r\n\r\n{"unknown":{}}\n', "x")) == 2


def test_commit_info_of_any_engine_comes_in_one_form() -> None:
    given = {"predicate": "a = 1", "n": 3, "m": None}
    rust = info_of({"timestamp": 7, "operation": "MERGE", "operationParameters": given,
                    "clientVersion": "delta-rs.py-1.6.6"})
    assert (rust.engine, rust.blind, rust.read_version, rust.parameters) == (
        "delta-rs.py-1.6.6", None, None, {"predicate": "a = 1", "n": "3"}
    )
    odd = info_of({"timestamp": "12", "readVersion": True, "isBlindAppend": "yes", "operationParameters": [],
                   "txnId": 5})
    assert (odd.time, odd.read_version, odd.blind, odd.parameters, odd.transaction) == (12, None, None, {}, "5")
    assert info_of({"inCommitTimestamp": 9, "timestamp": 7}).time == 9
    assert info_of({}).when == "at an unknown time"
    assert time_text(10**30).endswith("ms")


def test_what_is_no_table_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    (tmp_path / "empty" / "_delta_log" / "x.tmp").write_text("")
    (tmp_path / "iceberg" / "metadata").mkdir(parents=True)
    (tmp_path / "iceberg" / "metadata" / "v1.metadata.json").write_text("{}")
    (tmp_path / "hudi" / ".hoodie").mkdir(parents=True)
    (tmp_path / "hudi" / ".hoodie" / "hoodie.properties").write_text("")
    by_day(tmp_path / "table")
    wanted = {
        "missing": "is not there", "file": "is a file, not a folder", "empty": "holds neither an entry",
        "iceberg": "looks like an Iceberg table", "hudi": "looks like a Hudi table",
        "table/_delta_log": "name the folder that _delta_log lies in",
    }
    for name, said in wanted.items():
        with pytest.raises(TableUnreadable, match=f"^[^\n]*{said}[^\n]*$"):
            open_log(str(tmp_path / name))
    with pytest.raises(TableUnreadable, match="no table is named"):
        open_log(" ")


def test_a_place_of_an_unknown_kind_is_one_line() -> None:
    with pytest.raises(TableUnreadable, match=r"^nowhere://x/y: [^\n]+$"):
        open_log("nowhere://x/y")


def test_a_file_uri_and_the_store_of_deltalake_read_the_same(tmp_path: Path) -> None:
    folder = by_day(tmp_path / "with space")
    log = open_log(folder.as_uri())
    assert log.last == 5
    remote = Remote(folder.as_uri())
    assert sorted(remote.names("_delta_log")) == sorted(path.name for path in (folder / "_delta_log").iterdir())
    assert remote.read(f"_delta_log/{1:020d}.json") == log.store.read(f"_delta_log/{1:020d}.json")
    with pytest.raises(OSError, match=r"^[^\n]+$"):
        remote.read(f"_delta_log/{99:020d}.json")
    (folder / "day=2026-08-11").mkdir()
    (folder / "day=2026-08-11" / "a.parquet").write_bytes(b"1234")
    (folder / "_hidden").mkdir()
    (folder / "_hidden" / "b.parquet").write_bytes(b"1")
    assert [(one.name, one.size) for one in remote.walk()] == [("day=2026-08-11/a.parquet", 4)]
    assert [(one.name, one.size) for one in log.store.walk()] == [("day=2026-08-11/a.parquet", 4)]
