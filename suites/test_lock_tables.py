"""Can a table be a lock? Bookkeeping of two runs that read what is there and then write.

It can, where reading and writing are one statement: one of two runs wins, and the other's statement aborts. Where they
are two, nobody notices, and a number is there twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.layouts import layout_from_statements
from lakerace.outcomes import BLIND, COMMITS, LOSES, NOT_BLIND
from lakerace.race import WRITE_SERIALIZABLE, Expected, Race, held_against

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
HISTORY = layout_from_statements("schema-history", (
    "CREATE TABLE {t} (rank INT, script STRING, holder STRING) USING delta",
    "INSERT INTO {t} VALUES (1, 'V1', NULL)",
))
ASKED = {"reports": ("A17",), "link": "https://github.com/flyway/flyway-community-db-support/issues/116"}

NEXT = "INSERT INTO {t} SELECT max(rank) + 1, 'V2', NULL FROM {t}"
ONCE = "INSERT INTO {t} SELECT 2, 'V2', NULL WHERE NOT EXISTS (SELECT 1 FROM {t} WHERE script = 'V2')"
MERGED = ("MERGE INTO {t} t USING (SELECT 2 AS rank, 'V2' AS script, CAST(NULL AS STRING) AS holder) s "
          "ON t.script = s.script WHEN NOT MATCHED THEN INSERT *")
SECOND = "INSERT INTO {t} VALUES (2, 'V2', NULL)"


def take(holder: str) -> str:
    return f"UPDATE {{t}} SET holder = '{holder}' WHERE script = 'V1' AND holder IS NULL"


def two_runs(name: str, held: str, winner: str, expect: list[Expected], left: tuple[str, int], **more: object) -> Race:
    return held_against(name, layout=HISTORY, held=held, winners=[winner], expect=expect, leaves=(left,), **ASKED,
                        **more)


EVERY = (
    two_runs("of-two-runs-that-insert-the-next-number-one-wins", NEXT, NEXT, [LOSES, NOT_BLIND], ("rank = 2", 1)),
    two_runs("of-two-runs-that-insert-what-is-not-there-one-wins", ONCE, ONCE, [LOSES, NOT_BLIND], ("rank = 2", 1)),
    two_runs("of-two-runs-that-merge-what-is-not-there-one-wins", MERGED, MERGED, [LOSES, COMMITS], ("rank = 2", 1)),
    two_runs("two-runs-that-insert-a-number-read-before-both-win-and-it-is-there-twice", SECOND, SECOND, [BLIND, BLIND],
             ("rank = 2", 2), why="the read was a statement of its own, and no transaction spans two statements"),
    two_runs("the-next-number-loses-to-one-inserted-without-a-look", NEXT, SECOND, [LOSES, BLIND], ("rank = 2", 1)),
    two_runs("a-number-inserted-without-a-look-survives-the-next-number-and-is-there-twice", SECOND, NEXT,
             [BLIND, NOT_BLIND], ("rank = 2", 2), why="a lock that one of two does not ask for is none"),
    two_runs("under-write-serializable-the-next-number-survives-one-inserted-without-a-look", NEXT, SECOND,
             [NOT_BLIND, BLIND], ("rank = 2", 2), isolation=WRITE_SERIALIZABLE,
             why="explained by the order next number, then plain INSERT"),
    two_runs("of-two-runs-that-take-the-free-lock-one-wins", take("first"), take("second"), [LOSES, COMMITS],
             ("holder = 'second'", 1)),
    two_runs("taking-the-lock-loses-to-the-next-number", take("first"), NEXT, [LOSES, NOT_BLIND], ("rank = 2", 1),
             why="without partitions the row added counts as read, though it is of another script"),
    two_runs("the-next-number-loses-to-taking-the-lock", NEXT, take("first"), [LOSES, COMMITS], ("rank = 2", 0)),
)


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    return EVERY if profile == "full" else tuple(EVERY[number] for number in (0, 1, 3, 5, 7))


def test_race(case, check):
    check(case, rules=True)
