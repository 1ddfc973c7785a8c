"""Do the reports work out from the same results what a person wants to know?"""

from __future__ import annotations

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.judge import UNDECLARED
from lakerace.report import ClaimRow
from lakerace.report.view import changes, duration, fields, grids
from lakerace.results import Results
from selfcheck.judged import made


def test_of_several_runs_of_a_race_the_grid_shows_the_one_to_look_at():
    name = "matrix/flat/serializable/update-by-key~insert-values"
    runs = (made(name), made(name, word="append", expected="commits", verdict=UNDECLARED), made(name))
    (grid,) = grids(Results(engine="e", profile="", started="2026-08-11T10:00:00Z", seconds=1, results=runs))
    assert grid.cells["update-by-key", "insert-values"].marked == "≠ append"
    assert grid.cells["update-by-key", "insert-values"].index == 1


def test_a_grid_raced_in_part_is_dense_at_its_top_left():
    names = list(CATALOGUE)
    pairs = {(held, winner) for held in names[5:15] for winner in names[5:15]}
    pairs |= {(held, names[9]) for held in names}
    runs = tuple(made(f"matrix/flat/serializable/{held}~{winner}", held=held, winner=winner) for held, winner in pairs)
    (grid,) = grids(Results(engine="e", profile="", started="2026-08-11T10:00:00Z", seconds=1, results=runs))
    assert grid.winners[0] == names[9]
    assert set(grid.winners[1:]) == set(names[5:15]) - {names[9]}
    assert grid.held[:10] == tuple(names[5:15])


def test_rows_that_came_went_changed_and_stayed_are_told_apart():
    before = ((1, "a"), (2, "b"), (2, "b"), (3, "c"), (10, "d"))
    after = ((1, "A"), (2, "b"), (4, "e"), (10, "d"))
    found = [(change.sign, change.row, change.old) for change in changes(before, after)]
    assert found == [
        ("~", (1, "A"), (1, "a")), ("=", (2, "b"), None), ("-", (2, "b"), None), ("-", (3, "c"), None),
        ("+", (4, "e"), None), ("=", (10, "d"), None),
    ]


def test_a_column_that_was_added_changes_only_the_rows_that_fill_it():
    found = [(change.sign, change.row) for change in changes(((1, "a"), (2, "b")), ((1, "a", None), (2, "b", 7)))]
    assert found == [("=", (1, "a", None)), ("~", (2, "b", 7))]


def test_a_field_that_was_not_stated_never_differs():
    result = made("x", word="append")
    lines = {field.label: field for field in fields(result, result.observation.outcome("A"))}
    assert lines["error condition"].expected is None
    assert not any(line.differs for line in lines.values())
    other = made("x", word="delete-read", expected="append", verdict=UNDECLARED)
    assert [line.label for line in fields(other, other.observation.outcome("A")) if line.differs] == ["outcome"]


@pytest.mark.parametrize(("seconds", "said"), [(4.21, "4.2 s"), (185, "3 min 05 s"), (3720, "1 h 02 min")])
def test_a_duration_reads_like_speech(seconds, said):
    assert duration(seconds) == said


def test_an_unknown_answer_to_a_claim_is_refused():
    with pytest.raises(ValueError, match="claim D-001: unknown answer 'maybe'"):
        ClaimRow(id="D-001", text="x", answer="maybe", measured="y")
