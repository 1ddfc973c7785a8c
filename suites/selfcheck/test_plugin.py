"""Does the pytest plugin choose the right tests, and stop at a wrong name before anything runs?"""

from __future__ import annotations

import os
import re
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lakerace.layouts import LAYOUTS
from lakerace.plugin import collecting, recording
from lakerace.race import held_against
from lakerace.results import load

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]

MODULE = """
from lakerace.layouts import LAYOUTS
from lakerace.race import held_against

def one(name, **more):
    return held_against(name, layout=LAYOUTS["flat"], held="DELETE FROM {t}", winners=["DELETE FROM {t}"], **more)

RACES = (%s)

def test_race(case):
    pass
"""
THREE = MODULE % 'one("a~b"), one("a~c"), one("d[e]"),' + "\ndef test_other(): pass\n"


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """``inner(text, *arguments, alone=False)``: exit code and output of pytest on a suite with that text.

    In this process, or ``alone`` in one of its own, which costs a start of Python.
    """

    for name in [name for name in os.environ if name.startswith(("LAKERACE_", "PYTEST_XDIST_"))]:
        monkeypatch.delenv(name)

    def running(text: str, *arguments: str, alone: bool = False) -> tuple[int, str]:
        pytester.makepyfile(test_inner=text)
        known = any(found.value == "lakerace.plugin" for found in entry_points(group="pytest11"))
        # Hypothesis would be imported to say that it has nothing to say.
        plugins = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", *([] if known else ["-p", "lakerace.plugin"])]
        run = pytester.runpytest_subprocess if alone else pytester.runpytest_inprocess
        ended = run("-q", *plugins, *arguments)
        return ended.ret, str(ended.stdout) + str(ended.stderr)

    return running


@pytest.mark.parametrize(
    ("races", "message"),
    [
        ('one("twin"), one("twin")', "two races are called 'twin'; a name must be unique"),
        ('one("a", claims=("D-999",)),', "unknown claim id 'D-999'"),
        ('one("a", isolation="snapshot"),', "unknown isolation level 'snapshot'"),
    ],
    ids=["twins", "claim", "isolation"],
)
def test_a_wrong_name_stops_the_collection(inner: Callable[..., tuple[int, str]], races: str, message: str) -> None:
    code, output = inner(MODULE % races, "--collect-only")
    assert code in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)
    assert message in output


def test_workers_tell_a_wrong_name_as_one_process_does(inner: Callable[..., tuple[int, str]]) -> None:
    code, output = inner(THREE, "-n", "1", "--race", "a~d")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --race 'a~d': no race of profile core on delta-4.4 is called so; did you mean 'a~" in output
    assert "INTERNALERROR" not in output


RACING = """
def test_one(race):
    race(held="DELETE FROM {t} WHERE id = 1", winners=["DELETE FROM {t} WHERE id = 2"])

def test_two(race):
    raise KeyboardInterrupt
"""


ASKED = """
import pytest

HELD, WINNER = "DELETE FROM {t} WHERE id = 1", "DELETE FROM {t} WHERE id = 2"

@pytest.mark.parametrize("asked", [
    dict(winners=WINNER),
    dict(winners=[]),
    dict(held="UPDAET {t} SET note = 'x'"),
    dict(held=""),
    dict(winners=["SELECT * FROM {t}"]),
    dict(winners=["DELETE FROM orders"]),
    dict(isolation="chaos"),
    dict(layout="round"),
    dict(winners=["UPDATE {t} SET nocol = 1"]),
    dict(winners=["DELETE FROM {t} WHERE id = 99"]),
], ids=lambda asked: "")
def test_wrong(race, asked):
    race(**{"held": HELD, "winners": [WINNER], **asked})

def test_right(race):
    assert race(held=HELD, winners=[WINNER], isolation="WriteSerializable").isolation == "write-serializable"
    own = "CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')"
    made = [own, "INSERT INTO {t} VALUES (1)", "INSERT INTO {t} VALUES (2)"]
    assert race(held=HELD, winners=[WINNER], layout=made).isolation == "serializable"

def test_no_counterpart(race):
    race(held=HELD, winners=["OPTIMIZE {t} FULL"])
"""


