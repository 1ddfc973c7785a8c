"""Does `lakerace race` answer on delta-rs, or say in one line why not? Whole races, no JVM."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from selfcheck.answers import DELETE, JSON_KEYS, UPDATE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakerace.observe import Observation

    Told = Callable[..., tuple[int, str, str]]
    Refused = Callable[..., str]

SETUP = [
    "CREATE TABLE {t} (id INT, part STRING) USING delta PARTITIONED BY (part)",
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
]
RS = ("race", "--engine", "delta-rs")


def test_a_race_is_run_and_told(told: Told) -> None:
    code, out, err = told(*RS, "--held", UPDATE, "--winner", DELETE)
    assert (code, err) == (0, "")
    assert out.startswith("B commits version 9; A aborts with CommitFailedError (")


def test_a_race_is_explained_by_a_serial_replay_or_its_anomaly_named(told: Told) -> None:
    insert = "INSERT INTO {t} VALUES (99, DATE'2026-08-11', 'DE', 1, 'n')"
    asked = (*RS, "--held", "DELETE FROM {t}", "--winner", insert)
    lines = told(*asked)[1].splitlines()
    assert lines[2].startswith("Serial replay: phantom: A (DELETE FROM {t}) did not see what B (INSERT INTO {t} VALUES")
    assert lines[3:5] == [
        "  B then A: at version 10, expected (99, 2026-08-11, DE, 1, n) not at all, seen once",
        "  A then B: it leaves these rows, but it is not the order of the history",
    ]
    weak = told(*asked, "--isolation", "WriteSerializable")[1]
    assert "Serial replay: explained by: A then B." in weak
    replay = json.loads(told(*asked, "--json")[1])["replay"]
    assert (replay["verdict"], replay["anomaly"], len(replay["tried"])) == ("anomaly", "phantom", 2)
    assert "Serial replay" not in told(*asked, "--no-replay")[1]
    assert json.loads(told(*asked, "--no-replay", "--json")[1])["replay"] is None


def test_a_race_is_run_and_answered_in_json(told: Told) -> None:
    code, out, err = told(*RS,
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


def test_the_same_race_gives_the_same_answer(told: Told) -> None:
    first, second = (
        json.loads(told(*RS, "--held", UPDATE, "--winner", DELETE, "--json")[1]) for _ in range(2)
    )
    for found in (first, second):
        del found["seconds"], found["replay"]["seconds"]
        assert found["files"].pop("unreferenced"), "the loser's file, which has a name of its own each time"
    assert first == second


def test_expect_decides_the_exit_code(told: Told) -> None:
    race = [*RS, "--held", UPDATE, "--winner", DELETE, "--expect"]
    assert told(*race, "append")[0] == 0
    assert told(*race, "aborts")[0] == 0
    code, out, err = told(*race, "commits")
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
    refused: Refused, held: str, winner: str, code: int, message: str
) -> None:
    assert message in refused(*RS, "--held", held, "--winner", winner, code=code)


def test_a_setup_that_fails_gets_one_line(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "my table.sql"
    file.write_text(f"{SETUP[0]};\nINSERT INTO {{t}} VALUES ('no number', 1, 2, 3)", encoding="utf-8")
    assert "layout my-table: INSERT INTO" in refused(*RS, "--setup", str(file), "--held", UPDATE, "--winner", DELETE
    )


def test_a_file_of_races_is_answered_line_by_line(told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    code, out, err = told(*RS, "--from", str(file))
    found = [json.loads(text) for text in out.splitlines()]
    assert code == 0
    assert err == "lakerace: 3 of 5 lines could not be run; their objects say why\n"
    assert [(one["id"], one["line"]) for one in found] == [(None, 1), ("own", 2), ("bad", 3), ("none", 4), (4, 5)]
    assert ["error" in one for one in found] == [True, False, True, True, False]
    assert all(set(one) == {"id", "line", "error"} for one in found if "error" in one)
    assert all(set(one) >= JSON_KEYS for one in found if "error" not in one)
    assert opened == ["delta-rs"]
    assert told(*RS, "--from", str(file), "--expect", "commits")[0] == 1


def test_a_race_leaves_nothing_behind(told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert told(*RS, *race)[0] == 0
    assert list((tmp_path / "here").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not list((tmp_path / "home").rglob("s-*"))
    assert os.environ.get("LAKERACE_WORK") == work


def test_a_line_that_breaks_the_run_does_not_take_the_others_along(
    told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
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
    found = [json.loads(text) for text in told(*RS, "--from", str(tmp_path / "r.jsonl"))[1].splitlines()]
    assert found[0] == {"id": "broken", "line": 1, "error": "OSError: the table can't be read"}
    assert "error" not in found[1]
