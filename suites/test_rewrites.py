"""A library on top of Delta rewrites the table: does saying so (dataChange=false) keep it from conflicting?

``dataChange`` is a writer option for rewrites that change no rows: streams skip such commits, and they are checked at
snapshot isolation, as OPTIMIZE is. Nobody checks that the rows are the same.
"""

from __future__ import annotations

from lakerace.layouts import layout
from lakerace.race import Expected, Layout, Race, Write, held_against

VERSIONS = ">=4.0"
FLAT, BY_DATE = layout("flat-dv"), layout("by-date-dv")
ON_12 = "event_date = DATE'2026-08-12'"


def rewrite(of: str = "true", changes: str = "false") -> Write:
    """The rows of the table for which ``of`` holds, written over themselves."""
    where = (("replaceWhere", of),) if of != "true" else ()
    return Write(select=f"SELECT * FROM {{t}} WHERE {of}", mode="overwrite", options=(("dataChange", changes), *where))


APPEND = "INSERT INTO {t} VALUES (201, DATE'2026-08-12', 'DE', 1, 'new')"
UPDATE, DELETE = "UPDATE {t} SET note = 'A' WHERE id = 9", "DELETE FROM {t} WHERE id = 9"
UPDATE_OTHER = "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-11' AND id = 1"
COMMITS = Expected(word="commits")
SNAPSHOT = Expected(word="commits", attempts=2, isolation="SnapshotIsolation")


def lost(by: str, condition: str) -> Expected:
    return Expected(word=by, condition=condition, sqlstate="2D521", attempts=1)


APPENDED, REMOVED = "DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ"
ANYWHERE, HERE = "WITHOUT_HINT", "WITH_PARTITION_HINT"


def race(name: str, made: Layout, held: str | Write, winner: str | Write, became: Expected) -> Race:
    return held_against(name, layout=made, held=held, winners=[winner], expect=[became, COMMITS], reports=("B13",))


RACES = (
    race("a-rewrite-that-says-so-outlives-a-blind-append", FLAT, rewrite(), APPEND, SNAPSHOT),
    race("a-rewrite-that-does-not-say-so-loses-to-a-blind-append", FLAT, rewrite(changes="true"), APPEND,
         lost("append", f"{APPENDED}.{ANYWHERE}")),
    race("a-rewrite-of-one-date-outlives-an-append-to-it", BY_DATE, rewrite(ON_12), APPEND, SNAPSHOT),
    race("a-rewrite-of-one-date-that-does-not-say-so-loses-to-an-append-to-it", BY_DATE, rewrite(ON_12, "true"),
         APPEND, lost("append", f"{APPENDED}.{HERE}")),
    race("a-rewrite-loses-to-an-update-all-the-same", FLAT, rewrite(), UPDATE,
         lost("delete-read", f"{REMOVED}.{ANYWHERE}")),
    race("a-rewrite-loses-to-a-deletion-vector", FLAT, rewrite(), DELETE, lost("delete-read", f"{REMOVED}.{ANYWHERE}")),
    race("a-rewrite-of-one-date-outlives-an-update-of-the-other", BY_DATE, rewrite(ON_12), UPDATE_OTHER, SNAPSHOT),
    race("a-rewrite-loses-to-optimize", FLAT, rewrite(), "OPTIMIZE {t}",
         lost("delete-read", f"{REMOVED}.{ANYWHERE}")),
    race("a-rewrite-does-not-look-again-as-optimize-does", FLAT, rewrite(),
         "ALTER TABLE {t} SET TBLPROPERTIES ('owner.team' = 'night shift')",
         Expected(word="metadata", condition="DELTA_METADATA_CHANGED")),
    race("a-blind-append-outlives-a-rewrite", FLAT, APPEND, rewrite(), COMMITS),
    race("an-update-loses-to-a-rewrite", FLAT, UPDATE, rewrite(), lost("append", f"{APPENDED}.{ANYWHERE}")),
)


def test_race(case, check):
    check(case, rules=True)
