"""Is every clause that the parser can put into a statement's tree read, or refused?"""

from __future__ import annotations

import pytest
from sqlglot import exp

from lakerace.clauses import columns_written, unread
from lakerace.sql import parsed

MERGE = "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN"
READ = {
    "INSERT INTO {t} SELECT 1": "this expression source overwrite by_name where with_",
    "UPDATE {t} SET note = 'x'": "this expressions where",
    "DELETE FROM {t} WHERE id = 1": "this where",
    f"{MERGE} MATCHED THEN DELETE": "this using on whens with_",
    "TRUNCATE TABLE {t}": "this expressions",
    "CREATE OR REPLACE TABLE {t} AS SELECT 1": "this kind expression properties replace clone",
    "ALTER TABLE {t} ADD COLUMNS (x INT)": "this kind actions",
    "COMMENT ON TABLE {t} IS 'x'": "this kind expression",
}


@pytest.mark.parametrize("text", READ)
def test_a_statement_without_more_is_read_whole(text: str) -> None:
    assert unread(parsed(text)) is None


@pytest.mark.parametrize(("text", "read"), READ.items())
def test_each_clause_more_is_named(text: str, read: str) -> None:
    for name in set(parsed(text).arg_types) - set(read.split()):
        statement = parsed(text).copy()
        statement.set(name, exp.true())
        assert unread(statement), name
    for name in set(exp.Table.arg_types) - {"this", "alias", "partition"}:
        statement = parsed(text).copy()
        next(statement.find_all(exp.Table)).set(name, exp.true())
        assert " in the table of " in str(unread(statement)), name


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("INSERT INTO {t} SELECT 1", []),
        ("INSERT INTO {t} (id, Note) SELECT 1, 2", ["id", "Note"]),
        ("UPDATE {t} SET note = 'x', {t}.id = 1, m.a = 2, n[0] = 1", ["note", "id", None, None]),
        ("UPDATE {t} X SET x.note = 'x'", ["note"]),
        (f"{MERGE} MATCHED THEN UPDATE SET t.note = s.note, s.id = 2 WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
         ["note", None, "a"]),
        (f"{MERGE} MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", []),
        ("DELETE FROM {t}", []),
    ],
)
def test_the_columns_that_a_statement_writes_by_name(text: str, columns: list[str | None]) -> None:
    assert columns_written(parsed(text)) == columns
