"""The command line, called in this process; and hypothesis, which draws the same examples every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from lakerace import cli

if TYPE_CHECKING:
    from collections.abc import Callable


# A deadline measures the machine, and an example that was never drawn before would fail somebody else's change.
settings.register_profile("same-every-time", derandomize=True, deadline=None, database=None)
settings.load_profile("same-every-time")


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``told(*arguments)``: exit code, stdout and stderr of ``lakerace``."""

    def telling(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return telling


@pytest.fixture
def refused(told: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """``refused(*arguments, code=2)``: the one line on stderr that a wrong command gets."""

    def refusing(*arguments: str, code: int = 2) -> str:
        found, out, err = told(*arguments)
        assert (found, out) == (code, "")
        assert err.startswith("lakerace: ")
        assert err.count("\n") == 1
        return err

    return refusing
