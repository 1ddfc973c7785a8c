"""What if several writers win? One held writer, and everything that can commit before it does.

Delta checks the winners one by one, oldest first, and gives up at the first that conflicts: the abort names *that*
version. What a later winner undoes still counts. Winners that are all harmless cost one more attempt together, not one
each.
"""

from __future__ import annotations

from typing import Any

from lakerace.conflicts import KINDS
from lakerace.layouts import layout
from lakerace.orders import parse_order
from lakerace.race import Expected, Layout, Race, Write, Writer, held_against, statement

FLAT, BY_DATE = layout("flat"), layout("by-date")
UPDATE_11_AUGUST = "UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-11'"
INSERT_11_AUGUST = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_12_AUGUST = "INSERT INTO {t} VALUES (202, DATE'2026-08-12', 'FR', 1, 'new')"
DELETE_12_AUGUST = "DELETE FROM {t} WHERE event_date = DATE'2026-08-12' AND id = 16"
ADD_COLUMN = "ALTER TABLE {t} ADD COLUMN (extra INT)"


def commits(version: int, **more: Any) -> Expected:
    return Expected(word="commits", version=version, **more)


def aborts(word: str, at: int | None = None, operation: str | None = None) -> Expected:
    """An abort that names the winner ``at`` that version, where this kind of conflict names one."""
    parameters = (("version", str(at)), ("operation", str(operation))) if at else ()
    kind = KINDS[word]
    return Expected(
        word=word, surfaced=kind.exception, root=f"io.delta.exceptions.{kind.exception}", sqlstate="2D521",
        parameters=parameters,
    )


def against_a_sequence(name: str, *, layout: Layout, held: str, winner: list[str], expect: list[Expected]) -> Race:
    """One winner that runs several statements, each a commit; its outcome is that of the last."""
    return Race(
        name=name, layout=layout, order=parse_order("A:read B:read B:commit A:commit"),
        writers=(
            Writer(name="A", statements=(statement(held),)),
            Writer(name="B", statements=tuple(statement(does) for does in winner)),
        ),
        expect=(("A", expect[0]), ("B", expect[1])),
    )


def append_as(app: str, row: int) -> Write:
    return Write(
        select=f"SELECT {row}L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note",
        options=(("txnAppId", app), ("txnVersion", "1")),
    )


