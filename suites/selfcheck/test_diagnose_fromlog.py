"""From the actions of a log to what the rules talk about: predicates as a history prints them, typed values."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE
from lakerace.rules.casts import UNKNOWN
from lakerace.rules.fromlog import (
    Columns,
    changed_metadata,
    columns_of,
    data_file,
    features_of,
    isolation_of,
    table_at,
    transaction,
)
from lakerace.rules.logtext import log_predicate
from lakerace.rules.predicates import show
from lakerace.rules.profiles import PROFILES

if TYPE_CHECKING:
    from lakerace.rules.model import Table

NAMES = ("id", "event_date", "country", "note", "ts")


@pytest.mark.parametrize(
    ("recorded", "sql"),
    [
        ('["(id#32253L = 1)"]', ["id = 1"]),
        ('["((event_date#12 = 2026-08-11) AND (id#3L = 1))"]', ["event_date = '2026-08-11'", "id = 1"]),
        ('["(country#2 = DE)", "(id#3 > 5)"]', ["country = 'DE'", "id > 5"]),
        ('["(note#5 = it\'s here)"]', ["note = 'it\\'s here'"]),
        ('["id#1L IN (3,9)"]', ["id IN (3, 9)"]),
        ('["country#4 IN (DE,FR)"]', ["country IN ('DE', 'FR')"]),
        ('["((id#1L = id#2L) AND (event_date#3 = event_date#9))"]', []),
        ('["((id#1L = id#2L) AND (event_date#3 = 2026-08-12))"]', ["event_date = '2026-08-12'"]),
        ("[\"('event_date = 2026-08-11)\"]", ["event_date = '2026-08-11'"]),
        ('["(ts#4 > 2026-08-01 10:00:00)"]', ["ts > '2026-08-01 10:00:00'"]),
        ('["(`id` = 1)"]', ["`id` = 1"]),
        ("target.id = source.id AND target.event_date = '2026-08-11'", ["target.event_date = '2026-08-11'"]),
        ("(event_date = DATE '2026-08-11')", ["event_date = DATE'2026-08-11'"]),
        ('["true"]', ["TRUE"]),
        ("[]", []),
        (None, []),
        ('["(unknown#1 = 2)"]', []),
    ],
)
def test_a_printed_predicate_is_sql_again(recorded: str | None, sql: list[str]) -> None:
    found = log_predicate(recorded, NAMES)
    assert found is not None
    assert [show(part) for part in found] == sql


@pytest.mark.parametrize("recorded", ['["(id#1 = "]', "[[[", "((((", '["SELECT FROM WHERE"]'])
def test_what_cannot_be_read_is_not_guessed(recorded: str) -> None:
    assert not log_predicate(recorded, NAMES)


def schema(**kinds: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    return {"schemaString": json.dumps({"type": "struct", "fields": fields})}


def test_columns_have_the_names_of_sql_types() -> None:
    found = columns_of(
        schema(Id="long", n="integer", price="decimal(10,2)", tags={"type": "array"}, s={"type": "struct"})
    )
    assert found.kinds == {"id": "bigint", "n": "int", "price": "decimal(10,2)", "tags": "array<>", "s": "struct<>"}
    for none in ({}, {"schemaString": "{"}, {"schemaString": "[]"}):
        assert columns_of(none).kinds == {}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bigint", "7", 7), ("date", "2026-08-11", date(2026, 8, 11)), ("string", "a", "a"), ("boolean", "true", True),
        ("decimal(10,2)", "1.50", Decimal("1.50")), ("double", "2.5", 2.5), ("date", "no date", UNKNOWN),
        ("date", "", None), ("string", None, None), ("string", "__HIVE_DEFAULT_PARTITION__", None),
        ("binary", "x", UNKNOWN),
    ],
)
def test_partition_values_come_in_their_types(kind: str, text: str | None, value: Any) -> None:
    file = data_file({"path": "p%20q", "partitionValues": {"c": text}}, Columns(kinds={"c": kind}))
    assert file.path == "p q"
    assert file.partition["c"] is value or file.partition["c"] == value


def test_statistics_bound_values_and_all_null_columns() -> None:
    stats = {"numRecords": 2, "minValues": {"id": 1, "s": {"x": 1}}, "maxValues": {"id": 5, "s": {"x": 2}},
             "nullCount": {"id": 0, "note": 2}}
    columns = Columns(kinds={"id": "bigint", "note": "string", "s": "struct<>"})
    for given in (stats, json.dumps(stats)):
        assert data_file({"path": "p", "stats": given}, columns).bounds == {"id": (1, 5), "note": (None, None)}
    for broken in (None, "{", "[]", 7):
        assert data_file({"path": "p", "stats": broken}, columns).bounds == {}


@pytest.mark.parametrize(
    ("protocol", "features"),
    [
        (None, set()),
        ({"minReaderVersion": 1, "minWriterVersion": 2}, {"appendOnly", "invariants"}),
        ({"minReaderVersion": 1, "minWriterVersion": 3}, {"appendOnly", "invariants", "checkConstraints"}),
        ({"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]},
         {"rowTracking", "columnMapping"}),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"], "writerFeatures": []},
         {"v2Checkpoint"}),
    ],
)
def test_features_by_name_and_by_old_numbers(protocol: dict[str, Any] | None, features: set[str]) -> None:
    assert features_of(protocol) == features


def test_what_a_metadata_action_changes() -> None:
    before = {**schema(id="long"), "partitionColumns": [], "configuration": {"a": "1", "b": "2"}}
    after = {**schema(id="long", note="string"), "partitionColumns": ["id"], "description": "x",
             "configuration": {"a": "1", "b": "3", "delta.columnMapping.maxColumnId": "7"}}
    assert changed_metadata(before, after) == {"schema", "partitioning", "description", "b"}
    assert changed_metadata(before, before) == frozenset()


def test_the_isolation_level_that_is_in_force() -> None:
    delta, databricks = PROFILES["delta-4.4"], PROFILES["databricks"]
    assert isolation_of({}, delta) == SERIALIZABLE
    assert isolation_of({}, databricks) == WRITE_SERIALIZABLE
    assert isolation_of({"delta.isolationLevel": "writeSerializable"}, delta) == WRITE_SERIALIZABLE


TABLE: Table = table_at({**schema(id="long", day="date"), "partitionColumns": ["day"]}, None)
METADATA = {**schema(id="long", day="date"), "partitionColumns": ["day"]}


def entry(operation: str, *actions: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"commitInfo": {"operation": operation, **more}}, *actions]


def test_a_transaction_holds_what_was_written() -> None:
    found = transaction(
        7,
        entry("MERGE", {"add": {"path": "a", "partitionValues": {"day": "2026-08-11"}, "dataChange": True}},
              {"remove": {"path": "b", "dataChange": True}}, {"txn": {"appId": "q", "version": 1}},
              {"domainMetadata": {"domain": "delta.rowTracking"}}, {"domainMetadata": {"domain": "delta.clustering"}},
              {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}},
              {"metaData": {**METADATA, "configuration": {"x": "1"}}},
              isBlindAppend=False, operationParameters={"predicate": '["(day#1 = 2026-08-11)"]'}),
        TABLE, metadata=METADATA, protocol={"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["old"]},
    )
    assert (found.operation, found.version, found.blind, found.data_change) == ("MERGE", 7, False, True)
    assert [file.partition for file in found.adds] == [{"day": date(2026, 8, 11)}]
    assert [file.path for file in found.removes] == ["b"]
    assert (found.metadata, found.protocol, found.drops) == ({"x"}, {"rowTracking"}, {"old"})
    assert (found.domains, found.sets) == ({"delta.clustering"}, {"q"})
    assert [read.partition for read in found.reads] == ["day = '2026-08-11'"]
    assert found.read_files == {"b"}


@pytest.mark.parametrize(
    ("operation", "more", "reads", "blind"),
    [
        ("WRITE", {"isBlindAppend": True}, 0, True),
        ("WRITE", {"isBlindAppend": False}, 1, False),
        ("WRITE", {}, 1, False),
        ("UPDATE", {"operationParameters": {"predicate": "day = '2026-08-11'"}}, 1, False),
        ("OPTIMIZE", {"operationParameters": {"zOrderBy": '["id"]'}}, 1, False),
    ],
)
def test_what_a_log_tells_of_the_reads(operation: str, more: dict[str, Any], reads: int, blind: bool) -> None:
    add = {"add": {"path": "a", "dataChange": operation != "OPTIMIZE"}}
    found = transaction(1, entry(operation, add, **more), TABLE, metadata=METADATA)
    assert (len(found.reads), found.blind) == (reads, blind)
    compacts = operation == "OPTIMIZE"
    assert (found.retries, found.clusters, found.data_change) == (compacts, compacts, not compacts)


def test_restore_and_entries_without_commit_info() -> None:
    assert transaction(1, entry("RESTORE"), TABLE).unchecked
    bare = transaction(1, [{"remove": {"path": "b"}}], TABLE, metadata=METADATA)
    assert (bare.operation, bare.blind, len(bare.reads), bare.read_files) == ("", False, 1, {"b"})
