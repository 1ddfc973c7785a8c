"""Where a verdict hangs on a function that the rules do not compute, they say so; where it does not, they are sure."""

from __future__ import annotations

import pytest

from lakerace.layouts import LAYOUTS
from lakerace.race import held_against
from lakerace.rules.predict import predict
from lakerace.rules.profiles import PROFILES
from lakerace.rules.statements import NotModelled

OPEN = "hash(event_date) = hash(DATE'2026-08-11')"
ON_11, ON_12 = "event_date = DATE'2026-08-11'", "event_date = DATE'2026-08-12'"


def update(condition: str) -> str:
    return f"UPDATE {{t}} SET note = 'u' WHERE {condition}"


def merge(condition: str) -> str:
    return f"MERGE INTO {{t}} t USING range(1, 10) s ON t.id = s.id AND {condition} WHEN MATCHED THEN DELETE"


def insert(*days: str) -> str:
    return "INSERT INTO {t} VALUES " + ", ".join(f"(99, DATE'2026-08-{day}', 'FR', 1, 'new')" for day in days)


def word(layout: str, held: str, winner: str) -> str:
    asked = held_against("r", layout=LAYOUTS[layout], held=held, winners=[winner])
    return predict(asked, PROFILES["delta-4.4"]).of("A").word


@pytest.mark.parametrize(("held", "winner", "doubt"), [
    (update(OPEN), insert("12"), "HASH"),
    (merge(OPEN), insert("12"), "HASH"),
    (update(ON_11), update(OPEN), "HASH"),
    (update(ON_11), merge(OPEN), "HASH"),
    (update(ON_11), f"DELETE FROM {{t}} WHERE {OPEN} AND id < 99", "HASH"),
    (f"INSERT INTO {{t}} SELECT * FROM {{t}} WHERE {OPEN}", f"DELETE FROM {{t}} WHERE {ON_12}", "HASH"),
    (update("event_date < current_date()"), insert("12"), "CURRENT_DATE"),
    (update(f"{ON_11} AND {OPEN}"), insert("12", "11"), "HASH"),
])
def test_a_verdict_that_hangs_on_such_a_function_is_not_given(held: str, winner: str, doubt: str) -> None:
    with pytest.raises(NotModelled, match=rf"A conflicts with B or not, as .*{doubt}.* is true or not, which they do"):
        word("by-date", held, winner)


@pytest.mark.parametrize(("layout", "held", "winner", "expected"), [
    ("flat", update(OPEN), insert("12"), "append"),
    ("by-date", update(OPEN), "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", "metadata"),
    ("by-date", insert("11"), update(OPEN), "commits"),
    ("by-date", update(f"{ON_11} AND {OPEN}"), insert("12"), "commits"),
    ("by-date", update(f"{ON_11} AND hash(id) = 1"), insert("11"), "append"),
    ("by-date", update("id = 1"), update(OPEN), "append"),
    ("by-date", update(ON_11), update(f"{ON_12} AND {OPEN}"), "commits"),
    ("by-date", update(ON_11), update(f"{ON_11} AND hash(id) = 1"), "append"),
    ("by-date", update("my_own(event_date) = 11"), insert("12"), "append"),
])
def test_a_verdict_that_does_not_is(layout: str, held: str, winner: str, expected: str) -> None:
    """A function that Spark doesn't know is the user's, and widened."""
    assert word(layout, held, winner) == expected
