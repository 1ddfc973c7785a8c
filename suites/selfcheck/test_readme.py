"""Does what the README shows do what it says? No engine with a JVM is started."""

from __future__ import annotations

import re
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

from lakerace import cli_race
from lakerace.home import suites_dir
from lakerace.observe import FAILS, NO_COMMIT
from lakerace.rules.predict import predict
from lakerace.rules.profiles import DEFAULT, profile_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakerace.race import Race

pytest_plugins = ["pytester"]

ROOT = suites_dir().parent
README = ROOT / "README.md"

if not README.is_file():
    pytest.skip("a checkout only: the wheel carries no README", allow_module_level=True)


def blocks(language: str = "") -> list[str]:
    """The code blocks of that language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for named, text in found if named == language]


def commands(name: str) -> list[list[str]]:
    """The arguments of every ``lakerace NAME`` of the code blocks."""
    lines = [line for block in blocks() for line in block.replace("\\\n", " ").splitlines()]
    words = [shlex.split(line, comments=True) for line in lines if line.startswith(f"lakerace {name} ")]
    return [found[2:] for found in words]


@pytest.mark.parametrize("arguments", commands("predict"), ids=lambda arguments: " ".join(arguments)[:40])
def test_every_prediction_is_one(
    told: Callable[..., tuple[int, str, str]], arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    code, out, err = told("predict", *arguments)
    assert (code, err) == (0, "")
    assert out


@pytest.mark.parametrize("arguments", commands("race"), ids=lambda arguments: " ".join(arguments)[:40])
def test_every_race_is_one_by_the_rules(
    told: Callable[..., tuple[int, str, str]], arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Race] = []
    monkeypatch.setattr(cli_race, "_one", lambda race, *_: asked.append(race) or 0)
    assert told("race", *arguments) == (0, "", "")
    found = {one.word for one in predict(asked[0], profile_named(DEFAULT)).forecasts}
    assert found.isdisjoint((FAILS, NO_COMMIT))


def test_the_first_prediction_shows_what_it_is_there_for(told: Callable[..., tuple[int, str, str]]) -> None:
    out = told("predict", *commands("predict")[0])[1]
    assert "1. name the partition with a literal: add event_date = DATE'2026-08-11'" in out


def test_the_test_to_copy_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    [text] = [block for block in blocks("python") if "def test_" in block]
    monkeypatch.delenv("LAKERACE_WORK")
    shutil.copy(suites_dir() / "example" / "orders.sql", pytester.path)
    pytester.makepyfile(text)
    quiet = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    ended = pytester.runpytest_inprocess(*quiet, "--engine", "delta-rs")
    assert ended.ret == 0, str(ended.stdout)
