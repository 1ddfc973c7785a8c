"""Cutting SQL into statements, and refusing only what is surely wrong."""

from __future__ import annotations

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import LAYOUTS
from lakerace.race import RaceError, Statement, Write
from lakerace.sql import check_sql, parsed, split_statements

RUNS_ON_SPARK = [
    "SELECT * FROM {t} VERSION AS OF 3;",
    "SELECT * EXCEPT (id) FROM {t}",
    "SELECT /*+ BROADCAST(o) */ * FROM {t} t LATERAL VIEW explode(array(1,2)) x AS y",
    "SELECT transform(array(1,2), x -> x + 1), a::int, a:b.c FROM {t}",
    "SELECT `a b`, 'it\\'s', r'raw\\' FROM {t}",
    "FROM {t} |> WHERE id = 1 |> SELECT id",
    "INSERT INTO {t} BY NAME SELECT 1 AS id",
    "INSERT INTO {t} REPLACE USING (id) SELECT 1",
    "INSERT INTO {t} AS x REPLACE ON x.id <=> s.id (SELECT 1 AS id) AS s",
    "INSERT INTO TABLE {t} PARTITION (event_date = '2020-01-01') SELECT 1",
    "INSERT INTO {t} (id, event_date) VALUES (1, DATE'2020-01-01'), (2, NULL)",
    "INSERT INTO {t} TABLE {other}",
    "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {other} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
    "WITH s AS (SELECT 1 AS id) MERGE INTO {t} USING s ON {t}.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "UPDATE {t} AS x SET x.note = upper(x.note), amount = amount + 1 WHERE note RLIKE 'a.*'",
    "DELETE FROM {t} WHERE event_date >= current_date() - INTERVAL 3 DAYS AND note NOT IN ('a', \"b;c\")",
    "DELETE FROM delta.`/some/path` t WHERE t.s.x[0]['k'] <=> NULL",
    "OPTIMIZE {t} FULL",
    "REORG TABLE {t} APPLY (PURGE)",
    "RESTORE TABLE {t} TO TIMESTAMP AS OF '2020-01-01'",
    "ALTER TABLE {t} DROP FEATURE deletionVectors TRUNCATE HISTORY",
    "-- why\n  /* what; */ SELECT 1 -- end;",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
    "create or refresh streaming table x",
    "INSERT OVERWRITE DIRECTORY '/x' SELECT * FROM {t}",
    "INSERT INTO {t} WITH s AS (SELECT 1) SELECT * FROM s",
    "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    f"DELETE FROM {{t}} WHERE {' OR '.join(f'id = {number}' for number in range(1000))}",
]
WRONG = {
    "": "the SQL is empty",
    " ;; -- nothing": "the SQL is empty",
    "SELECT 1; SELECT 2": "2 statements where one is wanted",
    "INSRT INTO {t} VALUES (1)": "'INSRT' begins no SQL statement",
    "not sql at all": "'not' begins no SQL statement",
    "UPDATE {t} SET": "UPDATE sets nothing",
    "UPDATE {t} SET note": "UPDATE sets nothing",
    "UPDATE {t} SET note = WHERE id = 1": "does not parse near 'WHERE'",
    "DELETE FROM {t} WERE id = 1": "does not parse near 'id'",
    "DELETE FROM {t} WHERE id = = 1": "does not parse near '='",
    "MERGE INTO {t} USING {other} ON a = b": "does not parse near 'b'",
    "INSERT INTO {t} SELECT * FORM {other}": "does not parse",
    "INSERT INTO {t} VALUES (1": "a bracket is not closed",
    "OPTIMIZE {t} ZORDER BY id)": "closes nothing",
    "DELETE {t} WHERE id = 1": "DELETE names no table; write DELETE FROM {t}",
    "MERGE INTO (SELECT * FROM {t}) t USING {other} s ON t.id = s.id WHEN MATCHED THEN DELETE": "MERGE names no table",
    "INSERT INTO {t}": "INSERT has no rows; give it VALUES (...) or a query",
    "INSERT INTO {t} DEFAULT VALUES": "INSERT has no rows",
    "INSERT INTO {t} REPLACE WHERE id = 1": "INSERT has no rows",
    "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id)": "MERGE inserts no values",
    "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET": "MERGE updates nothing",
    "CREATE TABEL {t} (id INT) USING delta": "CREATE is followed by 'TABEL'; write CREATE TABLE",
    "CREATE OR REPLACE {t} USING delta": "write CREATE TABLE",
    "DROP": "DROP is followed by nothing",
    f"DELETE FROM {{t}} WHERE {'NOT ' * 3000}id = 1": "the SQL is too deeply nested to be read: DELETE FROM",
    "SELECT 'x": "a quote or a comment is not closed",
    "/* SELECT 1": "a quote or a comment is not closed",
}


@pytest.mark.parametrize("text", RUNS_ON_SPARK)
def test_what_spark_runs_passes(text: str) -> None:
    check_sql(text)


@pytest.mark.parametrize("statement", CATALOGUE.values(), ids=CATALOGUE)
def test_the_catalogue_passes(statement: Statement) -> None:
    check_sql(statement.does.select if isinstance(statement.does, Write) else statement.does)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layouts_pass(name: str) -> None:
    for text in LAYOUTS[name].setup:
        check_sql(text)


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_what_is_surely_wrong_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(RaceError) as refused:
        check_sql(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_statements_are_cut_outside_quotes_and_comments() -> None:
    text = """-- first; of two
        SELECT 'a;b' /* x;y */ FROM {t}; -- z
        ;OPTIMIZE {t} WHERE note = 'p;q';INSERT INTO {t} VALUES ("q;", `w;`)"""
    assert split_statements(text) == (
        "SELECT 'a;b' /* x;y */ FROM {t}",
        "OPTIMIZE {t} WHERE note = 'p;q'",
        'INSERT INTO {t} VALUES ("q;", `w;`)',
    )
    assert split_statements(" ;; -- nothing") == ()


@pytest.mark.parametrize("text", ["OPTIMIZE {t} -- loud", "VACUUM {t} -- loud", "ALTER TABLE {t} DROP FEATURE loud"])
def test_what_the_parser_keeps_as_text_is_kept_in_silence(text, caplog):
    assert "loud" in parsed(text).sql()
    assert caplog.records == []
