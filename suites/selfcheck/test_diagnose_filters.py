"""Why did a filter not help, and why was an INSERT not blind? On logs by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace.conflicts import APPEND, DELETE_READ, METADATA
from lakerace.diagnose.handmade import (
    add,
    append,
    created,
    info,
    metadata,
    protocol,
    remove,
    write,
)
from selfcheck.diagnosing import BY_SOURCE, MERGE, SECOND, diagnosed, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakerace.diagnose.reported import Reported

IN_WHEN = (
    "MERGE INTO orders t USING u s ON t.id = s.id "
    "WHEN MATCHED AND t.day = '2026-08-11' THEN DELETE WHEN NOT MATCHED THEN INSERT *"
)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (MERGE, "t.day = s.day compares the partition column with the source, and only a literal narrows the read"),
        ("UPDATE orders SET note = 'x' WHERE day = '2026-08-12' OR id = 1",
         "ties the partition column to other columns, so it counts as a filter on data"),
        ("UPDATE orders SET note = 'x' WHERE id = 1", "the statement has no condition on day"),
        ("UPDATE orders SET note = 'x' WHERE day = '2026-08-12' AND id = 1",
         "day = '2026-08-12' was used, and the winner wrote to the same partition (day=2026-08-12)"),
        (IN_WHEN, "stands in a WHEN clause: with WHEN NOT MATCHED only ON narrows the read"),
        (BY_SOURCE, "WHEN NOT MATCHED BY SOURCE makes the MERGE read the whole table"),
        ("UPDATE orders SET note = 'x' WHERE my_function(day)", "is not deterministic, or a function of your own"),
    ],
)
def test_why_the_statements_filter_did_not_help(orders: Path, statement: str, why: str) -> None:
    found = diagnosed(orders, reported=said(APPEND, version=3, partition=SECOND), statement=statement, read_version=2)
    assert why in found.why_no_filter


@pytest.mark.parametrize(
    ("reported", "why"),
    [
        (said(APPEND, version=3, predicate="Vector(true)"), "the engine saw no condition on day alone"),
        (said(APPEND, version=3, predicate="Vector('day = 2026-08-12)", partition=SECOND),
         "it was used, and covers what the winner wrote: the engine's predicate was day = 2026-08-12; both met in"),
        (said(APPEND, version=3), "the error does not say which filter on day the statement had"),
        (said(DELETE_READ, version=3), "the winner removed a file that this writer had read"),
        (said(METADATA, version=3), "a filter has no say here: a change of schema or properties"),
        (said(APPEND, version=3, engine="delta-rs"), "delta-rs compares the predicate with partition values"),
    ],
)
def test_why_a_filter_did_not_help_without_the_statement(orders: Path, reported: Reported, why: str) -> None:
    assert why in diagnosed(orders, reported=reported).why_no_filter


def test_without_partitions_no_filter_helps_and_clustering_neither(tmp_path: Path) -> None:
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["day"]]}', "removed": False}
    write(tmp_path, 0, metadata(), protocol(1, 7, writerFeatures=["clustering"]), {"domainMetadata": domain})
    append(tmp_path, 1, "a.parquet", blind=False)
    found = diagnosed(tmp_path, reported=said(APPEND, version=1))
    assert found.why_no_filter == (
        "the table has no partitions, so no filter narrows what counts as read; clustering by day makes no "
        "difference to "
        "the check"
    )


@pytest.mark.parametrize(
    ("commit", "why"),
    [
        (lambda t: append(t, 1, "a.parquet"), ""),
        (lambda t: append(t, 1, "a.parquet", blind=False), "it only added files and yet read this table"),
        (lambda t: append(t, 1, "a.parquet", blind=None, engine="delta-rs:py-1.6.6"), "records no isBlindAppend"),
        (lambda t: write(t, 1, info(1, "WRITE", mode="Overwrite", predicate="day = '2026-08-11'"), remove("x"),
                         add("a")),
         "it overwrote files where day = '2026-08-11': what removes files is no append"),
        (lambda t: write(t, 1, info(1, "WRITE", mode="Append"), metadata(), add("a")),
         "it also changed the table's metadata in the same commit"),
        (lambda t: write(t, 1, info(1, "MERGE", predicate="[]"), add("a")), "even with WHEN NOT MATCHED alone"),
    ],
)
def test_why_the_winner_was_not_blind(tmp_path: Path, commit: Callable[[Path], object], why: str) -> None:
    created(tmp_path)
    commit(tmp_path)
    found = diagnosed(tmp_path, reported=said(APPEND, version=1))
    assert why in found.why_not_blind
    assert bool(why) == bool(found.why_not_blind)
