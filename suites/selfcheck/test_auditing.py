"""Is a test that broke its table told so when the table goes? Logs by hand, with one lie in each."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.plugin.auditing import Watch
from selfcheck.seen import lost, won

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CREATED: tuple[dict[str, Any], ...] = ({"protocol": {"minWriterVersion": 7, "writerFeatures": ["rowTracking"]}},
                                       {"metaData": {"id": "x"}})


def add(path: str, first: int, rows: int = 2) -> dict[str, Any]:
    return {"add": {"path": path, "baseRowId": first, "stats": json.dumps({"numRecords": rows})}}


def mark(highest: int) -> dict[str, Any]:
    told = json.dumps({"rowIdHighWaterMark": highest})
    return {"domainMetadata": {"domain": "delta.rowTracking", "configuration": told}}


NOBODY = SimpleNamespace(hold=None)
WRITE, REMOVE = {"commitInfo": {"operation": "WRITE"}}, {"remove": {"path": "a"}}
HONEST = ((*CREATED, add("a", 0), mark(1)), (WRITE, add("b", 2), mark(3)))
LIES = {
    "honest": (HONEST, ()),
    "no table": ((), ()),
    "a file removed twice": ((*HONEST, (REMOVE,), (REMOVE,)), ("version 3 removes a, which version 2 had removed",)),
    "a live file that is gone": (
        (*HONEST, (add("c", 4), mark(5))),
        ("the latest version holds c, which is not on disk",),
    ),
    "metadata repeated": (
        (*HONEST, (WRITE, CREATED[1])),
        ("version 2 (WRITE) repeats the metadata and changes nothing of it",),
    ),
    "row ids given twice": (
        (*HONEST, (REMOVE, add("a", 3), mark(4))),
        ("the row ids 3 to 3 belong to b and to a",),
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Any]:
    def making(entries: tuple[tuple[dict[str, Any], ...], ...]) -> Any:
        (tmp_path / "_delta_log").mkdir()
        for version, actions in enumerate(entries):
            text = "\n".join(map(json.dumps, actions))
            (tmp_path / "_delta_log" / f"{version:020d}.json").write_text(text)
        for name in ("a", "b"):
            (tmp_path / name).touch()
        return SimpleNamespace(path=tmp_path, base_version=0)

    return making


@pytest.mark.parametrize("lie", LIES)
def test_a_broken_log_is_told_line_by_line(table: Callable[..., Any], lie: str) -> None:
    entries, wrong = LIES[lie]
    assert Watch(NOBODY).broken(table(entries)) == wrong


def test_a_log_that_was_cut_off_is_told(table: Callable[..., Any]) -> None:
    made = table(HONEST)
    (made.path / "_delta_log" / f"{0:020d}.json").unlink()
    (told,) = Watch(NOBODY).broken(made)
    assert told.endswith("is not a Delta table: its log has neither version 0 nor a checkpoint")


@pytest.mark.parametrize(("outcome", "wrong"), [
    (lost(), ("A did not commit, but version 2 names staged.parquet of its files",)), (won(writer="A"), ()),
])
def test_what_a_loser_had_staged_is_looked_for(table: Callable[..., Any], outcome: Any, wrong: tuple[str, ...]) -> None:
    made = table(HONEST)

    def hold(table: Any, _writer: str, _statement: Any) -> Any:
        (table.path / "staged.parquet").touch()
        return SimpleNamespace(early=None, release=lambda: outcome)

    watch = Watch(SimpleNamespace(hold=hold))
    held = watch.hold(made, "A", None)
    assert held.early is None
    assert held.release() == outcome
    listed = "\n".join(map(json.dumps, (add("staged.parquet", 4), mark(5))))
    (made.path / "_delta_log" / f"{2:020d}.json").write_text(listed)
    assert watch.broken(made) == wrong
