"""Who loses when a table is put back or cloned over? RESTORE and CLONE commit without a look at what came before."""

from __future__ import annotations

from lakerace.layouts import COLUMNS, layout, layout_from_statements
from lakerace.race import Expected, held_against

VERSIONS = ">=4.0"
FLAT = layout("flat")
EMPTY = layout_from_statements("empty", (f"CREATE TABLE {{t}} ({COLUMNS}) USING delta",), "no rows yet")
EVOLVED = layout_from_statements("evolved", (*FLAT.setup, "ALTER TABLE {t} ADD COLUMN (extra INT)"),
                                 "the layout flat, with a column that came last")

COMMITS = Expected(word="commits")
ANY_WRITE = Expected(word="write", surfaced="ConcurrentWriteException", condition="DELTA_CONCURRENT_WRITE",
                     root="io.delta.exceptions.ConcurrentWriteException", sqlstate="2D521")
METADATA = Expected(word="metadata", surfaced="MetadataChangedException", condition="DELTA_METADATA_CHANGED",
                    root="io.delta.exceptions.MetadataChangedException", sqlstate="2D521")
DELETE_READ = Expected(word="delete-read", surfaced="ConcurrentDeleteReadException",
                       condition="DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT")

INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_EVOLVED = INSERT.replace("'new')", "'new', 1)")
UPDATE_KEPT = "UPDATE {t} SET note = 'A' WHERE id = 1"
UPDATE_GONE = "UPDATE {t} SET note = 'A' WHERE id = 16"
RESTORE = "RESTORE TABLE {t} TO VERSION AS OF 7"
RESTORE_SCHEMA = "RESTORE TABLE {t} TO VERSION AS OF 8"
CLONE = "CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}"
WINNERS = {
    "an-insert": INSERT,
    "an-update": UPDATE_KEPT,
    "a-table-property": "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night shift')",
    "optimize": "OPTIMIZE {t}",
    "another-restore": "RESTORE TABLE {t} TO VERSION AS OF 6",
}

RACES = (
    *(held_against(f"restore-loses-to-{name}", layout=FLAT, held=RESTORE, winners=[sql], expect=[ANY_WRITE, COMMITS],
                   reports=("I1", "G5") if name == "an-insert" else ("I1",)) for name, sql in WINNERS.items()),
    held_against("an-insert-passes-a-restore", layout=FLAT, held=INSERT, winners=[RESTORE], expect=[COMMITS, COMMITS],
                 reports=("I2",)),
    held_against("an-update-passes-a-restore-that-keeps-its-file", layout=FLAT, held=UPDATE_KEPT, winners=[RESTORE],
                 expect=[COMMITS, COMMITS], reports=("I2",)),
    held_against("an-update-loses-to-a-restore-that-removes-its-file", layout=FLAT, held=UPDATE_GONE,
                 winners=[RESTORE], expect=[DELETE_READ, COMMITS], reports=("I2",)),
    held_against("optimize-loses-to-a-restore-that-removes-its-file", layout=FLAT, held="OPTIMIZE {t}",
                 winners=[RESTORE], expect=[DELETE_READ, COMMITS], reports=("I2", "G1", "G5")),
    held_against("an-insert-loses-to-a-restore-of-the-schema", layout=EVOLVED, held=INSERT_EVOLVED,
                 winners=[RESTORE_SCHEMA], expect=[METADATA, COMMITS], reports=("I2", "G5")),
    held_against("an-update-loses-to-a-restore-of-the-schema", layout=EVOLVED, held=UPDATE_KEPT,
                 winners=[RESTORE_SCHEMA], expect=[METADATA, COMMITS], reports=("I2",)),
    held_against("a-clone-over-an-empty-table-loses-to-an-insert", layout=EMPTY, held=CLONE, winners=[INSERT],
                 expect=[ANY_WRITE, COMMITS], reports=("I3",)),
    held_against("an-insert-loses-to-a-clone-over-the-empty-table", layout=EMPTY, held=INSERT, winners=[CLONE],
                 expect=[METADATA, COMMITS], reports=("I3",)),
)


def test_race(case, check):
    check(case, rules=True)
