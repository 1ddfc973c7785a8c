"""What survives an ALTER TABLE that comes in between, and what does ALTER TABLE survive?"""

from __future__ import annotations

import pytest

from lakerace import deltalog
from lakerace.layouts import layout, layout_from_statements
from lakerace.race import Expected, held_against, statement

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
      for name, sql in {"a-table-property": SET_PROPERTY, "a-new-column": ADD_COLUMN}.items()),
    *(held_against(f"{name}-passes-optimize", layout=FLAT, held=sql, winners=[OPTIMIZE], expect=[COMMITS, COMMITS],
                   reports=("I4",))
      for name, sql in {"a-table-property": SET_PROPERTY, "a-new-column": ADD_COLUMN}.items()),
    held_against("an-insert-loses-to-a-dropped-feature", layout=WITH_FEATURE, held=INSERT, winners=[DROP_FEATURE],
                 expect=[PROTOCOL, COMMITS], reports=("I7",)),
    held_against("a-dropped-feature-passes-an-insert", layout=WITH_FEATURE, held=DROP_FEATURE, winners=[INSERT],
                 expect=[COMMITS, COMMITS], reports=("I7",)),
    *(held_against(f"an-insert-loses-to-{name}", layout=made, held=INSERT, winners=[sql], expect=[METADATA, COMMITS],
                   reports=("I9",)) for name, (made, sql) in CHANGES.items()),
    *(held_against(f"{name}-passes-an-insert", layout=made, held=sql, winners=[INSERT], expect=[COMMITS, COMMITS],
                   reports=("I9",)) for name, (made, sql) in CHANGES.items()),
)


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("I5")
@pytest.mark.parametrize("idle", IDLE.values(), ids=IDLE)
def test_a_statement_that_changes_nothing_has_no_commit_to_lose(engine, table_factory, idle):
    """It ends without a commit, an exception or a history row, whatever ALTER TABLE does beside it."""
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(idle))
    assert engine.run(table, "B", statement(SET_PROPERTY)).word == "commits"
    assert held.early is not None
    assert (held.early.word, held.early.message) == ("no-commit", None)
    assert [row.operation for row in deltalog.history(table.path, table.base_version)] == ["SET TBLPROPERTIES"]
