"""Does a run see what an engine does, also one that lies, and nothing of the folder it ran in? No JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakerace import deltalog
from lakerace.engines import Reading, Table
from lakerace.engines.lines import line
from lakerace.judge import UNDECLARED, judge
from lakerace.layouts import BASE_VERSION, LAYOUTS
from lakerace.observe import Files, Outcome, Rows
from lakerace.race import Expected, Layout, Race, Statement, held_against
from lakerace.run import portable, run_race

LINE = line("delta-4.4")


# A whole engine, in Python, that tells the truth or lies.
class FakeEngine:
    """A table of numbers: ``add N`` appends one blindly, ``change N`` rewrites the whole table."""

    driver = "fake"

    def __init__(self, folder: Path, lie: str = "") -> None:
        self.line = LINE
        self.versions = {"fake": "1"}
        self.lie = lie
        self._folder = folder
        self._dropped: list[Table] = []

    def make(self, layout: Layout, isolation: str) -> Table:
        path = self._folder / "t"
        (path / "_delta_log").mkdir(parents=True)
        for version in range(BASE_VERSION + 1):
            self._commit(path, version, "CREATE", [("add", f"base-{version}")], {version})
        return Table(path, layout, isolation, BASE_VERSION, ("n",), self._rows(path))

    def run(self, table: Table, writer: str, statement: Statement) -> Outcome:
        return FakeHeld(self, table, writer, statement, held=False).release()

    def hold(self, table: Table, writer: str, statement: Statement) -> FakeHeld:
        return FakeHeld(self, table, writer, statement, held=True)

    def rows(self, table: Table, version: int | None = None) -> tuple[tuple[str, ...], Rows, str]:
        return ("n",), self._rows(table.path), "fake"

    def read_back(self, table: Table) -> Reading:
        history = deltalog.history(table.path, table.base_version)
        return Reading(
            columns=("n",),
            rows=self._rows(table.path),
            rows_read_by="fake",
            history=history[1:] if self.lie == "history row lost" else history,
            commits=deltalog.read_commits(table.path, table.base_version),
            files=Files(live=1, on_disk=1),
        )

    def drop(self, table: Table) -> None:
        self._dropped.append(table)

    def close(self) -> None:
        pass

    def state(self, path: Path) -> set[int]:
        return set(json.loads((path / "state.json").read_text(encoding="utf-8")))

    def _rows(self, path: Path) -> Rows:
        return tuple((number,) for number in sorted(self.state(path)))

    def _commit(
        self,
        path: Path,
        version: int,
        operation: str,
        files: list[tuple[str, str]],
        numbers: set[int],
        read: int | None = None,
    ) -> None:
        info = {"operation": operation, "readVersion": read, "isolationLevel": "Serializable"}
        actions = [{"commitInfo": info}, *({kind: {"path": name}} for kind, name in files)]
        entry = path / "_delta_log" / f"{version:020d}.json"
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
        (path / "state.json").write_text(json.dumps(sorted(numbers)), encoding="utf-8")


class FakeHeld:
    early: Outcome | None = None

    def __init__(self, engine: FakeEngine, table: Table, writer: str, statement: Statement, *, held: bool) -> None:
        self._engine, self._path, self._writer, self._statement, self._held = (
            engine,
            table.path,
            writer,
            statement,
            held,
        )
        self._read = deltalog.latest_version(table.path)
        if held and engine.lie == "it never stopped":
            self.early = self.release()

    def release(self) -> Outcome:
        engine, verb, number = self._engine, *self._statement.text.split()
        before = deltalog.latest_version(self._path)
        common: dict[str, Any] = {
            "writer": self._writer,
            "statement": self._statement.name,
            "text": self._statement.text,
            "held": self._held,
        }
        if self._held and engine.lie == "it read late":
            self._read = before
        numbers = engine.state(self._path)
        if verb == "change" and before > self._read and engine.lie != "it forgot to check":
            if engine.lie == "it left its rows":
                (self._path / "state.json").write_text(json.dumps(sorted({*numbers, int(number)})), encoding="utf-8")
            return Outcome(
                outcome="aborts",
                kind="append",
                surfaced="ConcurrentAppendException",
                read_version=self._read,
                attempts=1,
                parameters={"version": str(before)},
                **common,
            )
        version = before + 1
        if self._held and engine.lie == "it committed nothing":
            return Outcome(outcome="commits", version=version, read_version=self._read, attempts=1, **common)
        changed = {int(number)} if verb == "change" else {*numbers, int(number)}
        operation, files = ("UPDATE", [("remove", f"base-{BASE_VERSION}")]) if verb == "change" else ("WRITE", [])
        engine._commit(self._path, version, operation, [*files, ("add", f"f-{version}")], changed, self._read)
        return Outcome(outcome="commits", version=version, read_version=self._read, attempts=1, **common)

    def cancel(self) -> None:
        assert self.early is not None, "whoever stood before its commit was released"


def fake_race(held: str, outcome: str) -> Race:
    return held_against(
        "fake",
        layout=LAYOUTS["flat"],
        held=held,
        winners=["add 100"],
        expect=[Expected(word=outcome), Expected(word="commits")],
    )


@pytest.mark.parametrize(("held", "outcome"), [("change 7", "append"), ("add 200", "commits")])
def test_an_honest_engine_passes(tmp_path: Path, held: str, outcome: str) -> None:
    race, engine = fake_race(held, outcome), FakeEngine(tmp_path)
    seen = run_race(race, engine)
    assert judge(race, seen, LINE).differences == ()
    assert seen.overlap_proof == ("A read 8 < 9, then aborted" if outcome == "append" else "A read 8 < 9 < 10")
    assert [event.what for event in seen.timeline] == ["read", "hold", "read", "commits", outcome]
    assert engine._dropped


LYING: dict[str, tuple[str, str, str]] = {
    "it left its rows": ("change 7", "append", "A aborted but left a trace: 1 new rows [(7,)]"),
    "it forgot to check": ("change 7", "append", "A: expected append, seen commits"),
    "it never stopped": ("add 200", "commits", "the writers did not overlap: A ended before it reached its commit"),
    "it read late": ("change 7", "commits", "the writers did not overlap: A was held at version 8, but read 9"),
    "it committed nothing": ("add 200", "commits", "A: its commit 10 is acknowledged but missing from the history"),
    "history row lost": ("add 200", "commits", "A: its commit 10 is acknowledged but missing from the history"),
}


@pytest.mark.parametrize("lie", LYING)
def test_a_lying_engine_is_caught(tmp_path: Path, lie: str) -> None:
    held, outcome, message = LYING[lie]
    race = fake_race(held, outcome)
    verdict = judge(race, run_race(race, FakeEngine(tmp_path, lie)), LINE)
    assert verdict.word == UNDECLARED
    assert any(found.startswith(message) for found in verdict.differences), verdict.differences


# What names the table.
TABLE = Path("/data/lakerace-1-x/jvm-y/tables/flat-1")
LOST = Outcome(writer="A", statement="update", text="UPDATE ...", held=True, outcome="aborts", kind="append")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"added data to table delta.`file:{TABLE}` committed at version 9", "added data to table {t} committed at"),
        (f"no column x in `spark_catalog`.`delta`.`{TABLE}`.", "no column x in {t}."),
        (f"the table delta.`{TABLE}/` is gone", "the table {t} is gone"),
        (f"can't read file://{TABLE}/part-0.parquet twice", "can't read {t}/part-0.parquet twice"),
        (f"{TABLE}: no log", "{t}: no log"),
        (f"nor does {TABLE}1, {TABLE}-dv or /tables/flat-1 change", f"nor does {TABLE}1, {TABLE}-dv or /tables/flat-1"),
    ],
)
def test_the_table_is_told_as_it_was_written(said: str, told: str) -> None:
    found = portable(replace(LOST, message=said, parameters={"tableName": said}), {"{t}": TABLE})
    assert str(found.message).startswith(told)
    assert found.parameters == {"tableName": found.message}


def test_what_names_no_table_stays() -> None:
    assert portable(LOST, {"{t}": TABLE}) == LOST
