"""Rows, partitions or the whole table? What is said of Databricks, raced on open-source Delta.

Each race is a scenario about which something is said for Databricks; its outcome is that of open-source Delta. What
Databricks' documented rules predict for the same race stands in ``selfcheck/test_claims_databricks.py``.
"""

from __future__ import annotations

import pytest

from lakerace import deltalog
from lakerace.layouts import COLUMNS, inserts, layout, layout_from_statements
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, Expected, Layout, Race, held_against, statement

FLAT, FLAT_DV = layout("flat"), layout("flat-dv")
BY_DATE, BY_DATE_DV, CLUSTERED_DV = layout("by-date"), layout("by-date-dv"), layout("clustered-dv")
DELETION_VECTORS = "'delta.enableDeletionVectors' = 'true'"
BY_REGION = layout_from_statements("clustered-by-region", (
    ("CREATE TABLE {t} (id BIGINT, region STRING, note STRING) USING delta CLUSTER BY (region) "
     f"TBLPROPERTIES ({DELETION_VECTORS})"),
    "INSERT INTO {t} VALUES (1, 'US-East', 'base'), (2, 'US-East', 'base')",
    "INSERT INTO {t} VALUES (3, 'EU-West', 'base'), (4, 'EU-West', 'base')",
), "clustered by region, deletion vectors on")
NESTED = layout_from_statements("nested", (
    ("CREATE TABLE {t} (id BIGINT, place STRUCT<city: STRING, zip: INT>, tags ARRAY<STRING>, marks MAP<STRING, INT>, "
     f"note STRING) USING delta TBLPROPERTIES ({DELETION_VECTORS})"),
    *(f"INSERT INTO {{t}} VALUES ({first}, named_struct('city', 'Bonn', 'zip', 1), array('a'), map('a', 1), 'base'), "
      f"({first + 1}, named_struct('city', 'Kiel', 'zip', 2), array('b'), map('b', 2), 'base')" for first in (1, 3)),
), "a struct, an array and a map beside the key, deletion vectors on")
AUTO_COMPACT = layout_from_statements("auto-compacted", (
    f"CREATE TABLE {{t}} ({COLUMNS}) USING delta TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')", *inserts(),
), "unpartitioned, auto-compaction on")

COMMITS = Expected(word="commits")


def merge(row: int, date: str, on: str = "s.id = t.id") -> str:
    """An upsert of one row, by its id and ``date`` (day of August)."""
    return (f"MERGE INTO {{t}} t USING (SELECT {row}L AS id, DATE'2026-08-{date}' AS event_date, 'DE' AS country, "
            f"7 AS amount, 'merged' AS note) s ON {on} "
            "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *")


def merge_nested(row: int, also: str) -> str:
    return (f"MERGE INTO {{t}} t USING (SELECT {row}L AS id) s ON t.id = s.id AND {also} "
            "WHEN MATCHED THEN UPDATE SET note = 'merged'")


# Row 9 lies with row 10 in one file of 12 August, DE.
MERGE_BY_KEY = merge(9, "12", "s.id = t.id")
MERGE_BY_KEY_AND_DATE = merge(9, "12", "s.id = t.id AND s.event_date = t.event_date")
MERGE_BY_DATE_LITERAL = merge(9, "12", "s.id = t.id AND t.event_date = '2026-08-12'")
MERGE_BY_LITERALS = merge(9, "12", "s.id = t.id AND t.id = 9 AND t.event_date = '2026-08-12'")
MERGE_INTO_THE_SAME_FILE, MERGE_INTO_ANOTHER_COUNTRY = merge(10, "12"), merge(13, "12")
MERGE_INTO_ANOTHER_DATE = merge(1, "11")
UPDATE, DELETE = "UPDATE {t} SET note = 'A' WHERE id = 9", "DELETE FROM {t} WHERE id = 9"
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-12', 'DE', 1, 'new')"
INSERT_SELECT = "INSERT INTO {t} SELECT id + 1000, event_date, country, amount, note FROM {t}"
COMPACT, ZORDER = "OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)"