def test_a_race_that_is_asked_wrongly_fails_in_one_line_that_says_why(inner: Callable[..., tuple[int, str]]) -> None:
    code, output = inner(ASKED, "--engine", "delta-rs", "-rs")
    assert (code, "10 failed, 1 passed, 1 skipped" in output) == (1, True), output
    assert "During handling" not in output
    assert re.findall(r"(?m)^_+ test_wrong\S* _+\n(.*)\n(?=_{5}|lakerace: report)", output) == [
        "winners: a list of statements, not one text",
        "no winner: give at least one statement that commits while the other is held",
        "the held statement: 'UPDAET' begins no SQL statement: UPDAET {t} SET note = 'x'",
        "the held statement: the SQL is empty",
        "the winner: a query commits nothing; give it as --reader, with an --order",
        "the winner: does not mention {t}, the table to race on",
        "unknown isolation level 'chaos'; use one of serializable, write-serializable",
        f"unknown layout 'round'; use one of {', '.join((*LAYOUTS, 'no-table'))}",
        "winner B fails: the table has no column 'nocol'; its columns are id, event_date, country, amount, note",
        "nothing raced: no winner committed (B commits nothing); held A commits version 9",
    ]
    assert "unsteerable on delta-rs: delta-rs has no counterpart of OPTIMIZE {t} FULL" in output


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one-process", "xdist"])
def test_what_keeps_an_engine_from_starting_is_told_once_before_any_race(
    inner: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    code, output = inner(RACING, *workers)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert output.count("the java of JAVA_HOME=/nonexistent does not start") == 1, output
    assert "INTERNALERROR" not in output


def test_the_results_of_an_interrupted_run_say_so(
    inner: Callable[..., tuple[int, str]], pytester: pytest.Pytester
) -> None:
    with pytest.raises(KeyboardInterrupt):
        inner(RACING, "--engine", "delta-rs")
    note = "interrupted: 1 race was run, 2 tests were chosen"
    results = pytester.path / "results" / "latest"
    assert load(results / "results.json").notes == (note,)
    for name in ("matrix.md", "index.html"):
        assert note in (results / name).read_text(encoding="utf-8")


def test_a_race_is_found_from_any_folder_below_the_root(
    inner: Callable[..., tuple[int, str]], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\ntestpaths = .")
    below = pytester.mkdir("below")
    pytester.makepyfile(test_three=THREE)
    monkeypatch.chdir(below)
    code, output = inner("", "--race", "a~b")
    assert (code, "1 passed, 3 deselected" in output) == (0, True), output


def test_races_are_chosen_by_globs_of_their_names(inner: Callable[..., tuple[int, str]]) -> None:
    code, output = inner(THREE, "--race", "a~*", "--race", "d[[]e]", "-v")
    assert (code, "3 passed, 1 deselected" in output) == (0, True), output


@pytest.mark.parametrize(("asked", "code", "said"), [
    ("A1", 0, "1 passed, 2 deselected"),
    ("F1", 0, "2 passed, 1 deselected"),
    ("A3", 4, "--field 'A3': nothing of profile core on delta-4.4 answers it"),
    ("Z9", 4, "--field 'Z9': no report is called so"),
])
def test_what_answers_a_report_is_chosen_by_its_id(
    inner: Callable[..., tuple[int, str]], asked: str, code: int, said: str
) -> None:
    text = MODULE % 'one("r", reports=("A1", "F1")), one("s")' + (
        "\nimport pytest\n@pytest.mark.report('F1')\ndef test_other(): pass\n"
    )
    found, output = inner(text, "--field", asked)
    assert (found, said in output) == (code, True), output


def test_a_suite_that_says_what_it_is_about_is_skipped_elsewhere(inner: Callable[..., tuple[int, str]]) -> None:
    text = 'ENGINES = ("delta-spark",)\ndef test_without_an_engine(): pass\n'
    code, output = inner(text, "--engine", "delta-rs", "-rs", alone=True)  # a line may start Python anew
    assert (code, "1 skipped" in output) == (0, True), output
    assert "its outcomes are declared for another line than delta-rs" in output


def test_a_fixture_of_another_project_may_be_called_case() -> None:
    module = SimpleNamespace(__name__="test_of_another_project")
    asked = SimpleNamespace(fixturenames=["case"], module=module)  # has nothing to parametrize
    collecting.pytest_generate_tests(asked)


@pytest.mark.parametrize(
    ("name", "listed", "again"),
    [
        ("a~b", True, "--race 'a~b'"),
        ("d[e]", True, "--race 'd[[]e]'"),
        ("another", False, "'test_x.py::test_y'"),
    ],
)
def test_a_race_is_run_again_by_its_name(name: str, listed: bool, again: str) -> None:
    race = held_against(name, layout=LAYOUTS["flat"], held="OPTIMIZE {t}", winners=["OPTIMIZE {t}"])
    node = SimpleNamespace(nodeid="test_x.py::test_y")
    if listed:
        node.callspec = SimpleNamespace(params={"case": race})
    state = SimpleNamespace(line=SimpleNamespace(name="delta-rs"), profile="full")
    assert recording.rerun_line(node, state, race) == f"pytest --engine delta-rs --profile full {again}"
