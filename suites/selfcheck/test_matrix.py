"""Is the matrix whole: every statement, both roles, every layout, each cell once?"""

from __future__ import annotations

from collections import Counter

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.engines.lines import line, load_lines
from lakerace.expect import alone_path, grid_path, read_grid
from lakerace.layouts import LAYOUTS
from lakerace.matrix import PROFILES, TELLING, cells, race_name, race_of
from lakerace.named import named_races
from lakerace.orders import order_text
from lakerace.race import ISOLATIONS, SERIALIZABLE
from lakerace.sql import check_sql

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


@pytest.mark.parametrize("name", load_lines())
def test_no_two_suites_call_a_race_alike(name: str) -> None:
    found = Counter(one.race.name for one in named_races(line(name)))
    assert [race for race, times in found.items() if times > 1] == []
