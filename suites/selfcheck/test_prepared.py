"""Prepared tables: one line, never a hang, when another process is building them or there is no place to put them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from lakerace.engines import LayoutFailed, prepared
from lakerace.engines.lines import line
from lakerace.engines.prepared import Prepared
from lakerace.install import SetupError
from lakerace.layouts import LAYOUTS, NO_TABLE, named
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakerace.race import Layout

FLAT = LAYOUTS["flat"]
RACE = ("--held", "OPTIMIZE {t}", "--winner", "DELETE FROM {t} WHERE id = 1", "--engine", "delta-rs")


def never(layout: Layout, isolation: str, path: Path) -> None:
    raise AssertionError(f"{layout.name} ({isolation}) was to be built at {path}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKERACE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("name", ["flat", "by-date"])
def test_a_table_that_another_process_builds_is_not_waited_for_without_end(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(prepared, "BUILD_LIMIT_S", 0.05)
    tables = Prepared(line("delta-rs"), tmp_path, never)
    store = home / "tables" / f"delta-rs-{line('delta-rs').delta}"
    with pytest.raises(AssertionError):
        tables.copy(LAYOUTS[name], SERIALIZABLE)
    (lock,) = store.glob("*.lock")
    told = f"gave up after 0.05 s: another process holds {lock}, to build the layout {name} (serializable)"
    with FileLock(lock), pytest.raises(SetupError, match=f"^{re.escape(told)}$"):
        tables.copy(LAYOUTS[name], SERIALIZABLE)


def test_a_table_that_the_writers_create_is_a_place_and_nothing_else(home: Path, tmp_path: Path) -> None:
    tables = Prepared(line("delta-rs"), tmp_path, never)
    first, second = tables.copy(NO_TABLE, SERIALIZABLE), tables.copy(named(NO_TABLE), SERIALIZABLE)
    assert (first.path.name, second.path.name) == ("no-table-1", "no_table_named_2")
    assert (first.base_version, first.rows, first.path.exists()) == (-1, (), False)
    with pytest.raises(LayoutFailed, match="no table is there yet whose property could set write-serializable"):
        tables.copy(NO_TABLE, WRITE_SERIALIZABLE)


def test_a_cache_that_cannot_be_written_is_told_by_name(home: Path, tmp_path: Path) -> None:
    home.write_text("a file where the folder should be")
    told = f"{home}/tables/delta-rs-{line('delta-rs').delta} can't be written (Not a directory): set LAKERACE_HOME"
    with pytest.raises(SetupError, match=f"^{re.escape(told)} to another folder$"):
        Prepared(line("delta-rs"), tmp_path, never).copy(FLAT, SERIALIZABLE)


def test_a_full_disk_is_told_with_the_folder_that_it_filled(home: Path, tmp_path: Path) -> None:
    def full(layout: Layout, isolation: str, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    with pytest.raises(SetupError, match=rf"^{home}/tables/\S+ can't be written \(No space left on device\): set"):
        Prepared(line("delta-rs"), tmp_path, full).copy(FLAT, SERIALIZABLE)
    assert [path.name for path in home.rglob("*") if path.is_dir()] == ["tables", f"delta-rs-{line('delta-rs').delta}"]


def test_a_copy_that_has_no_place_is_told_with_its_own_folder(home: Path, tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file where the folder should be")
    with pytest.raises(SetupError, match=rf"^{tmp_path}/tables can't be written \(File exists\): set TMPDIR to "):
        Prepared(line("delta-rs"), tmp_path, never)


def test_the_command_line_ends_with_one_line_and_2(home: Path, refused: Callable[..., str]) -> None:
    home.write_text("a file where the folder should be")
    told = refused("race", *RACE)
    assert re.fullmatch(rf"lakerace: {home}/tables/\S+ can't be written \(Not a directory\): set .* folder\n", told)


def test_a_file_of_races_says_so_in_each_of_its_answers(
    home: Path, tmp_path: Path, told: Callable[..., tuple[int, str, str]]
) -> None:
    home.write_text("a file where the folder should be")
    (tmp_path / "races.jsonl").write_text('{"held": "OPTIMIZE {t}", "winners": ["DELETE FROM {t}"]}\n' * 2)
    code, out, _ = told("race", "--from", str(tmp_path / "races.jsonl"), "--engine", "delta-rs")
    answers = [json.loads(text) for text in out.splitlines()]
    assert code == 0
    assert [answer["line"] for answer in answers] == [1, 2]
    assert all("can't be written (Not a directory)" in answer["error"] for answer in answers)
