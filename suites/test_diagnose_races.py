"""Does `lakerace diagnose` name the true winner and the check it tripped, on the tables that real races leave?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.diagnose.explain import CHECK_OF, explain
from lakerace.diagnose.logread import open_log
from lakerace.diagnose.texts import read_text
from lakerace.layouts import LAYOUTS
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, held_against
from lakerace.rules.findings import predicted
from lakerace.run import run_race

if TYPE_CHECKING:
    from lakerace.engines import Engine, Table

ENGINES = ("delta-spark", "delta-rs")
VERSIONS = ">=0"
LEVELS = {"s": SERIALIZABLE, "ws": WRITE_SERIALIZABLE}
LOSERS = (
    # layout, level, held, winners in order, which of them it loses to (from 1)
    ("flat", "s", "update-by-key", ("update-by-date",), 1),
    ("flat", "s", "merge-on-key", ("optimize",), 1),
    ("flat", "s", "merge-on-key", ("delete-partition",), 1),
    ("flat", "s", "optimize", ("insert-values", "delete-by-key", "insert-values"), 2),
    ("flat", "s", "insert-values", ("insert-other-date", "add-column", "insert-other-date"), 2),
    ("flat-dv", "s", "delete-by-key", ("update-by-key",), 1),
    ("flat-dv", "s", "update-all", ("insert-values",), 1),
    ("by-date", "s", "merge-with-literal", ("merge-other-literal", "insert-values", "delete-other-date"), 2),
    ("by-date", "s", "update-by-date", ("delete-other-date", "delete-partition"), 2),
    ("by-date", "s", "replace-where", ("insert-other-date", "insert-values"), 2),
    ("by-date", "s", "zorder", ("insert-values", "update-by-key"), 2),
    ("by-date", "s", "update-by-key", ("set-property",), 1),
    ("by-date", "s", "enable-deletion-vectors", ("insert-values", "enable-deletion-vectors"), 2),
    ("by-date", "ws", "merge-on-key", ("update-other-date",), 1),
    ("by-date-country", "s", "delete-by-date", ("insert-values",), 1),
    ("by-date-dv", "s", "delete-by-date", ("merge-with-literal",), 1),
)


@dataclass(frozen=True)
class Keeping:
    """An engine whose tables outlive the race, so that they can be looked at."""

    engine: Engine
    made: list[Table]

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def make(self, layout, isolation):
        self.made.append(self.engine.make(layout, isolation))
        return self.made[-1]

    def drop(self, table):
        """Later."""


@pytest.fixture
def kept(engine):
    keeping = Keeping(engine, [])
    yield keeping
    for table in keeping.made:
        engine.drop(table)


@pytest.mark.parametrize(("layout", "level", "held", "winners", "loses_to"), LOSERS)
def test_the_winner_and_the_check(kept, layout, level, held, winners, loses_to):
    race = held_against(
        "diagnosed", layout=LAYOUTS[layout], isolation=LEVELS[level], held=CATALOGUE[held],
        winners=tuple(CATALOGUE[name] for name in winners),
    )
    seen = run_race(race, kept)
    if seen.unsteerable or "fails" in {outcome.word for outcome in seen.writers}:
        pytest.skip(f"not to be had on {seen.engine}: {seen.unsteerable or 'a statement fails by itself'}")
    loser = seen.outcome("A")
    if kept.line.engine == "delta-rs" and loser.outcome != "aborts":
        pytest.skip("delta-rs lets it commit")
    assert loser.outcome == "aborts", loser
    by = predicted(race, kept.line)["A"].fired.version
    if kept.line.engine == "delta-spark":
        assert by == seen.writers[loses_to].version
    log, error = open_log(str(kept.made[0].path)), read_text(f"{loser.surfaced}: {loser.message}")
    for reported, statement in ((error, None), (error, CATALOGUE[held].text), (None, CATALOGUE[held].text)):
        found = explain(log, reported=reported, statement=statement, read_version=seen.base_version)
        assert found.kind == loser.kind
        assert found.check.name == CHECK_OF[loser.kind]
        # An error of delta-rs says neither version nor partition: of several commits of a kind it can't name the one.
        guess = kept.line.engine == "delta-rs" and statement is None and not found.winner.sure
        assert found.winner.version == by or guess
        assert found.change is not None
        assert found.agrees is (True if reported and statement else None)
