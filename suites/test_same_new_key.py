"""Two writers bring the same new key: is it there twice? MERGE against MERGE, INSERT and overwrite of a partition.

Two MERGEs that read the place where the other inserts never both commit. The key is there twice when the reads are
narrowed to two partitions (each statement then asks for exactly that), when the later writer is an INSERT, which asks
for nothing, or at WriteSerializable, where a MERGE survives an INSERT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.layouts import layout, layout_from_statements
from lakerace.outcomes import BLIND, COMMITS, LOSES, LOSES_P
from lakerace.race import WRITE_SERIALIZABLE, Expected, Race, held_against

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
FLAT, BY_DATE = layout("flat"), layout("by-date")
EMPTY = layout_from_statements("empty", (
    "CREATE TABLE {t} (id BIGINT, event_date DATE, country STRING, amount INT, note STRING) USING delta",))
ASKED = {"reports": ("A19",), "link": "https://github.com/delta-io/delta/issues/710"}
KEY = 500
UPSERT, INSERT_ONLY = "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *", (
    "WHEN NOT MATCHED THEN INSERT *")
KINDS = {"upsert": UPSERT, "insert-only-merge": INSERT_ONLY}


def merge(note: str, clauses: str, named: str = "", date: str = "11", key: int = KEY) -> str:
    row = f"{key}L AS id, DATE'2026-08-{date}' AS event_date, 'DE' AS country, 7 AS amount, '{note}' AS note"
    return f"MERGE INTO {{t}} t USING (SELECT {row}) s ON t.id = s.id{named} {clauses}"


def insert(date: str = "11") -> str:
    return f"INSERT INTO {{t}} VALUES ({KEY}, DATE'2026-08-{date}', 'DE', 7, 'b')"


def on(date: str) -> str:
    return f" AND t.event_date = DATE'2026-08-{date}'"


TWICE = "each statement asks for the key in its own partition only, so both orders leave two rows"


def of(kind: str, clauses: str) -> tuple[Race, ...]:
    def two(name: str, held: str, winner: str, expect: list[Expected], **more: object) -> Race:
        given = {"layout": FLAT, "leaves": ((f"id = {KEY}", 2 if name.endswith("twice") else 1),), **ASKED, **more}
        named = name.replace("a-merge", f"an-{kind}").replace("merge", kind)
        return held_against(named, held=held, winners=[winner], expect=expect, **given)

    first, second = merge("a", clauses), merge("b", clauses)
    here = merge("a", clauses, on("11"))
    return (
        two("of-two-merges-of-one-new-key-one-commits", first, second, [LOSES, COMMITS]),
        two("of-two-merges-into-an-empty-table-one-commits", first, second, [LOSES, COMMITS], layout=EMPTY),
        two("of-two-merges-of-one-new-key-one-commits-on-a-clustered-table", first, second, [LOSES, COMMITS],
            layout=layout("clustered")),
        two("of-two-merges-of-one-new-key-one-commits-with-deletion-vectors", first, second, [LOSES, COMMITS],
            layout=layout("flat-dv")),
        two("of-two-merges-of-different-new-keys-one-commits", first, merge("b", clauses, key=KEY + 1),
            [LOSES, COMMITS], leaves=((f"id = {KEY}", 0), (f"id = {KEY + 1}", 1)),
            why="without partitions the added file counts as read, whatever key it holds"),
        two("of-two-merges-of-one-new-key-one-commits-under-write-serializable", first, second, [LOSES, COMMITS],
            isolation=WRITE_SERIALIZABLE, why="an upsert that only inserts is still no blind append"),
        two("of-two-merges-of-one-new-key-in-a-partitioned-table-one-commits", first, second, [LOSES_P, COMMITS],
            layout=BY_DATE),
        two("of-two-merges-of-one-new-key-in-one-named-partition-one-commits", here, merge("b", clauses, on("11")),
            [LOSES_P, COMMITS], layout=BY_DATE),
        two("two-merges-of-one-new-key-in-two-named-partitions-both-commit-and-it-is-there-twice", here,
            merge("b", clauses, on("12"), "12"), [COMMITS, COMMITS], layout=BY_DATE, why=TWICE),
        two("a-merge-loses-to-an-insert-of-its-new-key", first, insert(), [LOSES, BLIND]),
        two("an-insert-of-a-new-key-survives-a-merge-of-it-and-it-is-there-twice", insert(), first, [BLIND, COMMITS],
            why="an INSERT asks for no key: the order of the history, MERGE then INSERT, leaves two rows too"),
        two("under-write-serializable-a-merge-survives-an-insert-of-its-new-key-and-it-is-there-twice", first, insert(),
            [COMMITS, BLIND], isolation=WRITE_SERIALIZABLE,
            why="explained by the order MERGE then INSERT, which is not that of the history"),
        two("a-merge-in-a-named-partition-loses-to-an-insert-of-its-new-key-there", here, insert(), [LOSES_P, BLIND],
            layout=BY_DATE),
        two("a-merge-in-a-named-partition-survives-an-insert-of-its-new-key-elsewhere-and-it-is-there-twice", here,
            insert("12"), [COMMITS, BLIND], layout=BY_DATE, why=TWICE),
    )


MERGES = tuple(race for kind, clauses in KINDS.items() for race in of(kind, clauses))
DETAILS = ("-under-write-serializable", "-clustered-table", "-deletion-vectors", "-empty-table-one-commits",
           "-partitioned-table-one-commits",
           "-keys-one-commits", "-new-key-there", "-elsewhere-and-it-is-there-twice")
"""How the names of those end that only the profile ``full`` takes."""

CORE = (*(race for race in MERGES if "upsert" in race.name and not race.name.endswith(DETAILS)),
        *(race for race in MERGES if race.name == "an-insert-only-merge-loses-to-an-insert-of-its-new-key"))


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    return MERGES if profile == "full" else CORE


def test_race(case, check):
    check(case, rules=True)
