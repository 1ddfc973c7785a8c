"""How many attempts does a commit take on delta-rs? Every scenario in full size, and the command; no JVM."""

from __future__ import annotations

import json

import pytest

from lakerace.contention.scenarios import CLASHES, CROWDS, PRESSURES, gather, meet, starve

MEASURED = ("--engine", "delta-rs", "--scenario", "together", "--writers", "2", "--writers", "3")


@pytest.mark.parametrize("every", [48, 24, 12, 6, 3])
@pytest.mark.parametrize("pressure", PRESSURES, ids=lambda pressure: pressure.name)
def test_a_slow_merge_needs_as_many_attempts_as_foreseen(delta_rs, pressure, every):
    dot = starve(delta_rs, pressure, every)
    assert dot.as_predicted, dot
    assert set(dot.refused) <= {"append"}


@pytest.mark.parametrize("writers", range(2, 17))
@pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: crowd.name)
def test_writers_together_need_as_many_attempts_as_foreseen(delta_rs, crowd, writers):
    dot = gather(delta_rs, crowd, writers)
    assert (dot.as_predicted, dot.commits) == (True, writers), dot


@pytest.mark.parametrize("clash", CLASHES, ids=lambda clash: clash.name)
def test_compaction_and_ingestion_cost_each_other_what_is_foreseen(delta_rs, clash):
    assert meet(delta_rs, clash, 0).as_predicted


def test_the_command_writes_page_and_plots_and_says_so(told, tmp_path):
    code, out, err = told("contention", *MEASURED, "--results", str(tmp_path))
    assert (code, err) == (0, "")
    assert "10 of 10 as the arithmetic says" in out
    assert {path.name for path in tmp_path.iterdir()} == {
        "contention.html", "contention.json", "contention-together.svg", "contention-by-load.svg",
        "contention-by-attempts.svg",
    }
    assert "10 of 10 numbers are those of the arithmetic" in (tmp_path / "contention.html").read_text()


def test_its_numbers_are_the_same_as_json(told, tmp_path):
    code, out, _ = told("contention", *MEASURED, "--results", str(tmp_path), "--json")
    assert (code, json.loads(out)) == (0, json.loads((tmp_path / "contention.json").read_text()))
    measured = json.loads(out)["measured"][0]
    assert [(dot["x"], dot["attempts"]) for dot in measured["dots"] if dot["series"] == "same row, losers in step"] == [
        (2, 3), (3, 6)]
