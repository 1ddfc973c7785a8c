"""What to change first, confirmed by the rules where they can be asked? On logs by hand."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest

from lakerace.conflicts import APPEND
from lakerace.diagnose.explain import explain
from lakerace.diagnose.handmade import (
    append,
    created,
    rewrite,
)
from lakerace.diagnose.logread import open_log
from lakerace.diagnose.narrow import condition_text, narrowed
from lakerace.diagnose.view import diagnosis_text
from lakerace.race import RaceError
from selfcheck.diagnosing import BY_SOURCE, MERGE, diagnosed, said

if TYPE_CHECKING:
    from pathlib import Path


def test_a_literal_is_named_and_confirmed(orders: Path) -> None:
    found = diagnosed(orders, reported=said(APPEND, version=3), statement=MERGE, read_version=2)
    assert found.change is not None
    assert (found.agrees, found.change.kind, found.change.verified) == (True, "predicate", True)
    assert found.change.what.startswith("name the partition by a literal: add day = DATE'2026-08-11' to ON")


def test_the_changed_statement_is_given_and_is_the_one_that_was_tried(orders: Path) -> None:
    change = diagnosed(orders, reported=said(APPEND, version=3), statement=MERGE, read_version=2).change
    assert change is not None
    assert change.statement is not None
    assert "ON t.id = s.id AND t.day = s.day AND t.day = DATE'2026-08-11' WHEN" in change.statement
    again = diagnosed(orders, reported=said(APPEND, version=3), statement=change.statement, read_version=2)
    assert again.agrees is False
    assert "so " in diagnosis_text(diagnosed(orders, reported=said(APPEND, version=3), statement=MERGE, read_version=2))


def test_on_delta_rs_too_a_merge_gets_its_literal(orders: Path) -> None:
    reported = said(APPEND, version=3, engine="delta-rs")
    statement = "MERGE INTO orders t USING updates s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = s.note"
    found = diagnosed(orders, reported=reported, statement=statement, read_version=2)
    assert found.change is not None
    assert (found.profile, found.change.kind, found.change.verified) == ("delta-rs", "predicate", True)
    assert found.change.statement is not None
    assert "ON t.id = s.id AND t.day = DATE'2026-08-11' WHEN" in found.change.statement
    assert "nothing in this MERGE's ON is about the table alone" in diagnosis_text(found)


@pytest.mark.parametrize("statement", [BY_SOURCE, "DELETE FROM orders", "UPDATE orders SET note = 'x'"])
def test_no_literal_where_it_would_not_narrow_or_change_the_meaning(orders: Path, statement: str) -> None:
    change = diagnosed(orders, reported=said(APPEND, version=3), statement=statement, read_version=2).change
    assert change is not None
    assert change.kind == "order"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([datetime.date(2026, 8, 11)], "day = DATE'2026-08-11'"),
        ([1, 2.5], "day IN (1, 2.5)"),
        (["a'b\\"], "day = 'a\\'b\\\\'"),
        ([True], "day = TRUE"),
        ([datetime.datetime.fromisoformat("2026-08-11 02:00:00")], "day = TIMESTAMP'2026-08-11 02:00:00'"),
    ],
)
def test_literals_are_written_as_sql(values: list[object], text: str) -> None:
    assert condition_text("day", values) == text
    assert narrowed("DELETE FROM {t} WHERE id = 1", "day", values).startswith("DELETE FROM {t} WHERE id = 1 AND day ")


def test_an_insert_that_reads_the_table_is_made_blind(orders: Path) -> None:
    statement = "INSERT INTO orders SELECT id + 100, day, note FROM orders WHERE day = '2026-08-12'"
    found = diagnosed(orders, reported=said(APPEND, version=3), statement=statement, read_version=2)
    assert found.change is not None
    assert (found.change.kind, found.change.verified) == ("blind", True)
    assert found.why_not_blind.startswith("this INSERT is not blind: its own query reads the table")


def test_compaction_is_kept_apart(orders: Path) -> None:
    statement = "UPDATE orders SET note = 'x' WHERE day = '2026-08-11' AND id = 1"
    found = diagnosed(orders, reported=said(APPEND, version=5), statement=statement, read_version=4)
    assert found.change is not None
    assert (found.change.kind, found.change.verified) == ("schedule", True)
    assert "WHERE day < ..." in found.change.what


def test_on_databricks_the_level_is_set_back(tmp_path: Path) -> None:
    created(tmp_path, properties={"delta.isolationLevel": "Serializable"})
    append(tmp_path, 1, "a.parquet", engine="Databricks-Runtime/13.3.x")
    append(tmp_path, 2, "b.parquet", engine="Databricks-Runtime/13.3.x")
    found = diagnosed(tmp_path, reported=said(APPEND, version=2, engine="databricks"),
                      statement="UPDATE orders SET note = 'x' WHERE id = 1")
    assert found.profile == "databricks-before-14.3"
    assert found.change is not None
    assert (found.change.kind, found.change.verified) == ("isolation", True)


def test_where_nothing_keeps_them_apart_they_run_in_turn(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1, "a.parquet")
    rewrite(tmp_path, 2, "UPDATE", "a.parquet", "b.parquet")
    found = diagnosed(tmp_path, reported=said(APPEND, version=2), statement="UPDATE orders SET note = 'x' WHERE id = 1")
    assert found.change is not None
    assert found.change.what.startswith("run this statement and the UPDATE job one after the other")


def test_sql_that_is_none_is_refused(orders: Path) -> None:
    with pytest.raises(RaceError, match="does not parse"):
        explain(open_log(str(orders)), statement="UPDATE SET WHERE")


def test_a_statement_that_would_change_nothing_says_so(orders: Path) -> None:
    found = diagnosed(orders, reported=said(APPEND, version=3), statement="UPDATE orders SET note = 'x' WHERE day = "
                                                                         "'1999-01-01'")
    assert any("changes nothing, and so commits nothing" in line for line in found.unknown)


def test_rules_that_see_no_conflict_are_a_note(orders: Path) -> None:
    found = diagnosed(orders, reported=said(APPEND, version=4), statement="DELETE FROM orders WHERE day = '2026-08-12'")
    assert found.agrees is False
    assert any("the rules say no conflict" in line for line in found.notes)


def test_a_commit_that_would_have_ended_it_earlier_is_a_note(orders: Path) -> None:
    everything = "UPDATE orders SET note = 'x'"
    found = diagnosed(orders, reported=said(APPEND, version=3), statement=everything, read_version=1)
    assert any("by the rules version 2 would have ended it already" in line for line in found.notes)
