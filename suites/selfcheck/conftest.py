"""Hypothesis draws the same examples every time; and a run by hand, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from lakerace.results import Results

# A deadline measures the machine, and an example that was never drawn before would fail somebody else's change.
settings.register_profile("same-every-time", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("same-every-time")


@pytest.fixture(scope="session")
def ran() -> Results:
    """A run of sixty races with every verdict."""
    from selfcheck.judged import run_of

    return run_of(60)
