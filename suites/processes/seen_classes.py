"""Prints which Python class a Delta conflict has, as one JSON object a line: after each import, and over Spark Connect.

A process of its own, since an import can't be taken back: the steps come in the order in which they add to each other.
Arguments: the engine line, a folder, and what to look at: ``classic``, or ``connect`` (a Spark Connect server in the
same JVM), or both.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from lakerace.conflicts import classify
from lakerace.drivers.gate import Gate
from lakerace.drivers.phases import WITHIN, Locks, ask, error_while_held, probe
from lakerace.engines.jvm import spark_conf
from lakerace.engines.lines import line

if TYPE_CHECKING:
    from collections.abc import Callable

UPDATE = "UPDATE delta.`{t}` SET note = 'x' WHERE id = 1"
PAIRS = {
    "append": (UPDATE, "UPDATE delta.`{t}` SET note = 'y' WHERE id = 2"),
    "delete-read": (UPDATE, "DELETE FROM delta.`{t}` WHERE id IN (1, 2)"),
    "metadata": (UPDATE, "ALTER TABLE delta.`{t}` SET TBLPROPERTIES ('team' = 'night shift')"),
    "protocol": (UPDATE, "ALTER TABLE delta.`{t}` DROP FEATURE checkConstraints"),
    "write": ("RESTORE TABLE delta.`{t}` TO VERSION AS OF 1", "INSERT INTO delta.`{t}` VALUES (9, 'z')"),
    "optimize": ("OPTIMIZE delta.`{t}`", "DELETE FROM delta.`{t}` WHERE id IN (1, 2)"),
}
CAPTURED = "delta.exceptions.captured"
BASE = "DeltaConcurrentModificationException"
with socket.socket() as _free:
    _free.bind(("127.0.0.1", 0))
    PORT = _free.getsockname()[1]


class Classic:
    """A classic session whose statements can be held by Delta's phase locks."""

    def __init__(self, name: str, folder: Path, connect: bool) -> None:
        self.folder = folder
        settings = spark_conf(line(name), folder)
        if connect:
            settings |= {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                         "spark.connect.grpc.binding.port": str(PORT)}
        builder = SparkSession.builder.master("local[2]").appName("seen classes")
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.jvm: Any = self.spark._jvm
        self.hooks = probe(self.jvm)

    def table(self) -> str:
        path = tempfile.mkdtemp(dir=self.folder)
        features = "'delta.feature.checkConstraints' = 'supported', 'delta.enableDeletionVectors' = 'false'"
        self.spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, note STRING) USING delta TBLPROPERTIES ({features})")
        for number in (1, 3):
            self.spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, 'a'), ({number + 1}, 'b')")
        return path

    def error_of(self, table: str, held: Callable[[], object], winner: str) -> BaseException:
        """The error of ``held``, which stands before its commit while ``winner`` commits."""
        error = error_while_held(
            self.jvm, self.hooks, table, held, lambda: self.spark.sql(winner.format(t=table))
        )
        if error is None:
            raise RuntimeError(f"no conflict with {winner}")
        return error


def told(**more: object) -> None:
    print(json.dumps(more), flush=True)


def fields(error: BaseException, kind: str) -> dict[str, object]:
    """What a caller can see of ``error``, and what the classifier of Lakerace makes of it."""
    found = classify(error)
    return {
        "kind": kind,
        "class": f"{type(error).__module__}.{type(error).__name__}",
        "bases": [f"{one.__module__}.{one.__name__}" for one in type(error).__mro__ if one.__name__ == BASE],
        "condition": _asked(error, "getCondition") or _asked(error, "getErrorClass"),
        "sqlstate": _asked(error, "getSqlState"),
        "parameters": sorted(_asked(error, "getMessageParameters") or {}),
        "classified": found and [found.kind, found.root, found.condition, found.sqlstate, found.rerun_can_help],
        "text": str(error)[:300],
    }


def _asked(error: BaseException, getter: str) -> Any:
    try:
        return getattr(error, getter)()
    except Exception as refusal:
        return f"raises {type(refusal).__name__}" if getter == "getCondition" else None


def classic(session: Classic, step: str, kinds: tuple[str, ...]) -> None:
    for kind in kinds:
        table = session.table()
        held, winner = PAIRS[kind]
        error = session.error_of(table, lambda held=held, table=table: session.spark.sql(held.format(t=table)), winner)
        told(step=step, **fields(error, kind))


