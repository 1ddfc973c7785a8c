"""Do `list`, `show`, `doctor` and `claims` tell what is there?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lakerace import named
from lakerace.engines.lines import line
from lakerace.layouts import LAYOUTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Told = Callable[..., tuple[int, str, str]]
    Refused = Callable[..., str]

MATRIX = "matrix/by-date/serializable/update-by-key~insert-values"


def test_list_counts_named_races_and_matrix(told: Told) -> None:
    code, out, _ = told("list")
    assert code == 0
    assert out.splitlines()[-1].startswith(
        f"{len(named.named_races(line('delta-4.4')))} named races on delta-4.4; matrix: "
    )


def test_list_names_no_race_that_is_declared_for_another_line(told: Told, refused: Refused, suite: str) -> None:
    assert "1 named races on delta-4.4" in told("list")[1]
    assert "0 named races on delta-4.0" in told("list", "--engine", "delta-4.0")[1]
    assert f"nothing is called '{suite}' on delta-rs" in refused("show", suite, "--engine", "delta-rs")


def test_list_shows_the_matrix(told: Told) -> None:
    assert f"  {MATRIX}\n" in told("list", "--matrix")[1]
    races = json.loads(told("list", "--suite", "matrix", "--json")[1])
    assert len(races) >= 600
    assert set(races[0]) == {
        "name", "suite", "layout", "isolation", "order", "writers", "settings", "claims", "reports",
    }


def test_list_shows_statements_and_layouts(told: Told) -> None:
    assert "vacuum " in told("list", "--statements")[1]
    names = [layout["name"] for layout in json.loads(told("list", "--layouts", "--json")[1])]
    assert names == [*LAYOUTS, "no-table"]
    assert told("show", "no-table")[1] == "layout no-table: nothing is there yet: the writers create the table\n"


def test_a_suite_that_cannot_be_loaded_is_told(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "test_broken.py").write_text("RACES = (undefined,)\n", encoding="utf-8")
    monkeypatch.setattr(named, "suites_dir", lambda: tmp_path)
    assert "suite test_broken.py can't be loaded: NameError" in refused("list")


SUITE = '''"""Who is first?"""
from lakerace.layouts import LAYOUTS
from lakerace.race import Expected, held_against
RACES = (
    held_against("mine-%s", layout=LAYOUTS["flat"], held="DELETE FROM {t}", winners=["INSERT INTO {t} VALUES (1)"],
                 expect=[Expected(word="append", condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT", attempts=1),
                         Expected(word="commits", blind=True)], why="because", claims=("D-001",),
                 reports=("B4",)),
)
'''


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    (tmp_path / "test_own.py").write_text(SUITE % "race", encoding="utf-8")
    (tmp_path / "test_other.py").write_text("raise SystemExit('never loaded')\n", encoding="utf-8")
    monkeypatch.setattr(named, "suites_dir", lambda: tmp_path)
    return "mine-race"


def test_show_tells_a_race_with_timeline_and_expectation(told: Told, suite: str) -> None:
    code, out, _ = told("show", suite)
    assert code == 0
    assert "suite own: Who is first?\nbecause\nclaims: D-001\nreports:\n  B4 Two OPTIMIZE runs " in out
    assert "https://github.com/delta-io/delta/issues/2759\n\ntable   flat" in out
    assert out.endswith("\n\nrun it  pytest --engine delta-4.4 --profile full --race 'mine-race'\n")
    assert "A  held    DELETE FROM {t}\nB  winner  INSERT INTO {t} VALUES (1)\n" in out
    assert "order   A:read B:read B:commit A:commit\nA  |--read" in out
    assert "  A  append, DELTA_CONCURRENT_APPEND.WITHOUT_HINT, attempts 1   from inline\n" in out
    assert "  B  commits, isBlindAppend True   from inline\n" in out


def test_show_tells_the_deviation_that_overrules(told: Told, monkeypatch: pytest.MonkeyPatch, suite: str) -> None:
    from lakerace import expect

    found = expect.Deviation(
        races=("mine-*",),
        versions=expect.SpecifierSet(">=4"),
        expect="commits",
        kind="vendor",
        because="row level",
        link="",
        writer="A",
        source="delta-spark.toml, deviation 3",
    )
    monkeypatch.setattr(expect, "load_deviations", lambda _: (found,))
    out = told("show", suite)[1]
    assert "from inline (overruled)\n" in out
    assert "  A  commits   from delta-spark.toml, deviation 3: vendor: row level\n" in out


def test_show_helps_with_a_typo_in_a_race(refused: Refused, suite: str) -> None:
    assert "try mine-race" in refused("show", "mine-rase")


def test_a_race_of_another_engine_is_not_shown(refused: Refused, suite: str) -> None:
    assert "on delta-rs" in refused("show", suite, "--engine", "delta-rs")


@pytest.mark.parametrize(("name", "engine", "why"), [
    ("matrix/clustered/serializable/zorder~optimize", "delta-rs", "zorder alone on clustered: never tried (alone.md)"),
    ("matrix/flat/serializable/insert-values~clone-into", "delta-4.4", "clone-into alone on flat: fails [DELTA_"),
    ("matrix/flat/serializable/truncate~insert-values", "delta-4.0", "fails (delta-spark.toml, deviation "),
])
def test_show_says_why_a_cell_is_not_raced(told: Told, name: str, engine: str, why: str) -> None:
    code, out, _ = told("show", name, "--engine", engine)
    last = out.splitlines()[-1]
    assert code == 0
    assert last.startswith(f"not raced on {engine}: ")
    assert why in last
    assert "expected on" not in out


def test_show_tells_where_a_matrix_cell_stands(told: Told) -> None:
    out = told("show", MATRIX, "--engine", "delta-rs")[1]
    assert "by-date.serializable.md" in out
    assert "UPDATE {t} SET note = 'updated' WHERE id = 1" in out


def test_show_knows_statements_and_layouts(told: Told) -> None:
    assert told("show", "vacuum")[1] == "statement vacuum: VACUUM with the default retention\n\nVACUUM {t}\n"
    assert told("show", "flat")[1].startswith("layout flat: unpartitioned")
    assert "INSERT INTO {other} VALUES (101, " in told("show", "other")[1]


def test_doctor_tells_what_is_wrong(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakerace import doctor

    checks = (
        doctor.Check(name="Java", ok=False, found="none", advice="install it"),
        doctor.Check(name="disk", ok=True, found="9 GB"),
    )
    monkeypatch.setattr(doctor, "run_checks", lambda _: checks)
    code, out, err = told("doctor")
    assert (code, err) == (1, "lakerace: delta-4.4 can't run here: Java\n")
    assert "WRONG  Java  none\n" in out
    assert "-> install it\n" in out
    monkeypatch.setattr(doctor, "run_checks", lambda _: checks[1:])
    assert told("doctor")[0] == 0


def test_claims_are_told_and_counted(told: Told) -> None:
    out = told("claims")[1]
    assert "D-001  " in out
    assert len(json.loads(told("claims", "--json")[1])) == 165
    predicted = told("claims", "--answer", "predicted")[1]
    assert predicted.startswith("B-001  predicted: ")
    for label in ("Databricks, predicted", "open source, measured"):
        assert predicted.count(f"\n       {label}: ") == 47
    assert predicted.endswith("\n47 predicted\n")
