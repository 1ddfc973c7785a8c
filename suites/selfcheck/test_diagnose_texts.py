"""Error texts and driver logs in the forms that people paste: every field of what is read from each of them."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakerace.conflicts import KINDS
from lakerace.diagnose import decode
from lakerace.diagnose.decode import TextUnreadable, clean, read_log
from lakerace.diagnose.reported import Reported
from lakerace.diagnose.texts import foreign_error, read_text

if TYPE_CHECKING:
    from random import Random

DATA = Path(__file__).parent / "data" / "diagnose"
CASES = [json.loads(line) for line in (DATA / "expected.jsonl").read_text(encoding="utf-8").splitlines()]
DEFAULTS = asdict(Reported(kind="", exception=""))


def as_read(found: Reported) -> dict[str, Any]:
    """All fields that differ from their default; times as text."""
    told = {field.name: getattr(found, field.name) for field in fields(found)}
    told = {name: value for name, value in told.items() if value != DEFAULTS[name]}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in told.items()}


def test_every_text_is_expected() -> None:
    assert sorted(case["name"] for case in CASES) == sorted(path.stem for path in DATA.glob("*.txt"))
    assert len([case for case in CASES if case["reported"]]) >= 45


@pytest.mark.parametrize("sample", CASES, ids=lambda sample: sample["name"])
def test_text(sample: dict[str, Any]) -> None:
    found = read_text((DATA / f"{sample['name']}.txt").read_bytes())
    if sample["reported"] is None:
        assert found is None
        return
    assert found is not None
    told = as_read(found)
    message = told.pop("message")
    assert told == sample["reported"]
    assert message
    assert "\n" not in message
    assert len(message) <= 403


@pytest.mark.parametrize(
    "filler",
    ["a", "a concurrent ", "Files were added to ", "io.delta.", "\x1b[3", "ConcurrentAppend", '\\"', "{", "a\n"]
)
def test_a_huge_line_is_no_trap(filler: str) -> None:
    huge = filler * (60_000 // len(filler))
    assert read_text(huge) is None
    found = read_text(huge + "\n[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected.\n" + huge)
    assert found is not None
    assert found.kind == "append"


def conflict(table: str, version: int) -> str:
    return (
        "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict "
        f"detected. a concurrent WRITE added data to table {table} committed at version {version}. \n"
    )


def test_of_several_tables_the_one_asked_about_is_told() -> None:
    text = conflict("delta.`s3://lake/orders`", 1) + conflict("main.sales.orders", 2) + conflict("main.sales.items", 3)
    assert [(found.version, found.conflicts) for table in ("", "/data/orders/", "/data/items", "/data/other")
            if (found := read_text(text, table))] == [(3, 3), (2, 3), (3, 3), (3, 3)]


@pytest.mark.parametrize(("condition", "kind"), [
    ("DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL", "revalidation"),
    ("DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL", "revalidation"),
    ("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", None),
])
def test_a_drop_of_a_feature_is_a_conflict_when_the_winner_uses_it(condition: str, kind: str | None) -> None:
    found = read_text(f"org.apache.spark.sql.delta.DeltaTableFeatureException: [{condition}] Cannot drop the feature.")
    assert (found.kind if found else None) == kind


def attempt(version: int, transaction: str) -> str:
    return (
        f"26/08/12 02:14:05 INFO OptimisticTransaction: [tableId=a,txnId={transaction}] Attempting to commit version "
        f"{version} with 4 actions with WriteSerializable isolation level\n"
    )


def test_the_read_version_is_that_before_the_transactions_first_attempt() -> None:
    text = attempt(7, "other") + attempt(9, "mine") + attempt(12, "mine") + conflict("t", 13) + attempt(20, "later")
    found = read_text(text)
    assert found is not None
    assert (found.read_version, found.isolation) == (8, "WriteSerializable")


def test_a_line_of_an_earlier_conflict_is_not_taken_for_a_later_ones() -> None:
    line = (
        "26/08/12 02:14:06 INFO ConflictChecker: Partition predicate is matching a file changed by the winning "
        "transaction: "
        "predicate=Vector(true), matchingFile=a.parquet\n"
    )
    found = read_text(attempt(5, "x") + line + conflict("t", 5) + conflict("t", 6))
    assert found is not None
    assert (found.version, found.predicate, found.matching_file, found.read_version) == (6, None, None, None)


PIECES = sorted({line for case in CASES for line in
                 clean((DATA / f"{case['name']}.txt").read_bytes()).split("\n") if line.strip()})


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=80), st.just("\n")), max_size=12), st.randoms())
def test_no_mixture_of_lines_breaks_it(parts: list[str], random: Random) -> None:
    text = "\n".join(part[: random.randint(0, len(part))] if random.random() < 0.3 else part for part in parts)
    found = read_text(text)
    assert found is None or (found.kind in KINDS and found.conflicts >= 1)
    assert read_text(text.encode("utf-16")) == found


@given(st.binary(max_size=3000))
def test_no_bytes_break_it(found: bytes) -> None:
    read_text(found)
    foreign_error(found)


def test_encodings_and_escapes_come_out_as_text() -> None:
    assert clean("\ufeffa\r\nb\x1b[0mc\x00".encode()) == "a\nbc"
    assert clean("Käse".encode("utf-16-be")) == "Käse"
    assert clean("Käse".encode("latin-1")) == "Käse"
    assert clean(("Käse ÄÖÜ " * 5).encode()[1:] + b"\xff").startswith("äse ÄÖÜ")
    assert clean(r'{"msg":"ConcurrentAppendException: x\nConflicting commit: {\"a\":1}"}').split("\n")[1] == (
        'Conflicting commit: {"a":1}"}'
    )
    assert clean(r"path C:\new\table ConcurrentAppendException") == r"path C:\new\table ConcurrentAppendException"


def test_a_log_that_cannot_be_read_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8bnot gzip at all")
    for wrong in (tmp_path, tmp_path / "missing.log", tmp_path / "broken.gz"):
        with pytest.raises(TextUnreadable) as told:
            read_log(wrong)
        assert wrong.name in str(told.value) or "gzip" in str(told.value)
        assert "\n" not in str(told.value)


def test_of_a_long_log_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "LIMIT", 1 << 20)
    log = tmp_path / "driver.log"
    with log.open("wb") as file:
        file.write(b"INFO all is well\n" * (decode.LIMIT // 16))
        file.write(b"\nDELTA_CONCURRENT_WRITE\n")
    assert read_log(log).endswith("DELTA_CONCURRENT_WRITE\n")


def test_what_is_no_conflict_is_named() -> None:
    assert foreign_error("java.lang.OutOfMemoryError: Java heap\n\tat a.B.c(B.java:1)") == "java.lang.OutOfMemoryError"
    assert foreign_error("all is well") is None
