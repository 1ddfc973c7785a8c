"""What does a blind append change? Claims about isBlindAppend and the isolation levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace.layouts import layout
from lakerace.race import (
    ISOLATIONS,
    SERIALIZABLE,
    WRITE_SERIALIZABLE,
    Expected,
    Statement,
    Write,
    held_against,
    statement,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakerace.observe import Observation, Rows

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
)


def test_race(case, check):
    check(case)


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


@pytest.fixture
def replay(engine, table_factory) -> Callable[..., Rows]:
    """``replay(seen, *writers) -> rows``: their statements, one after the other, on a fresh copy of the table."""

    def replaying(seen: Observation, *writers: str, does: dict[str, str]) -> Rows:
        table = table_factory(seen.layout, seen.isolation)
        for writer in writers:
            assert engine.run(table, writer, Statement(name=writer, does=does[writer])).word == "commits"
        return engine.rows(table)[1]

    return replaying


@pytest.mark.claim("D-045", "D-047")
def test_write_serializable_the_rows_are_those_of_another_order(race, replay):
    does = {"A": UPDATE_ALL, "B": INSERT_11}
    seen = race(held=does["A"], winners=[does["B"]], layout="flat", isolation=WRITE_SERIALIZABLE)
    assert [row.operation for row in seen.history] == ["UPDATE", "WRITE"]
    assert [row[-1] for row in seen.rows_after if row[0] == 201] == ["new"]
    assert seen.rows_after != replay(seen, "B", "A", does=does)
    assert seen.rows_after == replay(seen, "A", "B", does=does)


HISTORY_ORDER = {
    "update-elsewhere": (MERGE_11, UPDATE_12),
    "insert-elsewhere": (MERGE_11, INSERT_12),
    "insert-held": (INSERT_11, UPDATE_ALL),
    "delete-of-a-file": ("UPDATE {t} SET note = 'A' WHERE id = 1", "DELETE FROM {t} WHERE id IN (15, 16)"),
}


@pytest.mark.claim("D-046")
@pytest.mark.parametrize("pair", HISTORY_ORDER.values(), ids=HISTORY_ORDER)
def test_serializable_the_rows_are_those_of_the_history(race, replay, pair):
    does = dict(zip("AB", pair, strict=True))
    seen = race(held=does["A"], winners=[does["B"]], layout="by-date", isolation=SERIALIZABLE)
    assert seen.outcome("A").word == "commits"
    assert seen.rows_after == replay(seen, "B", "A", does=does)


def set_to_the_other_dates_maximum(own: str, other: str) -> str:
    top = f"SELECT max(amount) + 1000 FROM {{t}} WHERE event_date = DATE'2026-08-{other}'"
    return f"UPDATE {{t}} SET amount = ({top}) WHERE event_date = DATE'2026-08-{own}'"


@pytest.mark.claim("D-046")
def test_serializable_updates_that_read_each_other_in_a_subquery_both_commit(race, replay):
    """Write skew: the read of a subquery in SET is not recorded, so no serial order explains the rows."""
    does = {"A": set_to_the_other_dates_maximum("11", "12"), "B": set_to_the_other_dates_maximum("12", "11")}
    seen = race(held=does["A"], winners=[does["B"]], layout="by-date", isolation=SERIALIZABLE)
    assert [(row.operation, row.isolationLevel) for row in seen.history] == [("UPDATE", "Serializable")] * 2
    amounts = {row[1].day: row[3] for row in seen.rows_after}
    assert amounts == {11: 1160, 12: 1080}
    assert {row[1].day: row[3] for row in replay(seen, "A", "B", does=does)} == {11: 1160, 12: 2160}
    assert {row[1].day: row[3] for row in replay(seen, "B", "A", does=does)} == {11: 2080, 12: 1080}


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
def test_serializable_a_subquery_in_the_set_of_a_merge_is_not_recorded(race):
    held = ("MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id AND t.event_date = DATE'2026-08-11' "
            "WHEN MATCHED THEN UPDATE SET amount = (SELECT max(amount) FROM {t} WHERE event_date = DATE'2026-08-12')")
    assert race(held=held, winners=[UPDATE_12], layout="by-date").outcome("A").word == "commits"
