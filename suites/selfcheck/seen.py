"""What a run sees, by hand: outcomes of a held writer A and a winner B, and the whole of a race. No engine is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakerace.conflicts import HINTED, KINDS
from lakerace.observe import ABORTS, COMMITS, Commit, Event, Files, HistoryRow, Observation, Outcome, Rows


def lost(word: str = "append", **more: Any) -> Outcome:
    """A aborts by that kind of conflict at its first attempt, having read version 8."""
    kind = KINDS[word]
    hint = ".WITHOUT_HINT" if word in HINTED else ""
    return Outcome(**{
        "writer": "A", "statement": "update", "text": "UPDATE ...", "held": True, "outcome": ABORTS, "kind": word,
        "read_version": 8, "attempts": 1, "surfaced": kind.exception, "root": f"io.delta.exceptions.{kind.exception}",
        "condition": f"{kind.condition}{hint}", "sqlstate": "2D521", **more,
    })


def won(**more: Any) -> Outcome:
    """B commits version 9, having read version 8."""
    return Outcome(**{
        "writer": "B", "statement": "insert", "text": "INSERT ...", "held": False, "outcome": COMMITS, "version": 9,
        "read_version": 8, "attempts": 1, **more,
    })


def observed(*writers: Outcome, **more: Any) -> Observation:
    """An observation of ``writers``; what ``more`` does not say is empty, or as in the common race."""
    return Observation(**{
        "race": "race", "engine": "delta-4.4", "versions": {}, "driver": "phases", "layout": "flat",
        "isolation": "serializable", "order": "A:read B:read B:commit A:commit", "overlap": True,
        "overlap_proof": "A read 8 < 9, then aborted", "writers": writers, "base_version": 8, **more,
    })


BASE: Rows = ((1, "base"),)
WON: Rows = ((1, "base"), (2, "new"))
A_UPDATED: Rows = ((1, "x"), (2, "new"))
B_COMMITS = won()
A_ABORTS = lost(parameters={"operation": "WRITE", "version": "9"})
A_COMMITS = Outcome(
    writer="A", statement="update", text="UPDATE ...", held=True, outcome=COMMITS, version=10, read_version=8,
    attempts=2,
)
H9 = HistoryRow(version=9, operation="WRITE", readVersion=8, isolationLevel="Serializable", isBlindAppend=True)
H10 = HistoryRow(
    version=10, operation="UPDATE", readVersion=8, isolationLevel="Serializable", isBlindAppend=False,
    predicate="(id = 1)",
)
C9 = Commit(version=9, operation="WRITE", added=("b.parquet",))
C10 = Commit(version=10, operation="UPDATE", added=("a2.parquet",), removed=("a.parquet",))


def timeline(end: str, stood: int = 8, released: int = 9) -> tuple[Event, ...]:
    """A reads, stands at version ``stood`` while B commits 9, and comes to its ``end`` when ``released``."""
    steps = (("A", "read", stood), ("A", "hold", stood), ("B", "read", 8), ("B", "commits", 9), ("A", end, released))
    return tuple(
        Event(writer=name, what=what, version=version, at=at) for at, (name, what, version) in enumerate(steps)
    )


_BOTH = observed(
    overlap_proof="A read 8 < 9", columns=("id", "note"), rows_before=BASE, rows_at_release=WON, rows_read_by="a hand",
    files=Files(live=2, on_disk=3),
)
LOST = replace(
    _BOTH, race="an-update-loses-to-an-insert", writers=(A_ABORTS, B_COMMITS), history=(H9,), commits=(C9,),
    rows_after=WON, timeline=timeline("append"),
)
"""An UPDATE that lost to an INSERT, honestly told."""
DONE = replace(
    _BOTH, race="an-update-survives-an-insert", writers=(A_COMMITS, B_COMMITS), history=(H10, H9), commits=(C9, C10),
    rows_after=A_UPDATED, timeline=timeline("commits", released=10),
)
"""An UPDATE that survived an INSERT, honestly told."""


def with_commit(seen: Observation, version: int, **changes: Any) -> Observation:
    """``seen`` with the log entry of ``version`` changed."""
    found = tuple(replace(one, **changes) if one.version == version else one for one in seen.commits)
    return replace(seen, commits=found)
