"""Is everything refused that need not do the same again, and nothing else?"""

from __future__ import annotations

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import LAYOUTS, layout_from_statements
from lakerace.race import Write, statement
from lakerace.serial.refuse import changes_rows, keeps_rows, only_appends, query_refusal, refusal

FLAT = LAYOUTS["flat"]
KEEPERS = {
    "optimize", "optimize-where", "zorder", "set-property", "comment", "enable-deletion-vectors",
    "enable-row-tracking", "enable-in-commit-timestamps", "enable-column-mapping", "vacuum",
}  # fmt: skip


def test_every_statement_of_the_catalogue_can_be_replayed() -> None:
    assert {name: why for name, one in CATALOGUE.items() if (why := refusal(one, FLAT))} == {}


def test_who_promises_to_change_no_row() -> None:
    assert {name for name, one in CATALOGUE.items() if keeps_rows(one.text)} == KEEPERS
    assert not keeps_rows("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    assert not keeps_rows("ALTER TABLE {t} ADD COLUMN (comment STRING COMMENT 'x')")
    assert keeps_rows("alter table {t} cluster by (id)")


def test_who_adds_the_same_rows_whatever_is_there() -> None:
    assert {name for name, one in CATALOGUE.items() if only_appends(one)} == {
        "insert-values", "insert-other-date", "insert-select-other", "df-append",
    }  # fmt: skip
    assert not only_appends(statement("INSERT INTO {t}\nREPLACE WHERE id = 1 SELECT 1 AS id"))
    other = {"add-column", "merge-schema-append", "create-or-replace", "clone-into", "restore", "txn-append"}
    assert not any(changes_rows(CATALOGUE[name]) for name in other | KEEPERS)
    assert changes_rows(CATALOGUE["merge-on-key"])


@pytest.mark.parametrize(("sql", "why"), [
    ("UPDATE {t} SET amount = rand() WHERE id = 1", "it calls rand(), which gives other values each time"),
    ("INSERT INTO {t} SELECT uuid(), 1", "it calls uuid(), which gives other values each time"),
    ("UPDATE {t} SET at = current_timestamp()", "it calls current_timestamp(), which depends on the clock"),
    ("UPDATE {t} SET at = CURRENT_DATE", "it calls current_date(), which depends on the clock"),
    ("DELETE FROM {t} WHERE day < now() - INTERVAL 3 DAYS", "it calls current_timestamp(), which depends on the clock"),
    ("INSERT INTO {t} SELECT monotonically_increasing_id() FROM {other}",
     "it calls monotonically_increasing_id(), which depends on where a row lies"),
    ("INSERT INTO {t} SELECT * FROM {other} TABLESAMPLE (10 PERCENT)", "it samples a table"),
    ("INSERT INTO {t} SELECT * FROM {other} LIMIT 1", "it has a LIMIT without ORDER BY"),
    ("MERGE INTO {t} t USING (SELECT * FROM {other} LIMIT 1) s ON t.id = s.id WHEN MATCHED THEN DELETE",
     "it has a LIMIT without ORDER BY"),
    ("INSERT INTO {t} SELECT first(id) FROM {other}",
     "it calls first(), which depends on the order in which rows come"),
    ("INSERT INTO {t} SELECT row_number() OVER (PARTITION BY country) FROM {other}",
     "it numbers rows that have no order"),
    ("UPDATE {t} SET note = mask_of_ours(note)", "it calls mask_of_ours(), which may be a function of the user's own"),
    ("INSERT INTO {t} SELECT * FROM {other} TIMESTAMP AS OF '2026-08-11'",
     "it reads the table as it was at a time, and a replay has other times"),
    ("RESTORE TABLE {t} TO TIMESTAMP AS OF '2026-08-11'", "it goes back to a time, and a replay has other times"),
    ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT rand() AS r", "it calls rand(), which gives other values each"),
    ("CALL system.compact('{t}')", "CALL is no statement that is known to do the same again"),
    ("UPDATE {t} SET ((", "the parser does not know this SQL"),
    ("", "nothing is no statement that is known to do the same again"),
])  # fmt: skip
def test_what_need_not_do_the_same_again_is_refused(sql: str, why: str) -> None:
    assert str(refusal(statement(sql), FLAT)).startswith(why)


@pytest.mark.parametrize("sql", [
    "INSERT INTO {t} SELECT * FROM {other} ORDER BY id LIMIT 1",
    "INSERT INTO {t} SELECT row_number() OVER (ORDER BY id) FROM {other}",
    "INSERT INTO {t} SELECT first_value(id) OVER (ORDER BY id) FROM {other}",
    "UPDATE {t} SET amount = pmod(amount, 7), note = conv(note, 10, 16)",
    "INSERT INTO {t} SELECT * FROM {t} VERSION AS OF 3",
    "DELETE FROM {t} WHERE note = 'rand() LIMIT 1'",
    "TRUNCATE TABLE {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 3",
    "WITH s AS (SELECT 1 AS id) INSERT INTO {t} SELECT * FROM s",
    "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {other} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
])
def test_what_does_the_same_again_is_not(sql: str) -> None:
    assert refusal(statement(sql), FLAT) is None


def test_the_table_counts_for_who_adds_rows() -> None:
    numbered = layout_from_statements("own", ("CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY, n INT)",))
    stamped = layout_from_statements("own", ("CREATE TABLE {t} (id INT, at TIMESTAMP DEFAULT current_timestamp())",))
    plain = layout_from_statements("own", ("CREATE TABLE {t} (id INT, n INT DEFAULT 5)",))
    add, change = statement("INSERT INTO {t} (n) VALUES (1)"), statement("UPDATE {t} SET n = 1")
    assert refusal(add, numbered) == "it adds rows to a table with an identity column"
    assert refusal(add, stamped) == "it adds rows to a table with a column default that depends on the clock"
    assert refusal(statement(Write(select="SELECT 1 AS n")), numbered) is not None
    assert refusal(add, plain) is refusal(change, numbered) is refusal(change, stamped) is None
    assert refusal(statement(Write(select="SELECT rand() AS n")), plain) is not None
    assert query_refusal("SELECT count(*) FROM {t}") is None