def loses(
    name: str, made: Layout, *claims: str, held: str, winner: str, won: Expected = COMMITS,
    level: str = WRITE_SERIALIZABLE,
) -> Race:
    """``held`` finds files added by the winner where it read."""
    hint = "WITH_PARTITION_HINT" if made.partitioned else "WITHOUT_HINT"
    lost = Expected(word="append", surfaced="ConcurrentAppendException", condition=f"DELTA_CONCURRENT_APPEND.{hint}",
                    sqlstate="2D521", attempts=1)
    return held_against(name, layout=made, held=held, winners=[winner], expect=[lost, won], isolation=level,
                        claims=claims)


def survives(name: str, made: Layout, *claims: str, held: str, winner: str, won: Expected = COMMITS) -> Race:
    """``held`` finds the winner there, checks it, and commits."""
    return held_against(name, layout=made, held=held, winners=[winner], isolation=WRITE_SERIALIZABLE, claims=claims,
                        expect=[Expected(word="commits", attempts=2), won])


def refused(name: str, *claims: str, held: str, by: str) -> Race:
    """Open-source Delta does not run ``held`` at all."""
    return held_against(name, layout=NESTED, held=held, winners=[merge_nested(4, "true")], claims=claims,
                        isolation=WRITE_SERIALIZABLE, expect=[Expected(word="fails", condition=by), COMMITS])


