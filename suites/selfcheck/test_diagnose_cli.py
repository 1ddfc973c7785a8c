"""`lakerace diagnose` as it is called: what it prints, its JSON, and one clear line for everything that is wrong."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lakerace.cli_base import Stop
from lakerace.cli_diagnose import parse_time
from lakerace.diagnose import bench
from lakerace.diagnose.bench import diagnose_bench
from lakerace.diagnose.handmade import START, created

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Told = Callable[..., tuple[int, str, str]]

ERROR = (
    "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] Transaction conflict "
    "detected. a concurrent UPDATE added data to table spark_catalog.default.orders committed at version 3. The "
    "concurrent "
    "operation modified data in the partition [day=2026-08-12] that should have been read by this operation."
)


@pytest.fixture
def table(orders: Path) -> str:
    return str(orders)


def test_the_answer_comes_first(told: Told, table: str) -> None:
    code, out, _ = told("diagnose", table, "--error", ERROR)
    assert code == 0
    lines, flat = out.splitlines(), " ".join(out.split())
    assert flat.startswith("ConcurrentAppendException [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT]: it lost to")
    assert any(line.startswith("first ") for line in lines)
    assert "day=2026-08-12: 1 file added (1.0 kB), 1 file removed (1.0 kB)" in flat
    assert max(map(len, lines)) <= 120


def test_a_log_file_and_stdin(told: Told, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "driver.log"
    log.write_text(f"26/08/12 02:14:07 ERROR x\n{ERROR}\n", encoding="utf-16")
    by_file = told("diagnose", table, "--log", str(log))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    by_stdin = told("diagnose", table, "--log", "-")
    assert by_file == by_stdin
    assert "version 3, UPDATE" in by_file[1]


def test_json_is_one_object(told: Told, table: str) -> None:
    code, out, _ = told("diagnose", table, "--error", ERROR, "--statement", "UPDATE orders SET note = 'x'", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["mode"], found["kind"], found["winner"]["version"], found["agrees"]) == ("explain", "append", 3, True)
    assert (found["reported"]["version"], found["reported"]["partition"]) == (3, {"day": "2026-08-12"})
    code, out, _ = told("diagnose", table, "--json")
    found = json.loads(out)
    assert (code, found["mode"], found["versions"], found["isolation"]["level"]) == (0, "audit", [0, 5], "serializable")


def test_an_audit_without_an_error(told: Told, table: str) -> None:
    code, out, _ = told("diagnose", table)
    assert code == 0
    assert out.startswith("Nothing to worry about")


def test_a_statement_with_its_read_version_or_time(told: Told, table: str) -> None:
    statement = ("--statement", "UPDATE orders SET note = 'x' WHERE day = '2026-08-12'")
    assert "version 3, UPDATE" in told("diagnose", table, *statement, "--read-version", "2")[1]
    assert "version 3, UPDATE" in told("diagnose", table, *statement, "--at", str(START // 1000 + 181))[1]
    assert "No conflict found" in told("diagnose", table, *statement, "--read-version", "3")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--error", "x", "--log", "y"), "give --error or --log, not both"),
        (("--error", ERROR, "--read-version", "1", "--at", "2026-01-01"), "give --read-version or --at, not both"),
        (("--read-version", "1"), "--read-version and --at go with --error, --log or --statement, which say what lost"),
        (("--error", ERROR, "--read-version", "99"), "--read-version 99: the log of "),
        (("--error", ERROR, "--at", "yesterday"), "--at 'yesterday' is no time; write it like 2026-08-12T02:14:07"),
        (("--error", " "), "--error: the text is empty"),
        (("--error", "java.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(B.java:1)"),
         "no conflict between writers in this text; the last error in it is java.lang.OutOfMemoryError"),
        (("--error", "x" * 1_000_000), "--error: no conflict between writers in this text"),
        (("--log", "/nowhere/at/all.log"), "log /nowhere/at/all.log: No such file or directory"),
        (("--statement", "UPDATE SET WHERE"), "the SQL does not parse"),
        (("--statement", "SELECT 1; SELECT 2"), "2 statements where one is wanted"),
    ],
)
def test_bad_input_is_one_line(told: Told, table: str, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = told("diagnose", table, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lakerace: ")
    assert said in err
    assert err.count("\n") == 1
    assert len(err) < 500


@pytest.mark.parametrize("where", ["missing", "file", "empty", "nowhere://x", ""])
def test_what_is_no_table_is_one_line(told: Told, tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    code, out, err = told("diagnose", where if not where or ":" in where else str(tmp_path / where))
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_broken_entry_on_the_way_is_one_line(told: Told, table: str, tmp_path: Path) -> None:
    entry = tmp_path / "orders" / "_delta_log" / f"{3:020d}.json"
    entry.write_bytes(entry.read_bytes()[:-40])
    code, out, err = told("diagnose", table, "--error", ERROR)
    assert (code, err) == (0, "")
    assert "log entry 00000000000000000003.json, line 3 is no JSON" in " ".join(out.split())


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01", 1000), ("1970-01-01 00:00:01.5", 1500), ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T02:00:01+02:00", 1000), ("1970-01-01 00:00:01 UTC", 1000), ("1970-01-02", 86_400_000),
        ("1790000000", 1_790_000_000_000), ("1790000000123", 1_790_000_000_123),
    ],
)
def test_times(text: str, milliseconds: int) -> None:
    assert parse_time(text) == milliseconds


def test_a_time_that_is_none() -> None:
    with pytest.raises(Stop, match="is no time"):
        parse_time("12.08.2026")


def test_it_starts_at_once(tmp_path: Path) -> None:
    created(tmp_path)
    command = [sys.executable, "-m", "lakerace", "diagnose", str(tmp_path)]
    assert any(_cpu_seconds(command) < 0.8 for _ in range(4))  # the first one may have to compile


def _cpu_seconds(command: list[str]) -> float:
    """Processor time, which the work of others on the same machine does not stretch."""
    import resource

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run(command, check=True, capture_output=True)
    return used() - before


def test_the_bench_measures_both(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def measured(what: str, table: Path) -> tuple[float, int]:
        bench._run(what, str(table))
        seconds, peak = json.loads(capsys.readouterr().out)
        return seconds, peak

    monkeypatch.setattr(bench, "_measured", measured)  # in this process: eight starts of Python cost more than the rest
    found = diagnose_bench(300)
    assert found.commits == 300
    assert found.read_seconds > 0
    assert found.ratio == found.audit_seconds / found.read_seconds
    assert found.audit_peak < found.small_peak + 20_000_000
