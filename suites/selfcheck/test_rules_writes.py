"""From SQL to write sets: which files, columns and properties does a statement change, in which transactions?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakerace.layouts import LAYOUTS, NO_TABLE, named
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, Statement, Write, held_against
from lakerace.rules import files
from lakerace.rules.predict import predict
from lakerace.rules.profiles import PROFILES
from lakerace.rules.statements import NotModelled, plan
from lakerace.rules.tables import table_of
from selfcheck.planning import BY_DATE, DAY, FLAT, NOTHING, SPARK, TWO, VECTORS, only, planned

CREATE = "CREATE TABLE {t} (id INT) USING delta"
EVOLVE = ("MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 1L AS id, 2 AS extra) s ON t.id = s.id WHEN MATCHED "
          "THEN UPDATE SET extra = s.extra")
BEGUN = {
    ("", False): "TABLE_OR_VIEW_ALREADY_EXISTS",
    ("", True): "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    ("IF NOT EXISTS", False): None,
    ("IF NOT EXISTS", True): "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
}


@pytest.mark.parametrize(
    ("text", "table", "removes", "adds"),
    [
        ("UPDATE {t} SET note = 'x' WHERE id = 1", FLAT, 1, 1),
        ("UPDATE {t} SET note = 'x' WHERE id = 1", VECTORS, 1, 2),
        ("UPDATE {t} SET note = 'x'", VECTORS, 8, 8),
        ("UPDATE {t} SET event_date = DATE'2026-08-12' WHERE id = 1", BY_DATE, 1, 2),
        ("DELETE FROM {t} WHERE id = 1", FLAT, 1, 1),
        ("DELETE FROM {t} WHERE id IN (1, 2)", FLAT, 1, 0),
        ("DELETE FROM {t} WHERE country NOT LIKE 'X%'", FLAT, 8, 0),
        ("DELETE FROM {t} WHERE id BETWEEN 1 AND 3", VECTORS, 2, 1),
        (f"DELETE FROM {{t}} WHERE event_date = {DAY}", BY_DATE, 4, 0),
        ("TRUNCATE TABLE {t}", BY_DATE, 8, 0),
        (f"INSERT INTO {{t}} VALUES (1, {DAY}, 'DE', 1, 'x'), (2, DATE'2026-08-12', 'FR', 1, 'y')", BY_DATE, 0, 2),
        (f"INSERT OVERWRITE {{t}} PARTITION (event_date = {DAY}) SELECT 1L, 'DE', 1, 'x'", BY_DATE, 4, 1),
        ("OPTIMIZE {t}", BY_DATE, 8, 2),
        ("OPTIMIZE {t}", FLAT, 8, 1),
        ("OPTIMIZE {t}", TWO, 8, 4),
        (f"OPTIMIZE {{t}} WHERE event_date = {DAY}", BY_DATE, 4, 1),
        ("RESTORE TABLE {t} TO VERSION AS OF 7", BY_DATE, 1, 0),
        ("RESTORE TABLE {t} TO VERSION AS OF 0", BY_DATE, 8, 0),
    ],
)
def test_the_files_that_a_statement_removes_and_adds(text, table, removes, adds):
    found = only(text, table)
    assert (len(found.removes), len(found.adds)) == (removes, adds)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE {t} SET note = 'x' WHERE id = 99",
        "DELETE FROM {t} WHERE id = 99",
        "SELECT * FROM {t}",
        "MERGE INTO {t} t USING (SELECT 99L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_what_changes_nothing_holds_no_action(text):
    assert all(found.skippable for found in planned(text).transactions)
    assert planned(text).refused is None
    assert planned(text).after is BY_DATE


@pytest.mark.parametrize(
    ("profile", "isolation", "word"),
    [
        ("delta-4.4", SERIALIZABLE, "no-commit"),
        ("delta-4.4", WRITE_SERIALIZABLE, "append"),
        ("delta-rs", WRITE_SERIALIZABLE, "no-commit"),
    ],
)
def test_an_empty_commit_is_written_and_checked_at_write_serializable_only(profile, isolation, word):
    race = held_against(
        "r",
        layout=LAYOUTS["flat"],
        held="DELETE FROM {t} WHERE id = 99",
        isolation=isolation,
        winners=("UPDATE {t} SET note = 'x' WHERE id = 1",),
    )
    assert predict(race, PROFILES[profile]).of("A").word == word


@pytest.mark.parametrize(("maybe", "in_catalog"), BEGUN)
def test_a_table_in_the_making_is_in_the_way_of_the_next(maybe, in_catalog):
    here = replace(table_of(named(NO_TABLE) if in_catalog else NO_TABLE), begun=True)
    found = planned(CREATE.replace("TABLE", f"TABLE {maybe}"), here)
    assert (found.refused, found.transactions) == (BEGUN[maybe, in_catalog], ())


def test_a_first_commit_sets_protocol_and_metadata_and_makes_version_0():
    for text in (CREATE, f"CREATE TABLE {{t}} USING delta AS SELECT 1 AS id, {DAY} AS day"):
        (done,), after = planned(text, NOTHING).transactions, planned(text, NOTHING).after
        assert (done.protocol, done.metadata, done.reads) == (frozenset(), {"schema"}, ())
        assert (after.version, next(iter(after.columns))) == (0, "id")
    assert planned(CREATE, FLAT).refused == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert planned(CREATE.replace("TABLE", "TABLE IF NOT EXISTS"), FLAT).transactions == ()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("ALTER TABLE {t} RENAME COLUMN note TO remark", ["id", "event_date", "country", "amount", "remark"]),
        ("ALTER TABLE {t} DROP COLUMN (country, note)", ["id", "event_date", "amount"]),
        (EVOLVE, ["id", "event_date", "country", "amount", "note", "extra"]),
        ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 7L AS id, 'x' AS colour", ["id", "colour"]),
    ],
)
def test_a_changed_schema_is_that_of_the_table_afterwards(text, columns):
    mapped = replace(FLAT, properties={"delta.columnMapping.mode": "name"})
    after = planned(text, mapped).after
    assert list(after.columns) == columns
    rows = files.rows(after)
    assert {len(row) for row in rows} == {len(columns)}
    assert {"remark": "base", "amount": 10, "extra": 2, "colour": "x"}[columns[-1]] in {row[-1] for row in rows}


@pytest.mark.parametrize(
    ("given", "changed", "features"),
    [
        ("'team' = 'night'", {"team"}, None),
        ("'delta.checkpointInterval' = '100'", set(), None),
        ("'delta.feature.checkConstraints' = 'supported'", set(), {"checkConstraints"}),
    ],
)
def test_a_property_changes_what_it_did_not_hold_already(given, changed, features):
    done = only(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({given})", FLAT)
    assert (done.metadata, done.protocol) == (changed, features)


def test_a_statement_held_at_its_second_transaction_has_committed_the_first():
    text = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    race = held_against("r", layout=LAYOUTS["flat"], held=Statement(name="track", does=text, at=2),
                        winners=["INSERT INTO {t} VALUES (1, NULL, 'DE', 1, 'x')"])
    outlook = predict(race, SPARK)
    assert [commit.writer for commit in outlook.commits] == ["A", "B", "A", "A"]
    with pytest.raises(NotModelled, match="1 transactions, none to hold at 2"):
        predict(held_against("r", layout=LAYOUTS["flat"], held=Statement(name="one", does="OPTIMIZE {t}", at=2),
                             winners=["VACUUM {t}"]), SPARK)


def test_a_dataframe_write_is_planned_by_its_options():
    rows = f"SELECT 1L AS id, {DAY} AS event_date, 'DE' AS country, 1 AS amount, 'x' AS note"
    made = {
        "stream": Write(select=rows, options=(("txnAppId", "a"), ("txnVersion", "1"))),
        "evolve": Write(select=f"{rows}, 1 AS extra", options=(("mergeSchema", "true"),)),
        "replace": Write(select=rows, mode="overwrite", options=(("replaceWhere", f"event_date = {DAY}"),)),
        "dynamic": Write(select=rows, mode="overwrite", options=(("partitionOverwriteMode", "dynamic"),)),
        "whole": Write(select=rows, mode="overwrite"),
    }
    found = {name: plan(Statement(name=name, does=one), BY_DATE, SPARK).transactions[0] for name, one in made.items()}
    assert found["stream"].applications == {"a"}
    assert found["stream"].blind
    assert found["evolve"].metadata == {"schema"}
    assert [len(found[name].removes) for name in ("replace", "dynamic", "whole")] == [4, 4, 8]
