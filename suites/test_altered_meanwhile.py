"""What survives an ALTER TABLE that comes in between, and what does ALTER TABLE survive?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.layouts import layout, layout_from_statements
from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE, Expected, Race, held_against

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
FLAT = layout("flat")
CREATE, *INSERTS = FLAT.setup


def with_properties(name: str, properties: str) -> object:
    made = (CREATE.replace("TBLPROPERTIES (", f"TBLPROPERTIES ({properties}, "), *INSERTS)
    return layout_from_statements(name, made, f"the layout flat with {properties}")


WITH_FEATURE = with_properties("with-feature", "'delta.feature.checkConstraints' = 'supported'")
MAPPED = with_properties("mapped", "'delta.columnMapping.mode' = 'name'")
WIDENED = with_properties("widened", "'delta.enableTypeWidening' = 'true'")

COMMITS = Expected(word="commits")
METADATA = Expected(word="metadata", surfaced="MetadataChangedException", condition="DELTA_METADATA_CHANGED",
                    root="io.delta.exceptions.MetadataChangedException", sqlstate="2D521")
PROTOCOL = Expected(word="protocol", surfaced="ProtocolChangedException", condition="DELTA_PROTOCOL_CHANGED",
                    root="io.delta.exceptions.ProtocolChangedException", sqlstate="2D521")

INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
OPTIMIZE = "OPTIMIZE {t}"
SET_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night shift')"
ADD_COLUMN = "ALTER TABLE {t} ADD COLUMN (extra INT)"
ALTERS = {"a-table-property": SET_PROPERTY, "a-new-column": ADD_COLUMN}
DROP_FEATURE = "ALTER TABLE {t} DROP FEATURE checkConstraints"
CHANGES = {
    "a-renamed-column": (MAPPED, "ALTER TABLE {t} RENAME COLUMN note TO remark"),
    "a-widened-type": (WIDENED, "ALTER TABLE {t} ALTER COLUMN amount TYPE BIGINT"),
}
IDLE = {
    "update": "UPDATE {t} SET note = 'x' WHERE id = 999",
    "delete": "DELETE FROM {t} WHERE id = 999",
    "merge": "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "insert": "INSERT INTO {t} SELECT * FROM {other} WHERE id = 0",
}

RACES = (
    *(held_against(f"held-optimize-tries-again-after-{name}", layout=FLAT, held=OPTIMIZE, winners=[sql],
                   expect=[Expected(word="commits", read_version=9, attempts=2), COMMITS], reports=("I4",))
      for name, sql in ALTERS.items()),
    *(held_against(f"{name}-passes-optimize", layout=FLAT, held=sql, winners=[OPTIMIZE], expect=[COMMITS, COMMITS],
                   reports=("I4",))
      for name, sql in ALTERS.items()),
    held_against("an-insert-loses-to-a-dropped-feature", layout=WITH_FEATURE, held=INSERT, winners=[DROP_FEATURE],
                 expect=[PROTOCOL, COMMITS], reports=("I7",)),
    held_against("a-dropped-feature-passes-an-insert", layout=WITH_FEATURE, held=DROP_FEATURE, winners=[INSERT],
                 expect=[COMMITS, COMMITS], reports=("I7",)),
    *(held_against(f"an-insert-loses-to-{name}", layout=made, held=INSERT, winners=[sql], expect=[METADATA, COMMITS],
                   reports=("I9",)) for name, (made, sql) in CHANGES.items()),
    *(held_against(f"{name}-passes-an-insert", layout=made, held=sql, winners=[INSERT], expect=[COMMITS, COMMITS],
                   reports=("I9",)) for name, (made, sql) in CHANGES.items()),
)


IDLE_RACES = {
    (name, change, level): held_against(
        f"{name}-that-changes-nothing-{'loses-to' if level == WRITE_SERIALIZABLE else 'has-no-commit-beside'}-{change}"
        f"{'-under-write-serializable' if level == WRITE_SERIALIZABLE else ''}",
        layout=FLAT, held=sql, winners=[ALTERS[change]], isolation=level, reports=("I5",),
        expect=[METADATA if level == WRITE_SERIALIZABLE else Expected(word="no-commit"), COMMITS],
        why="at WriteSerializable even a commit of nothing is written, and so checked"
        if level == WRITE_SERIALIZABLE else "without a commit there is no exception and no history row either",
    )
    for name, sql in IDLE.items() for change in ALTERS for level in ISOLATIONS
}


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    idle = IDLE_RACES if profile == "full" else [("update", change, SERIALIZABLE) for change in ALTERS]
    return (*RACES, *(IDLE_RACES[key] for key in idle), *(
        [] if profile == "full" else [IDLE_RACES["update", "a-table-property", WRITE_SERIALIZABLE]]))


def test_race(case, check):
    check(case, rules=True)
