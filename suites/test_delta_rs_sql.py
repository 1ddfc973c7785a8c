"""Spark SQL as ``deltalake`` calls: each statement form on a small table of its own, and what has no counterpart."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

import pytest

deltalake = pytest.importorskip("deltalake")

from lakerace import deltalog  # noqa: E402
from lakerace.conflicts import classify  # noqa: E402
from lakerace.drivers.stale_handle import StaleHandle  # noqa: E402
from lakerace.engines import Unsteerable, rs_sql  # noqa: E402
from lakerace.race import Statement, Write  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAY, NEXT = datetime.date(2026, 8, 11), datetime.date(2026, 8, 12)
SETUP = "CREATE TABLE {t} (id BIGINT, eventDate DATE, note STRING) USING delta PARTITIONED BY (eventDate)"
ROWS = [(1, DAY, "a"), (2, DAY, "b"), (3, NEXT, "c")]


class Table:
    """A table with the three rows of ``ROWS`` and its own ``{other}`` (id 3 and 4)."""

    def __init__(self, path: Path) -> None:
        self.path = path / "t"
        self._other = path / "other"
        for made, rows in ((self.path, ROWS), (self._other, [(3, NEXT, "o"), (4, NEXT, "o")])):
            rs_sql.create(made, SETUP, self.other)
            values = ", ".join(f"({i}, DATE'{day}', '{note}')" for i, day, note in rows)
            rs_sql.prepare(f"INSERT INTO {{t}} VALUES {values}", deltalake.DeltaTable(made), self.other)()

    def other(self) -> Any:
        return deltalake.DeltaTable(self._other)

    def run(self, does: str | Write, handle: Any = None) -> list[tuple[Any, ...]]:
        """Run ``does`` and give the rows, sorted by id."""
        rs_sql.prepare(does, handle or deltalake.DeltaTable(self.path), self.other)()
        return self.rows()

    def rows(self) -> list[tuple[Any, ...]]:
        found = deltalake.DeltaTable(self.path).to_pyarrow_table()
        return sorted((tuple(row.values()) for row in found.to_pylist()), key=lambda row: row[0])

    def last(self) -> deltalog.HistoryRow:
        return deltalog.history(self.path, -1)[0]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


A, B, C = ROWS
MERGE = "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN"
MERGE_QUALIFIED = (
    "MERGE INTO {t} USING {other} ON {t}.id = {other}.id "
    "WHEN NOT MATCHED THEN INSERT (id, note) VALUES ({other}.id, 'n')"
)
MERGE_EVERY_CLAUSE = (
    "MERGE INTO {t} t USING (SELECT 1L AS id, 'm' AS note) s ON t.id = s.id "
    "WHEN MATCHED AND s.note = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET t.note = s.note "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'gone'"
)
CHANGES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("INSERT INTO {t} VALUES (4, DATE'2026-08-11', 'd')", [*ROWS, (4, DAY, "d")]),
    ("INSERT INTO {t} (note, id, eventDate) VALUES ('d', 4, DATE'2026-08-11')", [*ROWS, (4, DAY, "d")]),
    ("INSERT INTO {t} BY NAME SELECT 'd' AS note, 4 AS id, DATE'2026-08-11' AS eventDate", [*ROWS, (4, DAY, "d")]),
    ("INSERT INTO {t} SELECT * FROM {other} WHERE id = 4", [*ROWS, (4, NEXT, "o")]),
    ("INSERT INTO {t} SELECT id + 10, EVENTDATE, note FROM {t} WHERE id < 2", [*ROWS, (11, DAY, "a")]),
    ("INSERT INTO {t} SELECT * FROM {other} o WHERE NOT EXISTS (SELECT 1 FROM {t} x WHERE x.id = o.id)",
     [*ROWS, (4, NEXT, "o")]),
    ("INSERT INTO {t} WITH n AS (SELECT * FROM {other}) SELECT * FROM n WHERE id = 4", [*ROWS, (4, NEXT, "o")]),
    ("INSERT INTO {t} (id) VALUES (4)", [*ROWS, (4, None, None)]),
    ("INSERT INTO {t} SELECT r.id, DATE'2026-08-11', 'd' FROM range(4, 5) AS r", [*ROWS, (4, DAY, "d")]),
    ("INSERT INTO {t} SELECT id, eventDate, note FROM range(1) JOIN {t} USING (id)", ROWS),
    ("INSERT INTO {t} PARTITION (eventdate = DATE'2026-08-11') SELECT 4, 'd'", [*ROWS, (4, DAY, "d")]),
    ("INSERT INTO {t} PARTITION (eventDate) SELECT 4, DATE'2026-08-11', 'd'", [*ROWS, (4, DAY, "d")]),
    ("INSERT OVERWRITE {t} PARTITION (eventDate = DATE'2026-08-11') VALUES (4, 'd')", [C, (4, DAY, "d")]),
    ("INSERT OVERWRITE {t} SELECT * FROM {other} WHERE id = 4", [(4, NEXT, "o")]),
    ("INSERT OVERWRITE {t} TABLE {other}", [(3, NEXT, "o"), (4, NEXT, "o")]),
    ("WITH n AS (SELECT * FROM {other}) INSERT INTO {t} SELECT * FROM n WHERE ID = 4", [*ROWS, (4, NEXT, "o")]),
    ("INSERT INTO {t} REPLACE WHERE eventDate = DATE'2026-08-11' SELECT 9 AS id, DATE'2026-08-11' AS d, 'n' AS note",
     [C, (9, DAY, "n")]),
    ("UPDATE {t} SET note = upper(note), id = id + 10 WHERE note IN ('a', 'c')",
     [B, (11, DAY, "A"), (13, NEXT, "C")]),
    ("UPDATE {t} SET NOTE = 'n', EVENTDATE = DATE'2026-08-12' WHERE ID = 1", [(1, NEXT, "n"), B, C]),
    ("UPDATE {t} SET note = try_cast(note AS INT), id = id * 10 DIV 4",
     [(2, DAY, None), (5, DAY, None), (7, NEXT, None)]),
    ("UPDATE {t} AS X SET X.note = x.NOTE || 'n' WHERE x.ID <=> 1 AND x.note <=> 'a'", [(1, DAY, "an"), B, C]),
    ("UPDATE {t} AS x SET x.note = 'n' WHERE x.eventDate > DATE'2026-08-11'", [A, B, (3, NEXT, "n")]),
    ("UPDATE {t} SET note = 'n' WHERE id IN (SELECT id FROM {other})", [A, B, (3, NEXT, "n")]),
    ("UPDATE {t} SET note = (SELECT max(note) FROM {other}) WHERE id = (SELECT min(id) FROM {t})",
     [(1, DAY, "o"), B, C]),
    ("UPDATE {t} SET note = CASE WHEN id == 1 THEN 'n' ELSE note END", [(1, DAY, "n"), B, C]),
    ("DELETE FROM {t} WHERE eventDate = DATE'2026-08-11' AND id <=> 1", [B, C]),
    ("DELETE FROM {t} t WHERE t.id BETWEEN 2 AND 3 AND t.note RLIKE '^b'", [A, C]),
    ("DELETE FROM {t} WHERE eventDate IN (SELECT eventDate FROM {other})", [A, B]),
    ("DELETE FROM {t} WHERE id IN (SELECT id FROM {other} WHERE id > 9)", ROWS),
    ("DELETE FROM {t} WHERE id NOT IN (SELECT id FROM {other} WHERE id > 9) AND id = 1", [B, C]),
    ("DELETE FROM {t}", []),
    ("TRUNCATE TABLE {t}", []),
    ("MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
     [A, B, (3, NEXT, "o"), (4, NEXT, "o")]),
    ("MERGE INTO {t} T USING {other} S ON t.ID = s.ID WHEN MATCHED THEN UPDATE SET T.NOTE = upper(s.Note)",
     [A, B, (3, NEXT, "O")]),
    (MERGE_QUALIFIED, [*ROWS, (4, None, "n")]),
    (MERGE_EVERY_CLAUSE, [(1, DAY, "m"), (3, NEXT, "gone")]),
    ("WITH s AS (SELECT * FROM {other}) MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", [A, B]),
    ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {other} WHERE id = 4", [(4, NEXT, "o")]),
    ("CREATE OR REPLACE TABLE {t} (id BIGINT, eventDate DATE, note STRING) USING delta", []),
    ("RESTORE TABLE {t} TO VERSION AS OF 0", []),
]
KEEP_ROWS = [
    ("OPTIMIZE {t}", "OPTIMIZE"),
    ("OPTIMIZE {t} WHERE eventDate = DATE'2026-08-11' AND eventDate IN ('2026-08-11')", "OPTIMIZE"),
    ("OPTIMIZE {t} ZORDER BY (id, `note`)", "OPTIMIZE"),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('owner.team' = 'x')", "SET TBLPROPERTIES"),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'false')", "SET TBLPROPERTIES"),
    ("ALTER TABLE {t} ALTER COLUMN NOTE COMMENT 'free'", "UPDATE FIELD METADATA"),
    ("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)", "ADD CONSTRAINT"),
    ("COMMENT ON TABLE {t} IS 'a table'", "UPDATE TABLE METADATA"),
]


@pytest.mark.parametrize(("text", "rows"), CHANGES, ids=[text for text, _ in CHANGES])
def test_a_statement_leaves_the_rows_that_spark_would(table: Table, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert table.run(text) == sorted(rows, key=lambda row: row[0])


@pytest.mark.parametrize(("text", "operation"), KEEP_ROWS, ids=[text for text, _ in KEEP_ROWS])
def test_a_statement_that_changes_no_rows(table: Table, text: str, operation: str) -> None:
    table.run("INSERT INTO {t} VALUES (4, DATE'2026-08-11', 'd')")
    before = table.rows()
    assert table.run(text) == before
    assert table.last().operation == operation


@pytest.mark.parametrize("words", ["COLUMN", "COLUMNS"])
def test_added_columns_are_null_in_old_rows(table: Table, words: str) -> None:
    assert table.run(f"ALTER TABLE {{t}} ADD {words} (x INT, y STRING)")[0] == (1, DAY, "a", None, None)


def test_vacuum_takes_the_retention_the_statement_says(table: Table) -> None:
    table.run("DELETE FROM {t} WHERE id = 1")
    table.run("VACUUM {t}")
    assert deltalog.files(table.path).on_disk == 3
    table.run("VACUUM {t} RETAIN 0 HOURS DRY RUN")
    assert deltalog.files(table.path).on_disk == 3
    table.run("VACUUM {t} RETAIN 0 HOURS")
    assert deltalog.files(table.path).on_disk == 2


def test_dataframe_writes_go_by_name_with_their_options(table: Table) -> None:
    select = "SELECT 'd' AS note, DATE'2026-08-11' AS eventDate, 4L AS id"
    assert table.run(Write(select=select)) == [*ROWS, (4, DAY, "d")]
    table.run(Write(select=select, options=(("txnAppId", "q"), ("txnVersion", "7"))))
    assert deltalog.read_commits(table.path, -1)[-1].transactions == ("q=7",)
    replaced = Write(select=select, mode="overwrite", options=(("replaceWhere", "eventDate = DATE'2026-08-11'"),))
    assert table.run(replaced) == [C, (4, DAY, "d")]
    evolved = Write(select=f"{select}, 1 AS extra", options=(("mergeSchema", "true"),))
    assert sorted(row[3] or 0 for row in table.run(evolved)) == [0, 0, 1]
    extra = deltalake.DeltaTable(table.path).schema().fields[-1]
    assert (extra.name, extra.type.type, extra.nullable) == ("extra", "integer", True)


def test_a_query_sees_the_version_of_its_handle(table: Table) -> None:
    stale = deltalake.DeltaTable(table.path)
    table.run("INSERT INTO {t} VALUES (5, DATE'2026-08-11', 'new')")
    rows = table.run("INSERT INTO {t} SELECT id + 10, eventDate, note FROM {t}", stale)
    assert [row[0] for row in rows] == [1, 2, 3, 5, 11, 12, 13]


NO_COUNTERPART = {
    "CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}": "CLONE",
    "CREATE TABLE {t} (id BIGINT) USING delta": "CREATE OR REPLACE",
    "CREATE OR REPLACE TABLE {t} (id BIGINT) USING delta CLUSTER BY (id)": "clustered",
    "INSERT INTO {other} SELECT * FROM {t}": "writes {t} only",
    "INSERT INTO {t} SELECT * FROM elsewhere": "reads {t} and {other} only, not elsewhere",
    "INSERT INTO {t} SELECT * FROM {t} VERSION AS OF 0": "time travel",
    "DELETE FROM {t} WHERE date_format(eventDate, 'yyyyMM') = '202608'": "date formats",
    "DELETE FROM {t} WHERE EXISTS (SELECT 1 FROM {other} o WHERE o.id = id)": "EXISTS",
    "OPTIMIZE {t} WHERE id + 1 = 2": "comparisons of columns",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')": "does not set delta.enableRowTracking",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')": "Column mapping is not supported",
    "ALTER TABLE {t} DROP COLUMN note": "DROP COLUMN",
    "REORG TABLE {t} APPLY (PURGE)": "no counterpart",
    "CALL system.x({t})": "no counterpart of CALL system.x({t})",
    "OPTIMIZE {t} FULL": "no counterpart of OPTIMIZE {t} FULL",
    "OPTIMIZE {other}": "no counterpart of OPTIMIZE {other}",
    "OPTIMIZE {t} WHERE id = 2": "by partition columns only, not by id",
    "VACUUM {other}": "no counterpart of VACUUM {other}",
    "TRUNCATE TABLE {t} PARTITION (eventDate = DATE'2026-08-11')": "no PARTITION in TRUNCATE",
    "TRUNCATE TABLE {t}, {other}": "one table at a time",
    "DELETE FROM {t} WHERE id < 9 LIMIT 1": "no LIMIT in DELETE",
    "DELETE FROM {t} WHERE id < 9 ORDER BY id LIMIT 1": "no ORDER BY in DELETE",
    "DELETE FROM {t} USING {other} o WHERE o.id = 3": "no USING in DELETE",
    "DELETE FROM {t} RETURNING id": "no RETURNING in DELETE",
    "DELETE FROM {t} VERSION AS OF 0 WHERE id = 1": "no VERSION AS OF in the table of DELETE",
    "DELETE FROM {t} AS x (a, b, c) WHERE a = 1": "no COLUMNS in the table of DELETE",
    "DELETE FROM a.{t} WHERE id = 1": "no DB in the table of DELETE",
    "DELETE {t} WHERE id = 1": "no DELETE without FROM",
    "WITH a AS (SELECT 1) DELETE FROM {t} WHERE id IN (SELECT * FROM a)": "no WITH in DELETE",
    "DELETE FROM {t} WHERE (id, note) IN ((1, 'a'))": "no TUPLE in a predicate",
    "DELETE FROM {t} WHERE id > ALL (SELECT id FROM {other})": "no ALL in a predicate",
    "DELETE FROM {t} WHERE id = ANY (SELECT id FROM {other})": "no ANY in a predicate",
    "DELETE FROM {t} WHERE id = (SELECT max(id) FROM {other} WHERE id > 9)": "no comparison with NULL",
    "INSERT INTO {t} REPLACE USING (id) SELECT * FROM {other}": "no REPLACE USING in INSERT",
    "INSERT INTO {t} DEFAULT VALUES": "no DEFAULT VALUES in INSERT",
    "INSERT INTO {t} SELECT * FROM {other} RETURNING id": "no RETURNING in INSERT",
    "INSERT INTO {t} SELECT * FROM {other} ON CONFLICT DO NOTHING": "no ON CONFLICT in INSERT",
    "INSERT OR REPLACE INTO {t} SELECT * FROM {other}": "no OR in INSERT",
    "INSERT INTO {t} AS x SELECT * FROM {other}": "no ALIAS in the table of INSERT",
    "INSERT INTO {t} SELECT * FROM {other} TABLESAMPLE (10 PERCENT)": "no TABLESAMPLE in a query",
    "INSERT INTO {t} SELECT * FROM {other} SORT BY id": "no SORT BY in a query",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM {other}": "no hint in a query",
    "UPDATE {t} SET note = 'x' FROM {other} o WHERE o.id = 3": "no FROM in UPDATE",
    "UPDATE {t} JOIN {other} o ON o.id = 3 SET note = 'x'": "no JOIN in the table of UPDATE",
    "UPDATE {t} SET note = 'x' LIMIT 1": "no LIMIT in UPDATE",
    "UPDATE {t} SET note = 'x' RETURNING id": "no RETURNING in UPDATE",
    "UPDATE {t} SET note.a = 'x'": "whole columns of {t} only, not note.a",
    "UPDATE {t} SET (id, note) = (1, 'x')": "whole columns of {t} only, not (id, note)",
    f"{MERGE} MATCHED THEN DO NOTHING": "no DO NOTHING in WHEN MATCHED",
    f"{MERGE} MATCHED THEN INSERT *": "no INSERT in WHEN MATCHED",
    f"{MERGE} NOT MATCHED THEN DELETE": "no DELETE in WHEN NOT MATCHED",
    f"{MERGE} NOT MATCHED THEN UPDATE SET note = 'x'": "no UPDATE in WHEN NOT MATCHED",
    f"{MERGE} NOT MATCHED BY SOURCE THEN UPDATE SET *": "no UPDATE * in WHEN NOT MATCHED BY SOURCE",
    f"{MERGE} MATCHED THEN UPDATE SET * EXCEPT (note)": "no EXCEPT in WHEN of MERGE",
    f"{MERGE} MATCHED THEN UPDATE SET note = 'x' WHERE s.id = 3": "no WHERE in WHEN of MERGE",
    f"{MERGE} MATCHED THEN DELETE RETURNING id": "no RETURNING in MERGE",
    f"{MERGE} MATCHED AND t.id IN (SELECT id FROM {{other}}) THEN DELETE": "no subquery in MERGE",
    f"{MERGE} NOT MATCHED THEN INSERT VALUES (1, 2)": "no INSERT without columns",
    "MERGE INTO {t} t USING {other} s USING (id) WHEN MATCHED THEN DELETE": "no USING of columns in MERGE",
    "CREATE OR REPLACE TABLE {t} USING parquet AS SELECT * FROM {other}": "no table with USING PARQUET",
    "CREATE OR REPLACE TABLE {t} USING delta LOCATION '/x' AS SELECT * FROM {other}": "no table with LOCATION",
    "CREATE OR REPLACE TEMPORARY TABLE {t} AS SELECT 1": "no table with TEMPORARY",
    "CREATE OR REPLACE TABLE {t} (id BIGINT, PRIMARY KEY (id)) USING delta": "no column with PRIMARY KEY",
    "CREATE OR REPLACE VIEW {t} AS SELECT 1": "makes no VIEW",
    "CREATE TABLE IF NOT EXISTS {t} (id BIGINT) USING delta": "no IF EXISTS in CREATE",
    "ALTER VIEW {t} AS SELECT 1": "no ALTER VIEW",
    "ALTER TABLE IF EXISTS {t} ADD COLUMN x INT": "no IF EXISTS in ALTER",
    "ALTER TABLE {t} ADD COLUMN x INT FIRST": "no column with x INT FIRST",
    "ALTER TABLE {t} ADD COLUMN x.y INT": "no column with x.y INT",
    "ALTER TABLE {t} ALTER COLUMN note SET NOT NULL": "ALTER COLUMN note SET NOT NULL",
    "ALTER TABLE {t} CHANGE COLUMN note remark STRING COMMENT 'x'": "RENAME COLUMN note TO remark",
    "ALTER TABLE {t} ADD CONSTRAINT p PRIMARY KEY (id)": "ADD CONSTRAINT p PRIMARY KEY",
    "COMMENT ON COLUMN {t}.note IS 'x'": "COMMENT ON COLUMN",
}
WRONG = {
    "UPDATE {t} SET nocol = 'x'": "the table has no column 'nocol'; its columns are id, eventDate, note",
    "UPDATE {t} SET note = 'x', NOTE = 'y'": "column 'note' is given twice",
    "UPDATE {t} SET note = (SELECT note FROM {t})": "a subquery that stands for one value gives 3 rows",
    "DELETE FROM {t} WHERE (id, note) IN (SELECT id, note FROM {other})": "a subquery in a predicate gives 2 columns",
    "INSERT INTO {t} (id, nocol) VALUES (1, 2)": "no column 'nocol'",
    "INSERT INTO {t} (id, ID) VALUES (1, 2)": "column 'id' is given twice",
    "INSERT INTO {t} BY NAME SELECT 1 AS id, 2 AS nocol": "no column 'nocol'",
    "INSERT INTO {t} PARTITION (note = 'x') SELECT 4, DATE'2026-08-11'": "PARTITION (note): the table is not",
    "INSERT INTO {t} PARTITION (nocol) SELECT 4, DATE'2026-08-11', 'x'": "no column 'nocol'",
    f"{MERGE} MATCHED THEN UPDATE SET nocol = 1": "no column 'nocol'",
    f"{MERGE} NOT MATCHED BY SOURCE THEN UPDATE SET note = 'x', nocol = 1": "no column 'nocol'",
    f"{MERGE} NOT MATCHED THEN INSERT (id, nocol) VALUES (s.id, 1)": "no column 'nocol'",
    f"{MERGE} NOT MATCHED THEN INSERT (id, note) VALUES (s.id)": "1 values for 2 columns",
    "CREATE OR REPLACE TABLE {t} (id BIGINT) USING delta AS SELECT 1": "takes its columns from the query",
    "ALTER TABLE {t} ADD COLUMNS (x INT, Note STRING)": "has a column 'note' already",
    "ALTER TABLE {t} ALTER COLUMN nocol COMMENT 'x'": "no column 'nocol'",
    "OPTIMIZE {t} WHERE nocol = 1": "no column 'nocol'",
    "OPTIMIZE {t} ZORDER BY (nocol)": "no column 'nocol'",
    "RESTORE TABLE {t} TO VERSION AS OF 99": "RESTORE to version 99: the latest is 1",
    "RESTORE TABLE {t} TO TIMESTAMP AS OF 'soon'": "RESTORE to 'soon': no date",
}
"""Statements that are wrong by themselves, which ``deltalake`` would commit without effect or tell obscurely."""


@pytest.mark.parametrize(("text", "reason"), NO_COUNTERPART.items())
def test_what_delta_rs_has_no_call_for(table: Table, text: str, reason: str) -> None:
    with pytest.raises(Unsteerable) as refused:
        table.run(text)
    assert reason in str(refused.value)
    assert deltalog.latest_version(table.path) == 1


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_a_wrong_statement_is_told_so_and_commits_nothing(table: Table, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        table.run(text)
    assert deltalog.latest_version(table.path) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UPDATE {t} SET id = 'abc'", "Cast error: Cannot cast string 'abc' to value of Int64 type"),
        ("DELETE FROM {t} WHERE eventDate = make_date(2026, 13, 1)", "deltalake panics: primitive array"),
        ("DELETE FROM {t} WHERE nope = 1", "Schema error: No field named nope. Did you mean 'note'?"),
        ("RESTORE TABLE {t} TO TIMESTAMP AS OF '2030-01-01'",
         "Version to restore 1 should be less then last available version 1."),
    ],
)
def test_what_deltalake_says_is_one_line_and_nothing_goes_to_the_terminal(
    table: Table, capfd: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    handle = deltalake.DeltaTable(table.path)
    ended = handle_of(table, lambda: rs_sql.prepare(text, handle, table.other)).release()
    assert (ended.outcome, ended.message) == ("fails", message)
    assert capfd.readouterr() == ("", "")


def test_a_null_predicate_empties_the_table(table: Table) -> None:
    """Data loss in deltalake 1.6.6 itself: what its optimizer folds to a constant is taken for no predicate."""
    deltalake.DeltaTable(table.path).delete("id = NULL AND eventDate = '2026-08-11'")
    assert table.rows() == [C]
    deltalake.DeltaTable(table.path).delete("id = NULL")
    assert table.rows() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((("partitionOverwriteMode", "dynamic"),), "dynamic partition overwrite"),
        ((("optimizeWrite", "true"),), "writer option optimizeWrite"),
    ],
)
def test_writer_options_delta_rs_has_not(table: Table, options: tuple[tuple[str, str], ...], reason: str) -> None:
    with pytest.raises(Unsteerable, match=reason):
        table.run(Write(select="SELECT * FROM {other}", mode="overwrite", options=options))


def test_create_makes_columns_properties_and_partitions(tmp_path: Path) -> None:
    text = (
        "CREATE TABLE {t} (id BIGINT NOT NULL, n DECIMAL(12,2), d DECIMAL, a ARRAY<INT>, m MAP<STRING, DATE>, "
        "s STRUCT<x: INT, y: STRING>, at TIMESTAMP, note STRING COMMENT 'free') USING delta PARTITIONED BY (id) "
        "TBLPROPERTIES ('delta.checkpointInterval' = '100') COMMENT 'mine'"
    )
    rs_sql.create(tmp_path / "t", text, lambda: None)
    made = deltalake.DeltaTable(tmp_path / "t")
    assert made.metadata().partition_columns == ["id"]
    assert made.metadata().configuration == {"delta.checkpointInterval": "100"}
    assert made.metadata().description == "mine"
    fields = {field.name: field for field in made.schema().fields}
    assert (fields["id"].nullable, fields["n"].nullable) == (False, True)
    assert (fields["n"].type.type, fields["d"].type.type) == ("decimal(12,2)", "decimal(10,0)")
    assert fields["note"].metadata == {"comment": "free"}
    assert list(fields) == ["id", "n", "d", "a", "m", "s", "at", "note"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE TABLE {t} (id BIGINT) USING delta CLUSTER BY (id)", "clustered"),
        ("CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY) USING delta", "no column with GENERATED"),
        ("CREATE TABLE {t} (id INTERVAL DAY) USING delta", "no type"),
        ("CREATE TABLE {t} (at TIMESTAMP) USING delta PARTITIONED BY (days(at))", "by columns only"),
        ("CREATE TABLE {t} SHALLOW CLONE {other}", "CLONE"),
        ("INSERT INTO {t} VALUES (1)", "needs CREATE TABLE as the first statement"),
        ("CREATE VIEW {t} AS SELECT 1", "needs CREATE TABLE as the first statement of a layout, not CREATE VIEW"),
    ],
)
def test_tables_delta_rs_cannot_make(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(Unsteerable, match=reason):
        rs_sql.create(tmp_path / "t", text, lambda: None)


def test_partition_columns_may_carry_their_type_and_times_are_in_utc(table: Table, tmp_path: Path) -> None:
    rs_sql.create(tmp_path / "made", "CREATE TABLE {t} (at TIMESTAMP) PARTITIONED BY (day STRING)", table.other)
    made = deltalake.DeltaTable(tmp_path / "made")
    rs_sql.prepare("INSERT INTO {t} VALUES (TIMESTAMP'2026-08-11 10:00:00', 'x')", made, table.other)()
    row = made.to_pyarrow_table().to_pylist()[0]
    assert (row["at"].isoformat(), row["day"]) == ("2026-08-11T10:00:00+00:00", "x")


def test_create_as_select(table: Table, tmp_path: Path) -> None:
    text = "CREATE TABLE {t} USING delta PARTITIONED BY (id) AS SELECT * FROM {other}"
    rs_sql.create(tmp_path / "made", text, table.other)
    made = deltalake.DeltaTable(tmp_path / "made")
    assert (made.metadata().partition_columns, made.count()) == (["id"], 2)


# The driver: what a handle's end is called.


def handle_of(table: Table, prepare: Callable[[], Callable[[], None]]) -> StaleHandle:
    version = deltalog.latest_version(table.path)
    statement = Statement(name="s", does="SELECT 1")
    return StaleHandle(table.path, "A", statement, held=True, read_version=version, prepare=prepare)


def raise_(error: BaseException) -> Any:
    raise error


def test_an_error_while_reading_ends_the_writer_early(table: Table) -> None:
    held = handle_of(table, lambda: raise_(ValueError("no such column\nand more")))
    assert held.early is not None
    assert (held.early.word, held.early.message, held.early.surfaced) == ("fails", "no such column", "ValueError")
    assert held.release() == held.early


def test_a_panic_in_the_library_is_a_failure_and_an_interrupt_is_not(table: Table) -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    held = handle_of(table, lambda: raise_(panic("not implemented")))
    assert held.early is not None
    assert (held.early.word, held.early.surfaced) == ("fails", "PanicException")
    with pytest.raises(KeyboardInterrupt):
        handle_of(table, lambda: lambda: raise_(KeyboardInterrupt())).release()


def test_what_has_no_counterpart_is_no_outcome(table: Table) -> None:
    with pytest.raises(Unsteerable, match="no call"):
        handle_of(table, lambda: raise_(Unsteerable("no call")))


def test_a_call_that_commits_nothing_is_told_from_a_commit(table: Table) -> None:
    assert handle_of(table, lambda: lambda: None).release().word == "no-commit"


def test_an_error_after_the_commit_does_not_hide_it(table: Table) -> None:
    def commit_then_fail() -> None:
        table.run("INSERT INTO {t} VALUES (4, DATE'2026-08-11', 'd')")
        raise OSError("checkpoint could not be written")

    outcome = handle_of(table, lambda: commit_then_fail).release()
    assert (outcome.word, outcome.version, outcome.surfaced) == ("fails", 2, "OSError")


def test_a_second_release_or_one_after_cancel_is_an_error(table: Table) -> None:
    held = handle_of(table, lambda: lambda: None)
    held.release()
    with pytest.raises(RuntimeError, match="writer A was let go"):
        held.release()
    held = handle_of(table, lambda: lambda: None)
    held.cancel()
    held.cancel()
    with pytest.raises(RuntimeError, match="writer A was let go"):
        held.release()


def test_no_retries_allowed_is_a_conflict_of_its_own_kind(table: Table) -> None:
    stale = deltalake.DeltaTable(table.path)
    table.run("INSERT INTO {t} VALUES (4, DATE'2026-08-11', 'd')")
    with pytest.raises(deltalake.exceptions.CommitFailedError) as lost:
        stale.delete("id = 3", commit_properties=deltalake.CommitProperties(max_commit_retries=0))
    found = classify(lost.value)
    assert found is not None
    assert found.kind == "attempts"
