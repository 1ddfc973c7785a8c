"""Free races: many writers at once, nobody steered. Does what must always hold, hold?

Acknowledged commits are history rows, no count is lost, no file is added or removed twice, every live file is there,
versions have no gaps. Who wins is chance and is not asserted.
"""

from __future__ import annotations

import pytest

from lakerace.free import run_free, workload
from lakerace.layouts import LAYOUTS
from lakerace.race import ISOLATIONS
from lakerace.soak import seconds_of, seeds

ENGINES = ("delta-spark", "delta-rs")
VERSIONS = ">=0"
SIZES = {"core": {"delta-spark": (4, 3), "delta-rs": (8, 10)}, "full": {"delta-spark": (10, 20), "delta-rs": (16, 40)}}


def size(config, engine):
    return SIZES["full" if config.getoption("lakerace_profile") == "full" else "core"][engine.line.engine]


def tried(config):
    """One seed; in profile soak new ones, for a quarter of its time on each layout and level."""
    if config.getoption("lakerace_profile") != "soak":
        return (1,)
    return seeds(config.getoption("lakerace_soak_seed"), seconds_of(config.getoption("lakerace_soak_for")) / 4)


@pytest.mark.parametrize("layout", ["by-date", "flat-dv"])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_must_always_hold_holds(engine, pytestconfig, layout, isolation):
    writers, each = size(pytestconfig, engine)
    for seed in tried(pytestconfig):
        found = run_free(engine, workload(writers, each, seed), layout=LAYOUTS[layout], isolation=isolation, seed=seed)
        print(found)
        assert found.broken == (), str(found)
        assert len(found.ended) == writers * each
        assert found.acknowledged <= found.attempts
