"""Is the matrix whole: every statement, both roles, every layout, each cell once?"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lakerace import expect, matrix
from lakerace.catalogue import CATALOGUE
from lakerace.engines.lines import line, load_lines
from lakerace.expect import ExpectationError, alone_path, grid_path, read_grid
from lakerace.home import conf_dir
from lakerace.layouts import LAYOUTS
from lakerace.matrix import PROFILES, TELLING, cells, check_grids, race_name, race_of
from lakerace.named import named_races
from lakerace.orders import order_text
from lakerace.race import ISOLATIONS, SERIALIZABLE
from lakerace.sql import check_sql

if TYPE_CHECKING:
    from pathlib import Path

SPARK = line("delta-4.4")
CORE = cells("core", SPARK)
COMMIT_ALONE = {name for (name, layout), text in read_grid(alone_path(SPARK)).items() if text == "commits"}


@pytest.mark.parametrize("name", load_lines())
@pytest.mark.parametrize("profile", PROFILES)
def test_each_cell_stands_once(name: str, profile: str) -> None:
    found = cells(profile, line(name))
    assert len(found) == len(set(found))
    assert len({race_name(cell) for cell in found}) == len(found)


def test_core_is_large_enough_to_touch_each_kind_of_cell() -> None:
    assert len(CORE) >= 600
    assert {layout for layout, _, _, _ in CORE} == set(LAYOUTS)
    assert {isolation for _, isolation, _, _ in CORE} == set(ISOLATIONS)
    assert {held for _, _, held, _ in CORE} == COMMIT_ALONE
    assert {winner for _, _, _, winner in CORE} == COMMIT_ALONE


def test_core_has_both_roles_of_every_pair() -> None:
    paired = {cell for cell in CORE if cell[2:] not in TELLING}
    assert {(layout, isolation, winner, held) for layout, isolation, held, winner in paired} == paired


@pytest.mark.parametrize("name", load_lines())
def test_core_has_each_kind_of_cell_that_full_has(name: str) -> None:
    chosen = line(name)

    def kinds(profile: str) -> set[str]:
        return {
            read_grid(grid_path(chosen, layout, isolation))[(held, winner)]
            for layout, isolation, held, winner in cells(profile, chosen)
        }

    assert kinds("core") == kinds("full")


def test_full_is_what_the_grids_hold() -> None:
    full = set(cells("full", SPARK))
    for layout in LAYOUTS:
        for isolation in ISOLATIONS:
            held = {(layout, isolation, *pair) for pair in read_grid(grid_path(SPARK, layout, isolation))}
            assert {cell for cell in full if cell[:2] == (layout, isolation)} <= held


def test_full_and_record_share_nothing() -> None:
    assert not set(cells("full", SPARK)) & set(cells("record", SPARK))


def test_a_cell_becomes_a_race() -> None:
    race = race_of(("by-date", SERIALIZABLE, "update-by-key", "insert-values"))
    assert race.name == "matrix/by-date/serializable/update-by-key~insert-values"
    assert order_text(race.order) == "A:read B:read B:commit A:commit"
    assert race.writer("A").statements == (CATALOGUE["update-by-key"],)
    assert race.layout is LAYOUTS["by-date"]


def test_every_statement_has_a_meaning_and_parses() -> None:
    assert len(CATALOGUE) >= 45
    for name, statement in CATALOGUE.items():
        assert statement.name == name
        assert statement.meaning
        assert "{t}" in statement.text
        if isinstance(statement.does, str):
            check_sql(statement.does)


def test_every_layout_places_the_same_rows() -> None:
    inserts = {layout.setup[1:] for layout in LAYOUTS.values()}
    assert len(inserts) == 1
    assert all(len(layout.setup) == 9 and layout.files == 8 and layout.meaning for layout in LAYOUTS.values())


@pytest.fixture
def grids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the grids, which this test reads instead."""
    shutil.copytree(conf_dir() / "expect", tmp_path / "expect")
    for module in (expect, matrix):
        monkeypatch.setattr(module, "conf_dir", lambda: tmp_path)
    return tmp_path / "expect"


def test_a_cell_with_a_typo_is_told_with_its_place(grids: Path) -> None:
    check_grids(line("delta-rs"))
    grid = grids / "delta-rs" / "flat.serializable.md"
    grid.write_text(grid.read_text(encoding="utf-8").replace("commits", "comits", 1), encoding="utf-8")
    read_grid.cache_clear()
    with pytest.raises(ExpectationError, match=r"^flat.serializable.md, [\w-]+~[\w-]+: 'comits' is no outcome; use"):
        check_grids(line("delta-rs"))


@pytest.mark.parametrize(("file", "told"), [
    ("delta-rs/flatt.serializable.md", "is read by nobody; did you mean 'flat.serializable.md'?"),
    ("delta-rs/flat.snapshot.md", "is read by nobody"),
    ("delta-rz.toml", "is read by nobody; did you mean 'delta-rs.toml'?"),
    ("delta-rz/flat.serializable.md", "delta-rz is read by nobody; did you mean 'delta-rs'?"),
])
def test_a_file_that_nobody_reads_is_told(grids: Path, file: str, told: str) -> None:
    (grids / file).parent.mkdir(exist_ok=True)
    (grids / file).touch()
    with pytest.raises(ExpectationError, match=re.escape(told)):
        cells("core", line("delta-rs"))


@pytest.mark.parametrize("name", load_lines())
def test_no_two_suites_call_a_race_alike(name: str) -> None:
    found = Counter(one.race.name for one in named_races(line(name)))
    assert [race for race, times in found.items() if times > 1] == []
