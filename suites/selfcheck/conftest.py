"""Hypothesis draws the same examples every time; a run and a log by hand."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import deltalake  # noqa: F401 - pytester forgets what it imported, and a process can load this only once
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pathlib import Path

    from lakerace.results import Results

# A deadline measures the machine, and an example that was never drawn before would fail somebody else's change.
settings.register_profile("same-every-time", derandomize=True, deadline=None, database=None)
settings.load_profile("same-every-time")


@pytest.fixture(scope="session")
def ran() -> Results:
    """A run of sixty races with every verdict."""
    from selfcheck.judged import run_of

    return run_of(60)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """The folder of a table by day whose log is written by hand: versions 0 to 5."""
    from lakerace.diagnose.handmade import by_day

    return by_day(tmp_path / "orders")


def pytest_collection_finish() -> None:
    gc.freeze()  # else the collector walks all that the imports made, again and again: a tenth of the whole time
