"""Is a verdict the same every time? The same race again and again, everything seen compared.

Profile ``core`` repeats five races four times, ``full`` fifty of them twenty times.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import LAYOUTS
from lakerace.race import ISOLATIONS, Race, both_held, held_against
from lakerace.run import run_race

if TYPE_CHECKING:
    import pytest

    from lakerace.observe import Observation

STATEMENTS = (
    "insert-values", "update-by-key", "merge-with-literal", "delete-partition", "optimize", "insert-select-self",
    "update-by-date", "add-column", "delete-by-key", "replace-where",
)
REPEATS = {"core": 4, "full": 20}
_DIFFERS_BY_NATURE = ("conflictingCommit",)
"""Parameters that carry a time and a transaction's id."""


def _races() -> tuple[Race, ...]:
    """Fifty pairs of ten statements, none twice, on every layout and level in turn, each third with both held."""
    shapes = [(layout, isolation) for layout in LAYOUTS.values() for isolation in ISOLATIONS]
    races = []
    for number in range(50):
        held, winner = STATEMENTS[number % 10], STATEMENTS[(number + 1 + 2 * (number // 10)) % 10]
        layout, isolation = shapes[number % len(shapes)]
        name = f"repeat-{number + 1:02}-{layout.name}-{isolation}-{held}-over-{winner}"
        one, other = CATALOGUE[held], CATALOGUE[winner]
        if number % 3 == 2:
            races.append(both_held(name, layout=layout, isolation=isolation, first=other, second=one))
        else:
            races.append(held_against(name, layout=layout, isolation=isolation, held=one, winners=(other,)))
    return tuple(races)


RACES = _races()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    profile = metafunc.config.getoption("lakerace_profile")
    if "repeated" in metafunc.fixturenames:
        chosen = RACES if profile == "full" else RACES[2::11]
        metafunc.parametrize("repeated", chosen, ids=[race.name for race in chosen])
        metafunc.parametrize("repeats", [REPEATS.get(profile, REPEATS["core"])])


def signature(seen: Observation) -> dict[str, Any]:
    """Everything seen, without seconds, messages, file names and paths."""
    kept = asdict(seen)
    for name in ("seconds", "versions"):
        del kept[name]
    for writer in kept["writers"]:
        del writer["message"]
        writer["staged"] = len(writer["staged"])
        writer["parameters"] = {
            name: value for name, value in writer["parameters"].items() if name not in _DIFFERS_BY_NATURE
        }
    for commit in kept["commits"]:
        commit |= {name: len(commit[name]) for name in ("added", "removed", "missed", "change_data")}
    if seen.files is not None:
        kept["files"] = (seen.files.live, seen.files.on_disk, len(seen.files.unreferenced))
    kept["timeline"] = [(event.writer, event.what, event.version) for event in seen.timeline]
    return kept


def test_every_repeat_shows_the_same(repeated: Race, repeats: int, engine) -> None:
    first = run_race(repeated, engine)
    assert first.overlap, first.error or first.unsteerable or first.overlap_proof
    for _ in range(repeats - 1):
        assert signature(run_race(repeated, engine)) == signature(first)


def test_the_fifty_are_fifty_and_varied() -> None:
    assert len({race.name for race in RACES}) == 50
    assert len({tuple(race.writer(name).statements[0].name for name in "AB") for race in RACES}) == 50
    assert {race.layout.name for race in RACES} == set(LAYOUTS)
    assert {race.isolation for race in RACES} == set(ISOLATIONS)
