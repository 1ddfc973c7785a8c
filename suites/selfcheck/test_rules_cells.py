"""The rules against everything measured: each cell of each grid, each statement alone, each declared change."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.engines.lines import Line, line
from lakerace.expect import alone_path, deviation_for, from_cell, grid_path, load_deviations, read_grid
from lakerace.layouts import LAYOUTS
from lakerace.matrix import Cell, alone_name, cells, race_name, race_of
from lakerace.named import named_races
from lakerace.observe import COMMITS
from lakerace.race import ISOLATIONS
from lakerace.rules.findings import finding_for, load_findings, stale_findings
from lakerace.rules.predict import planned, predict
from lakerace.rules.profiles import PROFILES, Profile, profile_of
from lakerace.rules.tables import table_of

if TYPE_CHECKING:
    from pathlib import Path

LINES = ("delta-4.4", "delta-4.0", "delta-rs")
GRIDS = [(name, layout, isolation) for name in LINES for layout in LAYOUTS for isolation in ISOLATIONS]


@cache
def cells_of(name: str) -> tuple[Cell, ...]:
    """The cells measured on a line: those of the grids on the lines that they were recorded on, the core on another."""
    return cells("core" if name == "delta-4.0" else "full", line(name))


@cache
def predicted(cell: Cell, profile: Profile) -> tuple[str, str | None]:
    found = predict(race_of(cell), profile).of("A").prediction
    return found.word, found.condition


deviations_of = cache(load_deviations)


def stated(cell: Cell, on: Line, grid: Path) -> tuple[str, str | None]:
    """What the grid says, with the deviations of the line over it."""
    declared = deviation_for(race_name(cell), "A", deviations_of(on))
    expected = from_cell(declared.expect if declared else read_grid(grid)[cell[2:]], on, grid.name)
    condition = expected.condition if on.sub_conditions else (expected.condition or "").partition(".")[0] or None
    return expected.word, condition


@pytest.mark.parametrize(("name", "layout", "isolation"), GRIDS)
def test_prediction_and_grid_agree_on_every_cell_save_for_the_findings(name, layout, isolation):
    on, differing = line(name), []
    path, profile = grid_path(on, layout, isolation), profile_of(on)
    for cell in cells_of(name):
        if cell[:2] != (layout, isolation):
            continue
        rules, grid = predicted(cell, profile), stated(cell, on, path)
        finding = finding_for(race_name(cell), on, load_findings())
        if finding is not None:
            assert (rules[0], grid[0]) == (finding.rules, finding.seen), race_name(cell)
        elif rules != grid:
            differing.append(f"{race_name(cell)}: the rules say {rules}, the grid says {grid}")
    assert differing == []


def test_the_grids_hold_as_many_cells_as_a_full_run_needs():
    assert len(cells_of("delta-4.4")) >= 767
    assert len(cells_of("delta-rs")) >= 1064


@pytest.mark.parametrize("name", LINES)
def test_each_finding_is_about_a_cell_or_a_named_race(name):
    names = [*map(race_name, cells_of(name)), *(one.race.name for one in named_races(line(name)))]
    assert stale_findings(load_findings(), line(name), names) == ()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["delta-4.4", "delta-4.0"])
def test_a_statement_alone_does_what_the_rules_say(name, layout):
    on = line(name)
    grid, declared = read_grid(alone_path(on)), load_deviations(on)
    for statement in CATALOGUE.values():
        plan = planned(statement, table_of(LAYOUTS[layout]), profile_of(on))
        acts = any(not one.skippable for one in plan.transactions)
        word = f"fails [{plan.refused}]" if plan.refused else COMMITS if acts else "no-commit"
        instead = deviation_for(alone_name(layout, statement.name), "A", declared)
        assert word.partition(" ")[0] == (instead.expect if instead else grid[statement.name, layout]).partition(" ")[0]
        assert instead or word == grid[statement.name, layout]


@pytest.mark.parametrize("release", ["delta-3.3", "delta-4.0", "delta-4.1", "delta-4.2", "delta-4.3"])
def test_an_older_release_differs_only_where_a_feature_is_enabled_or_a_table_restored(release):
    changed = Counter(
        cell[3]
        for cell in cells_of("delta-4.4")[::4]
        if "truncate" not in cell  # which 4.0 refuses
        and predicted(cell, PROFILES[release])[0] != predicted(cell, PROFILES["delta-4.4"])[0]
    )
    since_4_3 = {"enable-in-commit-timestamps"}
    since_4_1 = {*since_4_3, "enable-deletion-vectors", "enable-column-mapping", "restore"}
    assert set(changed) == {"4.3": set(), "4.2": since_4_3, "4.1": since_4_3}.get(release[6:], since_4_1)


def test_databricks_differs_only_by_rows_by_optimize_with_vectors_and_by_what_ends_writers_in_flight():
    """Rows are compared with deletion vectors and without partitions only; no ALTER TABLE is documented as outlived."""
    for cell in cells_of("delta-4.4")[::4]:
        layout, _, held, winner = cell
        vectors = layout.endswith("-dv")
        by_rows = vectors and not LAYOUTS[layout].partitioned
        compacts = {held, winner} & {"optimize", "optimize-where", "zorder"}
        in_flight = winner.startswith("enable-") or winner == "restore" or held in compacts
        if predicted(cell, PROFILES["databricks"])[0] != predicted(cell, PROFILES["delta-4.4"])[0]:
            assert by_rows or (vectors and compacts) or in_flight, race_name(cell)
