"""Which statements are refused, with which condition, and which are not modelled?"""

from __future__ import annotations

import pytest

from lakerace.layouts import LAYOUTS
from lakerace.race import Statement
from lakerace.rules.profiles import PROFILES
from lakerace.rules.statements import NotModelled, plan
from lakerace.rules.tables import table_of
from selfcheck.planning import BY_DATE, FLAT, NOTHING, planned


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


def test_delta_rs_takes_a_subquery_whose_rows_are_known():
    text = "DELETE FROM {t} WHERE id IN (SELECT id - 100 FROM {other})"
    found = plan(Statement(name="drawn", does=text), FLAT, PROFILES["delta-rs"], {"other": table_of(LAYOUTS["flat"])})
    assert found.refused is None


def test_a_statement_that_delta_rs_has_not_is_not_taken_for_another():
    with pytest.raises(NotModelled, match="REPLACE USING"):
        plan(Statement(name="drawn", does="INSERT INTO {t} REPLACE USING (id) SELECT 1"), FLAT, PROFILES["delta-rs"])


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("COPY INTO {t} FROM 'x'", BY_DATE),
        ("CALL something()", BY_DATE),
        ("UPDATE {t} SET id = 1", NOTHING),
        ("DELETE FROM {t} WHERE id < 9 LIMIT 1", FLAT),
        ("TRUNCATE TABLE {t} PARTITION (event_date = DATE'2026-08-11')", BY_DATE),
        ("UPDATE {t} SET note = 'x' FROM {other} o WHERE o.id = 101", FLAT),
        ("UPDATE {t} SET note.a = 'x'", FLAT),
        ("MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN NOT MATCHED THEN DELETE", FLAT),
        ("CREATE TABLE {t} USING delta AS SELECT * FROM somewhere", NOTHING),
    ],
)
def test_what_is_not_modelled_says_so_in_one_line(text, table):
    with pytest.raises(NotModelled) as told:
        planned(text, table)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("text", "reason"), [
    (f"UPDATE {{t}} SET amount = {'+'.join(['1'] * 6000)}", "a statement is too deeply nested: UPDATE {t} SET amount"),
    ("ALTER TABLE {t} ADD COLUMN (x)", "a column needs a name and a type: ALTER TABLE ... ADD COLUMN (x)"),
    ("ALTER TABLE {t} ADD COLUMNS ()", "a column needs a name and a type"),
    ("ALTER TABLE {t} ADD CONSTRAINT", "nothing is named: ALTER TABLE ... ADD CONSTRAINT"),
    ("ALTER TABLE {t} DROP FEATURE", "nothing is named: ALTER TABLE ... DROP FEATURE"),
])
def test_what_the_rules_cannot_read_is_not_modelled(text, reason):
    with pytest.raises(NotModelled) as told:
        planned(text, FLAT)
    assert str(told.value).startswith(reason)


@pytest.mark.parametrize("where", [" OR ", " AND "])
def test_a_long_list_of_conditions_is_read(where):
    conditions = where.join(f"id < {number}" for number in range(1, 600))
    assert planned(f"DELETE FROM {{t}} WHERE {conditions}", FLAT).transactions[0].skippable is (where == " AND ")


def test_a_range_without_steps_has_no_known_rows():
    [done] = planned("INSERT INTO {t} SELECT id, NULL, NULL, 1, '' FROM range(1, 2, 0)", FLAT).transactions
    assert done.rows_written is None
