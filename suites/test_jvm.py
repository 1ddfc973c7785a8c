"""Does the JVM leave a clean house? Deaths, interrupts, missing hooks, and what lies about afterwards.

A process has one Spark context, so each of these runs in a pytest process of its own.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from lakerace.judge import UNSTEERABLE, judge
from lakerace.layouts import layout
from lakerace.race import held_against
from lakerace.run import run_race

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 600
SPARK_ONLY = "this is about the JVM of Spark"


@pytest.fixture(autouse=True)
def _spark_only(engine) -> None:
    if engine.line.engine != "delta-spark":
        pytest.skip(SPARK_ONLY)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def left_in(folder: Path) -> set[str]:
    """What a run left in ``folder``, apart from pytest's own."""
    own = (".pytest_cache", "__pycache__", "results", "pytest-of-")
    return {path.name for path in folder.iterdir() if not path.name.startswith(own)}


def wait_until(holds: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < limit, f"gave up after {LIMIT_S} s: {what}"
        time.sleep(0.05)


DEATHS = '''
import os, signal
from lakerace.layouts import layout
from lakerace.race import held_against
from lakerace.run import run_race

UPDATE, INSERT = "UPDATE {t} SET note = 'x' WHERE id = 1", "INSERT INTO {t} VALUES (99, DATE'2026-08-11', 'DE', 1, 'n')"
PIDS = []

def kill(engine):
    os.kill(engine.pid, signal.SIGKILL)

def test_1_dies_while_a_writer_is_held(engine, race, monkeypatch):
    run = engine.run
    def dying(*arguments):
        kill(engine)
        return run(*arguments)
    monkeypatch.setattr(engine, "run", dying)
    PIDS.append(engine.pid)
    race(held=UPDATE, winners=[INSERT])

def test_2_the_next_race_has_a_new_jvm(engine, race):
    assert engine.pid not in PIDS
    assert race(held=UPDATE, winners=[INSERT]).outcome("A").word == "append"
    PIDS.append(engine.pid)
    kill(engine)

def test_3_so_has_the_one_after_a_death_between_races(engine, race):
    assert engine.pid not in PIDS
    assert race(held=UPDATE, winners=[INSERT]).outcome("A").word == "append"

def test_4_and_the_one_after_keeps_it(engine, table_factory):
    PIDS.append(engine.pid)
    table_factory("flat")
    kill(engine)  # a table factory cleans up after a dead JVM, too
'''


def test_a_dead_jvm_costs_one_race_and_nothing_else(project, tmp_path, inner_pytest):
    (project / "test_deaths.py").write_text(DEATHS, encoding="utf-8")
    run = inner_pytest(project, "-p", "no:randomly")
    output, _ = run.communicate(timeout=LIMIT_S)
    assert "1 failed, 3 passed" in output, output
    assert "the JVM died" in output, output
    assert "FAILED test_deaths.py::test_1" in output, output
    assert left_in(project) == {"test_deaths.py"}
    assert left_in(tmp_path / "temp") == set()


CLOSING = '''
import psutil
from pathlib import Path
from lakerace.engines import open_engine
from lakerace.engines.lines import line

def test_close(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        engine = open_engine(line())
        folder, process = engine._jvm.folder, psutil.Process(engine.pid)
        assert folder.is_dir() and process.is_running()
        engine.spark.sql("CREATE TABLE named (id BIGINT) USING delta")
        engine.spark.sql("INSERT INTO named VALUES (1)")
        assert engine.spark.sql("SELECT * FROM named").count() == 1
        engine.close()
        assert not process.is_running() and not folder.exists()
    assert list(Path().iterdir()) == []
'''


def test_closing_ends_the_jvm_and_takes_its_folder_along(project, tmp_path, inner_pytest):
    (project / "test_closing.py").write_text(CLOSING, encoding="utf-8")
    run = inner_pytest(project)
    output, _ = run.communicate(timeout=LIMIT_S)
    assert "1 passed" in output, output
    assert left_in(project) == {"test_closing.py"}
    assert left_in(tmp_path / "temp") == set()


WAITING = '''
import threading
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(2))
def test_that_never_ends(number, engine):
    Path(f"running-{number}").write_text(str(engine.pid))
    threading.Event().wait()
'''


@pytest.fixture
def two_running(project, inner_pytest) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A run with two workers, each with its JVM up, and all processes that it started."""
    (project / "test_waiting.py").write_text(WAITING, encoding="utf-8")
    run = inner_pytest(project, "-n", "2")
    marks = [project / f"running-{number}" for number in range(2)]

    def up() -> bool:
        assert run.poll() is None, run.communicate()[0]
        return all(mark.exists() and mark.read_text() for mark in marks)

    wait_until(up, "two workers with a JVM each")
    children = psutil.Process(run.pid).children(recursive=True)
    assert {int(mark.read_text()) for mark in marks} <= {child.pid for child in children}
    return run, children


def test_ctrl_c_leaves_no_process_and_no_folder(two_running, tmp_path):
    run, children = two_running
    os.killpg(run.pid, signal.SIGINT)
    run.communicate(timeout=LIMIT_S)
    _, alive = psutil.wait_procs(children, timeout=LIMIT_S)
    assert alive == []
    assert left_in(tmp_path / "temp") == set()


def test_a_killed_run_leaves_no_process_and_the_next_run_sweeps_up(two_running, project, tmp_path, inner_pytest):
    run, children = two_running
    run.kill()
    run.communicate(timeout=LIMIT_S)
    _, alive = psutil.wait_procs(children, timeout=LIMIT_S)
    assert alive == []
    left = left_in(tmp_path / "temp")
    assert [name for name in left if name.startswith(f"lakerace-{run.pid}-")], left
    (project / "test_nothing.py").write_text("def test_nothing(): pass\n", encoding="utf-8")
    output, _ = inner_pytest(project, "test_nothing.py").communicate(timeout=LIMIT_S)
    assert "1 passed" in output, output
    assert not [name for name in left_in(tmp_path / "temp") if name.startswith("lakerace-")]


def test_the_running_delta_has_the_phases_that_its_line_states(engine):
    assert engine.hooks.phases == engine.line.phases


def test_a_missing_hook_makes_a_race_unsteerable_with_the_reason(engine, monkeypatch):
    monkeypatch.setattr(engine, "hooks", "this Delta has no phase locks")
    race = held_against(
        "no-hook", layout=layout("flat"), held="UPDATE {t} SET note = 'x'", winners=["DELETE FROM {t} WHERE id = 1"])
    seen = run_race(race, engine)
    assert (seen.unsteerable, seen.error, seen.writers) == ("this Delta has no phase locks", None, ())
    assert judge(race, seen, engine.line).word == UNSTEERABLE