ROWS = (
    loses("two-rows-of-one-file-are-not-told-apart", FLAT_DV, "B-001", "B-016",
          held=MERGE_BY_KEY, winner=MERGE_INTO_THE_SAME_FILE),
    loses("a-merge-into-another-country-ends-a-merge", FLAT_DV,
          "B-002", "B-003", "B-029", "B-030", "B-032", "B-034", "B-036",
          held=MERGE_BY_KEY, winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-merge-into-another-country-ends-a-merge-without-deletion-vectors", FLAT,
          "B-002", "B-004", "B-024", "B-034", "B-046", held=MERGE_BY_KEY, winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-merge-into-another-country-ends-a-merge-on-a-partitioned-table", BY_DATE_DV,
          "B-002", "B-005", "B-006", "B-029", "B-030", "B-037", held=MERGE_BY_KEY, winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-merge-into-another-country-ends-a-merge-on-a-partitioned-table-without-deletion-vectors", BY_DATE, "B-002",
          held=MERGE_BY_KEY, winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-merge-into-another-country-ends-a-merge-on-a-clustered-table", CLUSTERED_DV, "B-020", "B-029",
          held=MERGE_BY_KEY, winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-merge-into-another-country-ends-a-merge-at-serializable", FLAT_DV, "B-048",
          held=MERGE_BY_KEY, winner=MERGE_INTO_ANOTHER_COUNTRY, level=SERIALIZABLE),
    loses("two-merges-of-one-row-get-the-class-of-any-two-merges", FLAT_DV, "B-007", "B-015", "B-016", "B-047",
          held=MERGE_BY_KEY, winner=MERGE_BY_KEY),
    loses("a-region-each-is-not-enough-on-a-table-clustered-by-region", BY_REGION, "B-021",
          held="UPDATE {t} SET note = 'A' WHERE region = 'EU-West'",
          winner="UPDATE {t} SET note = 'B' WHERE region = 'US-East'"),
    loses("a-merge-of-another-row-ends-an-update", FLAT_DV, "B-025", held=UPDATE, winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-merge-of-another-row-ends-a-delete", FLAT_DV, "B-025", held=DELETE, winner=MERGE_INTO_ANOTHER_COUNTRY),
)
WHOLE_TABLE = (
    loses("an-update-without-a-filter-loses-to-a-merge", FLAT_DV, "B-008",
          held="UPDATE {t} SET note = 'A'", winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-delete-without-a-filter-loses-to-a-merge", FLAT_DV, "B-008",
          held="DELETE FROM {t}", winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("a-merge-by-what-is-not-in-its-source-loses-to-a-merge", FLAT_DV, "B-008",
          held="MERGE INTO {t} t USING (SELECT 9L AS id) s ON t.id = s.id "
               "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'gone'", winner=MERGE_INTO_ANOTHER_COUNTRY),
    loses("an-insert-of-all-its-own-rows-loses-to-a-merge", FLAT_DV, "B-008",
          held=INSERT_SELECT, winner=MERGE_INTO_ANOTHER_COUNTRY),
)
PREDICATES = (
    loses("a-condition-on-a-struct-changes-nothing", NESTED, "B-009",
          held=merge_nested(1, "t.place = named_struct('city', 'Bonn', 'zip', 1)"), winner=merge_nested(4, "true")),
    loses("a-condition-on-an-array-changes-nothing", NESTED, "B-010",
          held=merge_nested(1, "t.tags = array('a')"), winner=merge_nested(4, "true")),
    loses("a-condition-on-a-map-changes-nothing", NESTED, "B-011",
          held=merge_nested(1, "t.marks['a'] = 1"), winner=merge_nested(4, "true")),
    refused("a-merge-by-rand-is-refused", "B-012",
            held=merge_nested(1, "rand() < 2"), by="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
    refused("a-merge-by-uuid-is-refused", "B-012",
            held=merge_nested(1, "uuid() <> t.note"), by="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
    refused("a-merge-by-a-correlated-subquery-is-refused", "B-013",
            held=merge_nested(1, "EXISTS (SELECT 1 FROM {other} o WHERE o.id = t.id + 100)"),
            by="DELTA_UNSUPPORTED_SUBQUERY"),
    loses("equal-keys-in-source-and-target-are-no-predicate", BY_DATE_DV, "B-031",
          held=MERGE_BY_KEY, winner=MERGE_INTO_ANOTHER_DATE),
    loses("equal-dates-in-source-and-target-are-no-predicate", BY_DATE_DV, "B-031", "B-038",
          held=MERGE_BY_KEY_AND_DATE, winner=MERGE_INTO_ANOTHER_DATE),
    survives("a-date-as-text-is-a-predicate", BY_DATE_DV, "B-031", "B-039",
             held=MERGE_BY_DATE_LITERAL, winner=MERGE_INTO_ANOTHER_DATE),
    loses("a-date-as-text-does-not-part-writers-of-that-date", BY_DATE_DV, "B-040",
          held=MERGE_BY_DATE_LITERAL, winner=MERGE_INTO_ANOTHER_COUNTRY),
)
OPTIMIZE = (
    loses("zorder-ends-a-merge-by-key", FLAT_DV, "B-017", "B-019", "B-032", "B-043", held=MERGE_BY_KEY, winner=ZORDER),
    loses("zorder-ends-a-merge-by-key-and-date", FLAT_DV, "B-019", held=MERGE_BY_KEY_AND_DATE, winner=ZORDER),
    loses("zorder-ends-a-merge-with-a-date-literal", FLAT_DV, "B-019", held=MERGE_BY_DATE_LITERAL, winner=ZORDER),
    loses("zorder-ends-a-merge-with-literals-down-to-the-row", FLAT_DV, "B-019", held=MERGE_BY_LITERALS, winner=ZORDER),
    loses("zorder-ends-an-update-of-one-row", FLAT_DV, "B-019", held=UPDATE, winner=ZORDER),
    survives("zorder-of-another-date-passes-a-date-literal", BY_DATE_DV, "B-026", held=MERGE_BY_DATE_LITERAL,
             winner="OPTIMIZE {t} WHERE event_date = DATE'2026-08-11' ZORDER BY (id)"),
    loses("compaction-ends-a-merge-with-deletion-vectors-too", FLAT_DV, "B-018", "B-032", "B-044",
          held=MERGE_BY_KEY, winner=COMPACT),
    loses("compaction-ends-a-merge-by-the-append-check", FLAT, "B-045", held=MERGE_BY_KEY, winner=COMPACT),
    loses("compaction-ends-a-merge-on-a-partitioned-table-with-deletion-vectors", BY_DATE_DV, "B-027",
          held=MERGE_BY_KEY, winner=COMPACT),
)
INSERTS = (
    loses("without-the-property-an-update-of-one-row-loses-to-an-insert", FLAT, "B-022", level=SERIALIZABLE,
          held=UPDATE, winner=INSERT, won=Expected(word="commits", blind=True, isolation="Serializable")),
    *(survives(f"an-insert-passes-a-merge-on-{made.name}", made, "B-032", "B-033", "B-041",
               held=MERGE_BY_KEY, winner=INSERT, won=Expected(word="commits", blind=True))
      for made in (FLAT, FLAT_DV, BY_DATE_DV, CLUSTERED_DV)),
    loses("at-serializable-an-insert-of-another-row-ends-a-merge", FLAT_DV, "B-033", "B-042", level=SERIALIZABLE,
          held=MERGE_BY_KEY, winner=INSERT),
    loses("at-serializable-an-insert-of-the-same-key-ends-a-merge", FLAT_DV, "B-042", level=SERIALIZABLE,
          held=MERGE_BY_KEY, winner="INSERT INTO {t} VALUES (9, DATE'2026-08-12', 'DE', 1, 'new')"),
    *(loses(f"an-insert-that-reads-its-table-ends-a-merge-on-{made.name}", made, "B-049",
            held=MERGE_BY_KEY, winner=f"{INSERT_SELECT} WHERE id = 1", won=Expected(word="commits", blind=False))
      for made in (FLAT, FLAT_DV, BY_DATE_DV)),
)
VECTORS_TURNED_ON = tuple(
    survives(f"{name}-outlives-deletion-vectors-being-turned-on", FLAT, "B-028", held=held,
             winner=f"ALTER TABLE {{t}} SET TBLPROPERTIES ({DELETION_VECTORS})")
    for name, held in (("an-insert", INSERT), ("an-update", UPDATE), ("a-delete", DELETE), ("a-merge", MERGE_BY_KEY))
)
RACES = (*ROWS, *WHOLE_TABLE, *PREDICATES, *OPTIMIZE, *INSERTS, *VECTORS_TURNED_ON)


def test_race(case, check, engine, table_factory):
    expected = case.expected["A"]
    if expected.word != "fails":
        check(case)
        return
    # What is refused reaches no commit to be held at, so there is nothing to race.
    alone = engine.run(table_factory(case.layout, case.isolation), "A", case.writer("A").statements[0])
    assert (alone.word, alone.condition) == (expected.word, expected.condition)


@pytest.mark.claim("B-023")
def test_auto_compaction_leaves_fewer_files_by_a_commit_of_its_own(engine, table_factory, setting):
    setting("spark.databricks.delta.autoCompact.minNumFiles", "3")
    # The counts behind early skipping are kept by table id, which the copies of a prepared table share.
    setting("spark.databricks.delta.autoCompact.earlySkipPartitionTable.enabled", "false")
    table = table_factory(AUTO_COMPACT)
    before = len(engine.read_back(table).history)
    assert engine.run(table, "A", statement(INSERT)).word == "commits"
    newest, older, *_ = engine.read_back(table).history
    assert (newest.operation, older.operation) == ("OPTIMIZE", "WRITE")
    assert len(engine.read_back(table).history) == before + 2
    actions = list(deltalog.actions(table.path, newest.version))
    assert sum("remove" in action for action in actions) > sum("add" in action for action in actions) == 1
