"""Does the terminal show grids, transcripts and progress whole, however narrow it is?"""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from lakerace.catalogue import CATALOGUE
from lakerace.judge import MEETS, UNDECLARED
from lakerace.observe import Event
from lakerace.report import page
from lakerace.report.grid import print_grids
from lakerace.report.progress import EVERY_RACES, EVERY_SECONDS, Progress
from lakerace.report.transcript import timeline, transcript
from lakerace.report.view import grids
from lakerace.results import Results
from lakerace.serial.model import Explanation, Replay, Tried
from selfcheck.judged import made, named, run_of


def console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("statements", [2, 16, len(CATALOGUE)])
def test_a_grid_in_the_terminal_keeps_to_its_width_and_loses_no_cell(width, statements):
    screen, ran = console(width), run_of(120, statements=statements)
    print_grids(ran, screen)
    lines = screen.file.getvalue().splitlines()
    assert max(len(line) for line in lines) <= width
    assert not any("…" in line for line in lines)
    rows = (re.match(r" ?(?:\d+ )?([a-z-]+)(?= )", line) for line in lines)
    cells = [row.string[row.end():].replace("·", "").split() for row in rows if row and row[1] in CATALOGUE]
    different = {frozenset((place, cell.marked) for place, cell in grid.cells.items()) for grid in grids(ran)}
    assert sum(map(len, cells)) == sum(map(len, different))


def test_columns_are_numbered_in_their_order_when_one_row_is_raced_against_all():
    others = ("update-by-key", "delete-by-key", "merge-on-key", "optimize", "insert-values", "zorder", "add-column")
    runs = tuple(made(f"matrix/flat/serializable/merge-on-key~{name}") for name in others)
    screen = console(60)
    print_grids(Results(engine="e", profile="", started="2026-08-11T10:00:00Z", seconds=1, results=runs), screen)
    heads = [text.split()[3:] for text in screen.file.getvalue().splitlines() if text.startswith("held \\ winner")]
    assert heads == [[str(number) for number in range(1, 8)]]


def test_equal_grids_are_printed_once_under_both_titles():
    names = [f"matrix/{layout}/serializable/update-by-key~insert-values" for layout in ("flat", "by-date")]
    runs = (*map(made, names), made("matrix/clustered/serializable/update-by-key~insert-values", word="append"))
    screen = console(80)
    print_grids(Results(engine="e", profile="", started="2026-08-11T10:00:00Z", seconds=1, results=runs), screen)
    text = screen.file.getvalue()
    assert "delta-4.4 · flat · serializable (1 race)\ndelta-4.4 · by-date · serializable (1 race)\nheld" in text
    assert text.count("\nupdate-by-key ") == 2


def test_the_legend_of_a_terminal_grid_names_every_short_word_used():
    screen = console(80)
    print_grids(run_of(120), screen)
    text = screen.file.getvalue()
    for line in ("ok  commits        it commits", "ap  append", "me  metadata", "~   after it"):
        assert line in text


def test_a_transcript_tells_the_race_the_difference_the_why_and_the_way_home(ran):
    text = transcript(named(ran, "an-update"))
    lines = text.splitlines()
    assert lines[0] == (
        "differs (undeclared): an-update-aborts-when-an-insert-lands-in-the-partition-it-read   "
        "[delta-4.4 · by-date · serializable]"
    )
    assert "  A  read v8 -- hold ........................... commits v10" in lines
    assert "  B                     read v8 -- commits v9" in lines
    assert any(re.fullmatch(r" +outcome +append +commits   <-- differs", line) for line in lines)
    assert "      UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-11'" in lines
    assert any(line.startswith("  why:      A was to abort (append): the winner added files") for line in lines)
    assert "            ~ 1, 2026-08-11, DE, 2.5, updated" in lines
    assert "  differs:  A: expected append, seen commits" in lines
    assert lines[-1].startswith("  again:    pytest --engine delta-4.4 ")


def test_a_replay_is_told_by_transcript_and_page():
    found = Explanation(verdict="anomaly", anomaly="write skew", witness="A did not see what B had done",
                        tried=(Tried(order=("B", "A"), why="expected (1, 5), seen (1, 3)"),))
    told = replace(made("matrix/flat/serializable/update-by-key~insert-values"), replay=Replay(found, 2, 0.5))
    lines = ["write skew: A did not see what B had done", "B then A: expected (1, 5), seen (1, 3)"]
    assert f"\n  replay:   {lines[0]}\n            {lines[1]}\n" in transcript(told)
    assert page.race(told)["replay"] == lines


def test_a_transcript_gives_the_addresses_of_the_reports_behind_the_race():
    told = transcript(replace(made("a-race"), reports=("B4", "Z9")))
    assert (
        "\n  report:   B4 Two OPTIMIZE runs end in an error of no Delta class"
        "\n               https://github.com/delta-io/delta/issues/2759\n  report:   Z9\n"
    ) in told


def test_a_transcript_of_a_race_that_never_ran_says_the_reason(ran):
    assert "  reason:   the statement never reached its commit" in transcript(named(ran, "a-statement"))
    assert "  error:    the JVM died during the race (Py4JNetworkError)" in transcript(named(ran, "the-engine"))


def test_a_timeline_too_wide_for_a_terminal_runs_downwards():
    events = [
        Event(writer=letter, what=what, version=version, at=version + at)
        for version, letter in enumerate("ABCDEF", 8) for at, what in ((0.0, "read"), (0.5, "commits"))
    ]
    lines = list(timeline(events))
    assert len(lines) == 13
    assert max(map(len, lines)) < 110
    assert lines[3] == "     9.000  v9     " + " " * 13 + "read v9"


def test_without_a_terminal_progress_is_a_line_now_and_then():
    now, screen = [0.0], console(200)
    progress = Progress(screen, clock=lambda: now[0])
    progress.start(130)
    for number in range(EVERY_RACES + 1):
        progress.running("gw0", f"race {number}")
        progress.done("gw0", MEETS)
    now[0] += EVERY_SECONDS
    progress.done("gw1", UNDECLARED)
    progress.done("gw1", "a test")
    progress.say("[odd] text")
    progress.stop()
    progress.stop()
    assert screen.file.getvalue().splitlines() == [
        "lakerace: 50/130 races, 0.0 s: 50 meets",
        "lakerace: 52/130 races, 15.0 s: 1 differs (undeclared), 51 meets",
        "[odd] text",
        "lakerace: 53/130 races, 15.0 s: 1 differs (undeclared), 51 meets, 1 a test",
    ]


def test_on_a_terminal_progress_shows_counts_and_the_races_that_run():
    screen = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    progress = Progress(screen)
    progress.start(3)
    progress.running("gw0", "matrix/flat/serializable/optimize~insert-values")
    progress.running("gw1", "[odd]name")
    progress.done("gw2", MEETS)
    progress.stop()
    text = screen.file.getvalue()
    assert "1/3" in text
    assert "1 meets" in text
    assert "flat/serializable/optimize~insert-values | [odd]name" in text


def test_progress_without_a_console_leaves_no_open_descriptor():
    progress = Progress()
    progress.start(1)
    progress.done("gw0", MEETS)
    progress.stop()
