"""What helps after a conflict? Claims about attempts, retries, the history and the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import deltalog
from lakerace.contention.scenarios import Tally, one_round
from lakerace.engines.jvm import tap
from lakerace.layouts import COLUMNS, LAYOUTS, layout, layout_from_statements
from lakerace.race import WRITE_SERIALIZABLE, Expected, held_against, statement

if TYPE_CHECKING:
    from pathlib import Path

    from lakerace.engines import Table

FLAT, BY_DATE = layout("flat"), layout("by-date")
ROWS = tuple(f"INSERT INTO {{t}} VALUES ({day}, DATE'2026-08-1{day}', 'DE', 1, 'base')" for day in (1, 2, 3))
THREE_DATES = layout_from_statements(
    "three-dates-one-row", (f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (event_date)", *ROWS))
THREE_FLAT = layout_from_statements("three-rows", (f"CREATE TABLE {{t}} ({COLUMNS}) USING delta", *ROWS))
CREATE, *INSERTS = LAYOUTS["by-date"].setup
AUTO_COMPACT = layout_from_statements("auto-compact", (
    CREATE.replace("TBLPROPERTIES (", "TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true', "), *INSERTS))

COMMITS = Expected(word="commits")
APPEND = Expected(word="append", surfaced="ConcurrentAppendException", attempts=1)
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
UPDATE = "UPDATE {t} SET note = 'A' WHERE id = 1"
UPDATE_12 = "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-12' AND id = 9"
UPDATE_KEY = "UPDATE {t} SET note = 'A' WHERE id = 9"


def merge(row: int, literal: bool = False, source: str = "{row}L AS id") -> str:
    on = "t.id = s.id" + (f" AND t.event_date = DATE'2026-08-1{row}'" if literal else "")
    return (f"MERGE INTO {{t}} t USING (SELECT {source.format(row=row)}, DATE'2026-08-11' AS event_date) s ON {on} "
            "WHEN MATCHED THEN UPDATE SET note = 'merged'")


RACES = (
    held_against("with-the-default-attempts-an-insert-passes-three-inserts", layout=FLAT, held=INSERT,
                 winners=[INSERT] * 3, expect=[Expected(word="commits", version=12, attempts=2), *[COMMITS] * 3],
                 claims=("D-066", "D-067")),
    held_against("a-conflicting-merge-gets-one-attempt", layout=FLAT, held=merge(1), winners=[merge(1)],
                 expect=[APPEND, COMMITS], claims=("D-068",)),
)


def test_race(case, check):
    check(case)


@pytest.mark.claim("D-066")
def test_ten_million_attempts_are_the_default(delta):
    assert delta.conf.get("spark.databricks.delta.maxCommitAttempts") == "10000000"


@pytest.mark.claim("D-067")
@pytest.mark.parametrize(("allowed", "word"), [("0", "attempts"), ("1", "commits")])
def test_used_up_attempts_end_a_compatible_insert(race, setting, allowed, word):
    """The number counts the attempts after the first one."""
    setting("spark.databricks.delta.maxCommitAttempts", allowed)
    outcome = race(held=INSERT, winners=[INSERT]).outcome("A")
    assert outcome.word == word
    assert outcome.condition == ("DELTA_MAX_COMMIT_RETRIES_EXCEEDED" if word == "attempts" else None)


@pytest.mark.claim("D-068")
def test_the_source_of_a_loser_is_not_run_again(engine, table_factory, tick):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(merge(1, source="tick(id) AS id FROM range(1, 2)").replace(
        ", DATE'2026-08-11' AS event_date", "")))
    assert tick() == 1
    engine.run(table, "B", statement(UPDATE))
    assert held.release().word == "append"
    assert tick() == 1


@pytest.mark.claim("D-069")
def test_the_files_of_a_loser_stay_until_vacuum(delta, engine, table_factory, setting):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(UPDATE))
    engine.run(table, "B", statement(UPDATE))
    assert held.release().word == "append"
    assert len(deltalog.files(table.path).unreferenced) == 1
    setting("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    delta.sql(f"VACUUM delta.`{table.path}` RETAIN 0 HOURS")
    assert deltalog.files(table.path).unreferenced == ()


@dataclass(frozen=True)
class Rounds:
    """``attempts`` of all writers together; ``wasted`` bytes staged for nothing after each round."""

    attempts: int
    wasted: tuple[int, ...]


def run_rounds(engine: Any, table: Table, jobs: list[str]) -> Rounds:
    """All jobs read, then commit one after the other; the losers run again, until none is left."""
    tally, wasted = Tally(), []
    while jobs:
        jobs = one_round(engine, table, jobs, tally)
        wasted.append(deltalog.files(table.path).unreferenced_bytes)
    return Rounds(tally.attempts, tuple(wasted))


@pytest.mark.claim("D-071", "D-081")
def test_a_retry_loop_hides_what_a_literal_removes(engine, table_factory):
    by_key = run_rounds(engine, table_factory(THREE_FLAT), [merge(day) for day in (1, 2, 3)])
    by_key_and_partition = run_rounds(engine, table_factory(THREE_DATES), [merge(day) for day in (1, 2, 3)])
    with_literal = run_rounds(engine, table_factory(THREE_DATES), [merge(day, literal=True) for day in (1, 2, 3)])
    assert (by_key.attempts, by_key_and_partition.attempts, with_literal.attempts) == (6, 6, 3)
    assert with_literal.wasted == (0,)


@pytest.mark.claim("D-073")
def test_jobs_that_merge_by_key_redo_their_work(engine, table_factory):
    """Four stand for the twenty of the statement: n jobs in step need n(n + 1) / 2 attempts."""
    table = table_factory("flat")
    seen = run_rounds(engine, table, [merge(row) for row in (1, 5, 9, 13)])
    assert seen.attempts == 10
    assert 0 < seen.wasted[0] < seen.wasted[1] < seen.wasted[2] == seen.wasted[3]
    assert sum(row[-1] == "merged" for row in engine.rows(table)[1]) == 4


WON_BY = {
    "insert": (INSERT, "WRITE", True),
    "insert-select-self": ("INSERT INTO {t} SELECT * FROM {t} WHERE id = 1", "WRITE", False),
    "update": (UPDATE, "UPDATE", False),
    "delete": ("DELETE FROM {t} WHERE id = 2", "DELETE", False),
    "merge": (merge(1), "MERGE", False),
    "optimize": ("OPTIMIZE {t}", "OPTIMIZE", False),
}


@pytest.mark.claim("D-074", "D-075", "D-076")
@pytest.mark.parametrize("won_by", WON_BY)
def test_the_history_tells_who_won(race, won_by):
    sql, operation, blind = WON_BY[won_by]
    row = race(held=UPDATE, winners=[sql]).history[0]
    assert (row.operation, row.isBlindAppend) == (operation, blind)
    assert (row.predicate is None) == (operation == "WRITE")


@pytest.mark.claim("D-077")
@pytest.mark.parametrize(("on", "shown"), [
    ("t.id = s.id", "(id = id)"),
    ("t.id = s.id AND t.event_date = s.event_date", "((id = id) AND (event_date = event_date))"),
    ("t.id = s.id AND t.event_date = DATE'2026-08-11'", "((id = id) AND (event_date = 2026-08-11))"),
], ids=["key", "key-and-date", "literal"])
def test_the_predicate_in_the_history_is_the_whole_condition(engine, table_factory, on, shown):
    table = table_factory("by-date")
    engine.run(table, "A", statement(merge(1).replace("t.id = s.id", on)))
    assert engine.read_back(table).history[0].predicate == shown


@pytest.fixture(scope="module")
def checker_log() -> dict[str, Any]:
    """The buffers that receive the conflict checker's log lines, by JVM; a logger is tapped once."""
    return {}


