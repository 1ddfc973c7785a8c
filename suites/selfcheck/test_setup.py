"""Set-up, engine lines and doctor: what they find, and the one line they give when something is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from lakerace import doctor
from lakerace.engines import EngineError, lines
from lakerace.engines.delta_spark import DeltaSpark, delta_of
from lakerace.engines.lines import LineError, known_jars, line, load_lines
from lakerace.home import conf_dir
from lakerace.install import MARKER, SetupError, environment_is, find_java, make_environment, pip, run_logged

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
default = "one"
[line.one]
engine = "delta-spark"
meaning = "a line"
delta = "4.4.0"
spark = "4.2.0"
jars = ["io.delta:delta-spark_4.2_2.13:4.4.0"]
requirements = "requirements/delta-4.4.txt"
phases = ["commit"]
sub_conditions = true
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKERACE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def script(path: Path, *said: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *said)))
    path.chmod(0o755)
    return path


def test_the_default_line_is_one_of_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKERACE_ENGINE", raising=False)
    assert line() == load_lines()[line().name]
    monkeypatch.setenv("LAKERACE_ENGINE", "delta-rs")
    assert line().engine == "delta-rs"
    assert line("delta-4.0").delta == "4.0.1"


def test_an_unknown_line_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LineError, match=r"^unknown engine line 'delta-9'; known: delta-4.4, delta-4.0, delta-rs"):
        line("delta-9")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (GOOD.replace("meaning", "meening"), "unknown field `meening`"),
        (GOOD.replace('"delta-spark"', '"delta-spork"'), "Invalid enum value 'delta-spork'"),
        (GOOD.replace('default = "one"', 'default = "two"'), "default 'two' is none of its lines: one"),
        (GOOD.replace('spark = "4.2.0"\n', ""), "line 'one' runs on Spark and must give `spark` and `jars`"),
        (GOOD + "[", "engines.toml"),
    ],
    ids=["field", "engine", "default", "spark", "syntax"],
)
def test_a_wrong_engines_file_is_an_error(tmp_path: Path, wrong: str, told: str) -> None:
    path = tmp_path / "engines.toml"
    path.write_text(GOOD)
    assert list(load_lines(path)) == ["one"]
    path.write_text(wrong)
    with pytest.raises(LineError, match=re.escape(told)):
        load_lines(path)


@pytest.mark.parametrize("name", [*load_lines()])
def test_a_lock_file_pins_the_line_with_hashes_and_without_an_address(name: str) -> None:
    lock = line(name).lock.read_text()
    for package, version in line(name).wheels.items():
        assert re.search(rf"^{package}=={re.escape(version)} ", lock, re.MULTILINE), (
            f"{package} {version} not in {name}"
        )
    assert "://" not in lock
    pinned = re.findall(r"^[\w.-]+==.*(?:\n    .*)*", lock, re.MULTILINE)
    assert [entry.split()[0] for entry in pinned if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('java version "1.8.0_391"', "is Java 8: Spark 4 needs Java 17 or newer"),
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11: Spark 4 needs Java 17 or newer"),
        ("no such thing", "says no version"),
    ],
)
def test_java_is_told_by_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, found: int | str
) -> None:
    script(tmp_path / "bin" / "java", f"echo '{said}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if isinstance(found, int):
        assert find_java().major == found
    else:
        with pytest.raises(SetupError, match=found):
            find_java()
        assert doctor.check_java().ok is False


def test_no_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"^no java on PATH: install Java 17 or newer, or set JAVA_HOME$"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"^the java of JAVA_HOME={tmp_path} does not start"):
        find_java()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("WARNING: Retrying after NewConnectionError", "the package registry can't be reached"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "a package is not the one in the lock file"),
        ("OSError: No space left on device", "the disk is full"),
        ("ERROR: No matching distribution found for pyspark", "No matching distribution found for pyspark"),
        ("what", "see the log"),
    ],
)
def test_a_failing_pip_is_one_line_with_the_log(tmp_path: Path, said: str, reason: str) -> None:
    script(tmp_path / "bin" / "python", f"echo '{said}'", "exit 1")
    with pytest.raises(SetupError, match=f"^pip install failed: {reason}; its output: {tmp_path}/lakerace.log$"):
        pip(tmp_path, "anything")
    assert said in (tmp_path / "lakerace.log").read_text()


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    hangs = script(tmp_path / "hangs", "sleep 60 &", f"echo $! > {tmp_path}/child", "wait")
    with pytest.raises(SetupError, match=r"was not done after 1 s; its output: "):
        run_logged([str(hangs)], tmp_path / "log", limit_s=1)
    child = int((tmp_path / "child").read_text())
    limit = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < limit, "the child lives on"


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(SetupError, match="was not made by Lakerace: move it away"):
        make_environment(tmp_path, ())
    assert (tmp_path / "mine").read_text() == "precious"


def test_a_half_made_environment_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    assert not environment_is(tmp_path, "digest")
    (tmp_path / MARKER).write_text("unfinished")
    assert not environment_is(tmp_path, "digest")
    (tmp_path / MARKER).write_text("digest")
    assert environment_is(tmp_path, "digest")


def fake_jars(cache: Path, *, delta: str, phases: tuple[str, ...]) -> Path:
    """Jars of the default line as set-up leaves them, with phase locks for ``phases``."""
    folder = cache / "jars" / "delta-4.4"
    folder.mkdir(parents=True)
    jar = folder / f"io.delta_delta-spark_4.2_2.13-{delta}.jar"
    hooks = "org/apache/spark/sql/delta/fuzzer/"
    with zipfile.ZipFile(jar, "w") as classes:
        classes.writestr("META-INF/MANIFEST.MF", "")
        if phases:
            names = [f"{phase}Phase" for phase in phases]
            classes.writestr(
                f"{hooks}OptimisticTransactionPhases.class", b"\x01\x00" + "\x00".join(names).encode() + b"\x00"
            )
            classes.writestr(f"{hooks}PhaseLockingTransactionExecutionObserver.class", b"")
    manifest = {"coordinates": line("delta-4.4").jars, "sizes": {jar.name: jar.stat().st_size}}
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    return jar


ALL_PHASES = ("analysis", "initial", "prepare", "commit", "backfill", "postCommit")


def test_jars_are_found_only_when_they_are_whole_and_the_ones_asked_for(cache: Path) -> None:
    delta = line("delta-4.4")
    assert known_jars(delta) is None
    jar = fake_jars(cache, delta="4.4.0", phases=ALL_PHASES)
    assert known_jars(delta) == (jar,) == lines.jars(delta)
    assert known_jars(replace(delta, jars=("io.delta:delta-spark_4.2_2.13:4.5.0",))) is None
    jar.write_bytes(b"cut off")
    assert known_jars(delta) is None
    jar.unlink()
    assert known_jars(delta) is None


@pytest.mark.parametrize(
    ("phases", "ok", "told"),
    [
        (ALL_PHASES, True, ""),
        (ALL_PHASES[1:], False, "not in the jar: analysis"),
        (("audit", *ALL_PHASES), True, ""),
        ((), False, "no phase locks"),
    ],
    ids=["as-declared", "one-missing", "unknown-phase", "none"],
)
def test_hooks_are_read_from_the_jar(cache: Path, phases: tuple[str, ...], ok: bool, told: str) -> None:
    fake_jars(cache, delta="4.4.0", phases=phases)
    check = doctor.check_hooks(line("delta-4.4"))
    assert (check.ok, told in check.advice) == (ok, True)


def test_hooks_that_the_line_does_not_declare_are_told(cache: Path) -> None:
    fake_jars(cache, delta="4.4.0", phases=ALL_PHASES)
    check = doctor.check_hooks(replace(line("delta-4.4"), phases=("initial", "prepare", "commit")))
    assert "not declared: analysis, backfill, post-commit" in check.advice


def test_a_wheel_of_which_there_is_no_jar_is_told_apart(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_jars(cache, delta="4.4.0", phases=ALL_PHASES)
    for wheel, ok in (("4.4.0", True), ("4.4.1", False), (None, True)):
        monkeypatch.setattr(doctor, "installed", {"pyspark": "4.2.0", "delta-spark": wheel}.get)
        check = doctor.check_jars(line("delta-4.4"))
        assert check.ok is ok
    monkeypatch.setattr(doctor, "installed", {"pyspark": "4.2.0", "delta-spark": "4.4.1"}.get)
    check = doctor.check_jars(line("delta-4.4"))
    assert "no jar for the package delta-spark 4.4.1" in check.found
    assert "pip install delta-spark==4.4.0" in check.advice


def test_jars_that_could_not_be_fetched_are_told_from_jars_not_fetched_yet(cache: Path) -> None:
    assert doctor.check_jars(line("delta-4.4")).ok is None
    (cache / "jars").mkdir(parents=True)
    (cache / "jars" / "delta-4.4.log").write_text("not found")
    check = doctor.check_jars(line("delta-4.4"))
    assert (check.ok, "delta-4.4.log" in check.advice) == (False, True)


def test_memory_is_that_of_the_container(tmp_path: Path) -> None:
    machine = doctor.memory_free_mb(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text(f"{100 * 2**20}\n")
    assert doctor.memory_free_mb(tmp_path) == pytest.approx(machine, rel=0.2)
    (tmp_path / "memory.max").write_text(f"{300 * 2**20}\n")
    assert doctor.memory_free_mb(tmp_path) == 200


def test_too_many_workers_are_told_how_many_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "memory_free_mb", lambda: 5000)
    assert doctor.check_memory(2, 1400).ok is True
    check = doctor.check_memory(8, 1400)
    assert (check.ok, check.advice) == (False, "use -n 2")


def test_an_engine_without_a_jvm_needs_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    names = [check.name for check in doctor.run_checks(line("delta-rs"), workers=1)]
    assert names == ["Python", "deltalake", "memory", "temporary folder", "cache"]


@pytest.mark.skipif(not (conf_dir().parent / "pyproject.toml").exists(), reason="a checkout only")
@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (["setup"], {"JAVA_HOME": "/nowhere"}, "lakerace: the java of JAVA_HOME=/nowhere does not start"),
        ([], {}, "lakerace: say one of run, test, setup (or --help)"),
        (["tset"], {}, "lakerace: tset: say one of run, test, setup (or --help)"),
    ],
    ids=["no-java", "nothing", "typo"],
)
def test_bootstrap_fails_with_one_line(arguments: list[str], environment: dict[str, str], told: str) -> None:
    bootstrap = conf_dir().parent / "fixtures" / "bootstrap.py"
    ran = subprocess.run(
        [sys.executable, str(bootstrap), *arguments], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith(told)
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(("text", "found"), [
    ("Apache-Spark/4.2.0 Delta-Lake/4.4.0", "4.4.0"),
    ("Apache-Spark/4.2.0-vendor Delta-Lake/4.4.0-vendor.7", "4.4.0-vendor.7"),
    ("Apache-Spark/4.2.0 Delta-Lake/4.4.0.1", "4.4.0.1"),
    ("Databricks-Runtime/17.3.x-scala2.13", None),
    ("None", None),
])
def test_a_commit_names_the_delta_of_its_line(text: str, found: str | None) -> None:
    assert delta_of(text, line("delta-4.4")) == found


@pytest.mark.parametrize("version", ["4.0.1", "4.4.01", "4.4.1", "14.4.0"])
def test_another_delta_than_that_of_the_line_is_told(version: str) -> None:
    told = f"delta-4.4 is Delta 4.4.0, but Delta {version} is what commits: Apache-Spark/4.2.0 Delta-Lake/{version}"
    with pytest.raises(EngineError, match=f"^{re.escape(told)}$"):
        delta_of(f"Apache-Spark/4.2.0 Delta-Lake/{version}", line("delta-4.4"))


def test_the_first_commit_that_names_its_delta_is_asked_once() -> None:
    engine = object.__new__(DeltaSpark)
    engine.line, engine.versions, engine._told = line("delta-4.4"), {"delta": "4.4.0"}, False
    engine._ask_delta([{}, {"engineInfo": "Delta-Lake/4.4.0-vendor"}])
    engine._ask_delta([{"engineInfo": "Delta-Lake/4.0.1"}])  # somebody else's
    assert engine.versions == {"delta": "4.4.0-vendor"}
