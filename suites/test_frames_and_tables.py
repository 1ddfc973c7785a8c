"""What if the table is no longer the one that was looked at? Frames and handles over a change, noisy appends, pools."""

from __future__ import annotations

import json
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from lakerace import deltalog
from lakerace.conflicts import classify, outdated
from lakerace.expect import outcomes
from lakerace.layouts import COLUMNS, layout
from lakerace.race import Race, Write, held_against, statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from delta.tables import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

    from lakerace.engines import Table
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
FLAT = layout("flat")
ROW = "SELECT 205L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note"
NOISE = {
    "nothing": {}, "merge-schema": {"mergeSchema": "true"}, "no-overwrite-schema": {"overwriteSchema": "false"},
    "compression": {"compression": "gzip"}, "user-metadata": {"userMetadata": "nightly"},
    "a-description": {"description": "x", "comment": "y"}, "a-table-property": {"delta.appendOnly": "true"},
    "optimize-write": {"optimizeWrite": "true"}, "transaction-id": {"txnAppId": "x", "txnVersion": "1"},
}
SHAPES = {
    "not-null": "SELECT id, event_date, country, amount, coalesce(note, '') AS note FROM ({row})",
    "nullable": "SELECT if(id > 0, id, NULL) AS id, event_date, country, amount, note FROM ({row})",
    "another-order": "SELECT note, amount, country, event_date, id FROM ({row})",
    "fewer-columns": "SELECT id, event_date FROM ({row})",
    "another-case": "SELECT id, event_date, country, amount, note AS NOTE FROM ({row})",
}
APPENDS = {
    **{name: Write(select=ROW, options=tuple(options.items())) for name, options in NOISE.items()},
    **{name: Write(select=text.format(row=ROW), options=(("mergeSchema", "true"),)) for name, text in SHAPES.items()},
}


def races(line: Line, _profile: str) -> Iterator[Race]:
    noisy = APPENDS["merge-schema"], APPENDS["not-null"]
    yield held_against("a-noisy-append-passes-a-noisy-append", layout=FLAT, held=noisy[0], winners=[noisy[1]],
                       expect=outcomes(line, "commits", "commits"), reports=("C13",))


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("C13")
@pytest.mark.parametrize("made", ["flat", "by-date"])
def test_a_plain_append_writes_no_metadata_whatever_its_options_and_columns(engine, table_factory, delta, made):
    table = table_factory(made)
    for write in APPENDS.values():
        frame = delta.sql(write.select).write.format("delta").mode("append").options(**dict(write.options))
        (frame.partitionBy("event_date") if made == "by-date" else frame).save(str(table.path))
    commits = deltalog.read_commits(table.path, table.base_version)
    blind = [row.isBlindAppend for row in reversed(engine.history(table))]
    told = zip(APPENDS, commits, blind, strict=True)
    assert [name for name, commit, alone in told if commit.metadata or commit.protocol or not alone] == []


def overwrite(select: str) -> Callable[[SparkSession, Table], None]:
    def changing(delta: SparkSession, table: Table) -> None:
        frame = delta.sql(select).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        frame.save(str(table.path))

    return changing


def recreate(columns: str, select: str) -> Callable[[SparkSession, Table], None]:
    def changing(delta: SparkSession, table: Table) -> None:
        shutil.rmtree(table.path)
        delta.sql(f"CREATE TABLE delta.`{table.path}` ({columns}) USING delta")
        delta.sql(f"INSERT INTO delta.`{table.path}` {select}")

    return changing


CHANGES = {
    "schema-overwritten": overwrite("SELECT 1L AS id, 'x' AS colour"),
    "column-added": lambda delta, table: delta.sql(f"ALTER TABLE delta.`{table.path}` ADD COLUMN (extra INT)"),
    "rows-overwritten": overwrite(ROW),
    "recreated-alike": recreate(COLUMNS, ROW),
    "recreated-otherwise": recreate("id BIGINT, colour STRING", "SELECT 1L AS id, 'x' AS colour"),
}


def append(frame: DataFrame, table: Table) -> None:
    frame.write.format("delta").mode("append").save(str(table.path))


