"""Prints which Python class a Delta conflict has, as one JSON object a line: after each import, and over Spark Connect.

A process of its own, since an import can't be taken back: the steps come in the order in which they add to each other.
Arguments: the engine line, a folder, and what to look at: ``classic``, or ``connect`` (a Spark Connect server in the
same JVM), or both.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from lakerace.conflicts import classify
from lakerace.drivers.gate import Gate
from lakerace.drivers.phases import WITHIN, Locks, ask, error_while_held, probe
from lakerace.engines.jvm import spark_conf
from lakerace.engines.lines import line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Act = Callable[[Any, str], object]
"""Something done through a session, classic or of Connect, to the table at a path."""


def sql(text: str) -> Act:
    return lambda session, table: session.sql(text.format(t=f"delta.`{table}`"))


def saved(row: str, mode: str = "append", **options: str) -> Act:
    return lambda session, table: (
        session.sql(f"SELECT {row} AS id, 'z' AS note, 1 AS day").write.format("delta").mode(mode).options(**options)
        .save(table)
    )


UPDATE, INSERT = sql("UPDATE {t} SET note = 'x' WHERE id = 1"), sql("INSERT INTO {t} VALUES (9, 'z', 1)")
OF_A_FILE = sql("DELETE FROM {t} WHERE id IN (1, 2)")
RESTORE, OPTIMIZE = sql("RESTORE TABLE {t} TO VERSION AS OF 1"), sql("OPTIMIZE {t}")
BY_PARTITION, AS_LOADER = {"mode": "overwrite", "partitionOverwriteMode": "dynamic"}, {"txnAppId": "loader"}
PAIRS: dict[str, tuple[Act, Act]] = {
    "append": (UPDATE, sql("UPDATE {t} SET note = 'y' WHERE id = 2")),
    "delete-read": (UPDATE, OF_A_FILE),
    "delete-delete": (saved("9L", **BY_PARTITION), sql("DELETE FROM {t} WHERE day = 1")),
    "metadata": (UPDATE, sql("ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night shift')")),
    "protocol": (UPDATE, sql("ALTER TABLE {t} DROP FEATURE checkConstraints")),
    "transaction": (saved("9L", txnVersion="2", **AS_LOADER), saved("8L", txnVersion="1", **AS_LOADER)),
    "write": (RESTORE, INSERT),
    "optimize": (OPTIMIZE, OF_A_FILE),
    "attempts": (UPDATE, INSERT),
}
SETTINGS = {"attempts": {"spark.databricks.delta.maxCommitAttempts": "0"}}
"""What the session of the held statement has set meanwhile."""

MERGE = sql("MERGE INTO {t} t USING (SELECT gate(1) AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'x'")
AT_THE_GATE = {
    **dict.fromkeys(("append", "delete-read", "metadata", "protocol"), MERGE),
    "delete-delete": saved("gate(9)", **BY_PARTITION),
    "transaction": saved("gate(9)", txnVersion="2", **AS_LOADER),
}
"""What can be held over Connect: by a function in its source. RESTORE and OPTIMIZE have none, and nobody can set a lock
in a thread of the server."""

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

    @cached_property
    def _made(self) -> str:
        """One partition, two files."""
        path = tempfile.mkdtemp(dir=self.folder)
        features = "'delta.feature.checkConstraints' = 'supported', 'delta.enableDeletionVectors' = 'false'"
        sql("CREATE TABLE {t} (id BIGINT, note STRING, day INT) USING delta PARTITIONED BY (day) "
            f"TBLPROPERTIES ({features})")(self.spark, path)
        for first in (1, 3):
            sql(f"INSERT INTO {{t}} VALUES ({first}, 'a', 1), ({first + 1}, 'b', 1)")(self.spark, path)
        return path

    def table(self) -> str:
        """A table of its own: a copy, which takes no time."""
        return shutil.copytree(self._made, tempfile.mkdtemp(dir=self.folder), dirs_exist_ok=True)

    def error_of(self, kind: str, table: str, held: Callable[[], object]) -> BaseException:
        """The error of ``held``, which stands before its commit while the winner of that ``kind`` commits."""
        error = error_while_held(self.jvm, self.hooks, table, held, lambda: PAIRS[kind][1](self.spark, table))
        if error is None:
            raise RuntimeError(f"no conflict: {kind}")
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


@contextmanager
def with_settings(session: Any, kind: str) -> Iterator[None]:
    for key, value in SETTINGS.get(kind, {}).items():
        session.conf.set(key, value)
    yield
    for key in SETTINGS.get(kind, {}):
        session.conf.unset(key)


def classic(session: Classic, step: str, kinds: Iterable[str]) -> None:
    for kind in kinds:
        table = session.table()
        with with_settings(session.spark, kind):
            error = session.error_of(kind, table, partial(PAIRS[kind][0], session.spark, table))
        told(step=step, **fields(error, kind))


def by_api(session: Classic, step: str) -> None:
    """The same conflicts through the methods of DeltaTable, which are no SQL."""
    from delta.tables import DeltaTable

    for kind, act in {
        "append": lambda found: found.update("id = 1", {"note": "'x'"}),
        "optimize": lambda found: found.optimize().executeCompaction(),
    }.items():
        table = session.table()
        error = session.error_of(kind, table, partial(act, DeltaTable.forPath(session.spark, table)))
        told(step=step, **fields(error, f"{kind} by method"))


def in_a_batch(session: Classic, step: str) -> None:
    """Inside ``foreachBatch`` and outside of it, and in the streaming sink itself."""
    source, table, seen = session.table(), session.table(), []

    def upsert(_frame: object, _number: int) -> None:
        # The batch runs in one thread of the JVM, from the callback on: the locks are set in it as anywhere else.
        locks, done = Locks(session.jvm, session.hooks, table), threading.Event()

        def win() -> None:
            ask(locks.reached_commit, done, WITHIN, locks.board)
            PAIRS["append"][1](session.spark, table)
            locks.open_all()

        thread = threading.Thread(target=win)
        locks.attach()
        thread.start()
        try:
            UPDATE(session.spark, table)
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
        for kind in AT_THE_GATE:
            told(step=f"connect {step}".strip(), **fields(_held(session, remote, kind), kind))
    remote.stop()


def _held(session: Classic, remote: Any, kind: str) -> BaseException:
    """The error of a statement over Connect that stands at a gate, having read its table, while the winner commits."""
    from pyspark.sql.connect.functions import udf

    table, gate = session.table(), Gate(Path(tempfile.mkdtemp(dir=session.folder)))
    remote.udf.register("gate", udf(gate.function, "bigint", useArrow=False))
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(AT_THE_GATE[kind], remote, table)
        try:
            gate.wait()
            PAIRS[kind][1](session.spark, table)
        finally:
            gate.open()
        error = done.exception(WITHIN)
    if error is None:
        raise RuntimeError(f"no conflict over Connect: {kind}")
    return error


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
            classic(session, CAPTURED, PAIRS)
            by_api(session, CAPTURED)
            in_a_batch(session, CAPTURED)
        if "connect" in parts:
            over_connect(session, ("", "delta.connect"))
    finally:
        session.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
