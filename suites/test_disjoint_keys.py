"""Do writers of disjoint keys collide? Ranges of ids in files of their own, on every kind of table.

Without partitions any file that a winner adds counts as read, whatever the statistics say: an UPDATE loses to an UPDATE
of other files on a flat, a clustered and a Z-ordered table alike. What adds no file (a DELETE of whole files) lets
others be. A release that begins to look at statistics will turn these over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.layouts import layout, layout_from_statements
from lakerace.outcomes import COMMITS, LOSES, LOSES_P
from lakerace.race import Race, held_against

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
KNOWN = {"reports": ("A11",), "link": "https://github.com/delta-io/delta/issues/4470"}


def filled(*between: str, clause: str = "") -> tuple[str, ...]:
    """Four ranges of ids, each in a file of its own; the last comes after the statements ``between``."""
    files = [f"INSERT INTO {{t}} SELECT id, 'base' FROM range({low}, {low + 9})" for low in (0, 1000, 2000, 4000)]
    create = f"CREATE TABLE {{t}} (id BIGINT, note STRING) USING delta{clause}"
    return (f"{create} TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')", *files[:3], *between, files[3])


TABLES = {
    "flat": layout_from_statements("ranges", filled()),
    "clustered": layout_from_statements("clustered-by-id", filled(clause=" CLUSTER BY (id)")),
    "z-ordered": layout_from_statements("z-ordered", filled("OPTIMIZE {t} ZORDER BY (id)")),
    "row-tracking": layout_from_statements(
        "row-tracking-ranges", filled("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")),
    "deletion-vectors": layout_from_statements(
        "ranges-dv", filled("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")),
}
"""Tables with ids above 3000 in a file of their own, which Z-ORDER has not yet seen."""

LOW = {
    "update": "UPDATE {t} SET note = 'low' WHERE id < 5",
    "merge": "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id AND t.id < 5 WHEN MATCHED THEN UPDATE SET "
             "note = 'low'",
    "delete": "DELETE FROM {t} WHERE id < 5",
    "delete-of-whole-files": "DELETE FROM {t} WHERE id < 100",
}
HIGH = {
    "update": "UPDATE {t} SET note = 'high' WHERE id > 3000",
    "merge": "MERGE INTO {t} t USING (SELECT 4005L AS id) s ON t.id = s.id AND t.id > 3000 WHEN MATCHED THEN UPDATE "
             "SET note = 'high'",
    "delete": "DELETE FROM {t} WHERE id > 4005",
    "delete-of-whole-files": "DELETE FROM {t} WHERE id > 3000",
}
PAIRS = (("update", "update"), ("update", "merge"), ("merge", "update"), ("merge", "merge"), ("update", "delete"),
         ("delete", "delete"), ("delete", "update"), ("update", "delete-of-whole-files"),
         ("delete-of-whole-files", "update"), ("delete-of-whole-files", "delete-of-whole-files"))


def disjoint(table: str, held: str, winner: str) -> Race:
    survives = winner == "delete-of-whole-files"
    return held_against(
        f"on-a-{table}-table-{held}-of-low-keys-{'survives' if survives else 'loses-to'}-{winner}-of-high-ones",
        layout=TABLES[table], held=LOW[held], winners=[HIGH[winner]], expect=[COMMITS if survives else LOSES, COMMITS],
        **KNOWN,
    )


DISJOINT = {(table, *pair): disjoint(table, *pair) for table in TABLES for pair in PAIRS}
IN_CORE = (("flat", "update", "update"), ("clustered", "update", "update"), ("z-ordered", "update", "update"),
           ("flat", "update", "delete-of-whole-files"))

BY_DATE, CLUSTERED = layout("by-date"), layout("clustered")
BUCKETS = layout_from_statements("buckets", (
    ("CREATE TABLE {t} (id BIGINT, note STRING, bucket BIGINT GENERATED ALWAYS AS (id % 4)) USING delta "
     "PARTITIONED BY (bucket)"),
    "INSERT INTO {t} (id, note) VALUES (0, 'base'), (1, 'base'), (2, 'base'), (3, 'base')",
))


def on_date(date: str, more: str = "") -> str:
    return f"UPDATE {{t}} SET note = 'by {date}' WHERE event_date = DATE'2026-08-{date}'{more}"


CURES = (
    held_against("partitions-named-by-literals-keep-keys-apart", layout=BY_DATE, held=on_date("11"),
                 winners=[on_date("12")], expect=[COMMITS, COMMITS], **KNOWN),
    held_against("keys-within-one-partition-are-not-kept-apart", layout=BY_DATE, held=on_date("11", " AND id < 3"),
                 winners=[on_date("11", " AND id > 6")], expect=[LOSES_P, COMMITS], **KNOWN),
    held_against("a-clustering-column-named-by-literals-keeps-nothing-apart", layout=CLUSTERED, held=on_date("11"),
                 winners=[on_date("12")], expect=[LOSES, COMMITS], **KNOWN),
    held_against("buckets-of-keys-keep-them-apart-when-they-are-named", layout=BUCKETS,
                 held="UPDATE {t} SET note = 'a' WHERE id = 1 AND bucket = 1",
                 winners=["UPDATE {t} SET note = 'b' WHERE id = 2 AND bucket = 2"], expect=[COMMITS, COMMITS], **KNOWN),
    held_against("buckets-of-keys-keep-nothing-apart-when-only-the-key-is-named", layout=BUCKETS,
                 held="UPDATE {t} SET note = 'a' WHERE id = 1", winners=["UPDATE {t} SET note = 'b' WHERE id = 2"],
                 expect=[LOSES_P, COMMITS], **KNOWN,
                 why="the bucket is generated from the key, yet no filter on it is derived for an UPDATE"),
)


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    pairs = DISJOINT.values() if profile == "full" else (DISJOINT[key] for key in IN_CORE)
    return (*pairs, *CURES)


def test_race(case, check):
    check(case, rules=True)
