"""Who tries again, and how often? The engine's own commit attempts, and a caller that runs the statement again.

Delta's own attempts are limited by ``spark.databricks.delta.maxCommitAttempts`` (``DeltaSQLConf`` of 4.0.1 and 4.4.0);
``...commit.maxCommitAttempts``, as it is often written, is a name that nothing reads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.conflicts import USED_UP, USED_UP_CONDITION
from lakerace.layouts import BASE_VERSION, layout
from lakerace.outcomes import COMMITS, LOSES
from lakerace.race import Expected, Race, held_against, statement
from lakerace.retry import Attempt, Retry, attempts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakerace.engines.lines import Line

ENGINES, VERSIONS = ("delta-spark",), ">=4.0"
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_SELF = "INSERT INTO {t} SELECT id + 200, event_date, country, amount, note FROM {t} WHERE id = 1"
MERGE = ("MERGE INTO {t} t USING (SELECT 1L AS id, 7 AS amount) s ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount")
RIGHT_NAME, OTHER_NAME = "spark.databricks.delta.maxCommitAttempts", "spark.databricks.delta.commit.maxCommitAttempts"


RESTORE = "RESTORE TABLE {t} TO VERSION AS OF 3"
SET_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night shift')"
GIVES_UP = Expected(word="attempts", surfaced="Py4JJavaError", root=USED_UP, condition=USED_UP_CONDITION,
                    sqlstate="40000", attempts=1)
LOSES_AT_ONCE = replace(LOSES, attempts=1)
AGAIN = Expected(word="commits", attempts=2)
SILENT = ("no exception of the conflict ever comes, nor a class of Python's own: what comes is the same for a writer "
          "that conflicts with nobody and for one that does")


def allowed(attempts: str, name: str, held: str, winners: int, expected: Expected, why: str = "") -> Race:
    """``held`` against so many plain appends, or of itself where it conflicts with itself."""
    winner = MERGE if held == MERGE else INSERT
    return held_against(name, layout=layout("flat"), held=held, winners=[winner] * winners, reports=("I8",),
                            expect=[expected, *[COMMITS] * winners], settings=((RIGHT_NAME, attempts),), why=why)


GIVING_UP = tuple(
    allowed("0", f"without-a-second-attempt-{what}-ends-after-{count}", held, winners, GIVES_UP, SILENT)
    for what, held in {"an-append": INSERT, "a-merge": MERGE, "optimize": "OPTIMIZE {t}",
                       "a-property": SET_PROPERTY}.items()
    for count, winners in {"one-commit": 1, "two-commits": 2}.items()
)
RACES = (
    *GIVING_UP,
    allowed("0", "without-a-second-attempt-restore-loses-by-its-own-class", RESTORE, 1, Expected(word="write"),
            "RESTORE makes one attempt whatever is allowed"),
    *(allowed(number, f"with-{more}-an-append-passes-{count}", INSERT, winners, AGAIN,
              "however many commits came in between, they are checked in one go")
      for number, more in {"1": "one-more-attempt", "2": "two-more-attempts"}.items()
      for count, winners in {"one": 1, "two": 2, "three": 3}.items()),
    *(allowed(number, f"with-{more}-a-merge-loses-all-the-same", MERGE, 1, LOSES_AT_ONCE)
      for number, more in {"1": "one-more-attempt", "2": "two-more-attempts"}.items()),
)
IN_CORE = ("without-a-second-attempt-an-append-ends-after-one-commit",
           "without-a-second-attempt-a-merge-ends-after-one-commit", "with-one-more-attempt-an-append-passes-two")


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    return RACES if profile == "full" else tuple(race for race in RACES if race.name in IN_CORE)


def test_race(case, check) -> None:
    check(case, rules=True)


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_the_other_name_is_taken_and_does_nothing(engine, table_factory, setting, given: str) -> None:
    setting(OTHER_NAME, given)
    outcome = outcome_of(engine, table_factory("flat"), INSERT, [INSERT])
    assert (outcome.word, outcome.attempts) == ("commits", 2)


@pytest.mark.parametrize("given", ["-1", "many"])
def test_the_right_name_refuses_what_is_no_number_of_attempts(delta, given: str) -> None:
    from pyspark.errors import IllegalArgumentException

    with pytest.raises(IllegalArgumentException, match="maxCommitAttempts"):
        delta.conf.set(RIGHT_NAME, given)


def test_attempts_without_a_conflict_have_a_setting_of_their_own(delta, engine, table_factory, setting) -> None:
    """It is about stores that refuse a write without saying why; a version that is taken counts as a conflict."""
    assert delta.conf.get("spark.databricks.delta.maxNonConflictCommitAttempts") == "10"
    setting("spark.databricks.delta.maxNonConflictCommitAttempts", "0")
    assert outcome_of(engine, table_factory("flat"), INSERT, [INSERT]).word == "commits"


# A statement that its caller runs again, with lakerace.retry, in the thread that is held.


def outcome_of(engine: Any, table: Any, sql: str, winners: list[str]) -> Any:
    held = engine.hold(table, "A", statement(sql))
    for winner in winners:
        assert engine.run(table, "B", statement(winner)).word == "commits"
    return held.release()


@pytest.fixture
def caller(engine, monkeypatch) -> Callable[[Retry], list[Attempt]]:
    """``caller(policy)``: from now on statements of writer A run under it; the attempts that they took."""

    def calling(policy: Retry) -> list[Attempt]:
        plainly, made = engine.send, []

        def retried(table: Any, asked: Any) -> BaseException | None:
            def work() -> None:
                error = plainly(table, asked)
                if error is not None:
                    raise error

            try:
                done = policy.run(work)
            except Exception as error:
                made.extend(attempts_of(error))
                return error
            made.extend(done.attempts * (len(done.attempts) > 1))
            return None

        monkeypatch.setattr(engine, "send", retried)
        return made

    return calling


def test_a_merge_that_lost_is_run_again_and_adds_to_what_the_winner_wrote(engine, table_factory, caller) -> None:
    attempts = caller(Retry(sleep=lambda _: None))
    table = table_factory("flat")
    outcome = outcome_of(engine, table, MERGE, [MERGE])
    assert (outcome.word, outcome.version, [str(one) for one in attempts]) == (
        "commits", BASE_VERSION + 2, ["append", "no conflict"])
    assert next(row[3] for row in engine.rows(table)[1] if row[0] == 1) == 10 + 7 + 7


def test_when_attempts_run_out_the_conflict_itself_surfaces(engine, table_factory, caller) -> None:
    attempts = caller(Retry(attempts=1))
    outcome = outcome_of(engine, table_factory("flat"), MERGE, [MERGE])
    assert (outcome.word, outcome.surfaced) == ("append", "ConcurrentAppendException")
    assert [str(one) for one in attempts] == ["append"]


@pytest.mark.parametrize("sql", [INSERT, MERGE], ids=["harmless", "conflicting"])
def test_used_up_commit_attempts_are_run_again_too(engine, table_factory, caller, setting, sql: str) -> None:
    setting(RIGHT_NAME, "0")
    attempts = caller(Retry(sleep=lambda _: None))
    assert outcome_of(engine, table_factory("flat"), sql, [sql]).word == "commits"
    assert [str(one) for one in attempts] == ["attempts", "no conflict"]


def test_a_harmless_rebase_is_not_seen_by_the_caller(engine, table_factory, caller) -> None:
    attempts = caller(Retry(sleep=lambda _: None))
    outcome = outcome_of(engine, table_factory("flat"), INSERT, [MERGE])
    assert (outcome.word, outcome.attempts, attempts) == ("commits", 2, [])
