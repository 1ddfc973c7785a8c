"""Is a serial run ever taken for a race? Proof of overlap, from outcomes and the driver's trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakerace.orders import parse_order
from lakerace.race import Expected
from lakerace.run import prove_overlap
from selfcheck.declared import BOTH, LOSES
from selfcheck.seen import A_ABORTS, A_COMMITS, B_COMMITS, timeline

if TYPE_CHECKING:
    from lakerace.observe import Event, Outcome

PROOFS: dict[str, tuple[Outcome, Outcome, tuple[Event, ...], str]] = {
    "the winner committed before the hold": (
        A_COMMITS, B_COMMITS, timeline("commits", stood=9, released=10),
        "A was held at version 9, and nobody committed before it was released",
    ),
    "the winner committed after the held writer": (
        replace(A_COMMITS, version=9, attempts=1), replace(B_COMMITS, version=10), timeline("commits"),
        "A was held at version 8, and nobody committed before it was released",
    ),
    "the winner committed nothing": (
        A_COMMITS, replace(B_COMMITS, outcome="no-commit", version=None), timeline("commits"),
        "A was held at version 8, and nobody committed before it was released",
    ),
    "the abort names a version it had read": (
        replace(A_ABORTS, parameters={"version": "8"}), B_COMMITS, timeline("append"),
        "A aborted because of version 8, which it had read",
    ),
    "the held writer read after the winner": (
        replace(A_COMMITS, read_version=9, attempts=1), B_COMMITS, timeline("commits"),
        "A was held at version 8, but read 9 and committed at its first attempt",
    ),
    "the held writer never stood": (
        A_COMMITS, B_COMMITS, tuple(event for event in timeline("commits") if event.what != "hold"),
        "A ended before it reached its commit",
    ),
}


@pytest.mark.parametrize("lie", PROOFS)
def test_a_serial_run_proves_no_overlap(lie: str) -> None:
    held, winner, events, message = PROOFS[lie]
    assert prove_overlap(BOTH, {"A": held, "B": winner}, list(events)) == (False, message)


def test_an_honest_run_proves_its_overlap() -> None:
    assert prove_overlap(BOTH, {"A": A_COMMITS, "B": B_COMMITS}, list(timeline("commits"))) == (
        True,
        "A read 8 < 9 < 10",
    )
    lost = prove_overlap(LOSES, {"A": A_ABORTS, "B": B_COMMITS}, list(timeline("append")))
    assert lost == (True, "A read 8 < 9, then aborted")
    again = replace(A_COMMITS, read_version=9, attempts=2)
    assert prove_overlap(BOTH, {"A": again, "B": B_COMMITS}, list(timeline("commits"))) == (
        True,
        "A read 8 < 9 < 10, then re-read at 9",
    )


@pytest.mark.parametrize("word", ["no-commit", "fails"])
def test_who_is_declared_to_commit_nothing_overlaps_by_being_there(word: str) -> None:
    declared = replace(BOTH, expect=(("A", Expected(word="commits")), ("B", Expected(word=word))))
    seen = {"A": replace(A_COMMITS, version=9, attempts=1), "B": replace(B_COMMITS, outcome=word, version=None)}
    proof = (True, "A stood at 8 while B ended without a commit")
    assert prove_overlap(declared, seen, list(timeline("commits"))) == proof
    before = list(timeline("commits", stood=9, released=10))
    assert prove_overlap(declared, {"A": A_COMMITS, "B": B_COMMITS}, before)[0] is False
    assert prove_overlap(BOTH, seen, list(timeline("commits")))[0] is False


def test_a_held_writer_that_is_declared_to_commit_nothing_has_nothing_to_stop_at() -> None:
    declared = replace(BOTH, expect=(("A", Expected(word="no-commit")), ("B", Expected(word="commits"))))
    idle = replace(A_COMMITS, outcome="no-commit", version=None)
    events = [event for event in timeline("commits") if event.what != "hold"]
    told = (True, "A has no commit to stop it at, as declared")
    assert prove_overlap(declared, {"A": idle, "B": B_COMMITS}, events) == told
    assert prove_overlap(BOTH, {"A": idle, "B": B_COMMITS}, events)[0] is False
    assert prove_overlap(declared, {"A": A_COMMITS, "B": B_COMMITS}, events)[0] is False


def test_without_a_held_writer_nothing_overlaps() -> None:
    serial = replace(BOTH, order=parse_order("B:read B:commit A:read A:commit"))
    found, reason = prove_overlap(serial, {"A": A_COMMITS, "B": B_COMMITS}, list(timeline("commits")))
    assert not found
    assert reason == "no writer was held, so nothing can overlap"
