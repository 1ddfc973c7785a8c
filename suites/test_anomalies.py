"""Which anomalies are possible, at which declared level? Each cell of ``conf/expect/anomalies.md``, raced.

What is possible must be shown: no serial order explains what is left. What is prevented must be prevented as the grid
says. The report publishes it as ``anomalies.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.probes import ABORTED, PROBES, probe_of, read_anomalies
from lakerace.race import ISOLATIONS, Expected, Race
from lakerace.rules.findings import by_the_rules, predicted

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

ENGINES = ("delta-spark", "delta-rs")
VERSIONS = ">=0"


def races(line: Line, _profile: str) -> tuple[Race, ...]:
    cells = read_anomalies()
    return tuple(
        probe.at(level, cells[probe.name, line.engine, level]) for probe in PROBES for level in ISOLATIONS
    )


def test_race(case, check, engine):
    stated = read_anomalies()[probe_of(case.name).name, engine.line.engine, case.isolation]
    outcomes = by_the_rules(predicted(case, engine.line))
    if not outcomes:  # the rules don't know what an application sees
        outcomes = {one.name: Expected(word="commits", source="anomalies.md") for one in case.writers}
    if stated.startswith(ABORTED):
        outcomes["A"] = Expected(word=stated.removeprefix(f"{ABORTED} "), source="anomalies.md")
    check(case, outcomes, replay=True)
