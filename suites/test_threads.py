"""What do the threads of a Python process share? The session with its settings, and nothing that hangs on a thread."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakerace.drivers.phases import Locks
from lakerace.drivers.threads import WITHIN, in_a_thread
from lakerace.race import statement

VERSIONS = ">=4.0"
SCRIPT = Path(__file__).parent / "processes" / "unpinned_threads.py"
AS_LOADER = {"spark.databricks.delta.write.txnAppId": "loader", "spark.databricks.delta.write.txnVersion": "1"}
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
OTHER_INSERT = INSERT.replace("201", "202")


@pytest.mark.report("D9")
def test_settings_belong_to_the_session_and_so_to_every_thread(delta, setting):
    """What one thread sets, every other thread of the session reads; a session of its own does not."""
    in_a_thread(lambda: setting("spark.databricks.delta.write.txnVersion", "7"))
    assert in_a_thread(lambda: delta.conf.get("spark.databricks.delta.write.txnVersion")) == "7"
    assert delta.newSession().conf.get("spark.databricks.delta.write.txnVersion", None) is None


@pytest.mark.report("D9")
def test_a_transaction_id_set_by_one_thread_swallows_the_write_of_another(engine, table_factory, setting):
    """The id that a thread sets for its own write makes another thread's different write a repetition: it is skipped
    without an error, and its rows are lost."""
    table = table_factory("flat")

    def load() -> str:
        for key, value in AS_LOADER.items():
            setting(key, value)
        return engine.run(table, "A", statement(INSERT)).word

    assert in_a_thread(load) == "commits"
    assert in_a_thread(lambda: engine.run(table, "B", statement(OTHER_INSERT)).word) == "no-commit"
    assert {201, 202} & {row[0] for row in engine.rows(table)[1]} == {201}


@pytest.mark.report("D9")
def test_a_session_for_each_thread_keeps_the_ids_apart(delta, engine, table_factory):
    """With a session for each thread both writes land."""
    table = table_factory("flat")

    def load(sql: str, settings: dict[str, str]) -> None:
        session = delta.newSession()
        for key, value in settings.items():
            session.conf.set(key, value)
        session.sql(engine.fill(sql, table))

    assert in_a_thread(lambda: load(INSERT, AS_LOADER)) is None
    assert in_a_thread(lambda: load(OTHER_INSERT, {})) is None
    assert {201, 202} <= {row[0] for row in engine.rows(table)[1]}


@pytest.mark.report("D9")
def test_job_groups_and_observers_stay_in_their_thread(delta, engine):
    """A job group, a local property and Delta's observer set in one thread are not there in another."""
    observers = engine._jvm.jvm.org.apache.spark.sql.delta.TransactionExecutionObserver
    context = delta.sparkContext

    def marked() -> tuple[str, str]:
        context.setJobGroup("mine", "of this thread")
        context.setLocalProperty("lakerace.mine", "yes")
        Locks(engine._jvm.jvm, engine.hooks, "mine").attach()
        return looked()

    def looked() -> tuple[Any, ...]:
        return (context.getLocalProperty("spark.jobGroup.id"), context.getLocalProperty("lakerace.mine"),
                observers.getObserver().getClass().getSimpleName())

    idle = looked()
    assert in_a_thread(marked) == ("mine", "yes", "PhaseLockingTransactionExecutionObserver")
    assert in_a_thread(looked) == idle
    assert looked() == idle
    assert idle[:2] == (None, None)


@pytest.mark.report("D9")
@pytest.mark.parametrize("act", {
    "update": lambda found: found.update("id = 1", {"note": "'x'"}),
    "delete": lambda found: found.delete("id = 2"),
    "read": lambda found: found.toDF().count(),
    "history": lambda found: found.history().count(),
    "optimize": lambda found: found.optimize().executeCompaction().count(),
}.items(), ids=lambda item: item[0])
def test_delta_table_works_in_a_thread(delta, table_factory, act):
    """With Python threads pinned to threads of the JVM, as they are by default, no call ends in `None.get`."""
    from delta.tables import DeltaTable

    table = table_factory("flat")
    assert not isinstance(in_a_thread(lambda: act[1](DeltaTable.forPath(delta, str(table.path)))), Exception)


@pytest.mark.report("D9")
def test_without_pinned_threads(engine, tmp_path):
    """Without pinning DeltaTable and SQL work in threads too, but a local property of one thread is seen in another."""
    run = subprocess.run(
        [sys.executable, str(SCRIPT), engine.line.name, str(tmp_path)], check=True, capture_output=True, text=True,
        timeout=WITHIN,
    )
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "update": None, "delete": None, "read": 3, "history": 3, "optimize": 1, "sql": 1, "leaks": "yes",
    }
