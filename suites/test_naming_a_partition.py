"""When does a MERGE keep to its partition? Every way to name one, against an INSERT there and an INSERT elsewhere.

Delta narrows a read by each conjunct on partition columns alone. Whatever the engine can compute from the partition's
value will do, in whatever form; what needs a value of the source, of a row, or of a base column will not, and the MERGE
has read every partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.layouts import layout, layout_from_statements
from lakerace.outcomes import BLIND, COMMITS, LOSES_P
from lakerace.race import Expected, Race, held_against

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
BY_DATE, BY_BOTH = layout("by-date"), layout("by-date-country")

UPSERT = "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *"
UPDATE = "WHEN MATCHED THEN UPDATE SET note = s.note"


def source(key: int = 1, date: str = "11") -> str:
    return f"(SELECT {key}L AS id, DATE'2026-08-{date}' AS event_date, 'DE' AS country, 7 AS amount, 'merged' AS note)"


def merge(named: str, clauses: str = UPSERT, key: int = 1, date: str = "11") -> str:
    return f"MERGE INTO {{t}} t USING {source(key, date)} s ON t.id = s.id AND {named} {clauses}"


def insert(date: str, country: str = "FR") -> str:
    return f"INSERT INTO {{t}} VALUES (99, DATE'2026-08-{date}', '{country}', 1, 'new')"


KEEPS = {
    "a-literal": "t.event_date = DATE'2026-08-11'",
    "a-literal-in-front": "DATE'2026-08-11' = t.event_date",
    "a-text": "t.event_date = '2026-08-11'",
    "a-sum": "t.event_date = DATE'2026-08-10' + INTERVAL 1 DAY",
    "a-function-of-literals": "t.event_date = date_add(DATE'2026-08-10', 1)",
    "a-literal-beside-the-join": "t.event_date = s.event_date AND t.event_date = DATE'2026-08-11'",
    "a-list": "t.event_date IN (DATE'2026-08-11', DATE'2026-08-13')",
    "or": "(t.event_date = DATE'2026-08-11' OR t.event_date = DATE'2026-08-13')",
    "between": "t.event_date BETWEEN DATE'2026-08-11' AND DATE'2026-08-11'",
    "less": "t.event_date < DATE'2026-08-12'",
    "not": "NOT t.event_date = DATE'2026-08-12'",
    "null-safe": "t.event_date <=> DATE'2026-08-11'",
    "like": "t.event_date LIKE '2026-08-11'",
    "a-cast-of-the-column": "CAST(t.event_date AS STRING) = '2026-08-11'",
    "functions-of-the-column": "year(t.event_date) = 2026 AND day(t.event_date) = 11",
    "date-trunc": "date_trunc('DAY', t.event_date) = TIMESTAMP'2026-08-11'",
    "date-format": "CAST(date_format(t.event_date, 'yyyyMMdd') AS INT) = 20260811",
    "coalesce": "coalesce(t.event_date, DATE'1970-01-01') = DATE'2026-08-11'",
    "a-struct": "struct(t.event_date) = struct(DATE'2026-08-11')",
    "a-text-and-its-pattern": "t.event_date = to_date('20260811', 'yyyyMMdd')",
    "months-added": "t.event_date = add_months(DATE'2026-07-11', 1)",
    "extract": "extract(DAY FROM t.event_date) = 11",
    "a-regular-expression": "t.event_date RLIKE '-11$'",
    "a-part-of-its-text": "split(CAST(t.event_date AS STRING), '-')[2] = '11'",
    "an-array": "array_contains(array(DATE'2026-08-11'), t.event_date)",
    "nullif": "isnull(nullif(t.event_date, DATE'2026-08-11'))",
}
DOES_NOT = {
    "the-join": "t.event_date = s.event_date",
    "a-literal-on-the-source": "t.event_date = s.event_date AND s.event_date = DATE'2026-08-11'",
    "or-with-a-data-column": "(t.event_date = DATE'2026-08-11' OR t.country = 'XX')",
    "or-with-the-join": "(t.event_date = DATE'2026-08-11' OR t.event_date = s.event_date)",
    "a-tuple-with-a-data-column": "(t.event_date, t.country) IN ((DATE'2026-08-11', 'DE'))",
}
CLAUSES_KEEP = {
    "the-condition-of-its-only-clause":
        "WHEN MATCHED AND t.event_date = DATE'2026-08-11' THEN UPDATE SET note = s.note",
    "the-conditions-of-both-clauses": "WHEN MATCHED AND t.event_date = DATE'2026-08-11' THEN UPDATE SET note = s.note "
                                      "WHEN MATCHED AND t.event_date = DATE'2026-08-13' THEN DELETE",
}
CLAUSES_DO_NOT = {
    "the-condition-of-one-clause-of-two": "WHEN MATCHED AND t.event_date = DATE'2026-08-11' THEN UPDATE SET "
                                          "note = s.note WHEN MATCHED THEN DELETE",
    "the-condition-of-a-clause-beside-not-matched":
        "WHEN MATCHED AND t.event_date = DATE'2026-08-11' THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *",
}
BY_SOURCE = {
    "not-matched-by-source": f"{UPDATE} WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE",
    "not-matched-by-source-of-that-partition":
        f"{UPDATE} WHEN NOT MATCHED BY SOURCE AND t.event_date = DATE'2026-08-11' AND t.id = 2 THEN DELETE",
}
HELD = {
    **{name: (merge(named), True) for name, named in KEEPS.items()},
    **{name: (merge(named), False) for name, named in DOES_NOT.items()},
    **{name: (merge("true", clauses), True) for name, clauses in CLAUSES_KEEP.items()},
    **{name: (merge("true", clauses), False) for name, clauses in CLAUSES_DO_NOT.items()},
    **{name: (merge("t.event_date = DATE'2026-08-11'", clauses), False) for name, clauses in BY_SOURCE.items()},
}
"""The held MERGE by the way it names its partition, and whether it keeps to it."""

IN_CORE = ("a-literal", "a-literal-beside-the-join", "a-cast-of-the-column", "extract",
           "a-regular-expression", "the-join", "a-literal-on-the-source",
           "not-matched-by-source-of-that-partition")


def against(way: str, where: str) -> Race:
    held, keeps = HELD[way]
    survives = keeps and where == "elsewhere"
    return held_against(
        f"a-merge-that-names-its-partition-by-{way}-{'survives' if survives else 'loses-to'}-an-insert-{where}",
        layout=BY_DATE, held=held, winners=[insert("11" if where == "there" else "12")],
        expect=[COMMITS if survives else LOSES_P, BLIND], reports=("A1",),
    )


WAYS = {(way, where): against(way, where) for way in HELD for where in ("elsewhere", "there")}

BOTH_COLUMNS = {
    "both-by-literals": ("t.event_date = DATE'2026-08-11' AND t.country = 'DE'", {"11-DE"}),
    "both-in-one-tuple": ("(t.event_date, t.country) IN ((DATE'2026-08-11', 'DE'))", {"11-DE"}),
    "both-in-one-text": ("concat(t.country, '-', t.event_date) = 'DE-2026-08-11'", {"11-DE"}),
    "the-date-by-a-literal": ("t.event_date = DATE'2026-08-11' AND t.country = s.country", {"11-DE", "11-FR"}),
    "the-country-by-a-literal": ("t.event_date = s.event_date AND t.country = 'DE'", {"11-DE", "12-DE"}),
}
TWO_COLUMNS = {
    (way, place): held_against(
        f"of-two-columns-{way}-{'loses-to' if place in shares else 'survives'}-an-insert-into-{place}", layout=BY_BOTH,
        held=merge(named), winners=[insert(*place.split("-"))], reports=("A1",),
        expect=[LOSES_P if place in shares else COMMITS, BLIND],
    )
    for way, (named, shares) in BOTH_COLUMNS.items() for place in ("11-DE", "11-FR", "12-DE", "12-FR")
}

SITES = layout_from_statements("sites", (
    "CREATE TABLE {t} (id BIGINT, site STRING, note STRING) USING delta PARTITIONED BY (site)",
    "INSERT INTO {t} VALUES (1, 'berlin', 'base'), (2, NULL, 'base'), (3, 'paris', 'base')",
))
SITE_READS = {
    "is-null": ("t.site IS NULL", 2, {"NULL", "''"}),
    "null-safe-null": ("t.site <=> NULL", 2, {"NULL", "''"}),
    "coalesce": ("coalesce(t.site, 'none') = 'none'", 2, {"NULL", "''"}),
    "is-not-null": ("t.site IS NOT NULL", 1, {"'berlin'", "'paris'"}),
    "equals-null": ("t.site = NULL", 2, set()),
    "another": ("t.site <> 'paris'", 1, {"'berlin'"}),
    "a-literal": ("t.site = 'berlin'", 1, {"'berlin'"}),
}
SITE_NAMES = {"NULL": "null", "''": "an-empty-text", "'berlin'": "berlin", "'paris'": "paris"}
NULLS = {
    (way, site): held_against(
        f"a-merge-on-a-site-that-{way}-{'loses-to' if site in reads else 'survives'}-an-insert-of-{SITE_NAMES[site]}",
        layout=SITES, expect=[LOSES_P if site in reads else COMMITS, BLIND], reports=("A1",),
        held=f"MERGE INTO {{t}} t USING (SELECT {key}L AS id, 'rome' AS site, 'm' AS note) s "
             f"ON t.id = s.id AND {named} {UPSERT}",
        winners=[f"INSERT INTO {{t}} VALUES (9, {site}, 'new')"],
        why="an empty text is written to the partition of NULL, and read back as NULL" if site == "''" else "",
    )
    for way, (named, key, reads) in SITE_READS.items() for site in SITE_NAMES
}

DAYS = layout_from_statements("days", (
    ("CREATE TABLE {t} (id BIGINT, at TIMESTAMP, note STRING, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
     "USING delta PARTITIONED BY (day)"),
    "INSERT INTO {t} (id, at, note) VALUES (1, TIMESTAMP'2026-08-11 10:00:00', 'base')",
    "INSERT INTO {t} (id, at, note) VALUES (2, TIMESTAMP'2026-08-12 10:00:00', 'base')",
))
DAY_READS = {
    "the-generated-column": ("t.day = DATE'2026-08-11'", True),
    "its-base-column": ("t.at >= TIMESTAMP'2026-08-11' AND t.at < TIMESTAMP'2026-08-12'", False),
    "the-generating-expression": ("CAST(t.at AS DATE) = DATE'2026-08-11'", False),
}
DAY_STATEMENTS = {
    "merge": "MERGE INTO {{t}} t USING (SELECT 1L AS id, 'm' AS note) s ON t.id = s.id AND {} " + UPDATE,
    "update": "UPDATE {{t}} t SET note = 'u' WHERE {}",
    "delete": "DELETE FROM {{t}} t WHERE {}",
}
GENERATED = {
    (verb, way, date): held_against(
        f"{verb}-by-{way}-{'survives' if keeps and date == '12' else 'loses-to'}-an-insert-of-the-{date}th",
        layout=DAYS, held=sql.format(named), reports=("A1",),
        winners=[f"INSERT INTO {{t}} (id, at, note) VALUES (9, TIMESTAMP'2026-08-{date} 11:00:00', 'new')"],
        expect=[COMMITS if keeps and date == "12" else LOSES_P, BLIND],
        why="" if keeps else "the filter on the day that a SELECT derives from the base column is not derived here",
    )
    for verb, sql in DAY_STATEMENTS.items() for way, (named, keeps) in DAY_READS.items() for date in ("11", "12")
}

MINE, OTHERS = "t.event_date = DATE'2026-08-11'", "t.event_date = DATE'2026-08-12'"
JOINED = "t.event_date = s.event_date"
UPSERTS = (
    held_against("upserts-of-two-partitions-collide-when-the-join-names-them", layout=BY_DATE, held=merge(JOINED),
                 winners=[merge(JOINED, key=10, date="12")], expect=[LOSES_P, COMMITS],
                 reports=("A1",)),
    held_against("upserts-of-two-partitions-coexist-when-literals-name-them", layout=BY_DATE, held=merge(MINE),
                 winners=[merge(OTHERS, key=10, date="12")], expect=[COMMITS, COMMITS], reports=("A1",)),
    held_against("an-upsert-named-by-a-literal-survives-one-named-by-the-join", layout=BY_DATE, held=merge(MINE),
                 winners=[merge(JOINED, key=10, date="12")], expect=[COMMITS, COMMITS], reports=("A1",),
                 why="only the loser's own predicates count: the winner may name its partition as it likes"),
    held_against("an-upsert-named-by-the-join-loses-to-one-named-by-a-literal", layout=BY_DATE, held=merge(JOINED),
                 winners=[merge(OTHERS, key=10, date="12")], expect=[LOSES_P, COMMITS],
                 reports=("A1",)),
    held_against("upserts-of-two-partitions-collide-with-deletion-vectors-too", layout=layout("by-date-dv"),
                 held=merge(JOINED), winners=[merge(JOINED, key=10, date="12")], expect=[LOSES_P, COMMITS],
                 reports=("A1",)),
)

HOURS = layout_from_statements("hours", (
    "CREATE TABLE {t} (id BIGINT, hour INT, note STRING) USING delta PARTITIONED BY (hour)",
    "INSERT INTO {t} SELECT id, CAST(id AS INT), 'base' FROM range(8)",
))


def backfill(hour: int, named: str) -> str:
    return (f"MERGE INTO {{t}} t USING (SELECT {hour}L AS id, {hour} AS hour, 'again' AS note) s ON t.id = s.id AND "
            f"{named.format(hour=hour)} {UPSERT}")


def eight(name: str, named: str, held: Expected, winners: Expected) -> Race:
    return held_against(name, layout=HOURS, held=backfill(0, named), reports=("A3",),
                        winners=[backfill(hour, named) for hour in range(1, 8)], expect=[held, *[winners] * 7])


BACKFILLS = (
    eight("a-backfill-of-one-hour-loses-to-those-of-seven-others-when-the-join-names-them", "t.hour = s.hour", LOSES_P,
          COMMITS),
    eight("backfills-of-eight-hours-coexist-when-literals-name-them", "t.hour = {hour}", COMMITS, COMMITS),
)


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    if profile == "full":
        return (*WAYS.values(), *TWO_COLUMNS.values(), *NULLS.values(), *GENERATED.values(), *UPSERTS, *BACKFILLS)
    return (
        *(WAYS[way, "elsewhere"] for way in IN_CORE), WAYS["a-literal", "there"],
        TWO_COLUMNS["the-date-by-a-literal", "11-FR"], NULLS["is-null", "''"], *UPSERTS[:3], *BACKFILLS,
        *(race for (verb, way, date), race in GENERATED.items()
          if (verb, date) == ("merge", "12") and way != "the-generating-expression"),
    )


def test_race(case, check):
    check(case, rules=True)
