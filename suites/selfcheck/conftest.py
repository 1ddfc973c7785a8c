"""Hypothesis draws the same examples every time."""

from __future__ import annotations

from hypothesis import settings

# A deadline measures the machine, and an example that was never drawn before would fail somebody else's change.
settings.register_profile("same-every-time", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("same-every-time")
