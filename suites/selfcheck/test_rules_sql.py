"""From SQL to read and write sets: which part of a condition narrows a read, and which files a statement touches."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from lakerace.layouts import LAYOUTS, NO_TABLE, layout_from_statements, named
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, Statement, Write, held_against
from lakerace.rules import files
from lakerace.rules.commands import AT_ONCE
from lakerace.rules.predict import predict
from lakerace.rules.profiles import PROFILES
from lakerace.rules.statements import NotModelled, plan
from lakerace.rules.tables import table_of

BY_DATE = table_of(LAYOUTS["by-date"])
TWO = table_of(LAYOUTS["by-date-country"])
FLAT = table_of(LAYOUTS["flat"])
NOTHING = table_of(NO_TABLE)
VECTORS = table_of(LAYOUTS["flat-dv"])
SPARK = PROFILES["delta-4.4"]
DAY = "DATE'2026-08-11'"
SOURCE = f"(SELECT 1L AS id, {DAY} AS event_date, 'DE' AS country, 7 AS amount, 'm' AS note)"


def planned(text, table=BY_DATE, profile=SPARK):
    return plan(Statement(name="drawn", does=text), table, profile)


def only(text, table=BY_DATE, profile=SPARK):
    (found,) = planned(text, table, profile).transactions
    return found


@pytest.mark.parametrize(
    ("condition", "partition", "data"),
    [
        (f"event_date = {DAY}", f"event_date = {DAY}", ""),
        ("event_date = '2026-08-11'", "event_date = '2026-08-11'", ""),
        (f"event_date = {DAY} AND id = 1", f"event_date = {DAY}", "id = 1"),
        (f"(event_date = {DAY}) AND (id = 1 AND amount > 2)", f"event_date = {DAY}", "id = 1 AND amount > 2"),
        (f"event_date = {DAY} OR id = 1", "", f"event_date = {DAY} OR id = 1"),
        (f"event_date IN ({DAY})", f"event_date IN ({DAY})", ""),
        (f"event_date BETWEEN {DAY} AND {DAY}", f"event_date BETWEEN {DAY} AND {DAY}", ""),
        ("event_date IS NULL", "event_date IS NULL", ""),
        ("year(event_date) = 2026", "YEAR(event_date) = 2026", ""),
        ("event_date = date(note)", "", "event_date = CAST(note AS DATE)"),
        ("my_function(event_date) = 1", "", ""),
        ("rand() < 0.5", "", "RAND() < 0.5"),
        ("id = 1", "", "id = 1"),
    ],
)
def test_only_conjuncts_on_partition_columns_alone_narrow_the_read(condition, partition, data):
    (read,) = only(f"INSERT INTO {{t}} REPLACE WHERE {condition} SELECT * FROM {{other}}").reads
    assert (read.partition, read.data) == (partition, data)


@pytest.mark.parametrize(
    ("condition", "days"),
    [
        (f"event_date = {DAY}", {11}),
        ("event_date = '2026-08-11'", {11}),
        (f"event_date <> {DAY}", {12}),
        (f"event_date > {DAY}", {12}),
        (f"event_date >= {DAY}", {11, 12}),
        (f"event_date IN ({DAY}, DATE'2030-01-01')", {11}),
        (f"event_date BETWEEN {DAY} AND DATE'2026-08-11'", {11}),
        ("day(event_date) = 12", {12}),
        ("date_format(event_date, 'dd') = '12'", {12}),
        ("date_format(event_date, 'E') = 'Wed'", {11, 12}),
        ("date_trunc('month', event_date) = '2026-08-01'", {11, 12}),
        ("date_add(event_date, 1) = DATE'2026-08-12'", {11}),
        ("dayofweek(event_date) = 4", {12}),
        ("event_date + INTERVAL 1 DAY = DATE'2026-08-12'", {11}),
        ("CASE WHEN day(event_date) = 11 THEN true ELSE false END", {11}),
        ("event_date = make_date(2026, 8, 12)", {12}),
        ("pmod(day(event_date), 2) = 0", {12}),
        ("left(CAST(event_date AS STRING), 7) = '2026-07'", set()),
        ("CAST(event_date AS STRING) LIKE '2026-08-1_'", {11, 12}),
        ("CAST(event_date AS STRING) = '2026-08-12'", {12}),
        ("substr(CAST(event_date AS STRING), 9, 2) = '12'", {12}),
        ("coalesce(event_date, DATE'2026-08-12') = DATE'2026-08-12'", {12}),
        ("event_date <=> DATE'2026-08-12'", {12}),
        ("NOT event_date = DATE'2026-08-12'", {11}),
        ("event_date IS NOT NULL", {11, 12}),
        ("event_date IS NULL", set()),
        ("event_date = NULL", set()),
        ("struct(event_date) = struct(DATE'2026-08-11')", {11}),
        ("(event_date, 1) IN ((DATE'2026-08-12', 1), (DATE'2026-08-11', 2))", {12}),
        ("event_date < current_date()", {11, 12}),
    ],
)
def test_a_partition_predicate_covers_the_days_for_which_it_may_hold(condition, days):
    (read,) = only(f"INSERT INTO {{t}} REPLACE WHERE {condition} SELECT * FROM {{other}}").reads
    seen = {day for day in (11, 12) if read.matches({"event_date": datetime.date(2026, 8, day)})}
    assert seen == days


@pytest.mark.parametrize(
    ("on", "clauses", "narrows"),
    [
        ("t.id = s.id", "WHEN MATCHED THEN DELETE", ""),
        ("t.id = s.id AND t.event_date = s.event_date", "WHEN MATCHED THEN DELETE", ""),
        (f"t.id = s.id AND t.event_date = {DAY}", "WHEN MATCHED THEN DELETE", f"t.event_date = {DAY}"),
        (f"t.id = s.id AND s.event_date = {DAY}", "WHEN MATCHED THEN DELETE", ""),
        ("t.id = s.id", f"WHEN MATCHED AND t.event_date = {DAY} THEN DELETE", f"t.event_date = {DAY}"),
        ("t.id = s.id", f"WHEN MATCHED AND t.event_date = {DAY} THEN DELETE WHEN NOT MATCHED THEN INSERT *", ""),
        (
            "t.id = s.id",
            f"WHEN MATCHED AND t.event_date = {DAY} THEN UPDATE SET note = 'a' WHEN MATCHED THEN DELETE",
            "",
        ),
        (
            f"t.id = s.id AND t.event_date = {DAY}",
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "",
        ),
    ],
)
def test_a_merge_reads_by_the_conjuncts_on_its_target_alone(on, clauses, narrows):
    found = only(f"MERGE INTO {{t}} t USING {SOURCE} s ON {on} {clauses}")
    assert [read.partition for read in found.reads] == [narrows]


@pytest.mark.parametrize(
    ("text", "blind"),
    [
        (f"INSERT INTO {{t}} VALUES (1, {DAY}, 'DE', 1, 'x')", True),
        ("INSERT INTO {t} SELECT * FROM {other}", True),
        ("INSERT INTO {t} SELECT * FROM {t} WHERE id = 1", False),
        ("INSERT INTO {t} SELECT * FROM {other} WHERE id NOT IN (SELECT id FROM {t})", False),
        ("INSERT OVERWRITE {t} SELECT * FROM {other}", False),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", True),
        ("DELETE FROM {t}", False),
        ("OPTIMIZE {t}", False),
    ],
)
def test_what_reads_nothing_is_blind(text, blind):
    assert only(text).blind is blind


@pytest.mark.parametrize(
    ("text", "table", "removes", "adds"),
    [
        ("UPDATE {t} SET note = 'x' WHERE id = 1", FLAT, 1, 1),
        ("UPDATE {t} SET note = 'x' WHERE id = 1", VECTORS, 1, 2),
        ("UPDATE {t} SET note = 'x'", VECTORS, 8, 8),
        ("UPDATE {t} SET event_date = DATE'2026-08-12' WHERE id = 1", BY_DATE, 1, 2),
        ("DELETE FROM {t} WHERE id = 1", FLAT, 1, 1),
        ("DELETE FROM {t} WHERE id IN (1, 2)", FLAT, 1, 0),
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


@pytest.mark.parametrize(
    ("text", "table", "condition"),
    [
        ("DELETE FROM {t} WHERE id IN (SELECT id FROM {other})", FLAT, "DELTA_UNSUPPORTED_SUBQUERY"),
        ("OPTIMIZE {t} WHERE id = 1", BY_DATE, "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("OPTIMIZE {t} ZORDER BY (event_date)", BY_DATE, "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        ("CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}", FLAT, "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"),
        ("OPTIMIZE {t} FULL", FLAT, "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"),
        ("VACUUM {t} RETAIN 0 HOURS", FLAT, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        ("DELETE FROM {t} WHERE rand() < 0.5", FLAT, "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        (
            "MERGE INTO {t} t USING {other} s ON t.id = s.id AND rand() < 2 WHEN MATCHED THEN DELETE",
            FLAT,
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        ),
        (
            "MERGE INTO {t} t USING {other} s ON t.id IN (SELECT 1) WHEN MATCHED THEN DELETE",
            FLAT,
            "DELTA_UNSUPPORTED_SUBQUERY",
        ),
        ("ALTER TABLE {t} DROP COLUMN note", FLAT, "DELTA_UNSUPPORTED_DROP_COLUMN"),
        ("ALTER TABLE {t} RENAME COLUMN note TO remark", FLAT, "DELTA_UNSUPPORTED_RENAME_COLUMN"),
        ("ALTER TABLE {t} ALTER COLUMN amount TYPE BIGINT", FLAT, "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("ALTER TABLE {t} CLUSTER BY (id)", BY_DATE, "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"),
        ("ALTER TABLE {t} DROP FEATURE deletionVectors", FLAT, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        (
            "INSERT INTO {t} REPLACE USING (event_date) SELECT * FROM {other}",
            FLAT,
            "UNSUPPORTED_FEATURE.TABLE_OPERATION",
        ),
        ("INSERT INTO {t} REPLACE ON t.id = s.id SELECT * FROM {other} s", FLAT, "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
        (
            "INSERT INTO {t} REPLACE WHERE id = 1 VALUES (2, DATE'2026-08-11', 'DE', 1, 'x')",
            FLAT,
            "DELTA_REPLACE_WHERE_MISMATCH",
        ),
        (
            "MERGE INTO {t} t USING (VALUES (1, 'a')) AS s(id, n) ON t.id = s.id WHEN MATCHED THEN DELETE",
            FLAT,
            "COLUMN_ALIASES_NOT_ALLOWED",
        ),
    ],
)
def test_what_the_engine_refuses_carries_its_condition(text, table, condition):
    assert planned(text, table).refused == condition


def test_a_query_in_front_of_an_insert_is_read():
    text = f"WITH a AS (SELECT * FROM {{t}} WHERE event_date = {DAY} AND id = 1) INSERT INTO {{t}} SELECT * FROM a"
    found = only(text)
    assert [read.partition for read in found.reads] == [f"event_date = {DAY}"]
    assert [[row["id"] for row in file.rows] for file in found.adds] == [[1]]


def test_delta_rs_takes_a_subquery_whose_rows_are_known():
    text = "DELETE FROM {t} WHERE id IN (SELECT id - 100 FROM {other})"
    found = plan(Statement(name="drawn", does=text), FLAT, PROFILES["delta-rs"], {"other": table_of(LAYOUTS["flat"])})
    assert found.refused is None


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("COPY INTO {t} FROM 'x'", BY_DATE),
        ("CALL something()", BY_DATE),
        ("UPDATE {t} SET id = 1", NOTHING),
        ("CREATE TABLE {t} USING delta AS SELECT * FROM somewhere", NOTHING),
    ],
)
def test_what_is_not_modelled_says_so_in_one_line(text, table):
    with pytest.raises(NotModelled) as told:
        planned(text, table)
    assert "\n" not in str(told.value)


CREATE = "CREATE TABLE {t} (id INT) USING delta"
EVOLVE = ("MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 1L AS id, 2 AS extra) s ON t.id = s.id WHEN MATCHED "
          "THEN UPDATE SET extra = s.extra")
BEGUN = {
    ("", False): "TABLE_OR_VIEW_ALREADY_EXISTS",
    ("", True): "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    ("IF NOT EXISTS", False): None,
    ("IF NOT EXISTS", True): "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
}


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


def test_a_setup_becomes_files_with_their_partitions():
    made = table_of(
        layout_from_statements(
            "own",
            (
                (
                    "CREATE TABLE {t} (id INT, day STRING, v DOUBLE) USING delta PARTITIONED BY (day) "
                    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
                ),
                "INSERT INTO {t} VALUES (1, 'mon', 1.5), (2, 'tue', NULL)",
                "INSERT INTO {t} (day, id) VALUES ('mon', 3)",
                "DELETE FROM {t} WHERE id = 2",
            ),
        )
    )
    assert made.partitioned == ("day",)
    assert "deletionVectors" in made.features
    assert sorted((file.partition["day"], [row["id"] for row in file.rows]) for file in made.files) == [
        ("mon", [1]),
        ("mon", [3]),
    ]


def test_rows_that_the_text_does_not_tell_leave_their_place_open():
    made = table_of(
        layout_from_statements(
            "own",
            (
                "CREATE TABLE {t} (id INT, day STRING) USING delta PARTITIONED BY (day)",
                "INSERT INTO {t} SELECT id, uuid() FROM somewhere",
            ),
        )
    )
    (file,) = made.files
    assert file.rows is None
    found = only("DELETE FROM {t} WHERE day = 'mon'", made)
    assert len(found.removes) == 1


@pytest.mark.parametrize(
    ("setup", "places"),
    [
        (
            [
                "CREATE TABLE {t} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} SELECT id, CAST(id % 2 AS STRING) FROM range(0, 4)",
            ],
            {"0": [0, 2], "1": [1, 3]},
        ),
        (
            [
                "CREATE TABLE {t} (id INT, p INT GENERATED ALWAYS AS (id % 10)) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} (id) VALUES (11), (22)",
            ],
            {1: [11], 2: [22]},
        ),
        (
            [
                "CREATE TABLE {t} (id INT, p STRING DEFAULT 'x') USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} (id) VALUES (1)",
            ],
            {"x": [1]},
        ),
        (
            ["CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1 AS id, 'a' AS p UNION ALL SELECT 2, 'b'"],
            {"a": [1], "b": [2]},
        ),
        (
            [
                "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} WITH a AS (SELECT 1 AS id), b AS (SELECT id FROM a) SELECT id, 'w' FROM b",
            ],
            {"w": [1]},
        ),
        (
            [
                "SET spark.sql.shuffle.partitions = 1",
                "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} SELECT col1, col2 FROM VALUES (1, 'v')",
            ],
            {"v": [1]},
        ),
    ],
)
def test_setups_of_many_shapes_are_read(setup, places):
    made = table_of(layout_from_statements("own", tuple(setup)))
    found: dict[object, list[object]] = {}
    for file in made.files:
        found.setdefault(file.partition["p"], []).extend(row["id"] for row in file.rows)
    assert found == places


def test_optimize_runs_again_when_a_file_went_that_it_had_not_compacted():
    made = layout_from_statements(
        "own",
        (
            "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO {t} VALUES (3, 'a')",
        ),
    )
    words = {
        gone: predict(
            held_against("r", layout=made, held="OPTIMIZE {t}", winners=(f"DELETE FROM {{t}} WHERE p = '{gone}'",)),
            SPARK,
        )
        .of("A")
        .word
        for gone in ("a", "b")
    }
    assert words == {"a": "delete-read", "b": "commits"}


MARKED = layout_from_statements(
    "marked",
    (
        (
            "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p) "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        ),
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a')",
        "INSERT INTO {t} VALUES (3, 'b'), (4, 'b')",
        "INSERT INTO {t} VALUES (5, 'a')",
        "DELETE FROM {t} WHERE id = 1",
    ),
)


def held_word(held, *winners):
    return predict(held_against("r", layout=MARKED, held=held, winners=winners), SPARK).of("A").word


@pytest.mark.parametrize(
    ("held", "winners", "word"),
    [
        ("OPTIMIZE {t}", ["DELETE FROM {t} WHERE id = 2"], "delete-read"),
        ("OPTIMIZE {t}", ["DELETE FROM {t} WHERE id = 5", "RESTORE TABLE {t} TO VERSION AS OF 4"], "commits"),
        ("OPTIMIZE {t}", ["DELETE FROM {t} WHERE id = 3", "RESTORE TABLE {t} TO VERSION AS OF 4"], "commits"),
        ("OPTIMIZE {t}", ["RESTORE TABLE {t} TO VERSION AS OF 3"], "delete-read"),
        ("OPTIMIZE {t}", ["ALTER TABLE {t} ADD COLUMN (q INT)"], "commits"),
        ("OPTIMIZE {t}", ["ALTER TABLE {t} ADD COLUMN (q INT)", "DELETE FROM {t} WHERE id = 5"], "metadata"),
        (
            "OPTIMIZE {t}",
            [
                "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
                "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
            ],
            "metadata",
        ),
        ("REORG TABLE {t} APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 5"], "commits"),
        ("REORG TABLE {t} APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 2"], "delete-read"),
        ("REORG TABLE {t} WHERE p = 'b' APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 2"], "no-commit"),
        ("REORG TABLE {t} WHERE id = 1 APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 2"], "fails"),
        ("REORG TABLE {t} APPLY (SHRINK)", ["DELETE FROM {t} WHERE id = 2"], "fails"),
        ("DELETE FROM {t} WHERE p = 'a' AND id = 5", ["REORG TABLE {t} APPLY (PURGE)"], "append"),
        ("DELETE FROM {t} WHERE p = 'b' AND id = 3", ["REORG TABLE {t} APPLY (PURGE)"], "commits"),
    ],
)
def test_maintenance_looks_for_its_files_under_their_vectors(held, winners, word):
    assert held_word(held, *winners) == word


@pytest.mark.parametrize(("changes", "word"), [("false", "commits"), ("true", "append")])
def test_a_rewrite_that_changes_no_data_passes_appends(changes, word):
    rewrite = Write(select="SELECT * FROM {t}", mode="overwrite", options=(("dataChange", changes),))
    assert held_word(rewrite, "INSERT INTO {t} VALUES (6, 'a')") == word


@pytest.mark.parametrize(
    ("held", "on", "at_once", "word"),
    [
        ("p = 'a'", "true", "false", "append"),
        ("p = 'a'", "true", "true", "commits"),
        ("p = 'a'", "false", "false", "commits"),
        ("p = 'b'", "true", "false", "commits"),
    ],
    ids=["compacted", "counted", "turned off", "elsewhere"],
)
def test_auto_compaction_is_one_more_commit_behind_an_excused_insert(held, on, at_once, word):
    turned = f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.autoOptimize.autoCompact' = '{on}')"
    race = held_against(
        "r", layout=replace(MARKED, setup=(*MARKED.setup, turned)), held=f"UPDATE {{t}} SET id = 9 WHERE {held}",
        winners=("INSERT INTO {t} VALUES (6, 'a')",), isolation=WRITE_SERIALIZABLE, settings=((AT_ONCE, at_once),),
    )
    outlook = predict(race, SPARK)
    assert outlook.of("A").word == word
    operations = [commit.done.operation for commit in outlook.commits if commit.writer == "B"]
    assert operations == ["WRITE", "OPTIMIZE"][: 1 + (on == "true" and at_once == "false")]
