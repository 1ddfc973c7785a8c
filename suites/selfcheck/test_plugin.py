"""Does the pytest plugin choose the right tests, and stop at a wrong name before anything runs?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lakerace import plugin
from lakerace.home import suites_dir
from lakerace.layouts import LAYOUTS
from lakerace.plugin import collecting, recording
from lakerace.race import held_against
from lakerace.results import load

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]

MODULE = """
from lakerace.layouts import LAYOUTS
from lakerace.race import Expected, held_against

def one(name, held="DELETE FROM {t}", **more):
    return held_against(name, layout=LAYOUTS["flat"], held=held, winners=["DELETE FROM {t}"], **more)

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
        ('one("a", isolation="snapshot"),', "test_inner.py:7: a: unknown isolation level 'snapshot'"),
        ('one("a", expect=[Expected(word="apend")]),', "'apend' is no outcome; use one of append, attempts, commits"),
        ('one("a", "UPDAET {t} SET id = 1"),', "test_inner.py: a, writer A: 'UPDAET' begins no SQL statement: UPDAET"),
        ('one("a", "DELETE FROM {t} WHERE (id"),', "a, writer A: a bracket is not closed: DELETE FROM {t} WHERE (id"),
        ('one("a", "DELETE FROM {tt}"),', "a, writer A: unknown placeholder {tt}"),
    ],
    ids=["twins", "claim", "isolation", "outcome", "first word", "bracket", "placeholder"],
)
def test_a_wrong_name_stops_the_collection(inner: Callable[..., tuple[int, str]], races: str, message: str) -> None:
    code, output = inner(MODULE % races, "--collect-only")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert [message in told for told in re.findall("ERROR(.*)", output)] == [True], output
    assert "Error" not in output, "no traceback is shown"


@pytest.mark.parametrize(("races", "arguments", "message"), [
    ('one("a~b"),', ("--race", "a~d"), "--race 'a~d': no race of profile core on delta-4.4 is called so; did you mean"),
    ('one("twin"), one("twin")', ("-x",), "test_inner.py: two races are called 'twin'; a name must be unique"),
])
def test_workers_tell_a_wrong_name_as_one_process_does(
    inner: Callable[..., tuple[int, str]], races: str, arguments: tuple[str, ...], message: str
) -> None:
    code, output = inner(MODULE % races, "-n", "1", *arguments)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {message}" in output
    assert "INTERNALERROR" not in output


STALE = """
[[deviation]]
races = ["%s"]
versions = ">=0"
expect = "commits"
kind = "vendor"
because = "b"
"""


@pytest.mark.parametrize("arguments", [
    (), ("-m", "claim"), ("--ignore-glob", "*claims*"), ("-p", "cacheprovider", "--lf"),
])
def test_what_our_deviations_name_is_known_whatever_was_collected(
    inner: Callable[..., tuple[int, str]], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.setattr(collecting, "suites_dir", lambda: pytester.path)
    code, output = inner(THREE, "--collect-only", *arguments)
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), output


@pytest.mark.parametrize(("pattern", "arguments", "found"), [
    ("a~*", (), None),
    ("a~*", ("-k", "other"), None),
    ("a~d", (), "matches no race"),
    ("a~d", ("-m", "claim"), "matches no race"),
    ("a~d", ("test_inner.py",), None),
    ("a~d", ("--ignore", "x"), None),
    ("matrix/flat/serializable/optimise~*", ("test_inner.py",), "matches no race"),
    ("matrix/flat/serializable/insert-values~insert-values", ("test_inner.py",), "what is expected anyway"),
])
def test_what_a_deviation_of_another_project_names_must_be_there(
    inner: Callable[..., tuple[int, str]], pytester: pytest.Pytester, pattern: str, arguments: tuple[str, ...],
    found: str | None,
) -> None:
    file = pytester.makefile(".toml", vendor=STALE % pattern)
    code, output = inner(THREE, "--collect-only", "--expect", str(file), *arguments)
    assert code == (pytest.ExitCode.USAGE_ERROR if found else pytest.ExitCode.OK), output
    assert re.findall("ERROR: vendor.toml, deviation 1.*?(matches no race|what is expected anyway)", output) == (
        [found] if found else []
    )


def test_a_folder_without_races_can_be_run_by_itself() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LAKERACE_", "PYTEST_"))}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path.endswith("fixtures"))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1"],
        cwd=suites_dir() / "processes", env=environment, text=True, capture_output=True, check=False,
    )
    assert run.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, run.stdout + run.stderr


@pytest.mark.parametrize("asked", [(None, "delta-4.0"), ("delta-4.0", ""), ("delta-4.0", "delta-rs")])
def test_the_line_that_was_asked_for_runs_in_its_own_environment(
    monkeypatch: pytest.MonkeyPatch, asked: tuple[str | None, str]
) -> None:
    option, variable = asked
    monkeypatch.setenv("LAKERACE_ENGINE", variable)
    monkeypatch.setattr(plugin, "environment_of", lambda chosen: f"/envs/{chosen.name}/python")
    started: list[str] = []
    monkeypatch.setattr(plugin.os, "execv", lambda program, arguments: started.append(program))
    plugin.pytest_cmdline_main(SimpleNamespace(
        getoption=lambda name: option, option=SimpleNamespace(help=False),
        pluginmanager=SimpleNamespace(getplugin=lambda name: None), invocation_params=SimpleNamespace(args=()),
    ))
    assert started == ["/envs/delta-4.0/python"]


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
