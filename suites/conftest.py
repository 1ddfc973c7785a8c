"""What suites share: the command line called in this process, settings of the session, a pytest run of its own.

The example is a project of its own: its tests run in a copy of it, never as part of this suite.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import cli
from lakerace.engines import open_engine, session
from lakerace.engines.lines import line
from lakerace.layouts import layout
from lakerace.race import SERIALIZABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakerace.engines import Engine, Table

collect_ignore = ["example"]


@pytest.fixture(scope="session")
def delta_rs() -> Iterator[Engine]:
    """The engine without a JVM, beside whatever line was chosen."""
    opened = open_engine(line("delta-rs"))
    yield opened
    opened.close()


@pytest.fixture(params=["delta-spark", "delta-rs"])
def either(request: pytest.FixtureRequest) -> Engine:
    """Each test on both engines; the one without a JVM needs no Spark."""
    opened: Engine = request.getfixturevalue("engine" if request.param == "delta-spark" else "delta_rs")
    return opened


@pytest.fixture
def flat_table(either: Engine) -> Iterator[Table]:
    """A table of ``either`` engine in the flat layout."""
    made = either.make(layout("flat"), SERIALIZABLE)
    yield made
    either.drop(made)


class _Lent:
    """The worker's engine, lent to the command line; the worker closes it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        pass


@pytest.fixture
def lend(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """``lend()``: for the rest of the test `lakerace` opens no engine of its own, but has that of this worker."""
    return lambda: monkeypatch.setattr("lakerace.engines.open_engine", lambda _: _Lent(engine))


@pytest.fixture
def setting(delta: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """``setting(key, value)``: a setting of the Spark session for the rest of the test."""
    with ExitStack() as stack:
        yield lambda key, value: stack.enter_context(session.setting(delta, key, value))


@pytest.fixture
def tick(delta: SparkSession, tmp_path: Path) -> Callable[[], int]:
    """The SQL function ``tick(bigint)`` returns what it is given; called from Python, how often it was called there."""
    calls = str(tmp_path / "calls")

    def returned(value: int) -> int:
        with open(calls, "a") as file:  # noqa: PTH123 - it is pickled and runs in a Python worker
            file.write("x")
        return value

    delta.udf.register("tick", returned, "long")
    return lambda: (tmp_path / "calls").stat().st_size


@pytest.fixture
def inner_pytest(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """``inner_pytest(folder, *arguments) -> Popen``: a pytest run of its own, in a process of its own.

    It uses the engine line of this run, shares nothing else with it, and keeps its temporary files in
    ``tmp_path / "temp"``; its output is in ``stdout``, both streams together. It leads a process group, which is killed
    when the test ends before it.
    """
    started: list[subprocess.Popen[str]] = []

    def starting(folder: Path, *arguments: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
        environment.pop("LAKERACE_WORK", None)
        chosen = pytestconfig.getoption("lakerace_engine")
        environment |= {"LAKERACE_ENGINE": chosen} if chosen else {}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path.endswith("fixtures"))
        environment["TMPDIR"] = str(tmp_path / "temp")
        (tmp_path / "temp").mkdir(exist_ok=True)
        installed = any(found.name == "lakerace" for found in metadata.entry_points(group="pytest11"))
        plugin = () if installed else ("-p", "lakerace.plugin")
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", *plugin, *arguments],
            cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(run)
        return run

    yield starting
    for run in started:
        with run:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``told(*arguments)``: exit code, stdout and stderr of ``lakerace``."""

    def telling(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return telling


@pytest.fixture
def refused(told: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """``refused(*arguments, code=2)``: the one line on stderr that a wrong command gets."""

    def refusing(*arguments: str, code: int = 2) -> str:
        found, out, err = told(*arguments)
        assert (found, out) == (code, "")
        assert err.startswith("lakerace: ")
        assert err.count("\n") == 1
        return err

    return refusing
