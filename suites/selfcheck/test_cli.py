"""Does the command line say what a person needs, in one line when something is wrong? No JVM: delta-rs is raced."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import lakerace
from lakerace import ask as asking
from lakerace import cli, cli_look, cli_race, cli_run, named
from lakerace.engines.lines import line
from lakerace.layouts import LAYOUTS
from lakerace.observe import Event, Files, HistoryRow, Observation, Outcome
from lakerace.race import RaceError, held_against

COMMANDS = ("list", "show", "doctor", "claims", "run", "record", "bench", "race")
UPDATE = "UPDATE {t} SET note = 'x' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
MATRIX = "matrix/by-date/serializable/update-by-key~insert-values"
SETUP = [
    "CREATE TABLE {t} (id INT, part STRING) USING delta PARTITIONED BY (part)",
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
]
JSON_KEYS = {
    "engine",
    "layout",
    "isolation",
    "driver",
    "order",
    "overlap",
    "writers",
    "history",
    "rows_before",
    "rows_after",
    "files",
}
WRITER_KEYS = {
    "name",
    "statement",
    "outcome",
    "version",
    "read_version",
    "attempts",
    "surfaced",
    "root",
    "condition",
    "sqlstate",
    "parameters",
}
HISTORY_KEYS = {"version", "operation", "readVersion", "isolationLevel", "isBlindAppend", "predicate", "metrics"}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``lakerace`` with ``arguments``."""
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The one line on stderr that a wrong command gets."""
    found, out, err = told(capsys, *arguments)
    assert (found, out) == (code, "")
    assert err.startswith("lakerace: ")
    assert err.count("\n") == 1
    return err


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
def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--help")
    assert code == 0
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert "Examples:" in out
    assert told(capsys)[1] == out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_examples(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, _ = told(capsys, command, "--help")
    assert code == 0
    assert f"Usage: lakerace {command}" in out
    assert f"  lakerace {command}" in out.partition("Examples:")[2]


def test_the_exit_codes_of_race_are_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        "0 it ran   1 --expect is not met   2 bad input   3 the order could not be forced"
        in told(capsys, "race", "--help")[1]
    )


def test_help_takes_less_than_half_a_second() -> None:
    ended, seconds = start("-m", "lakerace", "--help")
    assert ended.returncode == 0
    assert seconds < 0.5


def test_nothing_heavy_is_imported_to_look_at_things() -> None:
    commands = [["--help"], ["show", MATRIX], ["list", "--statements"], ["claims"]]
    code = (
        f"import sys; from lakerace import cli; assert not any(map(cli.run, {commands!r}));"
        "heavy = {'pyspark', 'delta', 'deltalake', 'pyarrow', 'pytest', 'sqlglot', 'jinja2', 'rich', 'hypothesis'};"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
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
        (["race", "--held", UPDATE, "--winner", DELETE, "--setup", "none.sql"], "none.sql: [Errno 2]"),
        (
            ["race", "--held", UPDATE, "--winner", DELETE, "--setup", "a.sql", "--layout", "flat"],
            "--layout or --setup, not both",
        ),
        (["race", "--held", UPDATE, "--from", "a.jsonl"], "give --from or --held with --winner, not both"),
        (["race", "--from", "none.jsonl"], "none.jsonl: [Errno 2]"),
        (["race", "--held"], "requires an argument"),
        (["race", "--held", "DELETE FROM t", "--winner", DELETE], "the held statement: does not mention {t}"),
        (["race", "--held", UPDATE, "--winner", "DELETE FROM {other}"], "the winner: {other} is there to be read only"),
        (["show", "nobody-is-called-so"], "nothing is called 'nobody-is-called-so' on delta-4.4"),
        (["show", "merge-on-kee"], "try merge-on-key"),
        (["show", "matrix/by-dat/serializable/vacuum~vacuum"], "unknown layout 'by-dat'; try by-date"),
        (["show", "matrix/flat/serial/vacuum~vacuum"], "unknown isolation level 'serial'"),
        (["show", "matrix/flat/serializable/vacum~vacuum"], "unknown statement 'vacum'; try vacuum"),
        (["show", "matrix/flat"], "is no race of the matrix: matrix/LAYOUT/ISOLATION/HELD~WINNER"),
        (["show"], "Missing argument 'NAME'"),
        (["list", "--suite", "nope"], "unknown suite 'nope'; use one of"),
        (["list", "--profile", "half"], "unknown profile 'half'; use one of core, full, record"),
        (["claims", "--answer", "perhaps"], "unknown answer 'perhaps'"),
        (["doctor", "--engine", "spark"], "unknown engine line 'spark'"),
        (["run", "--profile", "half"], "unknown profile 'half'"),
        (["run", "-n", "many"], "-n 'many' is no number of workers"),
        (["record", "none.json"], "none.json: No such file"),
        (["bench", "--races", "some"], "Invalid value for '--races'"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_bad_input_gets_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, *arguments)
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
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "s.sql"
    file.write_text(text, encoding="utf-8")
    assert message in refused(capsys, "race", "--setup", str(file), "--held", UPDATE, "--winner", DELETE)


def test_a_file_that_is_no_text_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_bytes(b"\xff\xfe")
    for option in ("--setup", "--from"):
        more = ["--held", UPDATE, "--winner", DELETE] if option == "--setup" else []
        assert "can't decode" in refused(capsys, "race", option, str(tmp_path / "s.sql"), *more)
    (tmp_path / "empty.jsonl").write_text("\n\n", encoding="utf-8")
    assert "no race in it" in refused(capsys, "race", "--from", str(tmp_path / "empty.jsonl"))
    assert "Is a directory" in refused(capsys, "race", "--from", str(tmp_path))


def test_a_machine_without_java_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("lakerace.engines.lines.ensure_environment", lambda _: Path(sys.executable))
    assert "install Java 17 or newer" in refused(capsys, "race", "--held", UPDATE, "--winner", DELETE)


def test_a_folder_that_cannot_be_written_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert "No such file or directory" in refused(capsys, *RS, "--held", UPDATE, "--winner", DELETE)


def test_a_bug_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli_look, "show", broken)
    with pytest.raises(ZeroDivisionError):
        cli.run(["show", "x"])


def test_an_interrupt_ends_quietly(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_look, "show", interrupted)
    code, out, err = told(capsys, "show", "x")
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


# Looking at races.
def test_list_counts_named_races_and_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "list")
    assert code == 0
    assert out.splitlines()[-1].startswith(
        f"{len(named.named_races(line('delta-4.4')))} named races on delta-4.4; matrix: "
    )


def test_list_names_no_race_that_is_declared_for_another_line(
    capsys: pytest.CaptureFixture[str], suite: str
) -> None:
    assert "1 named races on delta-4.4" in told(capsys, "list")[1]
    assert "0 named races on delta-4.0" in told(capsys, "list", "--engine", "delta-4.0")[1]
    assert f"nothing is called '{suite}' on delta-rs" in refused(capsys, "show", suite, "--engine", "delta-rs")


def test_list_shows_the_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"  {MATRIX}\n" in told(capsys, "list", "--matrix")[1]
    races = json.loads(told(capsys, "list", "--suite", "matrix", "--json")[1])
    assert len(races) >= 600
    assert {"name", "suite", "layout", "isolation", "order", "writers", "claims"} == set(races[0])


def test_list_shows_statements_and_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    assert "vacuum " in told(capsys, "list", "--statements")[1]
    names = [layout["name"] for layout in json.loads(told(capsys, "list", "--layouts", "--json")[1])]
    assert names == list(LAYOUTS)


def test_a_suite_that_cannot_be_loaded_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "test_broken.py").write_text("RACES = (undefined,)\n", encoding="utf-8")
    monkeypatch.setattr(named, "suites_dir", lambda: tmp_path)
    assert "suite test_broken.py can't be loaded: NameError" in refused(capsys, "list")


SUITE = '''"""Who is first?"""
from lakerace.layouts import LAYOUTS
from lakerace.race import Expected, held_against
RACES = (
    held_against("mine-%s", layout=LAYOUTS["flat"], held="DELETE FROM {t}", winners=["INSERT INTO {t} VALUES (1)"],
                 expect=[Expected(word="append", condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT", attempts=1),
                         Expected(word="commits", blind=True)], why="because", claims=("D-001",)),
)
'''


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    (tmp_path / "test_own.py").write_text(SUITE % "race", encoding="utf-8")
    (tmp_path / "test_other.py").write_text("raise SystemExit('never loaded')\n", encoding="utf-8")
    monkeypatch.setattr(named, "suites_dir", lambda: tmp_path)
    return "mine-race"


def test_show_tells_a_race_with_timeline_and_expectation(capsys: pytest.CaptureFixture[str], suite: str) -> None:
    code, out, _ = told(capsys, "show", suite)
    assert code == 0
    assert "suite own: Who is first?\nbecause\nclaims: D-001\n" in out
    assert "A  held    DELETE FROM {t}\nB  winner  INSERT INTO {t} VALUES (1)\n" in out
    assert "order   A:read B:read B:commit A:commit\nA  |--read" in out
    assert "  A  append, DELTA_CONCURRENT_APPEND.WITHOUT_HINT, attempts 1   from inline\n" in out
    assert "  B  commits, isBlindAppend True   from inline\n" in out


def test_show_tells_the_deviation_that_overrules(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, suite: str
) -> None:
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
    out = told(capsys, "show", suite)[1]
    assert "from inline (overruled)\n" in out
    assert "  A  commits   from delta-spark.toml, deviation 3: vendor: row level\n" in out


def test_show_helps_with_a_typo_in_a_race(capsys: pytest.CaptureFixture[str], suite: str) -> None:
    assert "try mine-race" in refused(capsys, "show", "mine-rase")


def test_a_race_of_another_engine_is_not_shown(capsys: pytest.CaptureFixture[str], suite: str) -> None:
    assert "on delta-rs" in refused(capsys, "show", suite, "--engine", "delta-rs")


def test_show_tells_where_a_matrix_cell_stands(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "show", MATRIX, "--engine", "delta-rs")[1]
    assert "by-date.serializable.md" in out
    assert "UPDATE {t} SET note = 'updated' WHERE id = 1" in out


def test_show_knows_statements_and_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "show", "vacuum")[1] == "statement vacuum: VACUUM with the default retention\n\nVACUUM {t}\n"
    assert told(capsys, "show", "flat")[1].startswith("layout flat: unpartitioned")


def test_doctor_tells_what_is_wrong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from lakerace import doctor

    checks = (
        doctor.Check(name="Java", ok=False, found="none", advice="install it"),
        doctor.Check(name="disk", ok=True, found="9 GB"),
    )
    monkeypatch.setattr(doctor, "run_checks", lambda _: checks)
    code, out, err = told(capsys, "doctor")
    assert (code, err) == (1, "lakerace: delta-4.4 can't run here: Java\n")
    assert "WRONG  Java  none\n" in out
    assert "-> install it\n" in out
    monkeypatch.setattr(doctor, "run_checks", lambda _: checks[1:])
    assert told(capsys, "doctor")[0] == 0


def test_claims_are_told_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "claims")[1]
    assert "D-001  " in out
    assert len(json.loads(told(capsys, "claims", "--json")[1])) >= 83


# What `race` is asked.
@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("serializable", "serializable"),
        ("Serializable", "serializable"),
        ("SERIALIZABLE", "serializable"),
        ("WriteSerializable", "write-serializable"),
        ("write-serializable", "write-serializable"),
        ("write_serializable", "write-serializable"),
        ("writeSerializable", "write-serializable"),
    ],
)
def test_isolation_levels_may_be_spelt_as_delta_does(text: str, level: str) -> None:
    assert asking.isolation_named(text) == level


def test_a_race_has_a_default_layout_and_level() -> None:
    race = asking.ask(held=UPDATE, winners=[DELETE])
    assert (race.layout.name, race.isolation) == ("flat", "serializable")
    assert race.layout.kept


def test_a_setup_of_the_user_is_not_kept() -> None:
    assert not asking.layout_of_sql(SETUP).kept


def test_winners_end_at_z() -> None:
    assert asking.ask(held=UPDATE, winners=[DELETE] * 25).writers[-1].name == "Z"
    with pytest.raises(RaceError, match="26 winners; at most 25"):
        asking.ask(held=UPDATE, winners=[DELETE] * 26)


def test_braces_in_quotes_are_no_placeholders() -> None:
    asking.ask(held="UPDATE {t} SET note = '{\"a\": {x}}'", winners=['DELETE FROM {t} WHERE note = "{y}"'])


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE {t} SHALLOW CLONE {other}",
        "CREATE TABLE {t} LIKE {other}",
        "create table if not exists {t}(id INT) using DELTA",
    ],
)
def test_a_delta_table_may_be_made_in_many_ways(text: str) -> None:
    assert asking.layout_of_sql([text]).setup == (text,)


LINES = {
    '{"id": "a", "held": "DELETE FROM {t}", "winners": ["OPTIMIZE {t}"]}': None,
    '{"held": "DELETE FROM {t}", "winners": ["VACUUM {t}"], "layout": "flat", "isolation": "Serializable"}': None,
    "not json": "no race: JSON is malformed",
    "[]": "no race: Expected `object`",
    '{"held": "DELETE FROM {t}"}': "no race: Object missing required field `winners`",
    '{"held": 1, "winners": []}': "no race: Expected `str`, got `int` - at `$.held`",
    '{"held": "DELETE FROM {t}", "winners": "OPTIMIZE {t}"}': "no race: Expected `array`",
    '{"held": "DELETE FROM {t}", "winners": []}': "no winner",
    '{"held": "DELETE FROM {t}", "winners": ["OPTIMIZE {t}"], "layuot": "flat"}': "unknown field `layuot`",
    '{"held": "VACUUM {t}", "winners": ["VACUUM {t}"], "layout": "flat", "setup": []}': "`setup` or `layout`, not both",
    '{"held": "DELETE FROM {t}", "winners": ["OPTIMIZE {t}"], "setup": []}': "setup-11: no statement",
}


def test_each_line_of_a_file_is_read_by_itself() -> None:
    found = list(asking.asked_lines([*LINES, "  "]))
    assert len(found) == len(LINES)
    for number, (asked, message) in enumerate(zip(found, LINES.values(), strict=True), 1):
        assert asked.number == number
        if message is None:
            assert asked.error is None
            assert asked.race is not None
        else:
            assert asked.race is None
            assert message in str(asked.error)
    assert [asked.id for asked in found[:3]] == ["a", None, None]


def test_a_bad_line_keeps_its_id() -> None:
    [found] = asking.asked_lines(['{"id": 7, "held": "x"}'])
    assert (found.id, found.race) == (7, None)


# What `race` answers.
HELD = Outcome(
    writer="A",
    statement="update",
    text=UPDATE,
    held=True,
    outcome="aborts",
    kind="append",
    read_version=8,
    attempts=1,
    surfaced="ConcurrentAppendException",
    root="io.delta.exceptions.ConcurrentAppendException",
    condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
    sqlstate="2D521",
    parameters={"operation": "DELETE"},
)
WINNER = Outcome(
    writer="B", statement="delete", text=DELETE, held=False, outcome="commits", version=9, read_version=8, attempts=1
)
RACE = held_against("race", layout=LAYOUTS["flat"], held=UPDATE, winners=[DELETE])
SEEN = Observation(
    race="race",
    engine="delta-4.4",
    versions={"delta": "4.4.0"},
    driver="phases",
    layout="flat",
    isolation="serializable",
    order="A:read B:read B:commit A:commit",
    overlap=True,
    overlap_proof="A read 8 < 9, then aborted",
    writers=(HELD, WINNER),
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
    base_version=8,
)


def test_the_answer_has_every_field_in_plain_json() -> None:
    found = json.loads(json.dumps(cli_race.answer(SEEN)))
    assert set(found) >= JSON_KEYS
    assert all(set(writer) >= WRITER_KEYS for writer in found["writers"])
    assert set(found["history"][0]) == HISTORY_KEYS
    assert found["writers"][0]["statement"] == UPDATE
    assert found["rows_before"] == [[1, "2026-08-11"], [2, "2026-08-11"]]
    assert found["files"] == {"live": 8, "on_disk": 10, "unreferenced": ["x.parquet"], "unreferenced_bytes": 700}


def test_the_transcript_says_first_what_became_of_whom() -> None:
    lines = cli_race.transcript(RACE, SEEN).splitlines()
    assert lines[0] == (
        "B commits version 9; A aborts with ConcurrentAppendException (DELTA_CONCURRENT_APPEND.WITHOUT_HINT)."
    )
    assert "A  |--read--------------------------commit--|" in lines
    assert "  9  DELETE: read 8, Serializable, predicate (id = 2), numDeletedRows 1" in lines
    assert "rows    2 before, 1 after: 0 new, 1 gone (id, day)" in lines
    assert "files   8 live, 10 on disk, 1 in no log entry, as losers leave them (700 bytes)" in lines


def test_a_wrapped_conflict_is_told_as_one() -> None:
    assert cli_race.sentence(replace(HELD, surfaced="Py4JJavaError")) == (
        "A aborts with ConcurrentAppendException (DELTA_CONCURRENT_APPEND.WITHOUT_HINT, ConcurrentAppendException "
        "wrapped in Py4JJavaError)"
    )
    assert cli_race.sentence(replace(WINNER, attempts=2)) == "B commits version 9 at the second attempt"


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


# A whole race, on the engine that needs no JVM.
RS = ("race", "--engine", "delta-rs")


def test_a_race_is_run_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, *RS, "--held", UPDATE, "--winner", DELETE)
    assert (code, err) == (0, "")
    assert out.startswith("B commits version 9; A aborts with CommitFailedError (")


def test_a_race_is_run_and_answered_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(
        capsys,
        *RS,
        "--layout",
        "by-date",
        "--held",
        UPDATE,
        "--winner",
        DELETE,
        "--json",
        "--winner",
        "INSERT INTO {t} SELECT * FROM {other}",
    )
    assert (code, err, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    assert set(found) >= JSON_KEYS
    assert [writer["name"] for writer in found["writers"]] == ["A", "B", "C"]
    assert [row["version"] for row in found["history"]] == sorted(
        (row["version"] for row in found["history"]), reverse=True
    )
    assert found["order"] == "A:read B:read B:commit C:read C:commit A:commit"
    assert (found["engine"], found["layout"], found["driver"]) == ("delta-rs", "by-date", "stale-handle")


def test_the_same_race_gives_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (
        json.loads(told(capsys, *RS, "--held", UPDATE, "--winner", DELETE, "--json")[1]) for _ in range(2)
    )
    for found in (first, second):
        del found["seconds"]
        assert found["files"].pop("unreferenced"), "the loser's file, which has a name of its own each time"
    assert first == second


def test_expect_decides_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    race = [*RS, "--held", UPDATE, "--winner", DELETE, "--expect"]
    assert told(capsys, *race, "append")[0] == 0
    assert told(capsys, *race, "aborts")[0] == 0
    code, out, err = told(capsys, *race, "commits")
    assert code == 1
    assert out
    assert err.startswith("lakerace: expected commits, but A aborts with CommitFailedError")


@pytest.mark.parametrize(
    ("held", "winner", "code", "message"),
    [
        ("DELETE FROM {t} WHERE id = 99", DELETE, 3, "the held statement commits nothing"),
        (UPDATE, "DELETE FROM {t} WHERE id = 99", 3, "nothing raced: no winner committed"),
        (UPDATE, "DELETE FROM {t} WHERE nope = 1", 2, "winner B fails: "),
        ("DELETE FROM {t} WHERE nope = 1", DELETE, 2, "the held statement fails: "),
        ("CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}", DELETE, 3, "the order could not be forced: "),
    ],
)
def test_a_race_that_answers_nothing_gets_one_line(
    capsys: pytest.CaptureFixture[str], held: str, winner: str, code: int, message: str
) -> None:
    assert message in refused(capsys, *RS, "--held", held, "--winner", winner, code=code)


def test_a_setup_that_fails_gets_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "my table.sql"
    file.write_text(f"{SETUP[0]};\nINSERT INTO {{t}} VALUES ('no number', 1, 2, 3)", encoding="utf-8")
    assert "layout my-table: INSERT INTO" in refused(
        capsys, *RS, "--setup", str(file), "--held", UPDATE, "--winner", DELETE
    )


def test_a_file_of_races_is_answered_line_by_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from lakerace import engines

    opened = []

    def opening(chosen: Any) -> Any:
        opened.append(chosen.name)
        return original(chosen)

    original = engines.open_engine
    monkeypatch.setattr(engines, "open_engine", opening)
    file = tmp_path / "races.jsonl"
    lines: list[dict[str, Any]] = [
        {
            "id": "own",
            "setup": SETUP,
            "isolation": "Serializable",
            "held": "UPDATE {t} SET part = 'c' WHERE id = 1",
            "winners": ["INSERT INTO {t} VALUES (3, 'd')"],
        },
        {"id": "bad", "layout": "round", "held": UPDATE, "winners": [DELETE]},
        {"id": "none", "held": "DELETE FROM {t} WHERE id = 99", "winners": [DELETE]},
        {"id": 4, "layout": "by-date", "held": UPDATE, "winners": [DELETE]},
    ]
    file.write_text("\n".join(["{", *map(json.dumps, lines)]) + "\n", encoding="utf-8")
    code, out, err = told(capsys, *RS, "--from", str(file))
    found = [json.loads(text) for text in out.splitlines()]
    assert code == 0
    assert err == "lakerace: 3 of 5 lines could not be run; their objects say why\n"
    assert [(one["id"], one["line"]) for one in found] == [(None, 1), ("own", 2), ("bad", 3), ("none", 4), (4, 5)]
    assert ["error" in one for one in found] == [True, False, True, True, False]
    assert all(set(one) == {"id", "line", "error"} for one in found if "error" in one)
    assert all(set(one) >= JSON_KEYS for one in found if "error" not in one)
    assert opened == ["delta-rs"]
    assert told(capsys, *RS, "--from", str(file), "--expect", "commits")[0] == 1


def test_a_race_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import tempfile

    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "s.sql").write_text(";\n".join(SETUP), encoding="utf-8")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("LAKERACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    work = os.environ.get("LAKERACE_WORK")
    race = [
        "--setup",
        str(tmp_path / "s.sql"),
        "--held",
        "DELETE FROM {t} WHERE id = 1",
        "--winner",
        "DELETE FROM {t} WHERE id = 2",
    ]
    assert told(capsys, *RS, *race)[0] == 0
    assert list((tmp_path / "here").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not list((tmp_path / "home").rglob("s-*"))
    assert os.environ.get("LAKERACE_WORK") == work


# Recording what a run saw.
def result(name: str, held: Outcome, **more: Any) -> Any:
    from lakerace.results import Result

    return Result(
        nodeid="n",
        race=name,
        suite="test_matrix",
        question="q",
        observation=replace(SEEN, writers=(held, WINNER), **more),
        expected={},
        verdict="meets",
    )


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    def path(chosen: Any, layout: str, isolation: str) -> Path:
        return tmp_path / "expect" / chosen.engine / f"{layout}.{isolation}.md"

    monkeypatch.setattr(cli_run, "grid_path", path)
    return tmp_path / "expect" / "delta-spark"


def saved(tmp_path: Path, *results: Any) -> str:
    from lakerace.results import Results, save

    save(
        Results(engine="delta-4.4", profile="record", started="2026-01-01T00:00:00Z", seconds=1.0, results=results),
        tmp_path / "results.json",
    )
    return str(tmp_path / "results.json")


def test_record_writes_new_cells_and_prints_those_that_differ(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, grids: Path
) -> None:
    from lakerace.expect import load_deviations, read_grid

    pairs = {
        name: f"matrix/flat/serializable/{name}~delete-by-key"
        for name in ("update-by-key", "insert-values", "optimize")
    }
    commits = replace(HELD, outcome="commits", kind=None, version=10)
    first = saved(tmp_path, result(pairs["update-by-key"], HELD), result(pairs["insert-values"], commits))
    code, out, err = told(capsys, "record", first)
    assert (code, out) == (0, "")
    assert err.endswith("lakerace: 2 new cells written, 0 as declared, 0 that differ\n")
    grid = grids / "flat.serializable.md"
    assert read_grid(grid) == {
        ("update-by-key", "delete-by-key"): "append",
        ("insert-values", "delete-by-key"): "commits",
    }

    second = saved(
        tmp_path,
        result(pairs["update-by-key"], commits),
        result(pairs["insert-values"], commits),
        result(pairs["optimize"], HELD, error="the JVM died"),
        result("a-named-race", HELD),
        result("matrix/flat/serializable/zorder~zorder", HELD, overlap=False),
    )
    before = grid.read_text(encoding="utf-8")
    code, out, err = told(capsys, "record", second)
    assert code == 0
    assert "0 new cells written, 1 as declared, 1 that differ" in err
    assert grid.read_text(encoding="utf-8") == before
    (tmp_path / "new.toml").write_text(out, encoding="utf-8")
    [deviation] = load_deviations(line("delta-4.4"), [tmp_path / "new.toml"])[-1:]
    assert (deviation.races, deviation.expect, deviation.kind) == ((pairs["update-by-key"],), "commits", "unreviewed")


def test_record_refuses_what_are_no_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("{}", encoding="utf-8")
    assert "not lakerace-results/1" in refused(capsys, "record", str(tmp_path / "r.json"))


# Running the matrix.
class FakePytest:
    """Stands for the pytest process: notes its command, writes what it was told to, ends with a code."""

    def __init__(self, results: Any, code: int) -> None:
        self.results, self.code, self.command = results, code, list[str]()

    def __call__(self, command: list[str], **_: Any) -> FakePytest:
        from lakerace.results import Results, save

        self.command = command
        if self.results:
            folder = Path(command[command.index("--results") + 1])
            folder.mkdir(parents=True, exist_ok=True)
            save(
                Results(
                    engine="delta-4.4",
                    profile="core",
                    started="2026-01-01T00:00:00Z",
                    seconds=1.0,
                    results=self.results,
                ),
                folder / "results.json",
            )
        return self

    def wait(self) -> int:
        return self.code


@pytest.mark.parametrize(("ended", "code"), [(0, 0), (1, 1), (2, 130), (3, 2), (4, 2)])
def test_run_prints_the_grid_and_tells_pytests_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended: int, code: int
) -> None:
    fake = FakePytest((result(MATRIX, HELD),), ended)
    monkeypatch.setattr(cli_run.subprocess, "Popen", fake)
    chosen = ("-k", "by-date", "--race", "matrix/*", "--race", "*~optimize")
    found, out, _ = told(capsys, "run", "-n", "2", *chosen, "--results", str(tmp_path / "r"))
    assert found == code
    assert "update-by-key" in out
    assert f"report: {tmp_path / 'r' / 'index.html'}" in "".join(out.splitlines())
    assert fake.command[fake.command.index("--engine") + 1] == "delta-4.4"
    assert fake.command[fake.command.index("-n") + 1] == "2"
    given = " ".join(fake.command)
    assert "--race matrix/* --race *~optimize -k by-date" in given


def test_a_run_without_a_race_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cli_run.subprocess, "Popen", FakePytest((), 5))
    assert "no race was run: pytest ended with 5" in refused(capsys, "run", "--results", str(tmp_path))


def test_bench_prints_its_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from lakerace import bench

    monkeypatch.setattr(
        bench, "main", lambda name, races, drift: {"engine": name, "2 workers : 1 worker": races / drift}
    )
    assert told(capsys, "bench", "--races", "20", "--drift", "10")[1].splitlines() == [
        "engine                delta-4.4",
        "2 workers : 1 worker  2.0",
    ]
    assert json.loads(told(capsys, "bench", "--races", "20", "--drift", "10", "--json")[1])["engine"] == "delta-4.4"


def test_record_takes_an_engine_that_tells_less_at_its_word(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, grids: Path
) -> None:
    name = "matrix/by-date/serializable/update-by-key~delete-by-key"
    hinted = replace(HELD, condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")
    told(capsys, "record", saved(tmp_path, result(name, hinted)))
    plain = replace(HELD, condition="DELTA_CONCURRENT_APPEND")
    err = told(capsys, "record", saved(tmp_path, result(name, plain)), "--engine", "delta-4.0")[2]
    assert "0 new cells written, 1 as declared, 0 that differ" in err
    assert "0 as declared, 1 that differ" in told(capsys, "record", saved(tmp_path, result(name, plain)))[2]


def test_a_line_that_breaks_the_run_does_not_take_the_others_along(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from lakerace import run

    def breaking(race: Any, engine: Any) -> Observation:
        if race.name == "broken":
            raise OSError("the table can't be read\nfor a reason")
        return original(race, engine)

    original = run.run_race
    monkeypatch.setattr(run, "run_race", breaking)
    lines = [{"id": name, "held": UPDATE, "winners": [DELETE]} for name in ("broken", "whole")]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = [json.loads(text) for text in told(capsys, *RS, "--from", str(tmp_path / "r.jsonl"))[1].splitlines()]
    assert found[0] == {"id": "broken", "line": 1, "error": "OSError: the table can't be read"}
    assert "error" not in found[1]
