"""What becomes of a commit that meets another? Engine-neutral laws, each on Delta with Spark and on delta-rs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace import deltalog
from lakerace.catalogue import CATALOGUE
from lakerace.layouts import layout
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, Expected, Race, Write, both_held, held_against, statement
from lakerace.run import run_race

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow

    from lakerace.engines import Engine, Table

ENGINES = ("delta-spark",)
FLAT, BY_DATE = layout("flat"), layout("by-date")

COMMITS, LOST = Expected(word="commits"), Expected(word="append", surfaced="ConcurrentAppendException")
REBASED = Expected(word="commits", attempts=2)
INSERT, COMPACT = CATALOGUE["insert-values"], CATALOGUE["optimize"]
UPDATE = "UPDATE {t} SET note = 'A' WHERE id = 1"
UPDATE_11 = "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-11' AND id = 1"
UPDATE_12 = "UPDATE {t} SET note = 'B' WHERE event_date = DATE'2026-08-12' AND id = 16"
UPDATE_ALL = "UPDATE {t} SET note = 'all'"
MERGE = "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'merged'"
BLIND = "INSERT INTO {t} VALUES (300, DATE'2026-08-11', 'DE', 1, 'once')"
OVERWRITE_11 = Write(
    select="SELECT 400L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'over' AS note",
    mode="overwrite", options=(("replaceWhere", "event_date = DATE'2026-08-11'"),))

RACES = (
    both_held("two-writers-of-one-row-both-do-their-work-and-the-second-to-commit-loses", layout=FLAT, first=UPDATE,
              second=UPDATE, expect=[COMMITS, LOST], claims=("G-001", "G-006")),
    both_held("two-inserts-that-try-one-version-get-one-each", layout=FLAT, first=INSERT, second=INSERT,
              expect=[Expected(word="commits", version=9, attempts=1),
                      Expected(word="commits", version=10, attempts=2)],
              claims=("G-002", "G-004")),
    both_held("two-compactions-of-the-same-files-do-not-both-commit", layout=FLAT, first=COMPACT, second=COMPACT,
              expect=[COMMITS, Expected(word="delete-read")], claims=("G-006",)),
    both_held("two-overwrites-of-one-partition-do-not-both-commit", layout=BY_DATE, first=OVERWRITE_11,
              second=OVERWRITE_11, expect=[COMMITS, LOST], claims=("G-006",)),
    held_against("a-merge-loses-to-an-insert-into-what-it-read", layout=FLAT, held=MERGE, winners=[INSERT],
                 expect=[LOST, COMMITS], claims=("G-007",)),
    held_against("a-conditional-update-loses-to-an-insert-into-what-it-read", layout=FLAT, held=UPDATE,
                 winners=[INSERT], expect=[LOST, COMMITS], claims=("G-007",)),
    held_against("writers-of-other-partitions-both-land-and-one-is-rebased", layout=BY_DATE, held=UPDATE_11,
                 winners=[UPDATE_12], expect=[REBASED, COMMITS], claims=("G-010",)),
)


def test_race(case, check):
    check(case)


def told(engine: Engine, race: Race) -> dict[str, str]:
    """What became of each writer; the order must have been forced."""
    seen = run_race(race, engine)
    assert seen.overlap, seen.error or seen.unsteerable or seen.overlap_proof
    return {outcome.writer: outcome.word for outcome in seen.writers}


def run(engine: Engine, table: Table, sql: str) -> str:
    return engine.run(table, "B", statement(sql)).word


@pytest.mark.claim("G-001", "G-003", "G-020")
def test_work_goes_on_beside_a_writer_that_has_staged(engine, table_factory):
    """Two writers have all their files on disk, none in the log; a reader sees neither; a third commits meanwhile."""
    table = table_factory("flat")
    held = [engine.hold(table, name, statement(UPDATE)) for name in ("A", "C")]
    staged = deltalog.files(table.path).unreferenced
    assert len(set(staged)) == 2
    assert engine.rows(table)[1] == table.rows
    assert run(engine, table, UPDATE) == "commits"
    assert [writer.release().word for writer in held] == ["append", "append"]
    assert deltalog.files(table.path).unreferenced == staged


@pytest.mark.claim("G-004")
@pytest.mark.parametrize("winners", [1, 3])
def test_a_compatible_loser_tries_again_by_itself(either, winners):
    """delta-rs looks for newer versions before it writes its entry, so it counts no second attempt here."""
    seen = run_race(
        held_against("hidden", layout=FLAT, held=INSERT, winners=[statement(BLIND)] * winners), either)
    assert (seen.outcome("A").word, seen.outcome("A").attempts, seen.outcome("A").version) == (
        "commits", 2 if either.line.engine == "delta-spark" else 1, 9 + winners)


@pytest.mark.claim("G-005")
def test_a_rebase_does_not_run_the_source_again(engine, table_factory, tick):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(
        "INSERT INTO {t} SELECT tick(id), DATE'2026-08-11', 'DE', 1, 'new' FROM range(300, 301)"))
    assert run(engine, table, BLIND) == "commits"
    outcome = held.release()
    assert (outcome.word, outcome.attempts) == ("commits", 2)
    assert tick() == 1


@pytest.mark.claim("G-005")
def test_a_rebase_of_delta_rs_does_not_read_its_source_again(delta_rs):
    from deltalake import DeltaTable, write_deltalake
    from pyarrow import RecordBatch, RecordBatchReader

    table = delta_rs.make(FLAT, SERIALIZABLE)
    handle, reads = DeltaTable(table.path), []
    schema = DeltaTable(table.path).to_pyarrow_table().schema

    def batches() -> Iterator[pyarrow.RecordBatch]:
        reads.append(1)
        yield RecordBatch.from_pylist([{"id": 301, "event_date": None, "country": "DE", "amount": 1, "note": "new"}],
                                      schema=schema)

    assert run(delta_rs, table, BLIND) == "commits"
    write_deltalake(handle, RecordBatchReader.from_batches(schema, batches()), mode="append")
    assert (deltalog.latest_version(table.path), reads) == (10, [1])
    delta_rs.drop(table)


PAIRS = {
    "compactions": (FLAT, COMPACT, COMPACT), "updates": (FLAT, UPDATE, UPDATE),
    "overwrites": (BY_DATE, OVERWRITE_11, OVERWRITE_11),
}


@pytest.mark.claim("G-006")
@pytest.mark.parametrize(("pair", "word"), [
    ("compactions", "commits"), ("updates", "append"), ("overwrites", "append"),
])
def test_on_delta_rs_two_compactions_both_commit(delta_rs, pair, word):
    table, first, second = PAIRS[pair]
    assert told(delta_rs, both_held(pair, layout=table, first=first, second=second))["A"] == word


@pytest.mark.claim("G-007")
@pytest.mark.parametrize("held", [MERGE, "UPDATE {t} SET note = 'A' WHERE amount < 50"], ids=["merge", "update"])
def test_a_changed_read_set_is_a_conflict(either, held):
    """The winner writes a row that the held writer would have read."""
    winner = "UPDATE {t} SET amount = 1 WHERE id = 1"
    assert told(either, held_against("read-set", layout=FLAT, held=held, winners=[winner])) == {
        "A": "append", "B": "commits"}


@pytest.mark.claim("G-009")
@pytest.mark.parametrize("gap", [0, 1, 6])
@pytest.mark.parametrize(("held", "word"), [(UPDATE_11, "append"), (UPDATE_12, "commits")], ids=["overlap", "apart"])
def test_the_verdict_does_not_depend_on_how_much_came_between(either, gap, held, word):
    """The deciding commit first, then others that touch nothing of it: the writer is that much later."""
    harmless = "INSERT INTO {t} VALUES (500, DATE'2026-08-20', 'XX', 1, 'far')"
    race = held_against("gap", layout=BY_DATE, held=held, winners=[UPDATE_11, *[harmless] * gap])
    assert told(either, race)["A"] == word


@pytest.mark.claim("G-010", "G-023")
def test_writers_of_other_partitions_both_land(either):
    seen = run_race(held_against("apart", layout=BY_DATE, held=UPDATE_11, winners=[UPDATE_12]), either)
    outcome = seen.outcome("A")
    assert (outcome.word, outcome.version) == ("commits", 10)
    assert seen.files is not None
    assert seen.files.unreferenced == (), "nothing was computed twice"


@pytest.mark.claim("G-011")
def test_a_reader_keeps_its_version(delta, engine, table_factory):
    table = table_factory("flat")
    frame = delta.read.format("delta").load(str(table.path)).select("id", "note").orderBy("id")
    before = frame.collect()
    assert run(engine, table, UPDATE_ALL) == "commits"
    assert frame.collect() == before
    assert {row.note for row in delta.read.format("delta").load(str(table.path)).collect()} == {"all"}


@pytest.mark.claim("G-011")
def test_a_handle_keeps_its_version(delta_rs):
    from deltalake import DeltaTable

    table = delta_rs.make(FLAT, SERIALIZABLE)
    handle = DeltaTable(table.path)
    before = handle.to_pyarrow_table()
    assert run(delta_rs, table, UPDATE_ALL) == "commits"
    assert handle.to_pyarrow_table() == before
    assert set(DeltaTable(table.path).to_pyarrow_table()["note"].to_pylist()) == {"all"}
    delta_rs.drop(table)


@pytest.mark.claim("G-032")
def test_in_a_forced_order_who_commits_first_wins(either):
    race = both_held("first", layout=FLAT, first=UPDATE, second=MERGE)
    turned = both_held("turned", layout=FLAT, first=MERGE, second=UPDATE)
    assert [told(either, one)["B"] for one in (race, turned)] == ["commits"] * 2
    assert [told(either, one)["A"] for one in (race, turned)] == ["append"] * 2


@pytest.mark.claim("G-020", "G-021")
def test_losing_costs_files_and_no_rows(either, flat_table):
    held = either.hold(flat_table, "A", statement(UPDATE))
    assert run(either, flat_table, UPDATE) == "commits"
    after = either.rows(flat_table)[1]
    assert held.release().word == "append"
    left = deltalog.files(flat_table.path)
    assert (len(left.unreferenced), left.unreferenced_bytes > 0, either.rows(flat_table)[1] == after) == (1, True, True)


@pytest.mark.claim("G-029")
@pytest.mark.parametrize(("isolation", "words"), [
    (SERIALIZABLE, {"delta-spark": "append", "delta-rs": "append"}),
    (WRITE_SERIALIZABLE, {"delta-spark": "commits", "delta-rs": "append"}),
])
def test_a_looser_level_saves_the_retry_and_shows_what_no_history_explains(either, isolation, words):
    """The history says: insert, then update every row. The inserted row is not updated."""
    race = held_against("levels", layout=FLAT, held=UPDATE_ALL, winners=[BLIND], isolation=isolation)
    seen = run_race(race, either)
    assert (seen.overlap, seen.outcome("A").word) == (True, words[either.line.engine])
    if seen.outcome("A").word == "commits":
        assert [row.operation for row in seen.history] == ["UPDATE", "WRITE"]
        assert next(row[4] for row in seen.rows_after if row[0] == 300) == "once"


@pytest.mark.claim("G-030")
@pytest.mark.parametrize("rewrite", ["OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)"], ids=["compact", "zorder"])
def test_maintenance_changes_no_row(either, flat_table, rewrite):
    assert run(either, flat_table, rewrite) == "commits"
    assert either.rows(flat_table)[1] == flat_table.rows


@pytest.mark.claim("G-030")
def test_two_compactions_of_delta_rs_double_every_row(delta_rs):
    seen = run_race(both_held("twice", layout=FLAT, first=COMPACT, second=COMPACT), delta_rs)
    assert sorted(seen.rows_after) == sorted([*seen.rows_before, *seen.rows_before])
