"""What do streams do to each other on one table? A sink commits under an id: that of the query, with its batch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import deltalog
from lakerace.conflicts import classify
from lakerace.drivers.phases import WITHIN, Locks, ask
from lakerace.race import Write, statement

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql.streaming import StreamingQueryListener

VERSIONS = ">=4.0"
LIMIT_S = 120
ROWS = "CAST({} AS BIGINT) AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'stream' AS note"
SET_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night shift')"
UPDATE = "UPDATE {t} SET note = 'A' WHERE id = 1"


@pytest.fixture
def source(delta, tmp_path) -> str:
    path = str(tmp_path / "source")
    delta.range(301, 303).write.format("delta").save(path)
    return path


def stream(delta: Any, source: str, checkpoint: Path) -> Any:
    frame = delta.readStream.format("delta").load(source).selectExpr(*ROWS.format("id").split(", "))
    return frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)


def ids(engine: Any, table: Any) -> list[int]:
    return [row[0] for row in engine.rows(table)[1] if row[0] > 300]


def test_two_streams_into_one_table_both_land(delta, engine, table_factory, source, tmp_path):
    """Each commits under the id of its own query, so neither conflicts with the other."""
    table, queries = table_factory("flat"), []
    for name in "ab":
        query = stream(delta, source, tmp_path / name).format("delta").start(str(table.path))
        assert query.awaitTermination(LIMIT_S)
        queries.append(query.id)
    commits = deltalog.read_commits(table.path, table.base_version)
    assert [commit.transactions for commit in commits] == [(f"{query}=0",) for query in queries]
    assert sorted(ids(engine, table)) == [301, 301, 302, 302]


def append(delta: Any, source: str, checkpoint: Path, table: Any) -> Any:
    return stream(delta, source, checkpoint).format("delta").start(str(table.path))


def complete(delta: Any, source: str, checkpoint: Path, table: Any) -> Any:
    """Every batch replaces the whole table with the aggregates so far."""
    counted = delta.readStream.format("delta").load(source).groupBy("id").count().select("id")
    writer = counted.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return writer.outputMode("complete").format("delta").start(str(table.path))


def from_itself(delta: Any, _source: str, checkpoint: Path, table: Any) -> Any:
    """A stream that reads the table which it writes."""
    return append(delta, str(table.path), checkpoint, table)


def merge_by(named: str) -> Any:
    """A MERGE in foreachBatch that names its partition so."""

    def upsert(frame: Any, _batch: int, path: str) -> None:
        frame.createOrReplaceTempView("batch")
        frame.sparkSession.sql(
            f"MERGE INTO delta.`{path}` t USING batch s ON t.id = s.id AND {named} "
            "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *"
        )

    def starting(delta: Any, source: str, checkpoint: Path, table: Any) -> Any:
        writer = stream(delta, source, checkpoint)
        return writer.foreachBatch(lambda frame, batch: upsert(frame, batch, str(table.path))).start()

    return starting


@pytest.fixture
def held_stream(delta, engine, source, tmp_path):
    """``held_stream(table, winner, sink=append) -> (query, error)``: a stream stands before its commit while the winner
    commits.

    ``winner(query)`` is called with the stream that ``sink`` has started; the error is the stream's.
    """
    listeners: list[StreamingQueryListener] = []

    def holding(table: Any, winner: Any, sink: Any = append) -> tuple[Any, Any]:
        locks = Locks(engine._jvm.jvm, engine.hooks, table.path.name)
        listeners.append(steering(locks))
        delta.streams.addListener(listeners[-1])
        query = sink(delta, source, tmp_path / "checkpoint", table)
        try:
            assert ask(locks.reached_commit, threading.Event(), WITHIN, locks.board)
            winner(query)
        finally:
            locks.open_all()
        try:
            query.awaitTermination(LIMIT_S)
        except Exception as error:
            return query, error
        return query, None

    yield holding
    for listener in listeners:
        delta.streams.removeListener(listener)


def steering(locks: Locks) -> StreamingQueryListener:
    """Sets the locks in the stream's own thread: Spark tells of the start of a stream in that very thread."""
    from pyspark.sql.streaming import StreamingQueryListener

    class Steering(StreamingQueryListener):
        def onQueryStarted(self, event: object) -> None:  # noqa: N802
            locks.attach()

        def onQueryProgress(self, event: object) -> None:  # noqa: N802
            pass

        def onQueryIdle(self, event: object) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: object) -> None:  # noqa: N802
            pass

    return Steering()


def append_as(query: Any, batch: int) -> Write:
    """The append of another copy of the stream."""
    return Write(select=f"SELECT {ROWS.format('401')}", options=(("txnAppId", query.id), ("txnVersion", str(batch))))


