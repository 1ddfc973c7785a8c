"""What does `lakerace race` answer on the engine of this run? Own tables, several winners, bad input, interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

import lakerace
from lakerace import cli

if TYPE_CHECKING:
    from collections.abc import Callable

ENGINES = ("delta-spark",)
ORDERS = [
    "CREATE TABLE {t} (id INT, day DATE, state STRING) USING delta PARTITIONED BY (day)",
    "INSERT INTO {t} VALUES (1, DATE'2026-08-11', 'open'), (2, DATE'2026-08-11', 'open')",
    "INSERT INTO {t} VALUES (3, DATE'2026-08-12', 'open')",
]
UPDATE = "UPDATE {t} SET state = 'paid' WHERE id = 1"
INSERT = "INSERT INTO {t} VALUES (4, DATE'2026-08-11', 'new')"
OTHER_DAY = "DELETE FROM {t} WHERE day = DATE'2026-08-12'"


@pytest.fixture
def ask(
    engine: Any, lend: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """``ask(*arguments)``: exit code, stdout and stderr of ``lakerace race``, on the engine of this worker."""
    if engine.line.engine not in ENGINES:
        pytest.skip(f"{engine.line.name} is raced from the command line in test_delta_rs_cli.py")
    lend()

    def asking(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["race", "--engine", engine.line.name, *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return asking


@pytest.fixture
def orders(tmp_path: Path) -> str:
    file = tmp_path / "orders.sql"
    file.write_text("-- a table of orders\n" + ";\n".join(ORDERS) + ";\n", encoding="utf-8")
    return str(file)


def test_a_race_on_an_own_table_is_answered_in_json(ask: Callable[..., tuple[int, str, str]], orders: str) -> None:
    code, out, err = ask("--setup", orders, "--held", UPDATE, "--winner", OTHER_DAY, "--winner", INSERT, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    held, first, second = found["writers"]
    assert (held["outcome"], held["kind"], held["surfaced"]) == ("aborts", "append", "ConcurrentAppendException")
    assert held["root"] == "io.delta.exceptions.ConcurrentAppendException"
    assert held["condition"].startswith("DELTA_CONCURRENT_APPEND")
    assert held["statement"] == UPDATE
    assert held["version"] is None
    assert held["read_version"] == 2
    assert [(one["outcome"], one["version"], one["read_version"]) for one in (first, second)] == [
        ("commits", 3, 2),
        ("commits", 4, 3),
    ]
    assert [(row["version"], row["operation"], row["isBlindAppend"]) for row in found["history"]] == [
        (4, "WRITE", True),
        (3, "DELETE", False),
    ]
    assert found["columns"] == ["id", "day", "state"]
    assert [row[0] for row in found["rows_before"]] == [1, 2, 3]
    assert sorted(row[0] for row in found["rows_after"]) == [1, 2, 4]
    assert found["rows_after"][0] == [1, "2026-08-11", "open"]
    assert len(found["files"]["unreferenced"]) == 1
    assert found["overlap"] is True
    assert found["order"] == "A:read B:read B:commit C:read C:commit A:commit"
    assert found["layout"] == "orders"


def test_another_partition_is_no_conflict(ask: Callable[..., tuple[int, str, str]], orders: str) -> None:
    held = "UPDATE {t} SET state = 'paid' WHERE day = DATE'2026-08-11'"
    code, out, err = ask("--setup", orders, "--held", held, "--winner", OTHER_DAY, "--expect", "commits")
    assert (code, err) == (0, "")
    assert out.startswith("B commits version 3; A commits version 4 at the second attempt.\n")
    assert "proof   A read 2 < 3 < 4" in out


def test_the_isolation_level_decides(ask: Callable[..., tuple[int, str, str]]) -> None:
    race = (
        "--held",
        "UPDATE {t} SET note = 'x' WHERE id = 1",
        "--winner",
        "INSERT INTO {t} SELECT * FROM {other}",
        "--expect",
    )
    assert ask(*race, "append", "--isolation", "Serializable")[0] == 0
    assert ask(*race, "commits", "--isolation", "WriteSerializable")[0] == 0
    code, _, err = ask(*race, "commits")
    assert code == 1
    assert err.startswith("lakerace: expected commits, but A aborts with ConcurrentAppendException")


NOTHING = "the order could not be forced: the held statement commits nothing"


@pytest.mark.parametrize(
    ("statements", "expected", "message"),
    [
        (["DELETE FROM {t} WHERE id = -1", INSERT], 3, NOTHING),
        (["SELECT * FROM {t}", INSERT], 2, "the held statement: a query commits nothing; give it as --reader"),
        ([UPDATE, "DELETE FROM {t} WHERE id = -1"], 3, "nothing raced: no winner committed"),
        ([UPDATE, INSERT, "DELETE FROM {t} WHERE nope = 1"], 2, "winner C fails: [UNRESOLVED_COLUMN"),
        ([UPDATE, "ALTER TABLE {t} ADD NOTHING"], 2, "winner B fails: [PARSE_SYNTAX_ERROR]"),
        (["UPDATE {t} SET nope = 1", INSERT], 2, "the held statement fails: [UNRESOLVED_COLUMN"),
        (["INSERT INTO {t} VALUES (1 / 0, NULL, NULL)", INSERT], 2, "the held statement fails: "),
    ],
)
def test_a_race_that_answers_nothing_gets_one_line(
    ask: Callable[..., tuple[int, str, str]], orders: str, statements: list[str], expected: int, message: str
) -> None:
    held, *winners = statements
    code, out, err = ask("--setup", orders, "--held", held, *(part for sql in winners for part in ("--winner", sql)))
    assert (code, out) == (expected, "")
    assert err.startswith(f"lakerace: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ("INSERT INTO {t} VALUES (1)", "layout own: 'INSERT INTO {t} VALUES (1)' failed: "),
        ("CREATE TABLE {t} (id INT) USING delta; INSERT INTO {t} VALUES ('x')", "[CAST_INVALID_INPUT]"),
        ("CREATE TABLE {t} (id INT) USING delta; ALTER TABLE {t} ADD NOTHING", "[PARSE_SYNTAX_ERROR]"),
        ("SELECT '{t}'", "layout own: its statements made no Delta table at {t}"),
    ],
)
def test_a_setup_that_fails_gets_one_line(
    ask: Callable[..., tuple[int, str, str]], tmp_path: Path, setup: str, message: str
) -> None:
    (tmp_path / "own.sql").write_text(setup, encoding="utf-8")
    code, out, err = ask("--setup", str(tmp_path / "own.sql"), "--held", "DELETE FROM {t}", "--winner", "OPTIMIZE {t}")
    assert (code, out) == (2, "")
    assert err.startswith("lakerace: layout own: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_of_races_is_answered_line_by_line(ask: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    lines: list[Any] = [
        {"id": "own", "setup": ORDERS, "isolation": "Serializable", "held": UPDATE, "winners": [INSERT]},
        {"id": "typo", "layout": "flatt", "held": UPDATE, "winners": [INSERT]},
        {"id": "fails", "setup": ORDERS, "held": UPDATE, "winners": ["DELETE FROM {t} WHERE nope = 1"]},
        {
            "id": "copy",
            "setup": ["CREATE TABLE {t} USING delta AS SELECT * FROM {other}"],
            "held": "UPDATE {t} SET note = 'x'",
            "winners": ["ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')"],
        },
        {"id": "vacuum", "held": "OPTIMIZE {t}", "winners": ["VACUUM {t}"]},
    ]
    (tmp_path / "r.jsonl").write_text("\n".join([*map(json.dumps, lines), "no json"]), encoding="utf-8")
    code, out, err = ask("--from", str(tmp_path / "r.jsonl"))
    found = [json.loads(text) for text in out.splitlines()]
    assert (code, err) == (0, "lakerace: 3 of 6 lines could not be run; their objects say why\n")
    assert [one["id"] for one in found] == ["own", "typo", "fails", "copy", "vacuum", None]
    assert [one["writers"][0]["kind"] for one in found if "error" not in one] == ["append", "metadata", None]
    assert "unknown layout 'flatt'" in found[1]["error"]
    assert "winner B fails: [UNRESOLVED_COLUMN" in found[2]["error"]


def test_an_interrupted_run_ends_quietly_and_leaves_nothing(engine: Any, tmp_path: Path) -> None:
    """A process of its own, as a person starts it: answers come as they are ready, and only they are on stdout."""
    if engine.line.engine not in ENGINES:
        pytest.skip(f"{engine.line.name} starts nothing that could stay")
    line = json.dumps({"held": "UPDATE {t} SET note = 'x' WHERE id = 1", "winners": ["VACUUM {t}"]})
    (tmp_path / "r.jsonl").write_text("\n".join([line] * 200), encoding="utf-8")
    for name in ("temporary", "here"):
        (tmp_path / name).mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if name != "LAKERACE_WORK"},
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONPATH": str(Path(lakerace.__file__).parents[1]),
    }
    command = [
        sys.executable,
        "-m",
        "lakerace",
        "race",
        "--engine",
        engine.line.name,
        "--from",
        str(tmp_path / "r.jsonl"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path / "here", env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        rest, told = process.stdout.read(), process.stderr.read()
    assert process.returncode == 130
    assert [answer["line"] for answer in answers] == [1, 2]
    assert all(json.loads(text) for text in rest.splitlines())
    assert told == ""
    assert any(child.name() == "java" for child in started if child.is_running()) is False
    assert list((tmp_path / "here").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []
