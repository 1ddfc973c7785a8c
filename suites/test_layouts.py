"""Do the tables lie as declared? Every layout, read from its log and by two readers, before any race is believed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lakerace import deltalog
from lakerace.conflicts import KINDS
from lakerace.engines import LayoutFailed
from lakerace.layouts import BASE_VERSION, LAYOUTS, layout_from_file
from lakerace.race import (
    ISOLATION_PROPERTY,
    ISOLATIONS,
    SERIALIZABLE,
    WRITE_SERIALIZABLE,
    RaceError,
    held_against,
    statement,
)
from lakerace.run import run_race

if TYPE_CHECKING:
    from pathlib import Path

UPDATE = "UPDATE {t} SET note = 'updated' WHERE id = 1"
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"


def details(delta, table):
    return delta.sql(f"DESCRIBE DETAIL delta.`{table.path}`").first()


def rows_by_spark(delta, table):
    frame = delta.read.format("delta").load(str(table.path))
    return tuple(frame.columns), deltalog.sort_rows(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_lies_as_declared(name, isolation, delta, table_factory):
    table = table_factory(name, isolation)
    detail = details(delta, table)
    assert table.base_version == deltalog.latest_version(table.path) == BASE_VERSION
    assert tuple(detail["partitionColumns"]) == deltalog.partition_columns(table.path) == LAYOUTS[name].partitioned
    assert list(detail["clusteringColumns"]) == (["event_date"] if name.startswith("clustered") else [])
    assert detail["numFiles"] == deltalog.files(table.path).live == 8

    properties = detail["properties"]
    assert properties["delta.enableDeletionVectors"] == str(name.endswith("-dv")).lower()
    assert ("deletionVectors" in detail["tableFeatures"]) == name.endswith("-dv")
    assert properties.get("delta.enableRowTracking", "false") == str(name == "row-tracking").lower()
    stated = "WriteSerializable" if isolation == WRITE_SERIALIZABLE else None
    assert properties.get(ISOLATION_PROPERTY) == stated

    rows = delta.sql(f"SELECT _metadata.file_path AS file, * FROM delta.`{table.path}` ORDER BY id").collect()
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    together = ("file", "event_date", "country")
    assert all(one[field] == other[field] for one, other in pairs for field in together), "a pair of ids shares a file"
    assert len({one["file"] for one, _ in pairs}) == 8
    dates = Counter(str(row["event_date"]) for row in rows)
    assert dates == {"2026-08-11": 8, "2026-08-12": 8}
    assert (tuple(table.columns), table.rows) == rows_by_spark(delta, table)


@pytest.mark.parametrize("name", LAYOUTS)
def test_both_readers_see_the_same_rows_after_a_delete(name, delta, engine, table_factory):
    table = table_factory(name)
    engine.run(table, "A", statement("DELETE FROM {t} WHERE id IN (3, 9)"))
    columns, rows, reader = engine.rows(table)
    assert (columns, rows) == rows_by_spark(delta, table)
    assert len(rows) == 14
    assert reader == "deltalake", "so that the comparison has two readers"
    added = deltalog.actions(table.path, BASE_VERSION + 1)
    vectors = [action for action in added if action.get("add", {}).get("deletionVector")]
    assert len(vectors) == (2 if name.endswith("-dv") else 0), "with deletion vectors on, no file is written again"


@pytest.mark.parametrize("name", LAYOUTS)
def test_write_serializable_is_honoured(name, engine):
    """The same race on both levels: only WriteSerializable lets an UPDATE pass a blind INSERT into its read."""
    words = {}
    for isolation in ISOLATIONS:
        seen = run_race(
            held_against(f"update-over-insert-{isolation}", layout=LAYOUTS[name], isolation=isolation, held=UPDATE,
                         winners=[INSERT]), engine,
        )
        assert seen.overlap, seen.overlap_proof or seen.error
        words[isolation] = seen.outcome("A").word
        level = "Serializable" if isolation == SERIALIZABLE else "WriteSerializable"
        assert seen.history_of("B").isolationLevel == level
    assert words == {SERIALIZABLE: KINDS["append"].word, WRITE_SERIALIZABLE: "commits"}


def test_a_copy_is_the_writer_s_own(delta, table_factory):
    first, second = table_factory("flat"), table_factory("flat")
    delta.sql(f"DELETE FROM delta.`{first.path}`")
    assert rows_by_spark(delta, first)[1] == ()
    assert rows_by_spark(delta, second)[1] == second.rows


def test_a_layout_from_a_file_of_sql(tmp_path: Path, engine, table_factory):
    file = tmp_path / "orders.sql"
    file.write_text(
        "-- one file; a semicolon in quotes doesn't end a statement\n"
        "CREATE TABLE {t} (id BIGINT, note STRING) USING delta;\n"
        "INSERT INTO {t} VALUES (1, 'a;b'),\n  (2, 'it''s');\n",
        encoding="utf-8",
    )
    table = table_factory(file)
    assert (table.layout.name, table.base_version, table.columns) == ("orders", 1, ("id", "note"))
    assert table.rows == ((1, "a;b"), (2, "it's"))
    seen = run_race(
        held_against("own-layout", layout=layout_from_file(file), held="UPDATE {t} SET note = 'x' WHERE id = 1",
                     winners=["UPDATE {t} SET note = 'y' WHERE id = 2"]), engine,
    )
    assert [outcome.word for outcome in seen.writers] == ["append", "commits"]


@pytest.mark.parametrize(("text", "said"), [
    ("SELECT 1;", r"no statement mentions \{t\}"),
    ("CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO {t} VALUES ('x', 2)", "INSERT INTO"),
    ("CREATE TABLE {t} (id NUMBER_OF_THINGS) USING delta", "CREATE TABLE"),
    ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT '{t}'", r"made no Delta table at \{t\}"),
])
def test_a_layout_that_does_not_work_says_which_statement(text, said, tmp_path: Path, table_factory):
    file = tmp_path / "broken.sql"
    file.write_text(text, encoding="utf-8")
    with pytest.raises((LayoutFailed, RaceError), match=f"layout broken: .*{said}"):
        table_factory(file)


def test_a_layout_file_that_is_not_there(tmp_path: Path, table_factory):
    with pytest.raises(RaceError, match=r"layout file .*missing\.sql: .*no such file"):
        table_factory(tmp_path / "missing.sql")
