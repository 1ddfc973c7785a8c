"""Who creates the table? First writes and CREATE TABLE in every form, to one path and to one name."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from lakerace import deltalog
from lakerace.conflicts import classify, taken
from lakerace.layouts import COLUMNS, NO_TABLE, layout, named
from lakerace.pairs import pair
from lakerace.race import Race, Write, statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
ROW = "SELECT 1L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note"
QUERY = "SELECT * FROM {other}"
EXISTS, NOT_EMPTY = "fails [TABLE_OR_VIEW_ALREADY_EXISTS]", "fails [DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION]"

CREATES = {
    # What creates a table; what becomes of it while another first write is in flight: by path, by name.
    "append": (Write(select=ROW), "commits", "commits"),
    "overwrite": (Write(select=ROW, mode="overwrite"), "commits", "commits"),
    "write-if-absent": (Write(select=ROW, mode="error"), "commits", "commits"),
    "write-or-ignore": (Write(select=ROW, mode="ignore"), "commits", "commits"),
    "create": (f"CREATE TABLE {{t}} ({COLUMNS}) USING delta", EXISTS, NOT_EMPTY),
    "create-if-not-exists": (f"CREATE TABLE IF NOT EXISTS {{t}} ({COLUMNS}) USING delta", "no-commit", NOT_EMPTY),
    "ctas": (f"CREATE TABLE {{t}} USING delta AS {QUERY}", EXISTS, "commits"),
    "ctas-if-not-exists": (f"CREATE TABLE IF NOT EXISTS {{t}} USING delta AS {QUERY}", "no-commit", "commits"),
    "like": ("CREATE TABLE {t} LIKE {other} USING delta", EXISTS, NOT_EMPTY),
    "like-if-not-exists": ("CREATE TABLE IF NOT EXISTS {t} LIKE {other} USING delta", "no-commit", NOT_EMPTY),
    "clone": ("CREATE TABLE {t} SHALLOW CLONE {other}", "commits", "commits"),
    "clone-if-not-exists": ("CREATE TABLE IF NOT EXISTS {t} SHALLOW CLONE {other}", "commits", "commits"),
    "create-or-replace": (f"CREATE OR REPLACE TABLE {{t}} ({COLUMNS}) USING delta", NOT_EMPTY, NOT_EMPTY),
    "create-or-replace-as": (f"CREATE OR REPLACE TABLE {{t}} USING delta AS {QUERY}", "commits", "commits"),
    "create-or-replace-clone": ("CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}", "commits", "commits"),
}
PLACES = {"path": (NO_TABLE, 1), "name": (named(NO_TABLE), 2)}
IN_FULL = frozenset(("append", "create", "ctas", "clone"))
"""One of each kind: every creator is held against them, and they against every creator."""
CORE = {
    ("path", "append", "append"), ("path", "append", "create"), ("path", "append", "create-if-not-exists"),
    ("path", "append", "ctas"), ("path", "ctas", "append"), ("path", "clone", "clone"),
    ("path", "create-or-replace-as", "create-or-replace-as"), ("name", "append", "append"), ("name", "ctas", "ctas"),
    ("name", "create", "create-if-not-exists"), ("name", "ctas-if-not-exists", "ctas-if-not-exists"),
    ("name", "clone-if-not-exists", "clone-if-not-exists"), ("name", "like-if-not-exists", "like-if-not-exists"),
}
WHY = {
    "no-commit": "IF NOT EXISTS is content with the log folder of a write in flight: no table is there, and none may "
                 "come when that write fails.",
    "fails": "The log folder of a write in flight is in the way, IF NOT EXISTS or not.",
    "commits": "Both found nothing; whoever commits first has made version 0, with protocol and metadata.",
}
REPORTS = {"append": "C1", "create-if-not-exists": "C5", "ctas-if-not-exists": "C5", "like-if-not-exists": "C5",
           "clone-if-not-exists": "C5", "ctas": "C7"}


def first_write(line: Line, place: str, held: str, second: str) -> Race:
    layout, column = PLACES[place]
    ends = CREATES[second][column]
    second_ends = ends.partition(" ")[0]
    word = "commits" if second_ends != "commits" else "write" if "clone" in held else "protocol"
    reports = dict.fromkeys(REPORTS[one] for one in (held, second) if one in REPORTS)
    return pair(line, held, second, layout, (CREATES[held][0], CREATES[second][0]), word, *reports, ends=ends,
                name=f"first-{{}}-by-{place}", why=WHY[second_ends])


def races(line: Line, profile: str) -> Iterator[Race]:
    for place in PLACES:
        for held in CREATES:
            for second in CREATES:
                if not line.sub_conditions and "like" in f"{held} {second}":
                    continue  # Delta 4.0 takes no path as the table that is to be like
                if {held, second}.isdisjoint(IN_FULL) and held != second:
                    continue
                if profile == "full" or (place, held, second) in CORE:
                    yield first_write(line, place, held, second)


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("C1", "C3")
@pytest.mark.parametrize("by", ["path", "name"])
def test_of_ten_threads_whoever_is_told_of_success_is_in_the_history(delta, engine, table_factory, by):
    """Free running: nobody knows who wins, but acknowledged commits are history rows, and all rows of them are there.

    The pool's errors are asked for: a pool whose errors are dropped looks like lost data."""
    table = table_factory(PLACES[by][0])
    ready, errors = threading.Barrier(10), {}

    def work(number: int) -> None:
        rows = delta.range(number * 10, number * 10 + 10)
        ready.wait(60)
        writer = rows.write.format("delta").mode("append")
        try:
            writer.saveAsTable(f"lakerace.{table.path.name}") if by == "name" else writer.save(str(table.path))
        except Exception as error:
            errors[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    landed = [number for number in range(10) if number not in errors]
    told = [classify(error).message for error in errors.values() if kind_of(error) == "protocol"]
    assert [text for text in told if EMPTY_DIRECTORY not in text] == []
    assert {number: kind for number, error in errors.items() if (kind := kind_of(error)) not in ALLOWED} == {}
    assert len(engine.history(table)) == len(landed) >= 1
    assert {row[0] // 10 for row in engine.rows(table)[1]} == set(landed)
    assert len(engine.rows(table)[1]) == 10 * len(landed)


ALLOWED = ("protocol", "taken")
CHANGED = "The protocol version of the Delta table has been changed by a concurrent update."
EMPTY_DIRECTORY = ("This happens when multiple writers are writing to an empty directory. Creating the table ahead of "
                   "time will avoid this conflict.")
VECTORS = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


def kind_of(error: Exception) -> str:
    """The kind of a conflict; the refusal of a name or a place that another has taken is none."""
    conflict = classify(error)
    return conflict.kind if conflict else "taken" if taken(error) else str(error)


@pytest.mark.report("C1")
@pytest.mark.parametrize(("made", "does", "hint"), [
    (NO_TABLE, Write(select=ROW), EMPTY_DIRECTORY), (layout("flat"), VECTORS, ""),
], ids=["no-table", "flat"])
def test_the_loser_of_two_first_writes_is_told_that_the_directory_was_empty(engine, table_factory, made, does, hint):
    """By the text alone, since the error has no parameters; nothing is added where a table was there before."""
    table = table_factory(made)
    held = engine.hold(table, "A", statement(does))
    assert engine.run(table, "B", statement(does)).word == "commits"
    lost = held.release()
    assert (lost.word, (lost.message or "").strip().partition(CHANGED)[2].strip()) == ("protocol", hint)


@pytest.mark.report("C7")
def test_the_loser_of_two_ctas_leaves_the_files_of_the_winner_alone(delta, engine, table_factory):
    """Two names for one location: a loser that tidied up there would delete the winner's table."""
    table = table_factory(NO_TABLE)
    delta.sql("CREATE DATABASE IF NOT EXISTS lakerace")
    first, second = (f"CREATE TABLE lakerace.{name} USING delta LOCATION '{table.path}' AS SELECT * FROM range({rows})"
                     for name, rows in (("ctas_one", 5), ("ctas_two", 3)))
    held = engine.hold(table, "A", statement(first))
    won, lost = engine.run(table, "B", statement(second)), held.release()
    assert (won.word, lost.word) == ("commits", "protocol")
    assert delta.table("lakerace.ctas_two").count() == 3
    assert not delta.catalog.tableExists("lakerace.ctas_one")
    assert (len(engine.history(table)), deltalog.files(table.path).live) == (1, 1)
    assert len(deltalog.files(table.path).unreferenced) == 1
    delta.sql("DROP TABLE lakerace.ctas_two")


@pytest.mark.report("C1")
@pytest.mark.parametrize("text", [
    f"CREATE TABLE IF NOT EXISTS {{t}} ({COLUMNS}) USING delta",
    f"REPLACE TABLE {{t}} ({COLUMNS}) USING delta",
], ids=["create-if-not-exists", "replace"])
def test_a_log_folder_without_an_entry_is_taken_for_a_table(engine, table_factory, text):
    """Success, and no table: what a first write that died leaves behind is enough."""
    table = table_factory(NO_TABLE)
    (table.path / "_delta_log").mkdir(parents=True)
    assert engine.run(table, "A", statement(text)).word == "no-commit"
    assert deltalog.version_now(table.path) == deltalog.NO_TABLE
