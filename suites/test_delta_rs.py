"""The second engine, delta-rs: its four verbs, every conflict it can raise, and where it differs from Spark.

No JVM: a stale ``DeltaTable`` handle is the held writer. Each test names what happens; the reasons stand in
:mod:`lakerace.engines.delta_rs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("deltalake")

from lakerace import deltalog
from lakerace.catalogue import CATALOGUE
from lakerace.engines import LayoutFailed, Unsteerable
from lakerace.engines.delta_rs import DeltaRs
from lakerace.engines.lines import line
from lakerace.layouts import LAYOUTS, layout_from_statements
from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE, held_against, statement
from lakerace.run import run_race

if TYPE_CHECKING:

    from lakerace.observe import Observation

FLAT, BY_DATE = LAYOUTS["flat"], LAYOUTS["by-date"]
NO_CALL = {
    "dynamic-overwrite": "dynamic partition overwrite",
    "enable-row-tracking": "does not set delta.enableRowTracking",
    "enable-in-commit-timestamps": "does not set delta.enableInCommitTimestamps",
    "enable-column-mapping": "Column mapping is not supported",
    "clone-into": "no CLONE",
}
"""Statements of the catalogue that delta-rs has no call for, with the reason it gives."""
NOTHING_TO_COMMIT = {"merge-no-match", "vacuum"}


@pytest.fixture(scope="module")
def engine(delta_rs: DeltaRs) -> DeltaRs:
    return delta_rs


def race(engine: DeltaRs, held: str, *winners: str, layout: str = "flat", isolation: str = SERIALIZABLE) -> Observation:
    """``held`` against ``winners``, each a name of the catalogue or SQL."""
    writers = [CATALOGUE.get(text) or statement(text) for text in (held, *winners)]
    return run_race(
        held_against(f"{held} against {winners}", layout=LAYOUTS[layout], held=writers[0], winners=writers[1:],
                     isolation=isolation),
        engine,
    )


def ids(seen: Observation) -> list[int]:
    return sorted(row[0] for row in seen.rows_after)


# The four verbs.


def test_a_made_table_is_a_copy_that_a_drop_takes_away(engine: DeltaRs) -> None:
    first, second = engine.make(FLAT, SERIALIZABLE), engine.make(FLAT, SERIALIZABLE)
    assert first.path != second.path
    assert (first.base_version, len(first.rows), first.columns[0]) == (8, 16, "id")
    engine.run(first, "A", CATALOGUE["delete-all"])
    assert (engine.rows(first)[1], engine.rows(second)[1]) == ((), second.rows)
    engine.drop(first)
    assert not first.path.exists()
    engine.drop(second)


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("name", ["flat", "flat-dv", "by-date", "by-date-dv", "by-date-country", "by-date-country-dv"])
def test_a_layout_lies_as_declared(engine: DeltaRs, name: str, isolation: str) -> None:
    table = engine.make(LAYOUTS[name], isolation)
    made = deltalog.actions(table.path, 0)
    metadata = next(action["metaData"] for action in made if "metaData" in action)
    assert tuple(metadata["partitionColumns"]) == LAYOUTS[name].partitioned
    given = metadata["configuration"].get("delta.isolationLevel")
    assert given == ("WriteSerializable" if isolation == WRITE_SERIALIZABLE else None)
    assert deltalog.files(table.path).live == 8
    engine.drop(table)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("clustered", "no clustering"), ("clustered-dv", "no clustering"), ("row-tracking", "delta.enableRowTracking")],
)
def test_a_layout_delta_rs_cannot_make_says_why(engine: DeltaRs, name: str, reason: str) -> None:
    with pytest.raises(Unsteerable, match=rf"layout {name}: delta-rs.*{reason}"):
        engine.make(LAYOUTS[name], SERIALIZABLE)


def test_a_layout_whose_setup_fails_names_the_statement(engine: DeltaRs) -> None:
    wrong = layout_from_statements("wrong", ("CREATE TABLE {t} (id INT) USING delta", "INSERT INTO {t} VALUES (1, 2)"))
    with pytest.raises(LayoutFailed, match=r"layout wrong: INSERT INTO \{t\} VALUES \(1, 2\): INSERT has 2 columns"):
        engine.make(wrong, SERIALIZABLE)


def test_a_closed_engine_leaves_no_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    opened = DeltaRs(line("delta-rs"))
    table = opened.make(FLAT, SERIALIZABLE)
    opened.close()
    assert not table.path.exists()


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_catalogue_statement_runs_alone_or_says_why_not(engine: DeltaRs, name: str) -> None:
    table = engine.make(BY_DATE, SERIALIZABLE)
    if name in NO_CALL:
        with pytest.raises(Unsteerable, match=NO_CALL[name]):
            engine.run(table, "A", CATALOGUE[name])
        with pytest.raises(Unsteerable, match=NO_CALL[name]):
            engine.hold(table, "A", CATALOGUE[name])
    else:
        outcome = engine.run(table, "A", CATALOGUE[name])
        assert outcome.word == ("no-commit" if name in NOTHING_TO_COMMIT else "commits"), outcome.message
        assert outcome.version == (None if name in NOTHING_TO_COMMIT else 9)
        assert (outcome.read_version, outcome.held) == (8, False)
        assert duplicate_free(engine, table)
    engine.drop(table)


def duplicate_free(engine: DeltaRs, table: object) -> bool:
    return not deltalog.duplicate_actions(engine.read_back(table).commits)  # type: ignore[arg-type]


def test_a_held_writer_stands_at_its_version_while_others_commit(engine: DeltaRs) -> None:
    seen = race(engine, "insert-select-self", "insert-values", "insert-other-date")
    assert seen.overlap, seen.overlap_proof
    held, first, second = seen.writers
    assert (held.read_version, first.version, second.version, held.version) == (8, 9, 10, 11)
    assert [row.operation for row in seen.history] == ["WRITE"] * 3
    assert [row.readVersion for row in seen.history] == [None] * 3
    assert len(seen.rows_after) == 16 + 3


def test_a_statement_that_fails_while_reading_ends_before_its_commit(engine: DeltaRs) -> None:
    seen = race(engine, "INSERT INTO {t} SELECT no_such_column FROM {t}", "insert-values")
    held = seen.outcome("A")
    assert (held.word, held.version) == ("fails", None)
    assert "no_such_column" in str(held.message)
    assert seen.outcome("B").word == "commits"


def test_files_of_an_aborted_writer_stay_and_no_entry_names_them(engine: DeltaRs) -> None:
    seen = race(engine, "update-by-key", "update-by-key")
    assert seen.outcome("A").word == "append"
    assert seen.files is not None
    assert len(seen.files.unreferenced) == 1
    assert seen.files.unreferenced_bytes > 0
    assert (seen.files.live, seen.files.on_disk) == (8, 10)


def test_deletion_vectors_are_a_feature_that_delta_rs_carries_and_never_writes(engine: DeltaRs) -> None:
    table = engine.make(LAYOUTS["flat-dv"], SERIALIZABLE)
    protocol = next(action["protocol"] for action in deltalog.actions(table.path, 0) if "protocol" in action)
    assert "deletionVectors" in protocol["writerFeatures"]
    for name in ("delete-by-key", "update-by-key", "merge-on-key"):
        engine.run(table, "A", CATALOGUE[name])
    assert not list(table.path.rglob("*.bin"))
    engine.drop(table)


# Every kind of conflict that can be had from delta-rs. (delete-delete can't: delete-read is checked first.)

CONFLICTS = [
    ("append", "update-by-key", "update-by-key"),
    ("append", "update-all", "insert-values"),
    ("append", "merge-on-key", "insert-values"),
    ("append", "delete-by-key", "optimize"),
    ("delete-read", "update-by-key", "delete-partition"),
    ("delete-read", "optimize", "delete-by-key"),
    ("metadata", "insert-values", "set-property"),
    ("metadata", "insert-values", "add-column"),
    ("metadata", "insert-values", "merge-schema-append"),
    ("metadata", "comment", "comment"),
    ("protocol", "insert-values", "enable-deletion-vectors"),
    ("protocol", "enable-deletion-vectors", "enable-deletion-vectors"),
    ("transaction", "txn-append", "txn-append"),
    ("attempts", "restore", "insert-values"),
]


@pytest.mark.parametrize(("word", "held", "winner"), CONFLICTS, ids=["-".join(row) for row in CONFLICTS])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_each_kind_of_conflict(engine: DeltaRs, word: str, held: str, winner: str, isolation: str) -> None:
    seen = race(engine, held, winner, isolation=isolation)
    lost, won = seen.writers
    assert seen.overlap, seen.overlap_proof
    assert (won.word, won.version) == ("commits", 9)
    assert (lost.word, lost.version, lost.read_version) == (word, None, 8)
    assert (lost.surfaced, lost.root, lost.condition) == ("CommitFailedError", "CommitFailedError", None)


# Where delta-rs differs from Spark.


@pytest.mark.parametrize("winner", ["delete-by-key", "delete-other-date", "update-by-key", "merge-on-key"])
@pytest.mark.parametrize("held", ["insert-values", "insert-select-other", "df-append", "set-property"])
@pytest.mark.parametrize("layout", ["flat", "by-date"])
def test_a_writer_that_read_nothing_loses_against_a_removed_file(
    engine: DeltaRs, held: str, winner: str, layout: str
) -> None:
    seen = race(engine, held, winner, layout=layout)
    assert seen.outcome("A").word == "delete-read"


@pytest.mark.parametrize("winner", ["insert-values", "optimize", "merge-insert-only"])
def test_an_append_commits_where_no_data_was_removed(engine: DeltaRs, winner: str) -> None:
    assert race(engine, "insert-values", winner).outcome("A").word == "commits"


def test_an_append_is_not_recorded_as_blind(engine: DeltaRs) -> None:
    row = race(engine, "update-by-key", "insert-values").history_of("B")
    assert row is not None
    assert (row.isBlindAppend, row.readVersion, row.isolationLevel) == (None, None, None)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_write_serializable_changes_nothing_since_no_append_is_blind(engine: DeltaRs, isolation: str) -> None:
    assert race(engine, "update-all", "insert-values", isolation=isolation).outcome("A").word == "append"


@pytest.mark.parametrize("layout", ["flat", "by-date"])
def test_updates_of_other_files_commit_even_without_partitions(engine: DeltaRs, layout: str) -> None:
    seen = race(engine, "update-by-key", "update-other-key", layout=layout)
    assert seen.outcome("A").word == "commits"
    assert [row[0] for row in seen.rows_after if row[4] == "updated"] == [1, 16]


def test_updates_of_another_row_in_the_same_file_abort(engine: DeltaRs) -> None:
    assert race(engine, "update-by-key", "UPDATE {t} SET note = 'b' WHERE id = 2").outcome("A").word == "append"


@pytest.mark.parametrize("held", ["delete-all", "truncate", "insert-overwrite"])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_rewrite_of_the_whole_table_does_not_see_an_append(engine: DeltaRs, held: str, isolation: str) -> None:
    seen = race(engine, held, "insert-values", isolation=isolation)
    assert seen.outcome("A").word == "commits"
    assert ids(seen) == ([201] if held != "insert-overwrite" else [101, 102, 201])


def test_check_then_append_twice_lets_both_append_the_same_rows(engine: DeltaRs) -> None:
    seen = race(engine, "insert-not-exists", "insert-not-exists")
    assert seen.outcome("A").word == "commits"
    assert ids(seen)[-4:] == [101, 101, 102, 102]


@pytest.mark.parametrize("held", ["optimize", "zorder"])
@pytest.mark.parametrize("winner", ["optimize", "zorder"])
@pytest.mark.parametrize("layout", ["flat", "by-date"])
def test_two_optimizes_both_commit_and_double_every_row(
    engine: DeltaRs, held: str, winner: str, layout: str
) -> None:
    seen = race(engine, held, winner, layout=layout)
    assert seen.outcome("A").word == "commits"
    assert ids(seen) == sorted([*range(1, 17), *range(1, 17)])
    assert deltalog.duplicate_actions(seen.commits), "the log shows it: the same files are removed twice"


@pytest.mark.parametrize(("held", "left"), [("delete-all", []), ("insert-overwrite", [101, 102])])
def test_a_rewrite_of_the_whole_table_is_lost_behind_an_optimize(engine: DeltaRs, held: str, left: list[int]) -> None:
    seen = race(engine, held, "optimize")
    assert seen.outcome("A").word == "commits"
    assert ids(seen) == sorted([*range(1, 17), *left])
