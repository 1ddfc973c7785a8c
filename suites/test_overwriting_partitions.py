"""Do overwrites of two partitions get in each other's way? By mode, by predicate, by PARTITION, and against an INSERT.

An overwrite reads the partitions that it replaces, however it names them; one that replaces the whole table reads all
of it. A row that an INSERT puts there meanwhile ends it, and is never lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.layouts import layout
from lakerace.outcomes import BLIND, COMMITS, LOSES, LOSES_P
from lakerace.race import Expected, Race, Write, held_against
from lakerace.rules.settings import OVERWRITE_MODE

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
FLAT, BY_DATE = layout("flat"), layout("by-date")
DYNAMIC = ((OVERWRITE_MODE, "dynamic"),)


def row(date: str, key: int = 201) -> str:
    return f"SELECT {key}L AS id, DATE'2026-08-{date}' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note"


def insert(date: str) -> str:
    return f"INSERT INTO {{t}} {row(date, 99)}"


def by_mode(date: str) -> str:
    """Replaces the partitions of its rows where the session's mode is dynamic, else the whole table."""
    return f"INSERT OVERWRITE {{t}} {row(date)}"


def by_frame(date: str) -> Write:
    return Write(select=row(date), mode="overwrite", options=(("partitionOverwriteMode", "dynamic"),))


def by_frame_predicate(date: str) -> Write:
    return Write(select=row(date), mode="overwrite", options=(("replaceWhere", f"event_date = DATE'2026-08-{date}'"),))


def by_predicate(date: str) -> str:
    return f"INSERT INTO {{t}} REPLACE WHERE event_date = DATE'2026-08-{date}' {row(date)}"


def by_partition(date: str) -> str:
    columns = row(date).replace(f"DATE'2026-08-{date}' AS event_date, ", "")
    return f"INSERT OVERWRITE {{t}} PARTITION (event_date = DATE'2026-08-{date}') {columns}"


WAYS = {"mode": by_mode, "frame": by_frame, "frame-predicate": by_frame_predicate, "predicate": by_predicate,
        "partition": by_partition}
SETTINGS = {"mode": DYNAMIC}


def against(way: str, name: str, winner: str | Write, expect: list[Expected], **more: object) -> Race:
    return held_against(name, layout=BY_DATE, held=WAYS[way]("11"), winners=[winner], expect=expect,
                        settings=SETTINGS.get(way, ()), **more)


BY_WAY = {
    way: (
        against(way, f"overwrites-by-{way}-of-two-partitions-both-commit", make("12"), [COMMITS, COMMITS],
                leaves=(("note = 'new'", 2), ("note = 'base'", 0))),
        against(way, f"of-two-overwrites-by-{way}-of-one-partition-one-commits", make("11"), [LOSES_P, COMMITS],
                leaves=(("note = 'new'", 1), ("note = 'base'", 8))),
        against(way, f"an-overwrite-by-{way}-loses-to-an-insert-there", insert("11"), [LOSES_P, BLIND],
                leaves=(("id = 99", 1), ("id = 201", 0))),
        against(way, f"an-overwrite-by-{way}-survives-an-insert-elsewhere", insert("12"), [COMMITS, BLIND],
                leaves=(("id = 99", 1), ("id = 201", 1))),
        held_against(f"an-insert-survives-an-overwrite-by-{way}-there", layout=BY_DATE, held=insert("11"),
                     winners=[make("11")], expect=[BLIND, COMMITS], settings=SETTINGS.get(way, ()),
                     leaves=(("id = 99", 1), ("id = 201", 1))),
    )
    for way, make in WAYS.items()
}
WHOLE = (
    held_against("an-overwrite-of-the-whole-table-loses-to-an-insert-anywhere", layout=BY_DATE, held=by_mode("11"),
                 winners=[insert("12")], expect=[LOSES_P, BLIND]),
    held_against("without-partitions-the-dynamic-mode-overwrites-the-whole-table", layout=FLAT, held=by_mode("11"),
                 winners=[insert("12")], expect=[LOSES, BLIND], settings=DYNAMIC),
    held_against("of-two-dynamic-overwrites-that-make-a-partition-one-commits", layout=BY_DATE, held=by_mode("20"),
                 winners=[by_mode("20")], expect=[LOSES_P, COMMITS], settings=DYNAMIC, leaves=(("id = 201", 1),)),
    held_against("dynamic-overwrites-that-make-two-partitions-both-commit", layout=BY_DATE, held=by_mode("20"),
                 winners=[by_mode("21")], expect=[COMMITS, COMMITS], settings=DYNAMIC, leaves=(("id = 201", 2),)),
    held_against("a-dynamic-overwrite-loses-to-a-delete-of-its-partition", layout=BY_DATE, held=by_mode("11"),
                 winners=["DELETE FROM {t} WHERE event_date = DATE'2026-08-11'"], settings=DYNAMIC,
                 expect=[Expected(word="delete-delete", surfaced="ConcurrentDeleteDeleteException"), COMMITS]),
    held_against("a-dynamic-overwrite-of-what-it-read-loses-to-an-insert-there", layout=BY_DATE, settings=DYNAMIC,
                 held="INSERT OVERWRITE {t} SELECT id, event_date, country, amount, 'again' FROM {t} "
                      "WHERE event_date = DATE'2026-08-11'", winners=[insert("11")], expect=[LOSES_P, BLIND]),
)


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    every = (*(race for way in BY_WAY.values() for race in way), *WHOLE)
    return every if profile == "full" else (*BY_WAY["mode"][:3], BY_WAY["frame"][1], *WHOLE[:2])


def test_race(case, check):
    check(case, rules=True)