@pytest.mark.report("D1")
@pytest.mark.parametrize("batch", [0, 1, 7])
def test_a_second_copy_of_a_stream_ends_the_first(engine, table_factory, held_stream, batch):
    """It ends with a StreamingQueryException around ConcurrentTransactionException, whatever batch the other wrote."""
    table = table_factory("flat")
    _, error = held_stream(table, lambda query: engine.run(table, "B", statement(append_as(query, batch))))
    found = classify(error)
    assert type(error).__name__ == "StreamingQueryException"
    assert (found.kind, found.root, found.wrapped) == (
        "transaction", "io.delta.exceptions.ConcurrentTransactionException", True,
    )
    assert (found.condition, found.sqlstate) == ("DELTA_CONCURRENT_TRANSACTION", "2D521")
    assert not found.rerun_can_help
    assert ids(engine, table) == [401]


def test_a_stream_ends_at_a_change_of_the_metadata(engine, table_factory, held_stream):
    """A stream appends blindly, and still a new table property ends it; started again, it writes its batch once."""
    table = table_factory("flat")
    _, error = held_stream(table, lambda _: engine.run(table, "B", statement(SET_PROPERTY)))
    found = classify(error)
    assert (found.kind, found.condition, found.wrapped) == ("metadata", "DELTA_METADATA_CHANGED", True)
    assert found.rerun_can_help
    assert ids(engine, table) == []


WINNERS = {
    "insert": "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')",
    "update": UPDATE,
    "delete-of-a-file": "DELETE FROM {t} WHERE id IN (1, 2)",
    "optimize": "OPTIMIZE {t}",
    "add-column": "ALTER TABLE {t} ADD COLUMN (extra INT)",
}
SINKS = {"append": append, "complete": complete, "from-itself": from_itself}


@pytest.mark.parametrize(("sink", "winner", "word"), [
    *(("append", winner, "commits") for winner in ("insert", "update", "delete-of-a-file", "optimize")),
    ("append", "add-column", "metadata"),
    *(("complete", winner, "append") for winner in ("insert", "optimize")),
    ("complete", "delete-of-a-file", "delete-read"),
    *(("from-itself", winner, "append") for winner in ("insert", "optimize")),
    ("from-itself", "delete-of-a-file", "delete-read"),
])
def test_what_a_sink_has_read_decides_what_ends_it(engine, table_factory, held_stream, sink, winner, word):
    """In append mode that is nothing, in complete mode every file that it replaces, and a stream that reads the table
    which it writes has read all of it."""
    table = table_factory("flat")
    before = len(table.rows)
    _, error = held_stream(table, lambda _: won(engine, table, WINNERS[winner]), SINKS[sink])
    found = classify(error) if error is not None else None
    assert (found.kind if found else "commits") == word
    assert [row.operation == "STREAMING UPDATE" for row in engine.history(table)].count(True) == (word == "commits")
    changed = {"insert": 1, "delete-of-a-file": -2}.get(winner, 0)
    assert len(engine.rows(table)[1]) == before + changed + 2 * (word == "commits")


def won(engine: Any, table: Any, text: str) -> None:
    assert engine.run(table, "B", statement(text)).word == "commits"


@pytest.mark.report("B1")
@pytest.mark.parametrize(("named", "date", "word"), [
    ("t.event_date = DATE'2026-08-11'", "11", "append"), ("t.event_date = DATE'2026-08-11'", "12", "commits"),
    ("t.event_date = s.event_date", "12", "append"),
], ids=["by-a-literal-there", "by-a-literal-elsewhere", "by-the-join-elsewhere"])
def test_a_merge_in_a_batch_against_optimize(engine, table_factory, held_stream, named, date, word):
    """As anywhere else: OPTIMIZE of what the MERGE has read ends it, and with it the stream; of another date it does
    not, where a literal names the partition."""
    table = table_factory("by-date")
    optimize = f"OPTIMIZE {{t}} WHERE event_date = DATE'2026-08-{date}'"
    _, error = held_stream(table, lambda _: won(engine, table, optimize), merge_by(named))
    found = classify(error) if error is not None else None
    assert (found.kind if found else "commits") == word
    assert sorted(ids(engine, table)) == ([301, 302] if word == "commits" else [])


@pytest.mark.report("D1")
@pytest.mark.parametrize(("with_ids", "written"), [(True, [301, 302]), (False, [301, 301, 302, 302])],
                         ids=["with-ids", "without"])
def test_a_batch_that_runs_again(delta, engine, table_factory, source, tmp_path, with_ids, written):
    """A batch of foreachBatch that fails after its write runs again: with txnAppId and txnVersion nothing is written
    twice, without them every row is."""
    table, runs = table_factory("flat"), []

    def write(frame: Any, batch: int) -> None:
        writer = frame.write.format("delta").mode("append")
        if with_ids:
            writer = writer.option("txnAppId", "loader").option("txnVersion", batch)
        writer.save(str(table.path))
        runs.append(batch)
        if len(runs) == 1:
            raise RuntimeError("what comes after the write fails")

    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException, match="what comes after the write fails"):
        stream(delta, source, tmp_path / "checkpoint").foreachBatch(write).start().awaitTermination(LIMIT_S)
    assert stream(delta, source, tmp_path / "checkpoint").foreachBatch(write).start().awaitTermination(LIMIT_S)
    assert runs == [0, 0]
    assert sorted(ids(engine, table)) == written
