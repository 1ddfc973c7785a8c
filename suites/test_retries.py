"""Who tries again, and how often? The engine's own commit attempts, and a caller that runs the statement again.

Delta's own attempts are limited by ``spark.databricks.delta.maxCommitAttempts`` (``DeltaSQLConf`` of 4.0.1 and 4.4.0);
``...commit.maxCommitAttempts``, as it is often written, is a name that nothing reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakerace.layouts import BASE_VERSION
from lakerace.race import statement
from lakerace.retry import Attempt, Retry, attempts_of

if TYPE_CHECKING:
    from collections.abc import Callable

ENGINES, VERSIONS = ("delta-spark",), ">=4.0"
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_SELF = "INSERT INTO {t} SELECT id + 200, event_date, country, amount, note FROM {t} WHERE id = 1"
MERGE = ("MERGE INTO {t} t USING (SELECT 1L AS id, 7 AS amount) s ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount")
USED_UP = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"
RIGHT_NAME, OTHER_NAME = "spark.databricks.delta.maxCommitAttempts", "spark.databricks.delta.commit.maxCommitAttempts"


@pytest.mark.parametrize(("allowed", "winners", "attempts"), [
    ("0", 0, 1), ("1", 0, 1), ("1", 1, 2), ("1", 3, 2), ("2", 3, 2),
])
def test_the_setting_counts_attempts_after_the_first(
    engine, table_factory, setting, allowed: str, winners: int, attempts: int
) -> None:
    """However many commits came in between, they are checked in one go: the second attempt gets the next version."""
    setting(RIGHT_NAME, allowed)
    outcome = held_against(engine, table_factory("flat"), INSERT, [INSERT] * winners)
    assert (outcome.word, outcome.attempts, outcome.version) == ("commits", attempts, BASE_VERSION + winners + 1)


@pytest.mark.report("I8")
@pytest.mark.parametrize("sql", [INSERT, MERGE], ids=["harmless", "conflicting"])
def test_with_zero_no_conflict_is_looked_for(engine, table_factory, setting, sql: str) -> None:
    """So the exception of the conflict never comes, and neither `except ConcurrentAppendException` nor a class of
    Python's own catches what does: an IllegalStateException of Delta inside a Py4JJavaError, the same for a writer
    that conflicts with nobody and for one that does."""
    setting(RIGHT_NAME, "0")
    outcome = held_against(engine, table_factory("flat"), sql, [sql])
    assert (outcome.word, outcome.condition, outcome.surfaced) == ("attempts", USED_UP, "Py4JJavaError")


@pytest.mark.parametrize("allowed", ["1", "2", "10000000"])
def test_more_attempts_never_help_a_conflict(engine, table_factory, setting, allowed: str) -> None:
    setting(RIGHT_NAME, allowed)
    outcome = held_against(engine, table_factory("flat"), MERGE, [MERGE])
    assert (outcome.word, outcome.attempts) == ("append", 1)


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_the_other_name_is_taken_and_does_nothing(engine, table_factory, setting, given: str) -> None:
    setting(OTHER_NAME, given)
    outcome = held_against(engine, table_factory("flat"), INSERT, [INSERT])
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
    assert held_against(engine, table_factory("flat"), INSERT, [INSERT]).word == "commits"


# A statement that its caller runs again, with lakerace.retry, in the thread that is held.


def held_against(engine: Any, table: Any, sql: str, winners: list[str]) -> Any:
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
    outcome = held_against(engine, table, MERGE, [MERGE])
    assert (outcome.word, outcome.version, [str(one) for one in attempts]) == (
        "commits", BASE_VERSION + 2, ["append", "no conflict"])
    assert next(row[3] for row in engine.rows(table)[1] if row[0] == 1) == 10 + 7 + 7


def test_when_attempts_run_out_the_conflict_itself_surfaces(engine, table_factory, caller) -> None:
    attempts = caller(Retry(attempts=1))
    outcome = held_against(engine, table_factory("flat"), MERGE, [MERGE])
    assert (outcome.word, outcome.surfaced) == ("append", "ConcurrentAppendException")
    assert [str(one) for one in attempts] == ["append"]


@pytest.mark.parametrize("sql", [INSERT, MERGE], ids=["harmless", "conflicting"])
def test_used_up_commit_attempts_are_run_again_too(engine, table_factory, caller, setting, sql: str) -> None:
    setting(RIGHT_NAME, "0")
    attempts = caller(Retry(sleep=lambda _: None))
    assert held_against(engine, table_factory("flat"), sql, [sql]).word == "commits"
    assert [str(one) for one in attempts] == ["attempts", "no conflict"]


def test_a_harmless_rebase_is_not_seen_by_the_caller(engine, table_factory, caller) -> None:
    attempts = caller(Retry(sleep=lambda _: None))
    outcome = held_against(engine, table_factory("flat"), INSERT, [MERGE])
    assert (outcome.word, outcome.attempts, attempts) == ("commits", 2, [])
