"""Does the command line start soon, help, and say in one line what is wrong?"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakerace
from lakerace import cli, cli_look

if TYPE_CHECKING:
    from collections.abc import Callable

    Told = Callable[..., tuple[int, str, str]]
    Refused = Callable[..., str]

COMMANDS = ("list", "show", "doctor", "claims", "run", "record", "bench", "race", "predict", "panel", "diagnose")
UPDATE = "UPDATE {t} SET note = 'x' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
NAMED = "an-insert-of-a-frame-with-merge-schema-is-blind-and-survives"
MATRIX = "matrix/by-date/serializable/update-by-key~insert-values"
RS = ("race", "--engine", "delta-rs")


def start(*arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """A process of its own, and the seconds of processor time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(Path(lakerace.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# Help, and how soon it comes.
def test_help_names_every_command(told: Told) -> None:
    code, out, _ = told("--help")
    assert code == 0
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert "Examples:" in out
    assert told()[1] == out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_examples(told: Told, command: str) -> None:
    code, out, _ = told(command, "--help")
    assert code == 0
    assert f"Usage: lakerace {command}" in out
    assert f"  lakerace {command}" in out.partition("Examples:")[2]


def test_the_exit_codes_of_race_are_in_its_help(told: Told) -> None:
    assert (
        "0 it ran   1 --expect is not met   2 bad input   3 the order could not be forced"
        in told("race", "--help")[1]
    )


def test_help_takes_less_than_half_a_second() -> None:
    ended, seconds = start("-m", "lakerace", "--help")
    assert ended.returncode == 0
    assert seconds < 0.5


HEAVY = {"pyspark", "delta", "deltalake", "pyarrow", "numpy", "pytest", "sqlglot", "jinja2", "rich", "hypothesis"}


@pytest.mark.parametrize(("commands", "heavy"), [
    ([["--help"], ["show", MATRIX], ["list", "--statements"], ["claims"]], HEAVY),
    ([["list"], ["list", "--field"], ["show", NAMED]], HEAVY - {"pytest"}),
], ids=["matrix", "suites"])
def test_nothing_heavy_is_imported_to_look_at_things(commands: list[list[str]], heavy: set[str]) -> None:
    """The suites are loaded for the races that they name, and import pytest to mark their tests."""
    code = (
        f"import sys; from lakerace import cli; assert not any(map(cli.run, {commands!r}));"
        f"sys.exit(', '.join(sorted({heavy!r} & set(sys.modules))) or 0)"
    )
    ended, _ = start("-c", code)
    assert ended.stderr == ""
    assert ended.returncode == 0


# What is wrong is told in one line.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rac"], "No such command 'rac'"),
        (["race", "--layot", "flat"], "No such option: --layot"),
        (["race"], "give --held SQL and --winner SQL, or --from FILE.jsonl"),
        (["race", "--held", UPDATE], "no winner"),
        (["race", "--winner", UPDATE], "give --held SQL"),
        (
            ["race", "--held", UPDATE, "--winner", DELETE, "--layout", "round"],
            "unknown layout 'round'; use one of flat,",
        ),
        (
            ["race", "--held", UPDATE, "--winner", DELETE, "--engine", "delta-9"],
            "unknown engine line 'delta-9'; known: delta-4.4",
        ),
        (
            ["race", "--held", UPDATE, "--winner", DELETE, "--isolation", "snapshot"],
            "unknown isolation level 'snapshot'",
        ),
        (
            ["race", "--held", UPDATE, "--winner", DELETE, "--expect", "apend"],
            "--expect 'apend' is no outcome; use one of aborts",
        ),
        (["race", "--held", "UPDATE {t} SET", "--winner", DELETE], "the held statement: UPDATE sets nothing"),
        (["race", "--held", UPDATE, "--winner", "DELET FROM {t}"], "the winner: 'DELET' begins no SQL statement"),
        (["race", "--held", UPDATE, "--winner", DELETE, "--winner", ""], "winner 2: the SQL is empty"),
        (["race", "--held", UPDATE, "--winner", f"{DELETE}; {DELETE}"], "2 statements where one is wanted"),
        (
            ["race", "--held", "DELETE FROM {table}", "--winner", DELETE],
            "unknown placeholder {table}; {t} is the table",
        ),
        (["race", "--held", UPDATE, "--winner", DELETE, "--setup", "none.sql"], "none.sql: no such file or directory"),
        (
            ["race", "--held", UPDATE, "--winner", DELETE, "--setup", "a.sql", "--layout", "flat"],
            "--layout or --setup, not both",
        ),
        (["race", "--held", UPDATE, "--from", "a.jsonl"], "give --from or --held with --winner, not both"),
        (["race", "--from", "none.jsonl"], "none.jsonl: no such file or directory"),
        (["race", "--held"], "requires an argument"),
        (["race", "--held", "DELETE FROM t", "--winner", DELETE], "the held statement: does not mention {t}"),
        (["race", "--held", UPDATE, "--winner", "DELETE FROM {other}"], "the winner: {other} is there to be read only"),
        (["show", "nobody-is-called-so"], "nothing is called 'nobody-is-called-so' on delta-4.4"),
        (["show", "merge-on-kee"], "try merge-on-key"),
        (["show", "matrix/by-dat/serializable/vacuum~vacuum"], "unknown layout 'by-dat'; try by-date"),
        (["show", "matrix/flat/serial/vacuum~vacuum"], "unknown isolation level 'serial'"),
        (["show", "matrix/flat/serializable/vacum~vacuum"], "unknown statement 'vacum'; try vacuum"),
        (["show", "matrix/flat"], "is no race of the matrix: matrix/LAYOUT/ISOLATION/HELD~WINNER"),
        (["race", "--held", "INSERT INTO {t}", "--winner", DELETE], "the held statement: INSERT has no rows"),
        (["predict", "--held", UPDATE, "--winner", "DELETE {t}"], "the winner: DELETE names no table"),
        ([*RS, "--order", "A:open A:latest", "--reader", "A=SELECT * FROM {t}"], "no writer in it, so nothing commits"),
        *(
            (["race", "--held", UPDATE, "--winner", DELETE, "--expect", expected], "is no outcome; use one of")
            for expected in ("", "append garbage", "append[x", "append!", "commits+p", "no-commit [X]")
        ),
        *(
            (["race", "--held", UPDATE, option, ""], f"Invalid value for '{option}': it names no file")
            for option in ("--from", "--setup")
        ),
        (["record", ""], "it names no file"),
        (["race", "--held", UPDATE, "--winner", DELETE, "--layout", ""], "unknown layout ''"),
        (["race", "--held", UPDATE, "--winner", DELETE, "--engine", ""], "unknown engine line ''"),
        (["predict", "--held", UPDATE, "--winner", DELETE, "--profile", ""], "''"),
        (["list", "--layouts", "--statements"], "--statements is a list of its own: give it without --layouts"),
        (["list", "--field", "--matrix"], "--field is a list of its own: give it without --matrix"),
        (["list", "--layouts", "--suite", "x", "--engine", "delta-rs"], "give it without --suite and --engine"),
        (["show"], "Missing argument 'NAME'"),
        (["list", "--suite", "nope"], "unknown suite 'nope'; use one of"),
        (["list", "--profile", "half"], "unknown profile 'half'; use one of core, full, record"),
        (["claims", "--answer", "perhaps"], "unknown answer 'perhaps'"),
        (["doctor", "--engine", "spark"], "unknown engine line 'spark'"),
        (["run", "--profile", "half"], "unknown profile 'half'"),
        (["run", "-n", "many"], "-n 'many' is no number of workers"),
        (["record", "none.json"], "none.json: No such file"),
        (["bench", "--races", "some"], "Invalid value for '--races'"),
        (["bench", "--drift", "20"], "--drift 20: use 0, or 200 and more"),
        (["bench", "--engine", "delta-rs"], "delta-rs has none: name a line on Spark"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_bad_input_gets_one_line_and_exit_2(
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO {t} VALUES ('a", "a quote or a comment is not closed"),
        ("", "s.sql: no statement"),
        ("SELECT 1", "no statement mentions {t}"),
        ("CREATE TABLE {t} (id INT)", "{t} would be no Delta table; write USING delta"),
        ("CREATE TABLE {t} (id INT) USING parquet", "{t} would be no Delta table; write USING delta"),
        (
            "CREATE TABLE {t} (id INT) USING delta; INSRT INTO {t} VALUES (1)",
            "s.sql, statement 2: 'INSRT' begins no SQL",
        ),
        ("CREATE TABLE {x} (id INT) USING delta", "s.sql, statement 1: unknown placeholder {x}"),
    ],
)
def test_a_setup_that_is_surely_wrong_starts_no_engine(
    refused: Refused, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "s.sql"
    file.write_text(text, encoding="utf-8")
    assert message in refused("race", "--setup", str(file), "--held", UPDATE, "--winner", DELETE)


def test_a_file_that_is_no_text_is_told(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_bytes(b"\xff\xfe")
    for option in ("--setup", "--from"):
        more = ["--held", UPDATE, "--winner", DELETE] if option == "--setup" else []
        assert "save it as UTF-8" in refused("race", option, str(tmp_path / "s.sql"), *more)
    (tmp_path / "empty.jsonl").write_text("\n\n", encoding="utf-8")
    assert "no race in it" in refused("race", "--from", str(tmp_path / "empty.jsonl"))
    assert "is a directory" in refused("race", "--from", str(tmp_path))


def test_a_machine_without_java_is_told(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("lakerace.engines.lines.ensure_environment", lambda _: Path(sys.executable))
    assert "install Java 17 or newer" in refused("race", "--held", UPDATE, "--winner", DELETE)


def test_a_folder_that_cannot_be_written_is_told(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert "no such file or directory" in refused(*RS, "--held", UPDATE, "--winner", DELETE)


def test_a_bug_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli_look, "show", broken)
    with pytest.raises(ZeroDivisionError):
        cli.run(["show", "x"])


def test_an_interrupt_ends_quietly(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_look, "show", interrupted)
    code, out, err = told("show", "x")
    assert (code, out, err.strip()) == (130, "", "")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(lakerace.__file__).parents[1])}
    command = [sys.executable, "-m", "lakerace", "list", "--matrix", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
