"""Two writers mark rows of one file as deleted: is the file or the row what they must not share?

Four rows lie in a file here, so that rows can go without the file. A deletion vector is a new version of its file:
whoever writes one removes the file and adds it again, and the other has read it.
"""

from __future__ import annotations

from typing import Any

from lakerace.conflicts import KINDS
from lakerace.layouts import COLUMNS, layout_from_statements
from lakerace.race import WRITE_SERIALIZABLE, Expected, Layout, Race, Write, held_against

VERSIONS = ">=4.0"
ON_11, ON_12 = "event_date = DATE'2026-08-11'", "event_date = DATE'2026-08-12'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"


def fours(name: str, meaning: str, properties: str, clause: str = "") -> Layout:
    """Four files of four rows: ids 1 to 8 on 11 August, 9 to 16 on 12 August."""
    files = (
        f"INSERT INTO {{t}} SELECT id, DATE'2026-08-{day}', 'DE', 1, 'base' FROM range({first}, {first + 4})"
        for first, day in ((1, 11), (5, 11), (9, 12), (13, 12))
    )
    create = f"CREATE TABLE {{t}} ({COLUMNS}) USING delta{clause} TBLPROPERTIES ({properties})"
    return layout_from_statements(name, (create, *files), f"four files of four rows, {meaning}")


FLAT = fours("fours", "deletion vectors on", VECTORS)
REWRITTEN = fours("fours-rewritten", "deletion vectors off", "'delta.enableDeletionVectors' = 'false'")
BY_DATE = fours("fours-by-date", "by date, deletion vectors on", VECTORS, " PARTITIONED BY (event_date)")
EVERYTHING = fours(
    "fours-clustered", "clustered, deletion vectors, row tracking and change data feed on",
    f"{VECTORS}, 'delta.enableRowTracking' = 'true', 'delta.enableChangeDataFeed' = 'true'", " CLUSTER BY (event_date)",
)
COMMITS = Expected(word="commits")
DELETE_2, DELETE_3, DELETE_6 = (f"DELETE FROM {{t}} WHERE id = {row}" for row in (2, 3, 6))
DELETE_FILE = "DELETE FROM {t} WHERE id <= 4"
UPDATE_3 = "UPDATE {t} SET note = 'A' WHERE id = 3"
MERGE_3_AWAY = "MERGE INTO {t} t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"


def merge(row: int, on: str = "t.id = s.id") -> str:
    return (f"MERGE INTO {{t}} t USING (SELECT {row}L AS id, 'merged' AS note) s ON {on} "
            "WHEN MATCHED THEN UPDATE SET note = s.note")


def loses(name: str, held: str | Write, winner: str | Write, by: str, made: Layout = FLAT, **more: Any) -> Race:
    hint = "WITH_PARTITION_HINT" if made.partitioned else "WITHOUT_HINT"
    lost = Expected(word=by, condition=f"{KINDS[by].condition}.{hint}", sqlstate="2D521", attempts=1)
    return held_against(name, layout=made, held=held, winners=[winner], expect=[lost, COMMITS], **more)


def outlives(name: str, held: str | Write, winner: str | Write, made: Layout = FLAT, **more: Any) -> Race:
    """``held`` commits at its second attempt."""
    return held_against(name, layout=made, held=held, winners=[winner],
                        expect=[Expected(word="commits", attempts=2), COMMITS], **more)


ONE_FILE = (
    loses("two-deletes-of-one-row-conflict", DELETE_2, DELETE_2, "append", reports=("B8",)),
    loses("two-deletes-of-two-rows-of-one-file-conflict", DELETE_2, DELETE_3, "append", reports=("B8",)),
    loses("two-deletes-of-two-rows-of-one-file-conflict-at-write-serializable", DELETE_2, DELETE_3, "append",
          isolation=WRITE_SERIALIZABLE, reports=("B8",)),
    loses("two-deletes-of-two-rows-of-one-file-conflict-without-vectors", DELETE_2, DELETE_3, "append", REWRITTEN,
          reports=("B8",)),
    loses("two-deletes-in-two-files-conflict-without-a-partition", DELETE_2, DELETE_6, "append", reports=("B8",)),
    loses("a-delete-conflicts-with-that-of-its-whole-file", DELETE_2, DELETE_FILE, "delete-read", reports=("B8",),
          why="nothing is added, so it is the removed file that counts"),
    loses("a-delete-of-a-whole-file-conflicts-with-that-of-a-row", DELETE_FILE, DELETE_2, "append", reports=("B8",)),
    outlives("a-delete-outlives-that-of-another-whole-file", DELETE_6, DELETE_FILE, reports=("B8",)),
    loses("an-update-and-a-delete-of-two-rows-of-one-file-conflict", UPDATE_3, DELETE_2, "append", reports=("B8",)),
    loses("a-delete-and-an-update-of-two-rows-of-one-file-conflict", DELETE_2, UPDATE_3, "append", reports=("B8",)),
    loses("a-merge-that-deletes-is-no-other", MERGE_3_AWAY, DELETE_2, "append", reports=("B8",)),
    outlives("deletes-on-two-dates-both-commit", f"DELETE FROM {{t}} WHERE {ON_11} AND id = 2",
             f"DELETE FROM {{t}} WHERE {ON_12} AND id = 10", BY_DATE, reports=("B8",)),
)
MERGES = (
    loses("merges-of-two-rows-of-one-file-conflict-whatever-the-table-has", merge(2), merge(3), "append", EVERYTHING,
          reports=("B7",)),
    loses("merges-of-rows-in-two-files-conflict-whatever-the-table-has", merge(2), merge(6), "append", EVERYTHING,
          reports=("B7",)),
    loses("merges-of-rows-in-two-files-conflict-swapped", merge(6), merge(2), "append", EVERYTHING, reports=("B7",)),
    loses("a-literal-of-the-clustering-column-does-not-help", merge(2, f"t.id = s.id AND t.{ON_11}"),
          merge(10, f"t.id = s.id AND t.{ON_12}"), "append", EVERYTHING, reports=("B7",)),
    outlives("a-literal-of-the-partition-column-does", merge(2, f"t.id = s.id AND t.{ON_11}"),
             merge(10, f"t.id = s.id AND t.{ON_12}"), BY_DATE, reports=("B7",)),
    loses("at-write-serializable-merges-conflict-just-so", merge(2), merge(6), "append", EVERYTHING,
          isolation=WRITE_SERIALIZABLE, reports=("B7",)),
)
RACES = (*ONE_FILE, *MERGES)


def test_race(case, check):
    check(case, rules=True)
