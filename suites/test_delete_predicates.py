"""Which partitions has a DELETE read? Its predicate says so as a literal; a subquery must be written as a MERGE."""

from __future__ import annotations

import pytest

from lakerace.layouts import layout
from lakerace.race import Expected, held_against, statement

VERSIONS = ">=4.0"
BY_DATE = layout("by-date")
COMMITS = Expected(word="commits")
APPEND = Expected(word="append", surfaced="ConcurrentAppendException",
                  condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")
INSERT_11 = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_12 = INSERT_11.replace("08-11", "08-12")
ONE_DATE = "SELECT event_date FROM {other} WHERE id = 102"
DELETES = {
    "a-literal": "DELETE FROM {t} WHERE event_date = DATE'2026-08-12'",
    "an-in-list": "DELETE FROM {t} WHERE event_date IN (DATE'2026-08-12', DATE'2026-08-13')",
    "a-range": "DELETE FROM {t} WHERE event_date BETWEEN DATE'2026-08-12' AND DATE'2026-08-13'",
    "a-literal-and-a-key": "DELETE FROM {t} WHERE event_date = DATE'2026-08-12' AND id = 9",
}
MERGE = f"MERGE INTO {{t}} t USING ({ONE_DATE}) s ON t.event_date = s.event_date WHEN MATCHED THEN DELETE"

RACES = (
    *(held_against(f"a-delete-by-{name}-passes-an-insert-elsewhere", layout=BY_DATE, held=sql, winners=[INSERT_11],
                   expect=[COMMITS, COMMITS], reports=("I6",)) for name, sql in DELETES.items()),
    *(held_against(f"a-delete-by-{name}-loses-to-an-insert-there", layout=BY_DATE, held=sql, winners=[INSERT_12],
                   expect=[APPEND, COMMITS], reports=("I6",)) for name, sql in DELETES.items()),
    *(held_against(f"an-insert-there-passes-a-delete-by-{name}", layout=BY_DATE, held=INSERT_12, winners=[sql],
                   expect=[COMMITS, COMMITS], reports=("I6",)) for name, sql in DELETES.items()),
    held_against("a-delete-by-the-dates-of-a-source-loses-to-an-insert-elsewhere", layout=BY_DATE, held=MERGE,
                 winners=[INSERT_11], expect=[APPEND, COMMITS], reports=("I6",)),
    held_against("a-delete-by-the-dates-of-a-source-and-a-literal-passes-it", layout=BY_DATE,
                 held=MERGE.replace("ON ", "ON t.event_date = DATE'2026-08-12' AND "), winners=[INSERT_11],
                 expect=[COMMITS, COMMITS], reports=("I6",)),
)


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("I6")
@pytest.mark.parametrize("predicate", [f"event_date IN ({ONE_DATE})", f"EXISTS ({ONE_DATE})"], ids=["in", "exists"])
def test_a_delete_by_a_subquery_is_refused(engine, table_factory, predicate):
    """DELETE takes no subquery at all, so the guess about what it reads has nothing to apply to."""
    outcome = engine.run(table_factory("by-date"), "A", statement(f"DELETE FROM {{t}} WHERE {predicate}"))
    assert (outcome.word, outcome.condition) == ("fails", "DELTA_UNSUPPORTED_SUBQUERY")
