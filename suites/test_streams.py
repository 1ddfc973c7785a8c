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


@pytest.fixture
def held_stream(delta, engine, source, tmp_path):
    """``held_stream(table, winner) -> (query, error)``: a stream stands before its commit while the winner commits.

    ``winner(query)`` is called with the stream; the error is the stream's.
    """
    listeners: list[StreamingQueryListener] = []

    def holding(table: Any, winner: Any) -> tuple[Any, Any]:
        locks = Locks(engine._jvm.jvm, engine.hooks, table.path.name)
        listeners.append(steering(locks))
        delta.streams.addListener(listeners[-1])
        query = stream(delta, source, tmp_path / "checkpoint").format("delta").start(str(table.path))
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


def test_a_stream_passes_an_update(engine, table_factory, held_stream):
    table = table_factory("flat")
    _, error = held_stream(table, lambda _: engine.run(table, "B", statement(UPDATE)))
    assert error is None
    assert sorted(ids(engine, table)) == [301, 302]


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