def by_api(session: Classic, step: str) -> None:
    """The same conflicts through the methods of DeltaTable, which are no SQL."""
    from delta.tables import DeltaTable

    for kind, act in {
        "append": lambda found: found.update("id = 1", {"note": "'x'"}),
        "optimize": lambda found: found.optimize().executeCompaction(),
    }.items():
        table = session.table()
        found = DeltaTable.forPath(session.spark, table)
        error = session.error_of(table, lambda act=act, found=found: act(found), PAIRS[kind][1])
        told(step=step, **fields(error, f"{kind} by method"))


def in_a_batch(session: Classic, step: str) -> None:
    """Inside ``foreachBatch`` and outside of it, and in the streaming sink itself."""
    source, table, seen = session.table(), session.table(), []

    def upsert(_frame: object, _number: int) -> None:
        # The batch runs in one thread of the JVM, from the callback on: the locks are set in it as anywhere else.
        locks, done = Locks(session.jvm, session.hooks, table), threading.Event()

        def win() -> None:
            ask(locks.reached_commit, done, WITHIN, locks.board)
            session.spark.sql(PAIRS["append"][1].format(t=table))
            locks.open_all()

        thread = threading.Thread(target=win)
        locks.attach()
        thread.start()
        try:
            session.spark.sql(UPDATE.format(t=table))
        except Exception as error:
            seen.append(error)
            raise
        finally:
            locks.detach()
            done.set()
            thread.join(WITHIN)

    checkpoint = tempfile.mkdtemp(dir=session.folder)
    query = (session.spark.readStream.format("delta").load(source).writeStream.foreachBatch(upsert)
             .option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
    try:
        query.awaitTermination(WITHIN)
    except Exception as error:
        told(step=step, **fields(error, "append around foreachBatch"))
    told(step=step, **fields(query.exception(), "append as the exception of the query"))
    told(step=step, **fields(seen[0], "append inside foreachBatch"))


def over_connect(session: Classic, steps: tuple[str, ...]) -> None:
    from pyspark.sql.connect.session import SparkSession as Remote

    remote = Remote.builder.remote(f"sc://127.0.0.1:{PORT}").create()
    for step in steps:
        if step:
            importlib.import_module(step)
        for kind in ("append", "delete-read", "metadata", "protocol", "transaction"):
            told(step=f"connect {step}".strip(), **fields(_gated(session, remote, kind), kind))
    remote.stop()


def _gated(session: Classic, remote: Any, kind: str) -> BaseException:
    """The error of a statement over Connect that waits in a function of its source while the winner commits."""
    from pyspark.sql.connect.functions import udf

    table, gate = session.table(), Gate(Path(tempfile.mkdtemp(dir=session.folder)))
    remote.udf.register("gate", udf(gate.function, "bigint", useArrow=False))
    errors: list[BaseException] = []

    def work() -> None:
        try:
            if kind == "transaction":
                frame = remote.sql("SELECT gate(9) AS id, 'z' AS note").write.format("delta").mode("append")
                frame.options(txnAppId="loader", txnVersion="2").save(table)
            else:
                remote.sql(f"MERGE INTO delta.`{table}` t USING (SELECT gate(1) AS id) s ON t.id = s.id "
                           "WHEN MATCHED THEN UPDATE SET note = 'x'")
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    gate.wait()
    if kind == "transaction":
        winner = session.spark.sql("SELECT 8L AS id, 'z' AS note").write.format("delta").mode("append")
        winner.options(txnAppId="loader", txnVersion="1").save(table)
    else:
        session.spark.sql(PAIRS[kind][1].format(t=table))
    gate.open()
    thread.join(WITHIN)
    return errors[0]


def main(name: str, folder: str, *parts: str) -> None:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = Classic(name, Path(folder), "connect" in parts)
    try:
        if "classic" in parts:
            for step in ("pyspark", "delta.tables", "delta.exceptions"):
                importlib.import_module(step)
                classic(session, step, ("append", "metadata"))
            importlib.import_module(CAPTURED)
            classic(session, CAPTURED, tuple(PAIRS))
            by_api(session, CAPTURED)
            in_a_batch(session, CAPTURED)
        if "connect" in parts:
            over_connect(session, ("", "delta.connect"))
    finally:
        session.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
