"""Do `run`, `record` and `bench` say and write what was seen? No race is run: pytest is replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import cli_run
from lakerace.engines.lines import line
from selfcheck.seen import lost, observed, won

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakerace.observe import Outcome

    Told = Callable[..., tuple[int, str, str]]
    Refused = Callable[..., str]

MATRIX = "matrix/by-date/serializable/update-by-key~insert-values"
HELD, WINNER = lost(), won(statement="delete", text="DELETE ...")
SEEN = observed(HELD, WINNER)


# Recording what a run saw.
def result(name: str, held: Outcome, **more: Any) -> Any:
    from lakerace.results import Result

    return Result(
        nodeid="n",
        race=name,
        suite="test_matrix",
        question="q",
        observation=replace(SEEN, writers=(held, WINNER), **more),
        expected={},
        verdict="meets",
    )


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    def path(chosen: Any, layout: str, isolation: str) -> Path:
        return tmp_path / "expect" / chosen.engine / f"{layout}.{isolation}.md"

    monkeypatch.setattr(cli_run, "grid_path", path)
    return tmp_path / "expect" / "delta-spark"


def saved(tmp_path: Path, *results: Any) -> str:
    from lakerace.results import Results, save

    save(
        Results(engine="delta-4.4", profile="record", started="2026-01-01T00:00:00Z", seconds=1.0, results=results),
        tmp_path / "results.json",
    )
    return str(tmp_path / "results.json")


def test_record_writes_new_cells_and_prints_those_that_differ(told: Told, tmp_path: Path, grids: Path) -> None:
    from lakerace.expect import load_deviations, read_grid

    pairs = {
        name: f"matrix/flat/serializable/{name}~delete-by-key"
        for name in ("update-by-key", "insert-values", "optimize")
    }
    commits = replace(HELD, outcome="commits", kind=None, version=10)
    first = saved(tmp_path, result(pairs["update-by-key"], HELD), result(pairs["insert-values"], commits))
    code, out, err = told("record", first)
    assert (code, out) == (0, "")
    assert err.endswith("lakerace: 2 new cells written, 0 as declared, 0 that differ\n")
    grid = grids / "flat.serializable.md"
    assert read_grid(grid) == {
        ("update-by-key", "delete-by-key"): "append",
        ("insert-values", "delete-by-key"): "commits",
    }

    second = saved(
        tmp_path,
        result(pairs["update-by-key"], commits),
        result(pairs["insert-values"], commits),
        result(pairs["optimize"], HELD, error="the JVM died"),
        result("a-named-race", HELD),
        result("matrix/flat/serializable/zorder~zorder", HELD, overlap=False),
    )
    before = grid.read_text(encoding="utf-8")
    code, out, err = told("record", second)
    assert code == 0
    assert "0 new cells written, 1 as declared, 1 that differ" in err
    assert grid.read_text(encoding="utf-8") == before
    (tmp_path / "new.toml").write_text(out, encoding="utf-8")
    [deviation] = load_deviations(line("delta-4.4"), [tmp_path / "new.toml"])[-1:]
    assert (deviation.races, deviation.expect, deviation.kind) == ((pairs["update-by-key"],), "commits", "unreviewed")


@pytest.mark.parametrize(("name", "message"), [
    ("matrix/evil", "'matrix/evil' is no race of the matrix"),
    ("matrix/flat/serializable/merge-on-kez~delete-by-key", "unknown statement 'merge-on-kez'; try merge-on-key"),
])
def test_record_refuses_a_cell_that_no_grid_can_hold(
    refused: Refused, tmp_path: Path, grids: Path, name: str, message: str
) -> None:
    good = result("matrix/flat/serializable/update-by-key~delete-by-key", HELD)
    assert message in refused("record", saved(tmp_path, good, result(name, HELD)))
    assert not grids.exists()


def test_record_refuses_what_are_no_results(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("{}", encoding="utf-8")
    assert "not lakerace-results/1" in refused("record", str(tmp_path / "r.json"))


# Running the matrix.
class FakePytest:
    """Stands for the pytest process: notes its command, writes what it was told to, ends with a code."""

    def __init__(self, results: Any, code: int) -> None:
        self.results, self.code, self.command = results, code, list[str]()

    def __call__(self, command: list[str]) -> int:
        from lakerace.results import Results, save

        self.command = command
        if self.results:
            folder = next(Path(part.partition("=")[2]) for part in command if part.startswith("--results="))
            folder.mkdir(parents=True, exist_ok=True)
            save(
                Results(
                    engine="delta-4.4",
                    profile="core",
                    started="2026-01-01T00:00:00Z",
                    seconds=1.0,
                    results=self.results,
                ),
                folder / "results.json",
            )
        return self.code


@pytest.fixture
def pytest_ends(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakePytest]:
    """``pytest_ends(code, *results)``: stand in for pytest, on a machine that can run the engine."""

    def ending(code: int, *results: Any) -> FakePytest:
        fake = FakePytest(results, code)
        monkeypatch.setattr(cli_run, "run_group", fake)
        monkeypatch.setattr(cli_run, "check_ready", lambda *_: None)
        return fake

    return ending


@pytest.mark.parametrize(("ended", "code"), [(0, 0), (1, 1), (2, 130), (3, 2), (4, 2)])
def test_run_prints_the_grid_and_tells_pytests_verdict(
    told: Told, pytest_ends: Callable[..., FakePytest], tmp_path: Path, ended: int, code: int
) -> None:
    fake = pytest_ends(ended, result(MATRIX, HELD))
    chosen = ("-k", "by-date", "--race", "matrix/*", "--race", "*~optimize")
    found, out, _ = told("run", "-n", "2", *chosen, "--results", str(tmp_path / "r"))
    assert found == code
    assert "update-by-key" in out
    assert f"report: {tmp_path / 'r' / 'index.html'}" in "".join(out.splitlines())
    assert fake.command[fake.command.index("--engine") + 1] == "delta-4.4"
    assert fake.command[fake.command.index("-n") + 1] == "2"
    given = " ".join(fake.command)
    assert "--race matrix/* --race *~optimize -k by-date" in given


def test_a_run_without_a_race_is_told(
    refused: Refused, pytest_ends: Callable[..., FakePytest], tmp_path: Path
) -> None:
    pytest_ends(5)
    assert "no race was run: pytest ended with 5" in refused("run", "--results", str(tmp_path))


def test_an_interrupted_run_without_a_race_leaves_the_last_results(
    refused: Refused, pytest_ends: Callable[..., FakePytest], tmp_path: Path
) -> None:
    last = Path(saved(tmp_path, result(MATRIX, HELD))).read_text(encoding="utf-8")
    pytest_ends(2)
    refused("run", "--results", str(tmp_path), code=130)
    assert (tmp_path / "results.json").read_text(encoding="utf-8") == last


def test_what_keeps_a_run_from_starting_is_told_before_any_race(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cli_run, "run_group", None)
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "r"
    refusal = refused("run", "--results", str(below))
    assert refusal == f"lakerace: {below} can't be written (Not a directory): set --results to another folder\n"
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert "the java of JAVA_HOME=/nonexistent does not start" in refused("run", "--results", str(tmp_path))
    monkeypatch.setenv("LAKERACE_HOME", str(tmp_path / "file"))
    assert "set LAKERACE_HOME to another folder" in refused("run", "--results", str(tmp_path))


STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, lambda *_: print("asked", flush=True))
child = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.sigwait([signal.SIGUSR1])"])
print(child.pid, flush=True)
while True:
    signal.pause()
"""


