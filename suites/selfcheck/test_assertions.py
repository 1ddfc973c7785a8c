"""The assertions for other people's tests: what they let pass, and what they say when they don't."""

from __future__ import annotations

import pytest

from lakerace.assertions import assert_aborts, assert_commits, assert_history, assert_rows
from lakerace.observe import HistoryRow, Observation
from selfcheck.seen import lost, observed, won


@pytest.fixture
def seen() -> Observation:
    return observed(
        lost(statement="merge", text="MERGE INTO {t} ..."), won(statement="update", text="UPDATE {t} ..."),
        race="my-merge", layout="orders", columns=("id", "note"), rows_before=((1, "old"), (2, "old"), (2, "old")),
        rows_after=((1, "new"), (2, "old")),
        history=(HistoryRow(version=9, operation="UPDATE", isBlindAppend=False, metrics={"numUpdatedRows": "1"}),),
    )


def test_what_happened_passes(seen):
    assert_commits(seen, "B")
    assert_aborts(seen, "A", "append")
    assert_aborts(seen, "A", "append", condition="DELTA_CONCURRENT_APPEND", surfaced="ConcurrentAppendException")
    assert_aborts(seen, "A", "append", condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
    assert_rows(seen, added=[(1, "new")], removed=[{"id": 2}, {"id": 1, "note": "old"}])
    assert_history(seen, "B", operation="UPDATE", isBlindAppend=False, metrics={"numUpdatedRows": 1})


@pytest.mark.parametrize(("claim", "said"), [
    (lambda seen: assert_commits(seen, "B", "A"),
     "A was to commit, but it aborted with append: ConcurrentAppendException DELTA_CONCURRENT_APPEND.WITHOUT_HINT"),
    (lambda seen: assert_aborts(seen, "B", "append"), "B was to abort with append, but it committed version 9"),
    (lambda seen: assert_aborts(seen, "A", "metadata"), "A was to abort with metadata, but it aborted with append"),
    (lambda seen: assert_aborts(seen, "A", "append", condition="DELTA_CONCURRENT"), "condition DELTA_CONCURRENT, but"),
    (lambda seen: assert_aborts(seen, "A", "append", surfaced="Py4JJavaError"), "surface as Py4JJavaError, but"),
    (lambda seen: assert_rows(seen, added=[(1, "new")]), "removed without being asked for: (1, 'old'), (2, 'old')"),
    (lambda seen: assert_rows(seen, added=[{"id": 3}]), "not added: {'id': 3}"),
    (lambda seen: assert_history(seen, "B", operation="MERGE"), "operation was to be 'MERGE', but it is 'UPDATE'"),
    (lambda seen: assert_history(seen, "B", metrics={"numUpdatedRows": 2}), "metrics was to be"),
])
def test_what_did_not_happen_fails_with_the_reason_and_the_race(seen, claim, said):
    with pytest.raises(AssertionError) as failure:
        claim(seen)
    assert said in str(failure.value)
    assert "  A held MERGE INTO {t} ...\n         it aborted with append" in str(failure.value)
    assert "  - (1, 'old')\n  - (2, 'old')\n  + (1, 'new')" in str(failure.value)


@pytest.mark.parametrize(("mistake", "said"), [
    (lambda seen: assert_commits(seen, "C"), "no writer 'C' in this race; it has A, B"),
    (lambda seen: assert_aborts(seen, "A", "apend"), "'apend' is no kind of conflict; use one of append, "),
    (lambda seen: assert_rows(seen, added=[{"key": 1}]), "no column 'key'; it has id, note"),
])
def test_a_mistake_in_the_assertion_is_an_error_of_its_own(seen, mistake, said):
    with pytest.raises(ValueError, match=said):
        mistake(seen)
