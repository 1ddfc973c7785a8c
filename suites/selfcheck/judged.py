"""Judged races and whole runs of them, by hand: what the reports are made of."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from lakerace.catalogue import CATALOGUE
from lakerace.conflicts import KINDS
from lakerace.field import Answered, Difference, Report, Shown
from lakerace.judge import DECLARED, ERROR, MEETS, UNDECLARED, UNSTEERABLE
from lakerace.layouts import LAYOUTS
from lakerace.observe import Commit, Event, Files, HistoryRow, Outcome
from lakerace.race import ISOLATIONS, Expected
from lakerace.report import ClaimRow
from lakerace.results import Result, Results
from selfcheck.seen import lost, observed, won

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = """INSERT INTO {t} SELECT '</script><script>alert(1)</script>' AS note, "<b>&amp;" -- | ` \u2028"""
DAY = datetime.date(2026, 8, 11)


@cache
def base_rows(changed: str = "base") -> tuple[tuple[object, ...], ...]:
    return tuple(
        (number, DAY + datetime.timedelta(days=number > 8), "DE" if number % 8 in (1, 2, 3, 4) else "FR",
         Decimal(number * 10) / 4, changed if number == 1 else "base")
        for number in range(1, 17)
    )


def made(
    race: str,
    *,
    word: str = "commits",
    expected: str | None = None,
    verdict: str = MEETS,
    layout: str = "by-date",
    isolation: str = "serializable",
    held: str = "update-by-date",
    winner: str = "insert-values",
    text: str | None = None,
    suite: str = "test_matrix",
    claims: tuple[str, ...] = (),
    seed: int = 0,
) -> Result:
    """One judged race as an engine would give it: writer A held at version 8, writer B commits version 9."""
    kind, committed, broken = KINDS.get(word), word == "commits", verdict in (ERROR, UNSTEERABLE)
    own: dict[str, Any] = {"statement": held, "text": text or CATALOGUE[held].text}
    if kind is None:
        numbers = {"version": 10, "read_version": 8, "attempts": 2} if committed else {"read_version": 8}
        held_writer = Outcome(writer="A", held=True, outcome=word, **own, **numbers)
    else:
        condition = f"{kind.condition}.{'WITH_PARTITION_HINT' if layout.startswith('by-') else 'WITHOUT_HINT'}"
        held_writer = lost(
            word, **own, condition=condition, message=f"[{condition}] Transaction conflict detected. See the docs.",
            parameters={"operation": "WRITE", "tableName": f"delta.`/tables/{seed}`", "version": "9"},
        )
    outcomes = () if broken else (held_writer, won(statement=winner, text=CATALOGUE[winner].text))
    grown = (*base_rows(), (201, DAY, "DE", Decimal(1), "new"))
    after = (*base_rows("updated"), grown[-1]) if committed else grown
    row = HistoryRow(version=9, operation="WRITE", readVersion=8, isolationLevel="Serializable", isBlindAppend=True,
                     metrics={"numFiles": "1", "numOutputRows": "1"}, engineInfo="Apache-Spark/4.2.0 Delta-Lake/4.4.0")
    late = HistoryRow(version=10, operation="UPDATE", readVersion=8, isolationLevel="Serializable", isBlindAppend=False,
                      predicate='["(event_date#1 = 2026-08-11)"]', metrics={"numUpdatedRows": "8"})
    seen = observed(
        *outcomes, race=race, versions={"pyspark": "4.2.0", "delta-spark": "4.4.0", "java": "17.0.12"},
        layout=layout, isolation=isolation, overlap=not broken,
        overlap_proof="nothing ran" if broken else "A read 8 < 9" + (" < 10" if committed else ", then aborted"),
        history=() if broken else ((late, row) if committed else (row,)),
        commits=() if broken else (Commit(version=9, operation="WRITE", added=(f"part-{seed:05d}.snappy.parquet",)),),
        columns=() if broken else ("id", "event_date", "country", "amount", "note"),
        rows_before=() if broken else base_rows(), rows_at_release=() if broken else grown,
        rows_after=() if broken else after, rows_read_by="spark",
        files=None if broken else Files(
            live=9, on_disk=9 if committed else 10, unreferenced_bytes=0 if committed else 1412,
            unreferenced=() if committed else (f"part-{seed:05d}-staged.snappy.parquet",),
        ),
        timeline=() if broken else (
            Event(writer="A", what="read", version=8, at=0.0), Event(writer="A", what="hold", version=8, at=0.21),
            Event(writer="B", what="read", version=8, at=0.22), Event(writer="B", what="commits", version=9, at=0.41),
            Event(writer="A", what=word, version=10 if committed else 9, at=0.55),
        ),
        seconds=0.6,
        error="the JVM died during the race (Py4JNetworkError)" if verdict == ERROR else None,
        unsteerable="the statement never reached its commit" if verdict == UNSTEERABLE else None,
    )
    wanted = expected or word
    about = KINDS.get(wanted)
    return Result(
        nodeid=f"suites/{suite}.py::test_race[{race}]", race=race, suite=suite,
        question="Who wins? Every statement of the catalogue held against every other.", observation=seen,
        expected={
            "A": Expected(word=wanted, surfaced=about and about.exception, sqlstate="2D521" if about else None,
                          source=f"{layout}.{isolation}.md"),
            "B": Expected(word="commits", source=f"{layout}.{isolation}.md"),
        },
        verdict=verdict,
        differences={
            UNDECLARED: (f"A: expected {wanted}, seen {word}",),
            ERROR: (seen.error or "",),
            UNSTEERABLE: (seen.unsteerable or "",),
        }.get(verdict, ()),
        deviation="engine-change: 4.0 knows no sub-conditions (delta-io/delta#5720)" if verdict == DECLARED else None,
        expectation_source=f"{layout}.{isolation}.md", claims=claims, seconds=0.6,
        rerun=f"pytest --engine delta-4.4 --profile core 'suites/{suite}.py::test_race[{race}]'",
    )


def outcomes() -> Iterator[str]:
    """Words in a mix like a real run's, for ever."""
    while True:
        yield from ("commits", "append", "commits", "delete-read", "commits", "append", "metadata", "commits",
                    "protocol", "delete-delete", "commits", "no-commit", "append")


def run_of(count: int, *, statements: int = 16) -> Results:
    """A run of ``count`` races: the matrix over the layouts, and a few named ones that show every verdict."""
    names, words = list(CATALOGUE)[:statements], outcomes()
    named = [
        made("an-update-aborts-when-an-insert-lands-in-the-partition-it-read", word="commits", expected="append",
             verdict=UNDECLARED, suite="test_conflicts", claims=("D-013",)),
        made("optimize-aborts-when-a-delete-removes-its-input", word="delete-read", verdict=DECLARED, held="optimize",
             winner="delete-by-key", suite="test_conflicts", claims=("D-025",)),
        made("two-streams-with-one-id", word="transaction", held="txn-append", winner="txn-append",
             suite="test_conflicts"),
        made("a-statement-that-matches-nothing", verdict=UNSTEERABLE, suite="test_history"),
        made("the-engine-dies", verdict=ERROR, suite="test_history"),
        made("hostile", text=HOSTILE, suite="test_history"),
    ]
    cells = [
        (layout, isolation, held, winner)
        for layout in LAYOUTS for isolation in ISOLATIONS for held in names for winner in names
    ]
    listed = [
        made(f"matrix/{layout}/{isolation}/{held}~{winner}", word=next(words), layout=layout, isolation=isolation,
             held=held, winner=winner, seed=seed, verdict=DECLARED if seed == 7 else MEETS)
        for seed, (layout, isolation, held, winner) in enumerate(cells[:count - len(named)])
    ]
    return Results(
        engine="delta-4.4", meaning="Delta 4.4.0 on Spark 4.2.0, driver phases", profile="core",
        started="2026-08-11T10:00:00Z", seconds=312.4, versions={"lakerace": "0.1.0", "pyspark": "4.2.0"},
        results=tuple(sorted((*named, *listed), key=lambda one: one.race)),
    )


def named(results: Results, start: str) -> Result:
    return next(result for result in results.results if result.race.startswith(start))


REPORTS = (
    Answered(
        report=Report(id="A1", title="Two writers <lose>", reported="rows", where=("two-streams-with-one-id",),
                      links=("https://a.example/1",), advice="Do not.",
                      differs=(Difference(whose="docs", kind="docs-gap", reason="They name <none>."),)),
        shown=tuple(Shown(name=name, is_race=True,
                          outcomes={"delta-4.4": "A append+p, B commits", "delta-4.0": "A append, B commits"})
                    for name in ("not-in-this-run", "two-streams-with-one-id", "nor-this")),
    ),
    Answered(report=Report(id="E3", title="Entries expire", reported="rows", not_shown="cloud"), shown=()),
)
CLAIMS = (
    ClaimRow(id="D-013", text="A blind append never makes an UPDATE lose", answer="contradicted",
             measured="under Serializable the UPDATE aborts with ConcurrentAppendException",
             races=("an-update-aborts-when-an-insert-lands-in-the-partition-it-read", "not-in-this-run")),
    ClaimRow(id="D-025", text="Two MERGEs over different rows still fail", answer="depends", measured="on the layout"),
    ClaimRow(id="D-012", text="ADLS gives <exclusive> create", answer="not-shown", measured="no such storage here"),
    ClaimRow(id="D-002", text="One commit is one JSON file", answer="confirmed", measured="always"),
    ClaimRow(id="B-001", text="Two rows of one file pass", answer="predicted", prediction="rows are <compared>",
             measured="files are"),
)
