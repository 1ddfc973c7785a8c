"""``lakerace.retry``: what is run again, when it gives up, and what its caller gets to see. Nobody really sleeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from deltalake.exceptions import CommitFailedError

from lakerace.retry import Attempt, Retry, attempts_of

if TYPE_CHECKING:
    from collections.abc import Callable

APPEND = "Failed to commit transaction: 1: a concurrent transaction added new data"
TRANSACTION = "concurrent transaction failed"
SPARK_APPEND = "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected."
SPARK_USED_UP = "[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] This commit has failed as it has been tried 1 times"


class ConcurrentAppendException(Exception):
    """As ``delta.exceptions`` has it: a class of its own module, told by it."""

    __module__ = "delta.exceptions"


class SparkConnectGrpcException(Exception):
    """What Connect raises: condition and SQLSTATE, no Java."""

    def getCondition(self) -> str:  # noqa: N802 - as Spark spells it
        return "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"


def planted(*errors: BaseException | None) -> Callable[[], int]:
    """A callable that raises these one after the other; ``None`` returns the number of the call."""
    left, calls = list(errors), [0]

    def work() -> int:
        calls[0] += 1
        error = left.pop(0)
        if error is not None:
            raise error
        return calls[0]

    return work


class Clock:
    def __init__(self) -> None:
        self.waits: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def policy(**limits: Any) -> Retry:
    return Retry(**{"sleep": Clock(), **limits})


@pytest.mark.parametrize(("conflict", "kind"), [
    (CommitFailedError(APPEND), "append"), (ConcurrentAppendException(SPARK_APPEND), "append"),
    (SparkConnectGrpcException("a conflict"), "append"), (Exception(SPARK_USED_UP), "attempts"),
], ids=["delta-rs", "classic", "connect", "attempts-used-up"])
def test_a_conflict_is_run_again_on_every_engine(conflict: Exception, kind: str) -> None:
    done = policy().run(planted(conflict, conflict, None))
    assert done.value == 3
    assert [str(attempt) for attempt in done.attempts] == [kind, kind, "no conflict"]
    assert [attempt.number for attempt in done.attempts] == [1, 2, 3]


@pytest.mark.parametrize("error", [
    ValueError("a bug"), CommitFailedError(TRANSACTION), OSError("disk full"), KeyboardInterrupt(),
], ids=["bug", "second-stream", "disk", "interrupt"])
def test_what_a_re_run_does_not_cure_passes_at_once(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        policy().run(planted(error, None))
    assert raised.value is error
    assert attempts_of(error) == ()


class GroupError(Exception):
    exceptions = (CommitFailedError(APPEND), ConcurrentAppendException(SPARK_APPEND))


def test_a_group_of_conflicts_is_run_again() -> None:
    assert policy().run(planted(GroupError("2 sub-exceptions"), None)).value == 2


def test_an_interrupt_during_a_conflict_is_no_conflict() -> None:
    def work() -> None:
        try:
            raise CommitFailedError(APPEND)
        except CommitFailedError:
            raise KeyboardInterrupt  # noqa: B904 - as Ctrl-C comes: with the conflict as its context

    with pytest.raises(KeyboardInterrupt):
        policy().run(work)


def test_the_last_conflict_itself_is_raised_with_what_was_tried() -> None:
    errors = [ConcurrentAppendException(f"{SPARK_APPEND} {number}") for number in range(3)]
    with pytest.raises(ConcurrentAppendException) as raised:
        policy(attempts=3).run(planted(*errors))
    assert raised.value is errors[2]
    assert [str(attempt) for attempt in attempts_of(errors[2])] == ["append"] * 3
    assert errors[2].__notes__[0].startswith("lakerace.retry: 3 attempts (append, append, append), ")
    assert attempts_of(errors[2])[-1].wait == 0


def test_another_error_after_a_conflict_says_that_there_was_one() -> None:
    error = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug"):
        policy().run(planted(CommitFailedError(APPEND), error))
    assert error.__notes__[0].startswith("lakerace.retry: 2 attempts (append, no conflict), ")


def test_waits_are_drawn_below_a_bound_that_doubles() -> None:
    clock = Clock()
    with pytest.raises(CommitFailedError):
        policy(attempts=8, first_wait=1, longest_wait=20, sleep=clock).run(planted(*[CommitFailedError(APPEND)] * 8))
    bounds = [1, 2, 4, 8, 16, 20, 20]
    assert all(0 <= wait <= bound for wait, bound in zip(clock.waits, bounds, strict=True))
    assert len(set(clock.waits)) == 7, "waits that are equal meet again"


def test_no_attempt_starts_after_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each drawn wait is its bound, 1, 2, 4, ...: the third would end after 7 s."""
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    clock, time = Clock(), [0.0]

    def sleep(seconds: float) -> None:
        clock(seconds)
        time[0] += seconds

    monkeypatch.setattr("time.monotonic", lambda: time[0])
    with pytest.raises(CommitFailedError):
        policy(attempts=99, seconds=7, sleep=sleep).run(planted(*[CommitFailedError(APPEND)] * 99))
    assert clock.waits == [1, 2]


def test_a_decorated_function_keeps_arguments_and_name() -> None:
    work = planted(CommitFailedError(APPEND), None)

    @policy()
    def upsert(day: str, *, rows: int) -> tuple[str, int, int]:
        return day, rows, work()

    assert upsert("monday", rows=3) == ("monday", 3, 2)
    assert upsert.__name__ == "upsert"


async def _coroutine() -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize(("work", "said"), [
    ([1, 2], "list is a result, and to send it again could lose an update"),
    (11, "int is a result"),
    (_coroutine, "_coroutine does nothing when it is called"),
], ids=["rows", "value", "coroutine"])
def test_what_is_nothing_to_run_is_refused(work: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        policy().run(work)
    with pytest.raises(TypeError, match=said):
        policy()(work)


@pytest.mark.parametrize(("limits", "said"), [
    ({"attempts": 0}, "attempts=0: at least one"), ({"seconds": 0}, "seconds=0: must be more than 0"),
    ({"seconds": float("nan")}, "seconds=nan"), ({"first_wait": -1}, "first_wait=-1"),
    ({"first_wait": 9, "longest_wait": 3}, "longest_wait=3"),
])
def test_a_limit_without_sense_is_refused(limits: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Retry(**limits)


def test_conflicts_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    policy().run(planted(CommitFailedError(APPEND), None))
    assert "attempt 1: append; again in" in caplog.text


def test_a_success_at_once_is_one_attempt() -> None:
    assert policy().run(lambda: 7).attempts == (Attempt(number=1, seconds=pytest.approx(0, abs=1)),)
