"""Is the archive of classes made once for each Java, Spark and jars, never asked for again in vain, and swept up?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakerace.engines import archive, jvm
from lakerace.engines.archive import class_archive, ensure_archive
from lakerace.engines.lines import line
from lakerace.install import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LINE = line("delta-4.4")
TAKES = "-XX:SharedArchiveFile="


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java of this test, and no jars."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("LAKERACE_HOME", str(tmp_path / "cache"))
    for module in (archive, jvm):
        monkeypatch.setattr(module, "jars", lambda _line: ())
    return program


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """``runs(makes) -> calls``: what is started instead of a JVM makes that archive, ``None`` for none."""

    def instead(makes: str | None) -> list[str]:
        calls: list[str] = []

        def run_logged(command: Sequence[str], log: Path, *, limit_s: float) -> bool:
            calls.append(command[-1])
            log.touch()
            if makes is not None:
                Path(command[-1]).write_text(makes)
            elif limit_s < 0:
                raise SetupError("it took too long")
            return makes is not None

        monkeypatch.setattr(archive, "run_logged", run_logged)
        return calls

    return instead


def options(tmp_path: Path) -> str:
    return jvm.spark_conf(LINE, tmp_path)["spark.driver.extraJavaOptions"]


@pytest.mark.usefixtures("java")
def test_it_is_made_once_and_taken_by_each_jvm(runs: Callable[..., list[str]], tmp_path: Path) -> None:
    calls = runs("classes")
    assert TAKES not in options(tmp_path)
    ensure_archive(LINE)
    ensure_archive(LINE)
    assert len(calls) == 1
    made = class_archive(LINE)
    assert made is not None
    assert (made.read_text(), f"{TAKES}{made}" in options(tmp_path)) == ("classes", True)
    assert not list(made.parent.glob("*.log"))


def test_another_java_gets_one_of_its_own(runs: Callable[..., list[str]], java: Path) -> None:
    calls = runs("classes")
    ensure_archive(LINE)
    java.unlink()
    java.symlink_to("/bin/true")
    ensure_archive(LINE)
    assert len(set(calls)) == 2


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("limit_s", [1, -1], ids=["fails", "takes too long"])
def test_a_jvm_that_can_t_make_one_is_not_asked_again(
    runs: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit_s: float
) -> None:
    monkeypatch.setattr(archive, "LIMIT_S", limit_s)
    calls = runs(None)
    ensure_archive(LINE)
    ensure_archive(LINE)
    assert (len(calls), class_archive(LINE), TAKES in options(tmp_path)) == (1, None, False)


@pytest.mark.usefixtures("java")
def test_what_environments_that_are_gone_left_is_swept_up(runs: Callable[..., list[str]], tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "classes"
    folder.mkdir(parents=True)
    for name, environment in (("old", tmp_path / "gone"), ("kept", tmp_path)):
        (folder / f"{name}.for").write_text(str(environment))
        (folder / f"{name}.jsa").touch()
    runs("classes")
    ensure_archive(LINE)
    assert sorted(path.name for path in folder.glob("[ok]*")) == ["kept.for", "kept.jsa"]


def test_an_engine_without_a_jvm_needs_none(runs: Callable[..., list[str]]) -> None:
    calls = runs("classes")
    ensure_archive(line("delta-rs"))
    assert calls == []
