"""What does `lakerace race` answer, and when does it answer nothing? From observations by hand."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import cli_race, cli_race_told
from lakerace.ask import Asked
from lakerace.engines.lines import line
from lakerace.layouts import LAYOUTS
from lakerace.observe import Event, Files, HistoryRow
from lakerace.race import held_against
from selfcheck.answers import DELETE, JSON_KEYS, UPDATE
from selfcheck.seen import lost, observed, won

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakerace.race import Race

WRITER_KEYS = {
    "name", "statement", "outcome", "version", "read_version", "attempts", "surfaced", "root", "condition", "sqlstate",
    "parameters",
}
HISTORY_KEYS = {"version", "operation", "readVersion", "isolationLevel", "isBlindAppend", "predicate", "metrics"}
HELD, WINNER = lost(text=UPDATE, parameters={"operation": "DELETE"}), won(statement="delete", text=DELETE)
RACE = held_against("race", layout=LAYOUTS["flat"], held=UPDATE, winners=[DELETE])
SEEN = observed(
    HELD, WINNER,
    versions={"delta": "4.4.0"},
    history=(
        HistoryRow(
            version=9,
            operation="DELETE",
            readVersion=8,
            isolationLevel="Serializable",
            isBlindAppend=False,
            predicate="(id = 2)",
            metrics={"numDeletedRows": "1"},
            engineInfo="Spark",
        ),
    ),
    columns=("id", "day"),
    rows_before=((1, date(2026, 8, 11)), (2, date(2026, 8, 11))),
    rows_after=((1, date(2026, 8, 11)),),
    files=Files(live=8, on_disk=10, unreferenced=("x.parquet",), unreferenced_bytes=700),
    timeline=(Event(writer="A", what="read", version=8, at=0.0), Event(writer="A", what="hold", version=8, at=0.5)),
)


def test_the_answer_has_every_field_in_plain_json() -> None:
    found = json.loads(json.dumps(cli_race_told.answer(SEEN)))
    assert set(found) >= JSON_KEYS
    assert all(set(writer) >= WRITER_KEYS for writer in found["writers"])
    assert set(found["history"][0]) == HISTORY_KEYS
    assert found["writers"][0]["statement"] == UPDATE
    assert found["rows_before"] == [[1, "2026-08-11"], [2, "2026-08-11"]]
    assert found["files"] == {
        "live": 8, "on_disk": 10, "unreferenced": ["x.parquet"], "unreferenced_bytes": 700,
        "missing": [], "doubled": [], "row_ids": [],
    }


def test_the_transcript_says_first_what_became_of_whom() -> None:
    lines = cli_race_told.transcript(RACE, SEEN).splitlines()
    assert lines[0] == (
        "B commits version 9; A aborts with ConcurrentAppendException (DELTA_CONCURRENT_APPEND.WITHOUT_HINT)."
    )
    assert "A  |--read------------------------commit--|" in lines
    assert "  9  DELETE: read 8, Serializable, predicate (id = 2), numDeletedRows 1" in lines
    assert "rows    2 before, 1 after: 0 new, 1 gone (id, day)" in lines
    assert "files   8 live, 10 on disk, 1 in no log entry, as losers leave them (700 bytes)" in lines


def test_a_wrapped_conflict_is_told_as_one() -> None:
    assert cli_race_told.sentence(replace(HELD, surfaced="Py4JJavaError")) == (
        "A aborts with ConcurrentAppendException (DELTA_CONCURRENT_APPEND.WITHOUT_HINT, ConcurrentAppendException "
        "wrapped in Py4JJavaError)"
    )
    assert cli_race_told.sentence(replace(WINNER, attempts=2)) == "B commits version 9 at the second attempt"


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"unsteerable": "no phase locks"}, 3, "the order could not be forced: no phase locks"),
        ({"error": "layout s: 'X' failed: why"}, 2, "layout s: 'X' failed: why"),
        (
            {"writers": (HELD, replace(WINNER, outcome="fails", message="no such column"))},
            2,
            "winner B fails: no such column",
        ),
        (
            {"writers": (replace(HELD, outcome="fails", message="bad"), WINNER), "timeline": ()},
            2,
            "the held statement fails: bad",
        ),
        (
            {"writers": (replace(HELD, outcome="no-commit"), WINNER), "timeline": ()},
            3,
            "the held statement commits nothing",
        ),
        (
            {"writers": (HELD, replace(WINNER, outcome="no-commit"))},
            3,
            "nothing raced: no winner committed (B commits nothing)",
        ),
    ],
)
def test_what_answers_nothing_is_refused(changes: dict[str, Any], code: int, message: str) -> None:
    found = cli_race.refusal(RACE, replace(SEEN, **changes))
    assert found is not None
    assert found[0] == code
    assert message in found[1]


def test_a_race_that_ran_is_not_refused() -> None:
    assert cli_race.refusal(RACE, SEEN) is None
    assert cli_race.refusal(RACE, replace(SEEN, error="the JVM died"), alive=False) == (3, "the JVM died")


@pytest.mark.parametrize(
    ("word", "met"),
    [("append", True), ("aborts", True), ("append+p", False), ("commits", False), ("delete-read", False)],
)
def test_an_expected_word_is_held_against_the_held_writer(word: str, met: bool) -> None:
    assert cli_race.meets(word, HELD) is met


def test_a_line_that_breaks_does_not_take_the_others_along(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Box:
        alive = True

        def engine(self) -> None:
            """Nothing is asked of it."""

    @contextmanager
    def opened(_: object) -> Iterator[Box]:
        yield Box()

    def told(race: Race, _: object) -> None:
        if race.name == "odd":
            raise AttributeError("'bool' object has no attribute 'find_all'\nmore")

    monkeypatch.setattr(cli_race, "opened", opened)
    monkeypatch.setattr(cli_race, "prediction", told)
    monkeypatch.setattr("lakerace.run.run_race", lambda *_: SEEN)
    lines = [
        Asked(number=1, id="odd", race=replace(RACE, name="odd")), Asked(number=2, id="bad", error="no winner"),
        Asked(number=3, id="good", race=RACE),
    ]
    assert cli_race._many(lines, line("delta-4.4"), "commits", replay=False) == 1
    told_lines = capsys.readouterr()
    found = [json.loads(text) for text in told_lines.out.splitlines()]
    assert [one.get("error") for one in found] == [
        "AttributeError: 'bool' object has no attribute 'find_all'", "no winner", None,
    ]
    assert "2 of 3 lines could not be run" in told_lines.err
    assert "3 of 3 lines did not end with commits" in told_lines.err
