"""Is results.json true and complete, whatever a race holds, and refused in one line when it is none?"""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal

import msgspec
import pytest

from lakerace import results as results_module
from lakerace.home import conf_dir
from lakerace.report.markdown import matrix
from lakerace.report.page import page
from lakerace.results import Results, ResultsError, WorkerLog, load, merge, save
from selfcheck.judged import DAY, made, run_of


def test_what_is_logged_by_two_workers_is_merged_sorted_and_read_back_the_same(tmp_path, ran):
    for number, result in enumerate(reversed(ran.results)):
        WorkerLog(tmp_path / f"gw{number % 2}.jsonl").add(result)
    merged = merge(tmp_path, profile="core", versions={"lakerace": "0.1.0"})
    assert [one.race for one in merged.results] == [one.race for one in ran.results]
    assert (merged.engine, merged.profile, merged.notes) == ("delta-4.4", "core", ())
    assert merged.versions == {"lakerace": "0.1.0", "pyspark": "4.2.0", "delta-spark": "4.4.0", "java": "17.0.12"}
    save(merged, tmp_path / "results.json")
    assert load(tmp_path / "results.json") == merged


def test_dates_decimals_bytes_and_not_a_number_are_stable_text(tmp_path):
    odd = (DAY, Decimal("1.50"), b"\x00\xff", float("nan"), 2**60, None, True, {"day": DAY}, [Decimal(1)],
           datetime.datetime(2026, 8, 11, 10, tzinfo=datetime.timezone.utc))
    result = made("odd")
    result = replace(result, observation=replace(result.observation, rows_after=(odd,)))
    WorkerLog(tmp_path / "main.jsonl").add(result)
    (row,) = merge(tmp_path).results[0].observation.rows_after
    assert list(row) == ["2026-08-11", "1.50", "0x00ff", "nan", 2**60, None, True, {"day": "2026-08-11"}, ["1"],
                         "2026-08-11T10:00:00+00:00"]


def test_a_line_cut_off_by_a_killed_worker_is_a_note_and_the_rest_is_kept(tmp_path, ran):
    log = WorkerLog(tmp_path / "gw1.jsonl")
    log.add(ran.results[0])
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + whole[:50])
    merged = merge(tmp_path)
    assert len(merged.results) == 1
    assert merged.notes == ("gw1: its last race was cut off while being written and is missing here",)
    assert "cut off" in matrix(merged)
    assert "cut off" in page(merged)


def test_a_broken_line_in_the_middle_says_where(tmp_path, ran):
    log = WorkerLog(tmp_path / "gw1.jsonl")
    log.add(ran.results[0])
    log.path.write_bytes(b"{}\n" + log.path.read_bytes())
    with pytest.raises(ResultsError, match=r"gw1\.jsonl, line 1: not lakerace-results/1"):
        merge(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not lakerace-results/1"),
        ('{"format": "lakerace-results/2"}', "not lakerace-results/1"),
        ('{"format":"lakerace-results/1","engine":"x","profile":"","started":"yesterday","seconds":1}', "started"),
    ],
)
def test_a_file_that_is_no_results_file_is_one_clear_line(tmp_path, text, said):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=said) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ResultsError, match="No such file"):
        load(tmp_path / "missing.json")


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ValueError, match="unknown verdict 'passed'"):
        made("x", verdict="passed")


def test_the_committed_schema_is_the_one_of_the_types():
    committed = (conf_dir() / "schemas" / "results.schema.json").read_text(encoding="utf-8")
    assert committed == results_module.schema_text(), (
        "write it anew: python -c 'from lakerace import results; print(results.schema_text(), end=\"\")' "
        "> conf/schemas/results.schema.json"
    )


def test_a_results_file_is_what_the_types_say(tmp_path, ran):
    save(ran, tmp_path / "results.json")
    assert msgspec.convert(json.loads((tmp_path / "results.json").read_text(encoding="utf-8")), Results) == load(
        tmp_path / "results.json"
    )


def test_a_results_file_validates_against_the_schema(tmp_path):
    validator = pytest.importorskip("jsonschema", reason="jsonschema is not installed (it is in the extra dev)")
    save(run_of(10), tmp_path / "results.json")
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    validator.validate(written, results_module.schema())
    written["results"][0]["verdict"] = "passed"
    with pytest.raises(validator.ValidationError, match="passed"):
        validator.validate(written, results_module.schema())