RACES = (
    held_against(
        "two-harmless-inserts-then-one-that-conflicts-is-the-one-named", layout=BY_DATE,
        held=UPDATE_11_AUGUST, winners=[INSERT_12_AUGUST, DELETE_12_AUGUST, INSERT_11_AUGUST],
        expect=[aborts("append", 11, "WRITE"), commits(9), commits(10), commits(11)],
    ),
    held_against(
        "the-first-that-conflicts-is-named-whatever-came-after", layout=BY_DATE,
        held=UPDATE_11_AUGUST, winners=[INSERT_11_AUGUST, INSERT_12_AUGUST, DELETE_12_AUGUST],
        expect=[aborts("append", 9, "WRITE"), commits(9), commits(10), commits(11)],
    ),
    held_against(
        "three-harmless-winners-cost-one-more-attempt", layout=BY_DATE,
        held=UPDATE_11_AUGUST, winners=[INSERT_12_AUGUST, DELETE_12_AUGUST, INSERT_12_AUGUST],
        expect=[commits(12, read_version=8, attempts=2), commits(9), commits(10), commits(11)],
    ),
    held_against(
        "a-blind-insert-passes-five-winners-of-five-kinds", layout=FLAT,
        held=INSERT_11_AUGUST,
        winners=[
            "UPDATE {t} SET note = 'updated' WHERE id = 1",
            "DELETE FROM {t} WHERE id = 3",
            "MERGE INTO {t} t USING (SELECT 5L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'merged'",
            "OPTIMIZE {t}",
            INSERT_12_AUGUST,
        ],
        expect=[
            commits(14, read_version=8, attempts=2, operation="WRITE", blind=True),
            *(commits(version) for version in range(9, 14)),
        ],
    ),
    held_against(
        "a-compaction-passes-three-inserts", layout=FLAT,
        held="OPTIMIZE {t}", winners=[INSERT_11_AUGUST, INSERT_12_AUGUST, INSERT_11_AUGUST],
        expect=[commits(12, read_version=8, attempts=2, operation="OPTIMIZE"), commits(9), commits(10), commits(11)],
    ),
    held_against(
        "a-compaction-loses-to-the-delete-among-the-inserts", layout=FLAT,
        held="OPTIMIZE {t}", winners=[INSERT_11_AUGUST, "DELETE FROM {t} WHERE id = 3", INSERT_12_AUGUST],
        expect=[aborts("delete-read", 10, "DELETE"), commits(9), commits(10), commits(11)],
    ),
    held_against(
        "of-two-different-conflicts-the-older-decides-the-class", layout=FLAT,
        held="UPDATE {t} SET note = 'updated' WHERE id = 1", winners=[INSERT_11_AUGUST, ADD_COLUMN],
        expect=[aborts("append", 9, "WRITE"), commits(9), commits(10)],
    ),
    held_against(
        "of-the-same-two-conflicts-the-other-way-round-again-the-older-decides", layout=FLAT,
        held="UPDATE {t} SET note = 'updated' WHERE id = 1",
        winners=[ADD_COLUMN, "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new', 1)"],
        expect=[aborts("metadata"), commits(9), commits(10)],
    ),
    held_against(
        "two-applications-pass-and-the-third-is-its-own-double", layout=FLAT,
        held=append_as("ingest", 204),
        winners=[append_as("backfill", 304), append_as("replay", 305), append_as("ingest", 306)],
        expect=[aborts("transaction"), commits(9), commits(10), commits(11)],
    ),
    held_against(
        "an-insert-that-a-restore-took-back-still-counts", layout=FLAT,
        held="UPDATE {t} SET note = 'updated' WHERE id = 1",
        winners=[INSERT_11_AUGUST, "RESTORE TABLE {t} TO VERSION AS OF 8"],
        expect=[aborts("append", 9, "WRITE"), commits(9), commits(10, operation="RESTORE")],
        rows="unchanged",
    ),
    held_against(
        "an-insert-that-a-delete-took-back-still-counts", layout=FLAT,
        held="UPDATE {t} SET note = 'updated' WHERE id = 1",
        winners=[INSERT_11_AUGUST, "DELETE FROM {t} WHERE id = 201"],
        expect=[aborts("append", 9, "WRITE"), commits(9), commits(10)],
        rows="unchanged",
    ),
    held_against(
        "a-property-that-was-taken-back-still-counts", layout=FLAT,
        held=INSERT_11_AUGUST,
        winners=["ALTER TABLE {t} SET TBLPROPERTIES ('owner.team' = 'night shift')",
                 "ALTER TABLE {t} UNSET TBLPROPERTIES ('owner.team')"],
        expect=[aborts("metadata"), commits(9), commits(10)],
        rows="unchanged",
    ),
    held_against(
        "a-delete-that-a-restore-took-back-still-counts", layout=BY_DATE,
        held="UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-11' AND id = 1",
        winners=["DELETE FROM {t} WHERE event_date = DATE'2026-08-11'", "RESTORE TABLE {t} TO VERSION AS OF 8"],
        expect=[aborts("delete-read", 9, "DELETE"), commits(9), commits(10)],
        rows="unchanged",
    ),
    held_against(
        "a-restore-loses-to-the-first-of-two-winners", layout=FLAT,
        held="RESTORE TABLE {t} TO VERSION AS OF 7", winners=[INSERT_11_AUGUST, INSERT_12_AUGUST],
        expect=[aborts("write"), commits(9), commits(10)],
    ),
    against_a_sequence(
        "one-winner-that-commits-three-times-is-passed-like-three", layout=BY_DATE,
        held=UPDATE_11_AUGUST, winner=[INSERT_12_AUGUST, DELETE_12_AUGUST, INSERT_12_AUGUST],
        expect=[commits(12, read_version=8, attempts=2), commits(11)],
    ),
    against_a_sequence(
        "one-winner-that-commits-three-times-conflicts-by-its-second", layout=BY_DATE,
        held=UPDATE_11_AUGUST, winner=[INSERT_12_AUGUST, INSERT_11_AUGUST, INSERT_12_AUGUST],
        expect=[aborts("append", 10, "WRITE"), commits(11)],
    ),
    against_a_sequence(
        "a-compaction-loses-to-an-upsert-written-as-delete-and-insert", layout=FLAT,
        held="OPTIMIZE {t}", winner=["DELETE FROM {t} WHERE id = 1", INSERT_11_AUGUST],
        expect=[aborts("delete-read", 9, "DELETE"), commits(10)],
    ),
)


def test_race(case, check):
    check(case)