@pytest.mark.claim("D-078", "D-018", "D-019")
@pytest.mark.parametrize(("made", "held", "predicate"), [
    ("by-date", "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-11'", "= 2026-08-11)"),
    ("by-date", UPDATE, "Vector(true)"),
    ("by-date", merge(1).replace("t.id = s.id", "t.id = s.id AND t.event_date = s.event_date"), "Vector(true)"),
    ("flat", UPDATE, None),
], ids=["literal", "other-column", "equality", "unpartitioned"])
def test_the_log_names_predicate_and_file(race, engine, checker_log, made, held, predicate):
    key = str(engine.pid)
    if key not in checker_log:
        checker_log[key] = tap(engine.spark._jvm, "org.apache.spark.sql.delta.ConflictChecker")
    buffer = checker_log[key]
    buffer.getBuffer().setLength(0)
    seen = race(held=held, winners=["UPDATE {t} SET note = 'B'"], layout=made)
    assert seen.outcome("A").word == "append"
    lines = [line for line in str(buffer.toString()).splitlines() if "Partition predicate is matching a file" in line]
    if predicate is None:
        assert lines == []
    else:
        assert len(lines) == 2, "once for the predicate as it is, once with what is not deterministic taken out"
        assert all(predicate in line.partition("predicate=")[2] for line in lines)
        assert all(line.partition("matchingFile=")[2] in seen.commits[0].added for line in lines)


@pytest.mark.claim("D-079")
def test_optimize_apart_conflicts_with_nothing(engine, table_factory):
    table = table_factory("flat")
    assert engine.run(table, "B", statement("OPTIMIZE {t}")).word == "commits"
    assert engine.run(table, "A", statement(UPDATE)).word == "commits"


@pytest.mark.claim("D-079")
@pytest.mark.parametrize(("held", "word"), [
    pytest.param(UPDATE_12, "commits", id="elsewhere"), pytest.param(UPDATE_KEY, "append", id="by-key"),
])
def test_auto_compaction_is_an_optimize_in_the_middle_of_the_day(race, setting, held, word):
    """The blind INSERT itself is excused at this level; the compaction that follows it is not."""
    setting("spark.databricks.delta.autoCompact.minNumFiles", "3")
    # The counts behind early skipping are kept by table id, which the copies of a prepared table share.
    setting("spark.databricks.delta.autoCompact.earlySkipPartitionTable.enabled", "false")
    seen = race(held=held, winners=[INSERT], layout=AUTO_COMPACT, isolation=WRITE_SERIALIZABLE)
    assert [row.operation for row in reversed(seen.history)][:2] == ["WRITE", "OPTIMIZE"]
    assert seen.outcome("A").word == word


@pytest.mark.claim("D-080")
@pytest.mark.parametrize(("files_a_batch", "commits"), [(1, 4), (4, 1)])
def test_larger_batches_of_a_stream_mean_fewer_commits(delta, tmp_path: Path, files_a_batch, commits):
    """The size of a batch stands for the length of the interval: no clock is raced."""
    source, table = str(tmp_path / "source"), tmp_path / "table"
    delta.range(8).repartition(4).write.parquet(source)
    stream = delta.readStream.schema("id LONG").option("maxFilesPerTrigger", files_a_batch).parquet(source).writeStream
    stream = stream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream.trigger(availableNow=True).start(str(table)).awaitTermination(60)
    assert len(list((table / "_delta_log").glob("*.json"))) == commits
