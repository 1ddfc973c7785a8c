"""Who wins? Every statement of the catalogue held against every other, on every layout and isolation level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.expect import from_cell, grid_path, read_grid
from lakerace.matrix import Cell, cells, race_of
from lakerace.race import Expected, Race
from lakerace.serial.model import EXPLAINED, UNKNOWN

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

ENGINES = ("delta-spark", "delta-rs")
VERSIONS = ">=0"


def races(line: Line, profile: str) -> tuple[Race, ...]:
    return tuple(race_of(cell) for cell in cells(profile, line))


def expectation(cell: Cell, line: Line) -> dict[str, Expected]:
    layout, isolation, held, winner = cell
    path = grid_path(line, layout, isolation)
    text = read_grid(path).get((held, winner))
    won = Expected(word="commits", source=path.name)
    return {"B": won} if text is None else {"A": from_cell(text, line, path.name), "B": won}


def test_race(case, check, engine):
    _, layout, isolation, pair = case.name.split("/")
    held, _, winner = pair.partition("~")
    replay = check(case, expectation((layout, isolation, held, winner), engine.line), rules=True, replay=True).replay
    assert replay.explanation.verdict != UNKNOWN, replay.explanation.reason
    # What each committed statement left in the order of the history is run once; other orders only when that fails.
    if replay.explanation.verdict == EXPLAINED and not replay.explanation.tried:
        assert replay.statements <= len(replay.explanation.order)