def test_a_second_interrupt_leaves_no_process_behind(tmp_path: Path) -> None:
    import psutil

    text = f"import sys; from lakerace.groups import run_group; run_group([sys.executable, '-S', '-c', {STUBBORN!r}])"
    environment = {**os.environ, "PYTHONPATH": str(Path(cli_run.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", text], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as run:
        assert run.stdout is not None
        child = psutil.Process(int(run.stdout.readline()))
        started = [child, *child.parents()[:1]]
        run.send_signal(signal.SIGINT)
        assert run.stdout.readline() == "asked\n"
        run.send_signal(signal.SIGTERM)
        assert run.wait(30) == 128 + signal.SIGTERM
    assert psutil.wait_procs(started, timeout=30)[1] == []


BENCH = """
import sys
from lakerace import bench
child = "import os, signal; print(os.getpid(), os.environ['LAKERACE_WORK'], flush=True); signal.pause()"
bench.Parts._command = lambda *_: [sys.executable, "-S", "-c", child]
bench.subprocess.PIPE = None
bench.main("delta-4.4", 20, 0)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_bench_leaves_no_part_and_no_file(number: signal.Signals) -> None:
    import psutil

    environment = {**os.environ, "PYTHONPATH": str(Path(cli_run.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", BENCH], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as run:
        assert run.stdout is not None
        pid, work = run.stdout.readline().split()
        child = psutil.Process(int(pid))
        assert Path(work).is_dir()
        run.send_signal(number)
        assert run.wait(30) != 0
    assert not child.is_running()
    assert not Path(work).exists()


def test_a_part_of_bench_that_fails_says_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from lakerace import bench

    failing = "import sys; print('first', file=sys.stderr); sys.exit('no room\\n')"
    monkeypatch.setattr(bench.Parts, "_command", lambda *_: [sys.executable, "-S", "-c", failing])
    with pytest.raises(bench.BenchError, match=r"^part races ended with 1: no room$"):
        bench.main("delta-4.4", 20, 0)


def test_bench_without_java_says_so(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert "the java of JAVA_HOME=/nonexistent does not start" in refused("bench")


def test_bench_prints_its_figures(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakerace import bench

    monkeypatch.setattr(cli_run, "check_ready", lambda _: None)
    monkeypatch.setattr("lakerace.cli_engine.hand_over", lambda _: None)
    monkeypatch.setattr(
        bench, "main", lambda name, races, drift: {"engine": name, "2 workers : 1 worker": races / drift}
    )
    assert told("bench", "--races", "400", "--drift", "200")[1].splitlines() == [
        "engine                delta-4.4",
        "2 workers : 1 worker  2.0",
    ]
    assert json.loads(told("bench", "--races", "400", "--drift", "200", "--json")[1])["engine"] == "delta-4.4"


def test_record_takes_an_engine_that_tells_less_at_its_word(told: Told, tmp_path: Path, grids: Path) -> None:
    name = "matrix/by-date/serializable/update-by-key~delete-by-key"
    hinted = replace(HELD, condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")
    told("record", saved(tmp_path, result(name, hinted)))
    plain = replace(HELD, condition="DELTA_CONCURRENT_APPEND")
    err = told("record", saved(tmp_path, result(name, plain)), "--engine", "delta-4.0")[2]
    assert "0 new cells written, 1 as declared, 0 that differ" in err
    assert "0 as declared, 1 that differ" in told("record", saved(tmp_path, result(name, plain)))[2]
