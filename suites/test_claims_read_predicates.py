"""What does a writer count as read? Claims about the append check, partitions and predicates."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakerace import deltalog
from lakerace.layouts import COLUMNS, layout, layout_from_statements
from lakerace.race import Expected, held_against

FLAT, BY_DATE, DV = layout("flat"), layout("by-date"), layout("flat-dv")
THREE_DATES = layout_from_statements("three-dates", (
    f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (event_date)",
    *(f"INSERT INTO {{t}} VALUES ({2 * day}, DATE'2026-08-1{day}', 'DE', 1, 'base'), "
      f"({2 * day + 1}, DATE'2026-08-1{day}', 'DE', 1, 'base')" for day in (1, 2, 3)),
), "partitioned by event_date, three dates")
BY_REGION = layout_from_statements("by-region", (
    "CREATE TABLE {t} (id BIGINT, region STRING, note STRING) USING delta PARTITIONED BY (region)",
    "INSERT INTO {t} VALUES (1, 'US-East', 'base'), (2, 'US-East', 'base')",
    "INSERT INTO {t} VALUES (3, 'EU-West', 'base'), (4, 'EU-West', 'base')",
), "partitioned by region")
REPARTITIONED = layout_from_statements("repartitioned", (
    f"CREATE TABLE {{t}} ({COLUMNS}) USING delta",
    ("INSERT INTO {t} SELECT /*+ REPARTITION(4, event_date) */ * FROM VALUES "
     "(1L, DATE'2026-08-11', 'DE', 1, 'base'), (2L, DATE'2026-08-12', 'DE', 1, 'base') "
     "AS rows(id, event_date, country, amount, note)"),
), "unpartitioned, written from a DataFrame that was repartitioned by event_date")

COMMITS = Expected(word="commits")
APPEND = Expected(word="append", surfaced="ConcurrentAppendException", sqlstate="2D521",
                  root="io.delta.exceptions.ConcurrentAppendException",
                  condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
APPEND_P = Expected(word="append", surfaced="ConcurrentAppendException", sqlstate="2D521",
                    root="io.delta.exceptions.ConcurrentAppendException",
                    condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")
DELETE_READ = Expected(word="delete-read", surfaced="ConcurrentDeleteReadException", sqlstate="2D521",
                       condition="DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT")


def merge(row: int, date: str, on: str) -> str:
    """An upsert of one row whose source holds ``row`` and ``date``."""
    return (f"MERGE INTO {{t}} t USING (SELECT {row}L AS id, DATE'2026-08-{date}' AS event_date, 'DE' AS country, "
            f"7 AS amount, 'merged' AS note) s ON {on} "
            "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *")


def append_to(date: str) -> Expected:
    """The append conflict that names the partition of ``date`` (day of August)."""
    return replace(APPEND_P, parameters=(("partitionValues", f"[event_date=2026-08-{date}]"),))


UPDATE_1, UPDATE_16 = "UPDATE {t} SET note = 'A' WHERE id = 1", "UPDATE {t} SET note = 'B' WHERE id = 16"
DELETE_1 = "DELETE FROM {t} WHERE id = 1"
UPDATE_11 = "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-11'"
UPDATE_11_1 = "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-11' AND id = 1"
UPDATE_12 = "UPDATE {t} SET note = 'B' WHERE event_date = DATE'2026-08-12'"
INSERT_11 = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_12 = "INSERT INTO {t} VALUES (202, DATE'2026-08-12', 'DE', 1, 'new')"
MERGE_KEY = merge(1, "11", "s.id = t.id")
MERGE_TRUE = merge(1, "11", "s.id = t.id AND t.event_date IS NOT NULL")
MERGE_EQUAL = merge(1, "11", "s.event_date = t.event_date AND s.id = t.id")
MERGE_11 = merge(1, "11", "s.id = t.id AND t.event_date = DATE'2026-08-11'")
MERGE_12 = merge(16, "12", "s.id = t.id AND t.event_date = DATE'2026-08-12'")

RACES = (
    held_against("an-update-loses-when-a-file-came-to-the-date-it-reads", layout=BY_DATE, held=UPDATE_11,
                 winners=[INSERT_11], expect=[append_to("11"), COMMITS],
                 claims=("D-013", "D-024")),
    held_against("an-update-commits-when-a-file-came-to-another-date", layout=BY_DATE, held=UPDATE_11,
                 winners=[INSERT_12], expect=[COMMITS, COMMITS], claims=("D-013",)),
    held_against("a-date-literal-beside-the-id-reaches-the-check", layout=BY_DATE, held=UPDATE_11_1,
                 winners=[UPDATE_12], expect=[COMMITS, COMMITS], claims=("D-015",)),
    held_against("an-id-alone-does-not-reach-the-check", layout=BY_DATE, held=UPDATE_1,
                 winners=[UPDATE_12], expect=[APPEND_P, COMMITS], claims=("D-015", "D-018")),
    held_against("updates-of-rows-in-separate-files-conflict-without-partitions", layout=FLAT, held=UPDATE_1,
                 winners=[UPDATE_16], expect=[APPEND, COMMITS], claims=("D-016", "D-022", "D-032")),
    held_against("a-merge-on-the-key-reads-every-date", layout=BY_DATE, held=MERGE_KEY, winners=[MERGE_12],
                 expect=[append_to("12"), COMMITS], claims=("D-018", "D-024")),
    held_against("a-merge-with-an-always-true-predicate-reads-every-date", layout=BY_DATE, held=MERGE_TRUE,
                 winners=[MERGE_12], expect=[append_to("12"), COMMITS], claims=("D-018",)),
    held_against("a-merge-with-an-equality-on-the-date-reads-every-date", layout=BY_DATE, held=MERGE_EQUAL,
                 winners=[UPDATE_12], expect=[append_to("12"), COMMITS],
                 claims=("D-019", "D-072")),
    held_against("a-merge-with-a-date-literal-passes-a-write-to-another-date", layout=BY_DATE, held=MERGE_11,
                 winners=[MERGE_12], expect=[COMMITS, COMMITS], claims=("D-020", "D-053", "D-081")),
    held_against("a-merge-with-a-date-literal-loses-to-a-write-to-that-date", layout=BY_DATE, held=MERGE_12,
                 winners=[UPDATE_12], expect=[append_to("12"), COMMITS], claims=("D-021",)),
    held_against("merges-of-different-rows-conflict-without-partitions", layout=FLAT, held=MERGE_KEY,
                 winners=[merge(16, "12", "s.id = t.id")], expect=[APPEND, COMMITS],
                 claims=("D-025", "D-032", "D-053", "D-081")),
    held_against("merges-of-the-same-row-conflict-with-the-same-class", layout=FLAT, held=MERGE_KEY,
                 winners=[MERGE_KEY], expect=[APPEND, COMMITS], claims=("D-032",)),
    held_against("merges-of-different-rows-conflict-with-deletion-vectors-too", layout=DV, held=MERGE_KEY,
                 winners=[merge(16, "12", "s.id = t.id")], expect=[APPEND, COMMITS], claims=("D-025", "D-032")),
    held_against("date-literals-do-not-help-without-partitions", layout=FLAT, held=UPDATE_11, winners=[UPDATE_12],
                 expect=[APPEND, COMMITS], claims=("D-026", "D-051")),
    held_against("date-literals-help-on-a-table-partitioned-by-date", layout=BY_DATE, held=UPDATE_11,
                 winners=[UPDATE_12], expect=[COMMITS, COMMITS], claims=("D-026", "D-051")),
    held_against("date-literals-do-not-help-on-a-table-clustered-by-date", layout=layout("clustered"), held=UPDATE_11,
                 winners=[UPDATE_12], expect=[APPEND, COMMITS], claims=("D-026",)),
    held_against("a-repartitioned-dataframe-does-not-partition-the-table", layout=REPARTITIONED, held=UPDATE_11,
                 winners=[UPDATE_12], expect=[APPEND, COMMITS], claims=("D-027",)),
    held_against("two-pipelines-with-a-region-literal-each-both-commit", layout=BY_REGION,
                 held="UPDATE {t} SET note = 'A' WHERE region = 'EU-West'",
                 winners=["UPDATE {t} SET note = 'B' WHERE region = 'US-East'"], expect=[COMMITS, COMMITS],
                 claims=("D-028",)),
    held_against("two-merges-with-a-region-literal-each-both-commit", layout=BY_REGION,
                 held="MERGE INTO {t} t USING (SELECT 3L AS id) s ON t.id = s.id AND t.region = 'EU-West' "
                      "WHEN MATCHED THEN UPDATE SET note = 'A'",
                 winners=[("MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id AND t.region = 'US-East' "
                           "WHEN MATCHED THEN UPDATE SET note = 'B'")], expect=[COMMITS, COMMITS], claims=("D-028",)),
    held_against("a-merge-on-1-1-loses-to-an-insert", layout=BY_DATE, held=merge(1, "11", "1 = 1"), winners=[INSERT_12],
                 expect=[APPEND_P, COMMITS], claims=("D-029",)),
    held_against("a-merge-on-1-1-loses-to-an-update", layout=BY_DATE, held=merge(1, "11", "1 = 1"), winners=[UPDATE_12],
                 expect=[APPEND_P, COMMITS], claims=("D-029",)),
    held_against("a-merge-on-1-1-loses-to-a-delete-of-a-whole-date", layout=BY_DATE, held=merge(1, "11", "1 = 1"),
                 winners=["DELETE FROM {t} WHERE event_date = DATE'2026-08-12'"],
                 expect=[Expected(word="delete-read", condition="DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT"),
                         COMMITS], claims=("D-029",)),
    held_against("different-rows-of-one-date-conflict", layout=BY_DATE, held=UPDATE_11_1,
                 winners=["UPDATE {t} SET note = 'B' WHERE event_date = DATE'2026-08-11' AND id = 8"],
                 expect=[append_to("11"), COMMITS], claims=("D-031",)),
    held_against("a-delete-of-a-whole-file-passes-an-update-of-another-file", layout=FLAT, held=UPDATE_1,
                 winners=["DELETE FROM {t} WHERE id IN (15, 16)"], expect=[COMMITS, COMMITS],
                 claims=("D-022", "D-032", "D-051", "D-070")),
    held_against("a-delete-of-a-whole-file-stops-an-update-of-that-file", layout=FLAT, held=UPDATE_1,
                 winners=["DELETE FROM {t} WHERE id IN (1, 2)"], expect=[DELETE_READ, COMMITS],
                 claims=("D-022", "D-051")),
    held_against("with-deletion-vectors-a-delete-of-a-whole-file-passes-too", layout=DV, held=UPDATE_1,
                 winners=["DELETE FROM {t} WHERE id IN (15, 16)"], expect=[COMMITS, COMMITS], claims=("D-022",)),
    held_against("a-winner-outside-what-was-read-moves-the-commit-on", layout=BY_DATE, held=UPDATE_11,
                 winners=[UPDATE_12], expect=[Expected(word="commits", version=10, attempts=2), COMMITS],
                 claims=("D-070",)),
    held_against("a-winner-inside-what-was-read-ends-in-an-exception", layout=BY_DATE, held=UPDATE_11,
                 winners=[UPDATE_11_1], expect=[Expected(word="append", attempts=1), COMMITS], claims=("D-070",)),
    *(held_against(f"without-partitions-{held}-loses-to-{winner}", layout=FLAT, held=held_sql, winners=[winner_sql],
                   expect=[APPEND, COMMITS], claims=("D-022",))
      for held, held_sql in (("an-update", UPDATE_1), ("a-delete", DELETE_1), ("a-merge", MERGE_KEY))
      for winner, winner_sql in (("an-update", UPDATE_16), ("a-delete", "DELETE FROM {t} WHERE id = 16"),
                                 ("a-merge", merge(16, "12", "s.id = t.id")))),
)


def test_race(case, check):
    check(case)


@pytest.mark.claim("D-014")
def test_the_error_names_one_partition_of_three(race):
    seen = race(held="DELETE FROM {t}", winners=["UPDATE {t} SET note = 'B'"], layout=THREE_DATES)
    touched = {path.partition("/")[0] for path in seen.commits[0].added}
    assert len(touched) == 3
    assert seen.outcome("A").parameters["partitionValues"].strip("[]") in touched


@pytest.mark.claim("D-017")
def test_disjoint_statistics_do_not_help(race, table_factory):
    table = table_factory("flat")
    ranges = [
        (stats["minValues"]["id"], stats["maxValues"]["id"])
        for version in range(1, table.base_version + 1)
        for action in deltalog.actions(table.path, version) if "add" in action
        for stats in [json.loads(action["add"]["stats"])]
    ]
    assert sorted(ranges) == [(first, first + 1) for first in range(1, 16, 2)]
    seen = race(held="UPDATE {t} SET note = 'A' WHERE id < 3", winners=["UPDATE {t} SET note = 'B' WHERE id > 14"])
    assert seen.outcome("A").word == "append"
    assert len(seen.commits[0].removed) == 1


@pytest.mark.claim("D-023")
@pytest.mark.parametrize("held", [UPDATE_1, DELETE_1, MERGE_KEY], ids=["update", "delete", "merge"])
def test_the_error_says_nothing_about_the_root_of_the_table(race, held):
    outcome = race(held=held, winners=[UPDATE_16]).outcome("A")
    assert outcome.condition == "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"
    assert "root of the table" not in outcome.message
    assert "partitionValues" not in outcome.parameters


@pytest.mark.claim("D-024")
def test_the_error_names_the_partition_by_column_and_value(race):
    outcome = race(held=MERGE_KEY, winners=[MERGE_12], layout="by-date").outcome("A")
    assert outcome.parameters["partitionValues"] == "[event_date=2026-08-12]"
    assert "event_date=2026-08-12" in outcome.message


@pytest.mark.claim("D-027")
def test_a_repartitioned_dataframe_leaves_no_partition_values(table_factory):
    table = table_factory(REPARTITIONED)
    adds = [action["add"] for action in deltalog.actions(table.path, 1) if "add" in action]
    assert len(adds) == 2
    assert all(add["partitionValues"] == {} for add in adds)


@pytest.mark.claim("D-030")
@pytest.mark.parametrize("values", [4, 1000])
def test_a_unique_partition_column_makes_one_folder_a_value(table_factory, values):
    table = table_factory([
        "CREATE TABLE {t} (id BIGINT, note STRING) USING delta PARTITIONED BY (id)",
        f"INSERT INTO {{t}} SELECT id, 'base' FROM range({values})",
    ])
    assert sum(path.name.startswith("id=") for path in table.path.iterdir()) == values
