"""Settings of a session and a user's functions: what the rules make of them, and that they hold during a race only."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.engines import EngineError
from lakerace.engines.lines import line
from lakerace.engines.session import session_with
from lakerace.layouts import LAYOUTS, layout_from_statements
from lakerace.race import Function, Race, RaceError, held_against
from lakerace.rules.findings import predicted
from lakerace.rules.predicates import counted
from lakerace.rules.predict import predict
from lakerace.rules.profiles import PROFILES
from lakerace.rules.settings import ATTEMPTS_ALLOWED, OVERWRITE_MODE, RETENTION, WIDENING
from lakerace.rules.statements import NotModelled
from lakerace.run import run_race

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SQL = Function(name="opened", parameters="day DATE", returns="BOOLEAN", computes="day = DATE'2026-08-11'")
OPAQUE = replace(SQL, code=lambda _day: True)
DAY = "event_date = DATE'2026-08-11'"


def race(held: str, date: str = "12", **more: Any) -> Race:
    return held_against("r", layout=LAYOUTS["by-date"], held=held,
                        winners=[f"INSERT INTO {{t}} VALUES (99, DATE'2026-08-{date}', 'FR', 1, 'new')"], **more)


def word(asked: Race) -> str:
    return predict(asked, PROFILES["delta-4.4"]).of("A").word


@pytest.mark.parametrize(("condition", "function", "widening", "expected"), [
    ("opened(event_date)", SQL, "on", "commits"),
    ("opened(event_date)", OPAQUE, "on", "append"),
    ("opened(event_date)", OPAQUE, "OFF", "commits"),
    ("opened(event_date)", OPAQUE, "logging", "commits"),
    (f"{DAY} AND opened(event_date)", OPAQUE, "on", "commits"),
    (f"({DAY} OR opened(event_date))", OPAQUE, "on", "append"),
    (f"(({DAY} AND opened(event_date)) OR {DAY})", OPAQUE, "on", "commits"),
    ("NOT (event_date <> DATE'2026-08-11' AND opened(event_date))", OPAQUE, "on", "append"),
    ("unheard(event_date)", SQL, "on", "append"),
])
def test_a_function_that_cannot_be_looked_into_reads_every_partition(
    condition: str, function: Function, widening: str, expected: str
) -> None:
    asked = race(f"DELETE FROM {{t}} WHERE {condition}", functions=(function,), settings=((WIDENING, widening),))
    assert word(asked) == expected


@pytest.mark.parametrize(("held", "allowed", "expected"), [
    ("UPDATE {t} SET note = 'a'", "1", ("append", "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")),
    ("UPDATE {t} SET note = 'a'", "0", ("attempts", "DELTA_MAX_COMMIT_RETRIES_EXCEEDED")),
    ("INSERT INTO {t} SELECT * FROM {other}", "0", ("attempts", "DELTA_MAX_COMMIT_RETRIES_EXCEEDED")),
    ("INSERT INTO {t} SELECT * FROM {other}", "1", ("commits", None)),
    ("RESTORE TABLE {t} TO VERSION AS OF 1", "0", ("write", "DELTA_CONCURRENT_WRITE")),
])
def test_without_a_second_attempt_every_winner_ends_a_writer(
    held: str, allowed: str, expected: tuple[str, str | None]
) -> None:
    """RESTORE makes no second attempt as it is (measured)."""
    outlook = predict(race(held, settings=((ATTEMPTS_ALLOWED, allowed),)), PROFILES["delta-4.4"])
    found = outlook.of("A").prediction
    assert (found.word, found.condition) == expected
    assert outlook.of("B").word == "commits"


@pytest.mark.parametrize(("settings", "expected"), [((), "append"), (((OVERWRITE_MODE, "DYNAMIC"),), "commits")])
def test_a_dynamic_overwrite_reads_the_partitions_that_it_writes(
    settings: tuple[tuple[str, str], ...], expected: str
) -> None:
    held = "INSERT OVERWRITE {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
    assert word(race(held, settings=settings)) == expected
    assert word(race(held, "11", settings=settings)) == "append"


@pytest.mark.parametrize(("checks", "expected"), [("true", "fails"), ("false", "commits")])
def test_a_vacuum_without_retention_is_refused_unless_the_session_allows_it(checks: str, expected: str) -> None:
    asked = held_against("r", layout=LAYOUTS["flat"], held="DELETE FROM {t} WHERE id = 1",
                         winners=["VACUUM {t} LITE RETAIN 0 HOURS"], settings=((RETENTION, checks),))
    assert predict(asked, PROFILES["delta-4.4"]).of("B").word == expected


@pytest.mark.parametrize(("held", "winner", "expected"), [
    ("INSERT INTO {t} (note) VALUES ('a')", "INSERT INTO {t} (note) VALUES ('b')", "metadata"),
    ("INSERT INTO {t} VALUES (7, 'a')", "INSERT INTO {t} (note) VALUES ('b')", "commits"),
    ("INSERT INTO {t} (note) VALUES ('a')", "INSERT INTO {t} VALUES (7, 'b')", "commits"),
    ("MERGE INTO {t} t USING (SELECT 'a' AS n) s ON t.note = s.n WHEN NOT MATCHED THEN INSERT (note) VALUES (s.n)",
     "INSERT INTO {t} (note) VALUES ('b')", "metadata"),
])
def test_who_takes_numbers_of_an_identity_column_loses_to_who_took_some(held: str, winner: str, expected: str) -> None:
    numbered = layout_from_statements("numbered", (
        "CREATE TABLE {t} (id BIGINT GENERATED BY DEFAULT AS IDENTITY, note STRING) USING delta",))
    assert word(held_against("r", layout=numbered, held=held, winners=[winner])) == expected


class FakeConf:
    """Spark's session settings; one of them can't be changed."""

    def __init__(self) -> None:
        self.getAll = {"known": "before"}

    def set(self, key: str, value: str) -> None:
        if key == "static":
            raise ValueError("[CANNOT_MODIFY_STATIC_CONFIG] static\nmore")
        self.getAll[key] = value

    def unset(self, key: str) -> None:
        del self.getAll[key]


class FakeSpark:
    def __init__(self) -> None:
        self.conf, self.said, self.udf = FakeConf(), [], self

    def sql(self, text: str) -> None:
        self.said.append(text)

    def register(self, name: str, _code: object, returns: str) -> None:
        self.said.append(f"register {name} {returns}")


def test_settings_and_functions_are_gone_after_the_race(tmp_path: Path) -> None:
    spark = FakeSpark()
    with session_with(spark, [("known", "now"), ("new", "1")], [SQL, replace(OPAQUE, name="closed")], tmp_path):
        assert spark.conf.getAll == {"known": "now", "new": "1"}
    assert spark.conf.getAll == {"known": "before"}
    assert spark.said == [
        "CREATE TEMPORARY FUNCTION opened(day DATE) RETURNS BOOLEAN RETURN day = DATE'2026-08-11'",
        "register closed BOOLEAN",
        "DROP TEMPORARY FUNCTION IF EXISTS closed",
        "DROP TEMPORARY FUNCTION IF EXISTS opened",
    ]


def test_a_setting_that_cannot_be_set_is_an_error_and_leaves_none_behind(tmp_path: Path) -> None:
    spark = FakeSpark()
    with pytest.raises(EngineError, match=r"setting static: \[CANNOT_MODIFY_STATIC_CONFIG\] static$"), session_with(
        spark, [("new", "1"), ("static", "1")], [], tmp_path
    ):
        pass
    assert spark.conf.getAll == {"known": "before"}


class Lender:
    """An engine that notes when it lent its session, and whose statements can't be run."""

    driver, versions = "none", {}

    def __init__(self) -> None:
        self.line, self.noted = line("delta-4.4"), []

    def make(self, _layout: object, _isolation: str) -> None:
        self.noted.append("make")

    @contextmanager
    def lending(self, asked: Race) -> Iterator[None]:
        self.noted.append(dict(asked.settings))
        raise EngineError("no such setting")
        yield

    def drop(self, _table: object) -> None:
        self.noted.append("drop")


