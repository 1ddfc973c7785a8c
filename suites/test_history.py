"""What does the history tell? Every statement of the catalogue: its history rows alone, and rebased over a winner.

The table is ``conf/expect/delta-spark/history.toml``, written by ``python suites/test_history.py`` and then reviewed
as a diff. Metrics are those that count rows and files and are not zero. A statement is rebased over the
first of :data:`HARMLESS` that lets it commit; where none does, the table says so in ``never_rebased``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from packaging.specifiers import SpecifierSet

from lakerace.catalogue import CATALOGUE
from lakerace.expect import alone_path, read_grid
from lakerace.home import conf_dir
from lakerace.layouts import layout
from lakerace.observe import ABORTS, COMMITS, HistoryRow
from lakerace.race import SERIALIZABLE, held_against
from lakerace.run import run_race

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakerace.engines import Engine

HARMLESS = ("insert-other-date", "insert-values", "delete-other-date", "enable-deletion-vectors")
BASIC = "by-date"
DIFFERENT = (
    ("by-date-dv", ("update-by-key", "delete-by-key", "delete-partition", "merge-on-key", "replace-where", "optimize")),
    ("flat", ("delete-partition", "dynamic-overwrite", "replace-where", "optimize", "zorder")),
    ("clustered", ("optimize", "update-by-date")),
    ("row-tracking", ("update-by-key", "insert-values")),
)
"""Layouts on which a statement's history differs from that on ``by-date``, or could be expected to."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One history row, without what differs from run to run."""

    version: int
    operation: str
    read: int | None = None
    isolation: str | None = None
    blind: bool | None = None
    predicate: str | None = None
    metrics: dict[str, int] = {}


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``commits`` are those of ``statement`` on ``layout``, oldest first, ``over`` the winner it was rebased over."""

    statement: str
    layout: str
    over: str | None = None
    commits: tuple[Entry, ...]

    @property
    def name(self) -> str:
        return f"{self.layout}-{self.statement}" + (f"-over-{self.over}" if self.over else "")


class Book(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table, for these ``versions`` of Delta; ``never_rebased`` tells what each winner did to a statement."""

    versions: str
    never_rebased: dict[str, str]
    case: tuple[Case, ...]


def book_path() -> Path:
    return conf_dir() / "expect" / "delta-spark" / "history.toml"


def read_book() -> Book:
    """The table. Raises ``msgspec.ValidationError`` for an unknown key or a wrong type."""
    return msgspec.toml.decode(book_path().read_bytes(), type=Book)


def entry(row: HistoryRow) -> Entry:
    return Entry(
        version=row.version, operation=row.operation, read=row.readVersion, isolation=row.isolationLevel,
        blind=row.isBlindAppend, predicate=row.predicate,
        metrics={name: int(count) for name, count in row.metrics.items() if int(count)},
    )


def alone(engine: Engine, name: str, on: str) -> tuple[Entry, ...]:
    """What ``name`` records alone on layout ``on``."""
    table = engine.make(layout(on), SERIALIZABLE)
    try:
        outcome = engine.run(table, "A", CATALOGUE[name])
        assert outcome.outcome == COMMITS, outcome
        return tuple(entry(row) for row in reversed(engine.read_back(table).history))
    finally:
        engine.drop(table)


def rebased(engine: Engine, name: str, over: str, on: str = BASIC) -> tuple[Entry, ...] | str:
    """What ``name`` records when ``over`` committed first, or the word for what became of it instead."""
    seen = run_race(
        held_against(f"{name} over {over}", layout=layout(on), held=CATALOGUE[name], winners=(CATALOGUE[over],)), engine
    )
    if seen.error or seen.unsteerable:
        return "unsteerable"
    outcome = seen.outcome("A")
    if outcome.outcome == ABORTS or not seen.overlap:
        return outcome.word
    first = seen.outcome("B").version
    assert first is not None
    return tuple(entry(row) for row in reversed(seen.history) if row.version > first)


try:
    BOOK = read_book()
except (OSError, msgspec.DecodeError) as _error:
    if __name__ != "__main__":
        raise pytest.UsageError(f"{book_path()}: {_error}") from None


def _applies(engine: Engine) -> None:
    if not SpecifierSet(BOOK.versions).contains(engine.line.delta):
        pytest.skip(f"the table was measured for Delta {BOOK.versions}, this is {engine.line.delta}")


def _cases(over: bool) -> list[object]:
    return [pytest.param(case, id=case.name) for case in BOOK.case if bool(case.over) == over]


if __name__ != "__main__":

    @pytest.mark.parametrize("alone_case", _cases(over=False))
    def test_history_of_a_statement_alone(alone_case, engine):
        _applies(engine)
        assert alone(engine, alone_case.statement, alone_case.layout) == alone_case.commits

    @pytest.mark.parametrize("rebased_case", _cases(over=True))
    def test_history_of_a_statement_rebased_over_a_winner(rebased_case, engine):
        _applies(engine)
        seen = rebased(engine, rebased_case.statement, rebased_case.over, rebased_case.layout)
        assert seen == rebased_case.commits

    def test_every_statement_that_commits_is_in_the_table(engine):
        _applies(engine)
        on_by_date = read_grid(alone_path(engine.line))
        committing = {name for name in CATALOGUE if on_by_date.get((name, BASIC)) == COMMITS}
        told_alone = {case.statement for case in BOOK.case if case.over is None and case.layout == BASIC}
        told_rebased = {case.statement for case in BOOK.case if case.over} | set(BOOK.never_rebased)
        assert (told_alone, told_rebased) == (committing, committing)


def record(engine: Engine) -> Iterator[str]:
    """The lines of a fresh table, measured on ``engine``."""
    cases: list[Case] = []
    never: dict[str, str] = {}
    cells = read_grid(alone_path(engine.line))
    for name in CATALOGUE:
        if cells.get((name, BASIC)) != COMMITS:
            continue
        cases.append(Case(statement=name, layout=BASIC, commits=alone(engine, name, BASIC)))
        refused = []
        for over in HARMLESS:
            found = rebased(engine, name, over)
            if not isinstance(found, str):
                cases.append(Case(statement=name, layout=BASIC, over=over, commits=found))
                break
            refused.append(f"{over}: {found}")
        else:
            never[name] = "; ".join(refused)
    for on, names in DIFFERENT:
        cases += [Case(statement=name, layout=on, commits=alone(engine, name, on)) for name in names]
    yield "# What each statement records in the history. Written by suites/test_history.py; review the diff."
    yield f'versions = "~={engine.line.delta}"'
    yield "\n# Statements that no harmless winner lets commit, with what each winner did to them."
    yield "[never_rebased]"
    yield from (f"{name} = {json.dumps(why)}" for name, why in never.items())
    for case in cases:
        yield f'\n[[case]]\nstatement = "{case.statement}"\nlayout = "{case.layout}"'
        if case.over:
            yield f'over = "{case.over}"'
        yield "commits = [\n" + "".join(f"  {{ {_inline(commit)} }},\n" for commit in case.commits) + "]"


def _inline(commit: Entry) -> str:
    fields = msgspec.to_builtins(commit)
    metrics = fields.pop("metrics", {})
    parts = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    if metrics:
        parts.append("metrics = { " + ", ".join(f"{name} = {count}" for name, count in metrics.items()) + " }")
    return ", ".join(parts)


if __name__ == "__main__":
    from lakerace.engines import open_engine
    from lakerace.engines.lines import line

    opened = open_engine(line())
    try:
        book_path().write_text("\n".join(record(opened)) + "\n", encoding="utf-8")
    finally:
        opened.close()
