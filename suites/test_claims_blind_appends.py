"""What does a blind append change? Claims about isBlindAppend and the isolation levels."""

from __future__ import annotations

import pytest

from lakerace.layouts import layout
from lakerace.race import ISOLATIONS, WRITE_SERIALIZABLE, Expected, Write, held_against, statement

FLAT, BY_DATE = layout("flat"), layout("by-date")
COMMITS = Expected(word="commits")
BLIND = Expected(word="commits", blind=True)
NOT_BLIND = Expected(word="commits", blind=False)
APPEND = Expected(word="append", surfaced="ConcurrentAppendException", condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
APPEND_P = Expected(word="append", surfaced="ConcurrentAppendException",
                    condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")

SOURCE = ("(SELECT 1L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 7 AS amount, 'merged' AS note)")
MERGE = (f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *")
MERGE_11 = MERGE.replace("t.id = s.id", "t.id = s.id AND t.event_date = DATE'2026-08-11'")
MERGE_INSERTS = f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id + 500 WHEN NOT MATCHED THEN INSERT *"
INSERT_11 = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_12 = "INSERT INTO {t} VALUES (202, DATE'2026-08-12', 'DE', 1, 'new')"
INSERT_OTHER = "INSERT INTO {t} SELECT * FROM {other}"
INSERT_SELF = "INSERT INTO {t} SELECT id + 1000, event_date, country, amount, note FROM {t} WHERE id = 1"
UPDATE_ALL = "UPDATE {t} SET note = 'A'"
UPDATE_12 = "UPDATE {t} SET note = 'B' WHERE event_date = DATE'2026-08-12'"
ADD_COLUMN = Write(select="SELECT 205L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, "
                          "'new' AS note, 1 AS extra", options=(("mergeSchema", "true"),))



def set_to_the_other_dates_maximum(own: str, other: str) -> str:
    top = f"SELECT max(amount) + 1000 FROM {{t}} WHERE event_date = DATE'2026-08-{other}'"
    return f"UPDATE {{t}} SET amount = ({top}) WHERE event_date = DATE'2026-08-{own}'"


HISTORY_ORDER = {
    "an-update-elsewhere": (MERGE_11, UPDATE_12),
    "an-insert-elsewhere": (MERGE_11, INSERT_12),
    "an-insert-that-was-held": (INSERT_11, UPDATE_ALL),
    "a-delete-of-a-file": ("UPDATE {t} SET note = 'A' WHERE id = 1", "DELETE FROM {t} WHERE id IN (15, 16)"),
}

RACES = (
    held_against("write-serializable-a-merge-passes-a-plain-insert", layout=FLAT, isolation=WRITE_SERIALIZABLE,
                 held=MERGE, winners=[INSERT_11], expect=[COMMITS, BLIND], claims=("D-033",)),
    held_against("serializable-a-merge-loses-to-a-plain-insert", layout=FLAT, held=MERGE, winners=[INSERT_11],
                 expect=[APPEND, BLIND], claims=("D-034", "D-041")),
    held_against("serializable-a-date-literal-protects-a-merge-from-an-insert-elsewhere", layout=BY_DATE, held=MERGE_11,
                 winners=[INSERT_12], expect=[COMMITS, BLIND], claims=("D-035",)),
    held_against("serializable-a-date-literal-does-not-protect-a-merge-from-an-insert-there", layout=BY_DATE,
                 held=MERGE_11, winners=[INSERT_11], expect=[APPEND_P, BLIND], claims=("D-035",)),
    held_against("write-serializable-a-merge-loses-to-an-insert-that-reads-the-table", layout=FLAT,
                 isolation=WRITE_SERIALIZABLE, held=MERGE, winners=[INSERT_SELF], expect=[APPEND, NOT_BLIND],
                 claims=("D-039",)),
    held_against("write-serializable-an-update-passes-five-inserts", layout=FLAT, isolation=WRITE_SERIALIZABLE,
                 held=UPDATE_ALL, winners=[INSERT_11] * 5,
                 expect=[Expected(word="commits", version=14, attempts=2), *[BLIND] * 5], claims=("D-048",)),
    held_against("without-the-property-an-update-loses-to-a-plain-insert", layout=FLAT, held=UPDATE_ALL,
                 winners=[INSERT_11], expect=[APPEND, Expected(word="commits", blind=True, isolation="Serializable")],
                 claims=("D-044",)),
    *(held_against(f"{level}-an-insert-passes-a-merge", layout=FLAT, isolation=level, held=INSERT_11, winners=[MERGE],
                   expect=[Expected(word="commits", version=10, blind=True), COMMITS], claims=("D-041",))
      for level in ISOLATIONS),
    *(held_against(f"{level}-an-insert-passes-an-insert", layout=FLAT, isolation=level, held=INSERT_11,
                   winners=[INSERT_11], expect=[Expected(word="commits", version=10), COMMITS], claims=("D-049",))
      for level in ISOLATIONS),
    held_against("serializable-an-insert-that-reads-the-table-loses-to-an-insert", layout=FLAT, held=INSERT_SELF,
                 winners=[INSERT_11], expect=[APPEND, BLIND], claims=("D-049", "D-041")),
    held_against("an-insert-loses-to-an-append-that-adds-a-column", layout=FLAT, held=INSERT_11, winners=[ADD_COLUMN],
                 expect=[Expected(word="metadata", surfaced="MetadataChangedException"), COMMITS], claims=("D-049",)),
    *(held_against(f"serializable-with-{name}-the-rows-are-those-of-the-history", layout=BY_DATE, held=held,
                   winners=[winner], expect=[COMMITS, COMMITS], claims=("D-046",))
      for name, (held, winner) in HISTORY_ORDER.items()),
    held_against("serializable-updates-that-read-each-other-in-a-subquery-both-commit", layout=BY_DATE,
                 held=set_to_the_other_dates_maximum("11", "12"), winners=[set_to_the_other_dates_maximum("12", "11")],
                 expect=[Expected(word="commits", operation="UPDATE", isolation="Serializable")] * 2, claims=("D-046",),
                 reports=("I13",), why="the read of a subquery in SET is not recorded"),
)


def test_race(case, check):
    check(case, replay=True)


@pytest.mark.parametrize(("sql", "blind"), [
    pytest.param(INSERT_11, True, id="values", marks=pytest.mark.claim("D-036")),
    pytest.param(INSERT_OTHER, True, id="select-from-another-table", marks=pytest.mark.claim("D-040")),
    pytest.param(INSERT_SELF, False, id="select-from-itself", marks=pytest.mark.claim("D-036", "D-037", "D-076")),
    pytest.param(MERGE, False, id="merge", marks=pytest.mark.claim("D-038")),
    pytest.param(MERGE_INSERTS, False, id="merge-that-only-inserts", marks=pytest.mark.claim("D-038")),
])
def test_is_blind_append(engine, table_factory, sql, blind):
    table = table_factory("flat")
    assert engine.run(table, "A", statement(sql)).word == "commits"
    assert engine.read_back(table).history[0].isBlindAppend is blind


@pytest.mark.claim("D-042")
def test_the_retry_belongs_around_the_merge(engine, table_factory):
    table = table_factory("flat")
    tries = {"merge": 1, "insert": 1}
    held = engine.hold(table, "A", statement(MERGE))
    assert engine.run(table, "B", statement(INSERT_11)).word == "commits"
    assert held.release().word == "append"
    tries["merge"] += 1
    held = engine.hold(table, "B", statement(INSERT_11))
    assert engine.run(table, "A", statement(MERGE)).word == "commits"
    assert held.release().word == "commits"
    assert tries == {"merge": 2, "insert": 1}


@pytest.mark.claim("D-043")
def test_the_level_can_be_set_to_serializable_only(delta, table_factory):
    table = table_factory("flat")
    delta.sql(f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')")
    shown = {row["key"]: row["value"] for row in delta.sql(f"SHOW TBLPROPERTIES delta.`{table.path}`").collect()}
    assert shown["delta.isolationLevel"] == "Serializable"
    with pytest.raises(Exception, match="must be Serializable"):
        delta.sql(f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES ('delta.isolationLevel' = 'WriteSerializable')")


@pytest.mark.claim("D-044")
def test_a_table_without_the_property_is_serializable(delta, engine, table_factory):
    table = table_factory("flat")
    shown = {row["key"] for row in delta.sql(f"SHOW TBLPROPERTIES delta.`{table.path}`").collect()}
    assert "delta.isolationLevel" not in shown
    engine.run(table, "A", statement(UPDATE_ALL))
    assert engine.read_back(table).history[0].isolationLevel == "Serializable"


@pytest.mark.claim("D-045", "D-047")
def test_write_serializable_the_rows_are_those_of_another_order(check):
    found = check(held_against("an-update-and-an-insert", layout=FLAT, isolation=WRITE_SERIALIZABLE, held=UPDATE_ALL,
                               winners=[INSERT_11], expect=[COMMITS, COMMITS]), replay=True)
    assert found.replay.explanation.order == ("A", "B")


READS_ITSELF = {
    "merge-source": "MERGE INTO {t} t USING (SELECT max(amount) AS top FROM {t} WHERE event_date = DATE'2026-08-12') s "
                    "ON t.id = 1 AND t.event_date = DATE'2026-08-11' WHEN MATCHED THEN UPDATE SET amount = s.top",
    "insert-select": "INSERT INTO {t} SELECT 301, DATE'2026-08-11', 'DE', max(amount), 'top' FROM {t} "
                     "WHERE event_date = DATE'2026-08-12'",
    "replace-where": "INSERT INTO {t} REPLACE WHERE event_date = DATE'2026-08-11' SELECT 301L, DATE'2026-08-11', 'DE', "
                     "max(amount), 'top' FROM {t} WHERE event_date = DATE'2026-08-12'",
}


@pytest.mark.claim("D-046")
@pytest.mark.parametrize("held", READS_ITSELF.values(), ids=READS_ITSELF)
def test_serializable_other_reads_of_the_table_are_recorded(race, held):
    assert race(held=held, winners=[UPDATE_12], layout="by-date").outcome("A").word == "append"


@pytest.mark.claim("D-046")
@pytest.mark.report("I13")
def test_serializable_a_subquery_in_the_set_of_a_merge_is_not_recorded(race):
    held = ("MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id AND t.event_date = DATE'2026-08-11' "
            "WHEN MATCHED THEN UPDATE SET amount = (SELECT max(amount) FROM {t} WHERE event_date = DATE'2026-08-12')")
    assert race(held=held, winners=[UPDATE_12], layout="by-date").outcome("A").word == "commits"
