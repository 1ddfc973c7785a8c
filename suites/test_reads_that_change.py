"""What if a predicate answers otherwise at the commit? Functions and random values, with Delta's widening and without.

At the commit Delta evaluates the partition predicates of the loser again, on the winner's files. What may answer
otherwise then is *widened*: taken for true, together with every function that can't be looked into, pure or not. That
costs pure functions their partition. A function that is the whole condition escapes it (a bug): an impure one then
misses what came in between, as every one does without the widening.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakerace.engines.session import session_with
from lakerace.layouts import layout
from lakerace.outcomes import BLIND, COMMITS, LOSES_P
from lakerace.race import Function, Race, held_against, statement
from lakerace.rules.refusals import MERGE_NOT_DETERMINISTIC, NOT_DETERMINISTIC
from lakerace.rules.settings import WIDENING

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
BY_DATE = layout("by-date")
KNOWN = {"reports": ("A9",), "link": "https://github.com/delta-io/delta/pull/2553"}

CONDITION = Function(name="opened", parameters="day DATE", returns="BOOLEAN", computes="day = DATE'2026-08-11'")
VALUE = Function(name="number_of", parameters="day DATE", returns="INT", computes="day(day)")
CALLED = {"condition": "opened(event_date)", "value": "number_of(event_date) = 11"}
FUNCTIONS = {
    "sql": {"condition": CONDITION, "value": VALUE},
    "python": {"condition": replace(CONDITION, code=lambda day: str(day) == "2026-08-11"),
               "value": replace(VALUE, code=lambda day: day.day)},
    "java": {"condition": replace(CONDITION, code="""
                 public Object call(Object day) { return Boolean.valueOf("2026-08-11".equals("" + day)); }"""),
             "value": replace(VALUE, code="""
                 public Object call(Object day) { return Integer.valueOf(("" + day).substring(8)); }""")},
}
"""Two pure functions of the day in three languages: one that is the whole condition, one whose value is compared."""

STALE = Function(
    name="stale", parameters="day DATE, refresh BOOLEAN", returns="BOOLEAN", computes="true",
    code="""
    public Object call(Object day, Object refresh) {
        String key = getClass().getName() + day;
        if (Boolean.TRUE.equals(refresh)) System.setProperty(key, "fresh");
        return Boolean.valueOf(System.getProperty(key) == null);
    }""",
)
"""Impure: every day is stale until somebody refreshes it; ``computes`` is what it says at first."""

HELD = {
    "delete": "DELETE FROM {{t}} WHERE {} AND id < 3",
    "update": "UPDATE {{t}} SET note = 'updated' WHERE {}",
    "merge": "MERGE INTO {{t}} t USING (SELECT 1L AS key) s ON t.id = s.key AND {} WHEN MATCHED THEN DELETE",
    "insert-select": "INSERT INTO {{t}} SELECT id + 1000, event_date, country, amount, note FROM {{t}} WHERE {}",
}
REFUSED = {"delete": NOT_DETERMINISTIC, "update": NOT_DETERMINISTIC, "merge": MERGE_NOT_DETERMINISTIC}
SETTINGS = {"widened": (), "unwidened": ((WIDENING, "off"),), "unwidened-but-logged": ((WIDENING, "logging"),)}


def insert(date: str) -> str:
    return f"INSERT INTO {{t}} VALUES (99, DATE'{date}', 'FR', 1, 'new')"


def of(name: str, held: str, predicate: str, survives: bool, *, mode: str = "widened", date: str = "2026-08-12",
       **more: object) -> Race:
    """A statement with that predicate against an INSERT, which is into the other partition unless it says otherwise."""
    return held_against(name, layout=BY_DATE, held=HELD[held].format(predicate), winners=[insert(date)],
                        expect=[COMMITS if survives else LOSES_P, BLIND], settings=SETTINGS[mode], **KNOWN, **more)


ESCAPES = "a function that is the whole condition is not widened: its arguments are searched for functions, it is not"


def calls(language: str, form: str, held: str, mode: str, there: bool) -> Race:
    survives = not there and (language == "sql" or form == "condition" or mode != "widened")
    return of(
        f"{held}-by-a-{language}-{form}-{mode}-{'survives' if survives else 'loses-to'}-an-insert-"
        f"{'there' if there else 'elsewhere'}",
        held, CALLED[form], survives, mode=mode, functions=(FUNCTIONS[language][form],),
        date="2026-08-11" if there else "2026-08-12",
        why="" if language == "sql" or mode != "widened" or there
        else ESCAPES if survives else "a pure function costs its partition too: every one is widened",
    )


CALLS = {
    (language, form, held, mode, there): calls(language, form, held, mode, there)
    for language, verbs in {"sql": ("insert-select",), "python": ("delete", "insert-select"), "java": HELD}.items()
    for held in verbs for form in CALLED for mode in SETTINGS for there in (False, True)
}
TODAY = "date_add(current_date(), datediff(DATE'2026-08-11', current_date()))"
RANDOM_DAY = "date_add(DATE'2026-08-11', CAST(floor(rand()) AS INT))"
UUID_DAY = "if(length(uuid()) = 36, DATE'2026-08-11', DATE'2026-08-12')"
NUMBER_OF = (FUNCTIONS["java"]["value"],)
FORMS = (
    of("delete-by-a-function-beside-a-literal-survives-an-insert-elsewhere", "delete",
       "event_date = DATE'2026-08-11' AND number_of(event_date) = 11", True, functions=NUMBER_OF),
    of("delete-by-a-function-or-a-literal-loses-to-an-insert-elsewhere", "delete",
       "(event_date = DATE'2026-08-11' OR number_of(event_date) = 11)", False, functions=NUMBER_OF),
    of("delete-by-literals-with-a-function-each-survives-an-insert-elsewhere", "delete",
       "((event_date = DATE'2026-08-11' AND number_of(event_date) = 11) OR "
       "(event_date = DATE'2026-08-13' AND number_of(event_date) = 13))", True, functions=NUMBER_OF),
    of("insert-select-by-a-literal-and-chance-survives-an-insert-elsewhere", "insert-select",
       "event_date = DATE'2026-08-11' AND length(uuid()) = 36", True),
    of("insert-select-by-a-literal-or-chance-loses-to-an-insert-elsewhere", "insert-select",
       "(event_date = DATE'2026-08-11' OR length(uuid()) = 1)", False),
    *(of(f"insert-select-of-a-{what}-day-{mode}-{'loses-to' if mode == 'widened' else 'survives'}-an-insert-elsewhere",
         "insert-select", f"event_date = {day}", mode != "widened", mode=mode)
      for what, day in {"random": RANDOM_DAY, "uuid": UUID_DAY}.items() for mode in ("widened", "unwidened")),
    *(of(f"{held}-by-{what}-{'survives' if survives else 'loses-to'}-an-insert-of-{when}", held, predicate, survives,
         date=date)
      for held in HELD
      for what, predicate, when, date, survives in (
          ("the-current-date", "event_date < current_date()", "the-past", "1999-01-01", False),
          ("the-current-date", "event_date < current_date()", "the-future", "2999-01-01", True),
          ("the-current-time", "event_date < current_timestamp()", "the-future", "2999-01-01", True),
          ("a-day-counted-from-today", f"event_date = {TODAY}", "another-day", "2026-08-12", True),
      )),
)
ADDS_AND_REFRESHES = (
    "INSERT INTO {t} SELECT 99L, DATE'2026-08-12', 'FR', 1, "
    "concat('new', substr(CAST(stale(DATE'2026-08-12', true) AS STRING), 9))")
STALE_READS = {"condition": "stale(event_date, false)", "value": "CAST(stale(event_date, false) AS STRING) = 'true'"}


def refreshed(form: str, mode: str) -> Race:
    """Everything stale is deleted, and meanwhile a row comes to a day that is refreshed."""
    widened = form == "value" and mode == "widened"
    return held_against(
        f"delete-by-an-impure-{form}-{mode}-{'loses-to' if widened else 'misses'}-the-row-that-changes-its-answer",
        layout=BY_DATE, held=f"DELETE FROM {{t}} WHERE {STALE_READS[form]}", winners=[ADDS_AND_REFRESHES],
        functions=(STALE,), expect=[LOSES_P if widened else COMMITS, BLIND], settings=SETTINGS[mode], **KNOWN,
        leaves=(("id = 99", 1), ("note = 'base'", 16 if widened else 0)),
        why="" if widened else "asked again at the commit it says no, so the row that the DELETE did not see stays; "
                               "INSERT then DELETE, the order of the history, would have deleted it",
    )


CONTROLS = tuple(
    held_against(f"insert-passes-a-delete-by-a-{language}-{form}-{mode}", layout=BY_DATE, held=insert("2026-08-11"),
                 winners=[HELD["delete"].format(CALLED[form])], functions=(FUNCTIONS[language][form],),
                 expect=[BLIND, COMMITS], settings=SETTINGS[mode], **KNOWN)
    for language in ("java", "python") for form in CALLED for mode in SETTINGS
)
REFRESHED = {(form, mode): refreshed(form, mode) for form in STALE_READS for mode in SETTINGS}
IN_CORE = (("java", "value", "delete", "widened", False), ("java", "value", "delete", "unwidened", False),
           ("java", "condition", "delete", "widened", False), ("python", "value", "delete", "widened", False),
           ("python", "condition", "delete", "widened", False), ("sql", "condition", "insert-select", "widened", False))


def races(line: Line, profile: str) -> tuple[Race, ...]:
    if profile == "full":
        return (*CALLS.values(), *FORMS, *CONTROLS, *REFRESHED.values())
    return (*(CALLS[key] for key in IN_CORE), *FORMS[5:7],
            *(REFRESHED[key] for key in (("condition", "widened"), ("value", "widened"), ("value", "unwidened"))))


def test_race(case, check):
    check(case, rules=True)


def refused(engine, table, held, condition):
    seen = engine.run(table, "A", statement(HELD[held].format(condition)))
    return seen.word, seen.condition


@pytest.mark.report("A9")
@pytest.mark.parametrize("held", REFUSED)
@pytest.mark.parametrize("chance", [f"event_date = {RANDOM_DAY}", "length(uuid()) = 36"])
def test_chance_is_refused_where_rows_are_chosen_to_be_changed(engine, table_factory, held, chance):
    """DELETE, UPDATE and MERGE refuse random values in their condition, so only a query can read by chance."""
    assert refused(engine, table_factory("by-date"), held, chance) == ("fails", REFUSED[held])


@pytest.mark.report("A9")
@pytest.mark.parametrize("held", REFUSED)
def test_sql_functions_are_refused_where_rows_are_chosen_to_be_changed(engine, delta, table_factory, held):
    """DELETE, UPDATE and MERGE refuse SQL functions in their condition, which a query turns into what they compute."""
    with session_with(delta, (), (CONDITION,), Path()):
        found = refused(engine, table_factory("by-date"), held, CALLED["condition"])
    assert found == ("fails", "UNSUPPORTED_SQL_UDF_USAGE")
