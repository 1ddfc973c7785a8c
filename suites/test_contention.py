"""How many attempts does a commit take on Delta with Spark? Few dots of each scenario; all of them in profile full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.contention.scenarios import CLASHES, CROWDS, LIMIT, PRESSURES, gather, meet, starve

if TYPE_CHECKING:
    import pytest

ENGINES, VERSIONS = ("delta-spark",), ">=4.0"
EVERY = {"core": (12,), "full": (48, 24, 12, 6, 3)}
WRITERS = {"core": (2, 4), "full": (2, 4, 8, 16)}
ATTEMPTS = {"core": 2, "full": LIMIT}
"""Attempts after which a writer gives up."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    size = "core" if metafunc.config.getoption("lakerace_profile") == "core" else "full"
    for name, sizes in {"every": EVERY, "writers": WRITERS}.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, sizes[size])
    for name, cases in {"pressure": PRESSURES, "crowd": CROWDS, "clash": CLASHES}.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, cases, ids=[case.name for case in cases])
    if "limit" in metafunc.fixturenames:
        metafunc.parametrize("limit", [ATTEMPTS[size]])


def test_a_slow_merge_needs_as_many_attempts_as_foreseen(engine, pressure, every, limit):
    assert starve(engine, pressure, every, limit).as_predicted


def test_writers_together_need_as_many_attempts_as_foreseen(engine, crowd, writers):
    dot = gather(engine, crowd, writers)
    assert (dot.as_predicted, dot.commits) == (True, writers), dot


def test_compaction_and_ingestion_cost_each_other_what_is_foreseen(engine, clash, limit):
    assert meet(engine, clash, 0, limit).as_predicted