def test_a_table_is_made_before_the_session_is_lent() -> None:
    lender = Lender()
    seen = run_race(race("DELETE FROM {t}", settings=(("a", "1"),)), lender)
    assert lender.noted == ["make", {"a": "1"}, "drop"]
    assert seen.error == "no such setting"


@pytest.mark.parametrize(("date", "expected"), [("1999-01-01", "append"), ("2999-01-01", "commits")])
def test_beside_an_engine_the_rules_know_what_day_it_is(date: str, expected: str) -> None:
    asked = held_against("r", layout=LAYOUTS["by-date"], held="DELETE FROM {t} WHERE event_date < current_date()",
                         winners=[f"INSERT INTO {{t}} VALUES (99, DATE'{date}', 'FR', 1, 'new')"])
    assert predicted(asked, line("delta-4.4"))["A"].word == expected
    with pytest.raises(NotModelled, match="as event_date < CURRENT_DATE is true or not"):
        predict(asked, PROFILES["delta-4.4"])


def test_a_function_is_shown_as_what_it_is() -> None:
    assert str(replace(SQL, code="public ...")) == (
        "opened(day DATE) RETURNS BOOLEAN in Java: day = DATE'2026-08-11'"
    )


def test_rows_are_counted_by_a_condition() -> None:
    rows = ((1, "a"), (1, None), (2, "b"))
    assert [counted(("Id", "note"), rows, text) for text in ("id = 1", "note IS NULL", "id > 2")] == [2, 1, 0]
    with pytest.raises(RaceError, match="'id =' is no SQL condition"):
        counted(("id",), (), "id =")
