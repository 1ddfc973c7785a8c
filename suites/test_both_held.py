"""What if both stand before their commit? Two writers (or three) held at once, released one after the other.

Only the order of the *releases* counts: who was stopped first makes no difference. Each pair stands here twice, with
the release order swapped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakerace.conflicts import KINDS
from lakerace.layouts import layout
from lakerace.orders import parse_order
from lakerace.race import Expected, Layout, Race, Write, Writer, both_held, statement

FLAT, BY_DATE = layout("flat"), layout("by-date")
FIRST = Expected(word="commits", version=9, read_version=8, attempts=1)
SECOND = Expected(word="commits", version=10, read_version=8, attempts=2)
UPDATE_1 = "UPDATE {t} SET note = 'updated' WHERE id = 1"
UPDATE_16 = "UPDATE {t} SET amount = 0 WHERE id = 16"
UPDATE_11_AUGUST = "UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-11'"
UPDATE_12_AUGUST = "UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-12'"
DELETE_2 = "DELETE FROM {t} WHERE id = 2"
DELETE_11_AUGUST = "DELETE FROM {t} WHERE event_date = DATE'2026-08-11'"
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_12_AUGUST = "INSERT INTO {t} VALUES (202, DATE'2026-08-12', 'FR', 1, 'new')"
OPTIMIZE = "OPTIMIZE {t}"
ADD_COLUMN = "ALTER TABLE {t} ADD COLUMN (extra INT)"
RESTORE = "RESTORE TABLE {t} TO VERSION AS OF 7"
MERGE_1 = (
    "MERGE INTO {t} t USING (SELECT 1L AS id, 'merged' AS note) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET note = s.note"
)


def as_ingest(row: int) -> Write:
    return Write(
        select=f"SELECT {row}L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note",
        options=(("txnAppId", "ingest"), ("txnVersion", "1")),
    )


def loses(word: str, **more: Any) -> Expected:
    kind = KINDS[word]
    return Expected(word=word, surfaced=kind.exception, root=kind.root, **more)


def pair(
    name: str, layout: Layout, one: str | Write, other: str | Write, second: Expected, swapped: Expected
) -> tuple[Race, ...]:
    """``one`` released first, where ``other`` ends as ``second``; and swapped, where ``one`` ends as ``swapped``."""
    return (
        both_held(name, layout=layout, first=one, second=other, expect=[FIRST, second]),
        both_held(f"{name}-swapped", layout=layout, first=other, second=one, expect=[FIRST, swapped]),
    )


def three_held(name: str, order: str, texts: tuple[str, str, str], expect: tuple[Expected, Expected, Expected]) -> Race:
    return Race(
        name=name, layout=FLAT, order=parse_order(order),
        writers=tuple(
            Writer(name=letter, statements=(statement(text),)) for letter, text in zip("ABC", texts, strict=True)
        ),
        expect=tuple(zip("ABC", expect, strict=True)),
    )


RACES = (
    *pair("two-updates-of-other-rows-in-other-files", FLAT, UPDATE_1, UPDATE_16, loses("append"), loses("append")),
    *pair("two-updates-of-other-dates", BY_DATE, UPDATE_11_AUGUST, UPDATE_12_AUGUST, SECOND, SECOND),
    *pair("an-insert-and-an-update", FLAT, INSERT, UPDATE_1, loses("append"), SECOND),
    *pair("two-inserts", FLAT, INSERT, INSERT_12_AUGUST, SECOND, SECOND),
    *pair("an-update-and-a-delete-of-the-same-file", FLAT, UPDATE_1, DELETE_2, loses("append"), loses("append")),
    *pair("a-merge-and-an-update-of-the-same-row", FLAT, MERGE_1, UPDATE_1, loses("append"), loses("append")),
    *pair("an-update-and-a-delete-of-its-date", BY_DATE, UPDATE_11_AUGUST, DELETE_11_AUGUST, loses("append"),
          loses("delete-read")),
    *pair("a-compaction-and-a-delete", FLAT, OPTIMIZE, DELETE_2, loses("append"), loses("delete-read")),
    *pair("a-compaction-and-an-insert", FLAT, OPTIMIZE, INSERT, SECOND, SECOND),
    *pair("an-added-column-and-an-insert", FLAT, ADD_COLUMN, INSERT, loses("metadata"), SECOND),
    *pair("two-appends-of-one-application", FLAT, as_ingest(204), as_ingest(304), loses("transaction"),
          loses("transaction")),
    both_held(
        "an-insert-and-a-restore", layout=FLAT, first=INSERT, second=RESTORE, expect=[FIRST, loses("write")],
    ),
    both_held(
        "an-insert-and-a-restore-swapped", layout=FLAT, first=RESTORE, second=INSERT,
        expect=[replace(FIRST, attempts=None), SECOND],
        why="RESTORE writes its commit without the loop that counts attempts",
    ),
    both_held(
        "a-compaction-against-itself", layout=FLAT, first=OPTIMIZE, second=OPTIMIZE,
        expect=[FIRST, loses("delete-read")],
    ),
    three_held(
        "three-inserts-commit-in-the-order-of-their-releases", "A:read B:read C:read C:commit A:commit B:commit",
        (INSERT, INSERT_12_AUGUST, INSERT),
        (SECOND, Expected(word="commits", version=11, read_version=8, attempts=2), FIRST),
    ),
    three_held(
        "of-three-updates-the-first-released-is-the-only-one", "A:read B:read C:read B:commit C:commit A:commit",
        (UPDATE_1, UPDATE_16, DELETE_2), (loses("append"), FIRST, loses("append")),
    ),
    three_held(
        "an-aborted-writer-stops-nobody", "A:read B:read C:read A:commit B:commit C:commit",
        (INSERT, UPDATE_1, INSERT_12_AUGUST), (FIRST, loses("append"), SECOND),
    ),
)


def test_race(case, check):
    check(case)