def merge(frame: DataFrame, handle: DeltaTable) -> None:
    handle.alias("t").merge(frame.alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()


OLD, MISMATCH = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", "DELTA_METADATA_MISMATCH"
MISMATCH_4_0 = "_LEGACY_ERROR_TEMP_DELTA_0007"
SEEN = {
    # What becomes of a frame, read before the change and used after it: collected, appended to its own table, appended
    # to another, and merged into its table by a handle from before: the error condition, or the rows it leaves there.
    "schema-overwritten": (OLD, MISMATCH, OLD, OLD),
    "column-added": (16, 32, 32, OLD),
    "rows-overwritten": (1, 2, 17, 1),
    "recreated-alike": (1, 2, 17, 1),
    "recreated-otherwise": (OLD, MISMATCH, OLD, OLD),
}
USES = ("collected", "appended-to-itself", "appended-to-another", "merged-by-handle")


@pytest.mark.report("C19")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("use", USES)
def test_a_frame_over_a_changed_table_fails_before_any_commit_and_is_no_conflict(delta, table_factory, change, use):
    from delta.tables import DeltaTable

    table, other = table_factory(FLAT), table_factory(FLAT)
    frame = delta.read.format("delta").load(str(table.path))
    handle = DeltaTable.forPath(delta, str(table.path))
    CHANGES[change](delta, table)
    version = deltalog.version_now(table.path)
    work = {"collected": frame.collect, "appended-to-itself": lambda: append(frame, table),
            "appended-to-another": lambda: append(frame, other), "merged-by-handle": lambda: merge(frame, handle)}[use]
    wanted = SEEN[change][USES.index(use)]
    if isinstance(wanted, str):
        with pytest.raises(Exception, match=rf"{wanted}|{MISMATCH_4_0}" if wanted == MISMATCH else wanted) as caught:
            work()
        assert classify(caught.value) is None
        assert outdated(caught.value) is (wanted == OLD)
        assert type(caught.value).__name__ == "AnalysisException"
        assert deltalog.version_now(table.path) == version
    else:
        got = work()
        there = other if use == "appended-to-another" else table
        rows = len(got) if use == "collected" else delta.read.format("delta").load(str(there.path)).count()
        assert rows == wanted


@pytest.mark.report("C21")
@pytest.mark.parametrize("held", ["insert", "update"])
def test_a_second_create_of_another_writer_keeps_the_rows_and_ends_who_is_in_flight(engine, table_factory, held):
    """Its log entry is made by hand: protocol and metadata of a CREATE, with a table id of its own."""
    table = table_factory(FLAT)
    writer = engine.hold(table, "A", statement(HELD[held]))
    entry = [dict(action) for action in deltalog.actions(table.path, 0)]
    next(action["metaData"] for action in entry if "metaData" in action)["id"] = "00000000-0000-0000-0000-000000000001"
    place = table.path / "_delta_log" / f"{table.base_version + 1:020d}.json"
    place.write_text("".join(f"{json.dumps(action)}\n" for action in entry), encoding="utf-8")
    outcome = writer.release()
    assert (outcome.word, outcome.condition) == ("metadata", "DELTA_METADATA_CHANGED")
    assert engine.rows(table)[1] == table.rows
    assert [row.operation for row in engine.history(table)] == ["CREATE TABLE"]


MADE_AGAIN = {
    # How many versions the new table has by then, who stands, how it ends, and the version of the table afterwards.
    ("fewer-versions", "insert"): (0, "commits", 9), ("fewer-versions", "update"): (0, "commits", 9),
    ("more-versions", "insert"): (9, "commits", 11), ("more-versions", "update"): (9, "append", 10),
}


@pytest.mark.report("C19")
@pytest.mark.parametrize(("versions", "held"), MADE_AGAIN)
def test_a_writer_that_outlives_its_table_commits_to_the_one_made_in_its_place(
    engine, table_factory, delta, versions, held
):
    """Nothing compares the ids of the two tables: version 9 lands in a table that has 0 and 1, or a file that went with
    the old table lands in the new one. Success is told, and the new table can't be read any more."""
    later, word, version = MADE_AGAIN[versions, held]
    table = table_factory(FLAT, audited=False)
    writer = engine.hold(table, "A", statement(HELD[held]))
    recreate(COLUMNS, ROW)(delta, table)
    for _ in range(later):
        delta.sql(f"INSERT INTO delta.`{table.path}` {ROW}")
    assert (writer.release().word, deltalog.version_now(table.path)) == (word, version)
    if word == "commits":
        with pytest.raises(Exception, match=r"DELTA_VERSIONS_NOT_CONTIGUOUS|FILE_NOT_EXIST"):
            delta.read.format("delta").load(str(table.path)).collect()


HELD = {"insert": f"INSERT INTO {{t}} {ROW}", "update": "UPDATE {t} SET amount = 7 WHERE id = 1"}


@pytest.mark.report("C3")
def test_a_pool_whose_errors_nobody_asks_for_loses_columns_and_rows(delta, engine, table_factory):
    """Six threads append a column each: who is told of success has a history row, its column and its row, and nobody
    else has; the count of successes is all that tells."""
    table, errors, ready = table_factory(FLAT), {}, threading.Barrier(6)

    def work(number: int) -> None:
        frame = delta.sql(f"{ROW}, {number} AS extra_{number}")
        ready.wait(60)
        try:
            frame.write.format("delta").mode("append").option("mergeSchema", "true").save(str(table.path))
        except Exception as error:
            errors[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    landed = {number for number in range(6) if number not in errors}
    columns, rows, _ = engine.rows(table)
    assert {found.kind if (found := classify(error)) else str(error) for error in errors.values()} <= {"metadata"}
    assert len(engine.history(table)) == len(landed) >= 1
    assert {name for name in columns if name.startswith("extra_")} == {f"extra_{number}" for number in landed}
    assert len(rows) == len(table.rows) + len(landed)


@pytest.mark.report("C11")
def test_a_metadata_conflict_names_the_table_and_the_operation_that_won(engine, table_factory):
    table = table_factory(FLAT)
    writer = engine.hold(table, "A", statement("CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {other}"))
    engine.run(table, "B", statement("COMMENT ON TABLE {t} IS 'nightly'"))
    outcome = writer.release()
    assert outcome.word == "metadata"
    if engine.line.sub_conditions:
        winner = json.loads(outcome.parameters["conflictingCommit"].partition(": ")[2])
        assert (winner["operation"], winner["readVersion"]) == ("SET TBLPROPERTIES", table.base_version)
        assert str(table.path) in outcome.parameters["tableName"]
    else:
        assert "tableName" not in outcome.parameters
