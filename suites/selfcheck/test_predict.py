"""``lakerace predict``: one object of the shape that a race gives, the chain of checks, changes that really flip it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.cli import run
from lakerace.cli_race_told import answer as race_answer
from lakerace.conflicts import KINDS
from lakerace.layouts import LAYOUTS
from lakerace.observe import COMMITS, Files
from lakerace.race import Statement, both_held, held_against
from lakerace.rules.advise import both_orders, changes
from lakerace.rules.predict import predict
from lakerace.rules.profiles import PROFILES
from selfcheck.seen import observed, won

UPDATE = "UPDATE {t} SET note = 'x' WHERE id = 1"
INSERT = "INSERT INTO {t} VALUES (900, DATE'2026-08-12', 'FR', 1, 'x')"
MERGE = (
    "MERGE INTO {t} t USING (SELECT 1L AS id, DATE'2026-08-11' AS event_date) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET note = 'm'"
)


def ask(capsys, *arguments):
    code = run(["predict", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def asked(capsys, *arguments):
    code, out, err = ask(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_the_object_has_every_key_of_a_race_and_says_that_it_is_predicted(capsys):
    seen = observed(won(), files=Files(live=1, on_disk=1))
    found = asked(capsys, "--held", UPDATE, "--winner", INSERT)
    assert race_answer(seen).keys() <= found.keys()
    assert race_answer(seen)["writers"][0].keys() == found["writers"][0].keys()
    assert found["predicted"] is True


def test_a_loser_carries_class_condition_state_and_partition(capsys):
    held, winner = asked(capsys, "--layout", "by-date", "--held", UPDATE, "--winner", INSERT)["writers"]
    assert (held["outcome"], held["kind"], held["surfaced"]) == ("aborts", "append", "ConcurrentAppendException")
    assert held["root"] == "io.delta.exceptions.ConcurrentAppendException"
    assert held["condition"] == "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"
    assert (held["sqlstate"], held["version"], held["attempts"]) == ("2D521", None, 1)
    assert held["parameters"] == {"partitionValues": "event_date=2026-08-12"}
    assert (winner["outcome"], winner["version"], winner["read_version"]) == ("commits", 9, 8)


def test_what_is_rebased_keeps_its_read_version_and_the_rows_are_told(capsys):
    found = asked(capsys, "--held", INSERT, "--winner", UPDATE)
    newest, older = found["history"]
    assert (newest["version"], newest["readVersion"], newest["isBlindAppend"]) == (10, 8, True)
    assert (older["operation"], older["isolationLevel"]) == ("UPDATE", "Serializable")
    assert len(found["rows_before"]) == 16
    assert len(found["rows_after"]) == 17
    assert [1, "2026-08-11", "DE", 10, "x"] in found["rows_after"]


def test_the_chain_is_in_the_order_of_the_engine(capsys):
    found = asked(capsys, "--held", INSERT, "--winner", "OPTIMIZE {t}")
    assert [check["name"] for check in found["checks"]] == [
        "protocol",
        "metadata",
        "domain-metadata",
        "transaction-id",
        "added-files",
        "deleted-read",
        "deleted-deleted",
    ]
    rust = asked(capsys, "--profile", "delta-rs", "--held", INSERT, "--winner", "OPTIMIZE {t}")
    assert [check["name"] for check in rust["checks"]][-2:] == ["deleted-deleted", "transaction-id"]


@pytest.mark.parametrize(
    ("layout", "profile", "held", "unit"),
    [
        ("flat", "delta-4.4", UPDATE, "table"),
        ("by-date", "delta-4.4", "DELETE FROM {t} WHERE event_date = DATE'2026-08-11'", "partition"),
        ("by-date", "delta-4.4", MERGE, "table"),
        ("flat", "delta-4.4", "OPTIMIZE {t}", "file"),
        ("flat", "delta-4.4", INSERT, "nothing"),
        ("flat-dv", "databricks", UPDATE, "row"),
        ("by-date-dv", "databricks", UPDATE, "table"),
        ("flat", "delta-rs", UPDATE, "file"),
    ],
)
def test_the_unit_that_two_writers_must_not_share(capsys, layout, profile, held, unit):
    args = ("--layout", layout, "--profile", profile, "--held", held, "--winner", "ALTER TABLE {t} ADD COLUMN (x INT)")
    assert asked(capsys, *args)["unit"] == unit


def test_a_literal_on_the_partition_column_counts_an_equality_does_not(capsys):
    literal = MERGE.replace("t.id = s.id", "t.id = s.id AND t.event_date = DATE'2026-08-11'")
    joined = MERGE.replace("t.id = s.id", "t.id = s.id AND t.event_date = s.event_date")
    by = ("--layout", "by-date", "--winner", INSERT)
    assert asked(capsys, "--held", literal, *by)["usable_predicates"] == ["t.event_date = DATE'2026-08-11'"]
    assert asked(capsys, "--held", joined, *by)["usable_predicates"] == []
    assert asked(capsys, "--held", literal, "--winner", INSERT)["usable_predicates"] == []


def test_databricks_is_write_serializable_unless_told_otherwise(capsys):
    by = ("--profile", "databricks", "--layout", "by-date", "--held", UPDATE, "--winner", INSERT)
    assert asked(capsys, *by)["writers"][0]["outcome"] == "commits"
    assert asked(capsys, *by, "--isolation", "Serializable")["writers"][0]["outcome"] == "aborts"


def test_both_orders_in_one_answer(capsys):
    found = asked(capsys, "--held", UPDATE, "--winner", INSERT, "--both-orders")
    assert found["writers"][0]["outcome"] == "aborts"
    assert found["swapped"]["writers"][0]["outcome"] == "commits"
    code, out, _ = ask(capsys, "--held", UPDATE, "--winner", INSERT, "--both-orders")
    assert code == 0
    assert "The other order" in out


def test_a_file_of_races_is_answered_line_by_line(capsys, tmp_path):
    lines = [
        json.dumps({"id": "a", "layout": "by-date", "held": UPDATE, "winners": [INSERT]}),
        "{broken",
        json.dumps({"id": 7, "held": "DELETE FROM {t} WHERE id = 99", "winners": [INSERT]}),
        json.dumps(
            {
                "id": "own",
                "setup": ["CREATE TABLE {t} (k INT) USING delta", "INSERT INTO {t} VALUES (1)"],
                "held": "UPDATE {t} SET k = 2",
                "winners": ["INSERT INTO {t} VALUES (3)", "DELETE FROM {t}"],
            }
        ),
    ]
    (tmp_path / "races.jsonl").write_text("\n".join(lines), encoding="utf-8")
    code, out, err = ask(capsys, "--from", str(tmp_path / "races.jsonl"))
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(one["id"], one["line"], "error" in one) for one in found] == [
        ("a", 1, False),
        (None, 2, True),
        (7, 3, True),
        ("own", 4, False),
    ]
    assert found[3]["checks"][-1]["winner"] == "B"
    assert "2 of 4 lines could not be predicted" in err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--held", UPDATE], 2, "no winner"),
        (["--held", UPDATE, "--winner", "UPDAT {t}"], 2, "begins no SQL statement"),
        (["--held", UPDATE, "--winner", "CALL x({t})"], 2, "the rules can't tell"),
        (["--held", UPDATE, "--winner", INSERT, "--profile", "oracle"], 2, "unknown profile 'oracle'"),
        (["--held", UPDATE, "--winner", INSERT, "--layout", "nowhere"], 2, "nowhere"),
        (
            ["--held", "DELETE FROM {t} WHERE id IN (SELECT id FROM {other})", "--winner", INSERT],
            2,
            "held statement fails",
        ),
        (["--held", UPDATE, "--winner", "OPTIMIZE {t} WHERE id = 1"], 2, "winner B fails"),
        (["--held", "DELETE FROM {t} WHERE id = 99", "--winner", INSERT], 3, "commits nothing"),
        (
            ["--held", "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN MATCHED THEN DELETE", "--winner", INSERT],
            3,
            "there is no commit to stop it at. {other} holds the ids 101 and 102",
        ),
        (["--held", UPDATE, "--winner", "DELETE FROM {t} WHERE id = 99"], 3, "no winner commits"),
        (["--held", "SELECT * FROM {t}", "--winner", INSERT], 2, "the held statement: a query commits nothing"),
        (["--held", "UPDATE {t} SET nope = 1", "--winner", INSERT], 2, "A: the table has no column 'nope'"),
        (["--held", UPDATE, "--winner", "DELETE FROM {t} WHERE nope = 1"], 2, "B: the table has no column 'nope'"),
        (["--held", UPDATE, "--winner", "INSERT INTO {t} (nope) VALUES (1)"], 2, "B: the table has no column 'nope'"),
        (["--held", UPDATE, "--winner", "DELETE FROM {t} LIMIT 1"], 2, "the rules know no LIMIT in DELETE"),
        (["--held", UPDATE, "--winner", INSERT, "--expect", "commits"], 1, "expected commits"),
        (["--held", UPDATE, "--winner", INSERT, "--expect", "nonsense"], 2, "no outcome"),
        (["--held", UPDATE, "--winner", INSERT, "--winner", INSERT, "--both-orders"], 2, "one winner"),
    ],
)
def test_what_can_t_be_answered_is_one_line(capsys, arguments, code, says):
    got, _, err = ask(capsys, *arguments)
    assert got == code
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("profile", ["delta-4.4", "databricks"])
@pytest.mark.parametrize("held", ["merge-on-key", "update-all", "update-by-key", "merge-with-literal", "optimize"])
@pytest.mark.parametrize("winner", ["insert-other-date", "merge-other-literal", "insert-values"])
@pytest.mark.parametrize("layout", ["flat-dv", "by-date"])
def test_each_change_named_flips_the_verdict_and_the_cheapest_comes_first(layout, winner, held, profile):
    race = held_against("r", layout=LAYOUTS[layout], held=CATALOGUE[held], winners=(CATALOGUE[winner],))
    outlook = predict(race, PROFILES[profile])
    word = outlook.of("A").word
    named = changes(outlook)
    assert len(named) <= 3
    assert [change.cost for change in named] == sorted(change.cost for change in named)
    for change in named:
        if change.kind == "order":
            assert predict(both_orders(race), PROFILES[profile]).of("A").word == change.becomes
        else:
            assert (change.becomes == COMMITS) != (word == COMMITS)
        if change.kind in ("predicate", "split"):
            told = (replace(race.writer("A"), statements=(Statement(name="x", does=change.held),)), *race.writers[1:])
            assert predict(replace(race, writers=told), PROFILES[profile]).of("A").word == change.becomes


def test_what_the_sql_leaves_open_is_said(capsys):
    unknown = "INSERT INTO {t} SELECT id, CAST(from_unixtime(id) AS DATE), 'DE', 1, 'x' FROM {other}"
    by = ("--layout", "by-date", "--held", "DELETE FROM {t} WHERE event_date = DATE'2026-08-11'", "--winner")
    assert asked(capsys, *by, unknown)["assumed"] == ["that B may write to any partition"]
    assert asked(capsys, *by, INSERT)["assumed"] == []
    assert "may write to any partition" in ask(capsys, *by, unknown)[1]


def test_two_held_writers_are_walked_in_their_order():
    race = both_held("r", layout=LAYOUTS["flat"], first=UPDATE, second="DELETE FROM {t} WHERE id = 9")
    outlook = predict(race, PROFILES["delta-4.4"])
    assert (outlook.of("B").word, outlook.of("A").word) == (COMMITS, "append")


def test_a_harmless_winner_first_and_the_chain_goes_on_to_the_next():
    race = held_against(
        "r", layout=LAYOUTS["flat"], held=INSERT, winners=(UPDATE, "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')")
    )
    found = predict(race, PROFILES["delta-4.4"]).of("A").prediction
    assert found.word == KINDS["metadata"].word
    assert [check.winner for check in found.checks if check.name == "protocol"] == ["B", "C"]


def test_the_level_of_the_table_s_own_properties_counts(capsys, tmp_path):
    setup = tmp_path / "own.sql"
    setup.write_text(
        "CREATE TABLE {t} (id INT, v INT) USING delta TBLPROPERTIES ('delta.isolationLevel' = 'Serializable');"
        "INSERT INTO {t} VALUES (1, 1)",
        encoding="utf-8",
    )
    by = (
        "--profile",
        "databricks",
        "--setup",
        str(setup),
        "--held",
        "UPDATE {t} SET v = 2",
        "--winner",
        "INSERT INTO {t} VALUES (2, 2)",
    )
    assert asked(capsys, *by)["isolation"] == "serializable"
    assert asked(capsys, *by)["writers"][0]["outcome"] == "aborts"
    assert asked(capsys, *by, "--isolation", "WriteSerializable")["writers"][0]["outcome"] == "commits"
