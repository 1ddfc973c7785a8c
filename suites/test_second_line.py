"""Does the suite run elsewhere? A sample of the matrix on Delta 4.0.1, in its own environment; orders on delta-rs."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

ENGINES = ("delta-spark",)
VERSIONS = ">=4.4"
SUITES = Path(__file__).parent
LIMIT_S = 900


@pytest.fixture
def passed_elsewhere(inner_pytest: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> Callable[..., int]:
    """``passed_elsewhere(line, *arguments) -> int``: how many tests passed there; all must."""

    def running(line: str, *arguments: str) -> int:
        run = inner_pytest(SUITES, "--engine", line, "-q", f"--results={tmp_path / 'results'}", *arguments)
        out, _ = run.communicate(timeout=LIMIT_S)
        passed = re.search(r"(\d+) passed", out)
        assert run.returncode == 0, out[-4000:]
        assert passed, out[-4000:]
        return int(passed[1])

    return running


def test_a_sample_of_the_matrix_holds_on_delta_4_0(passed_elsewhere: Callable[..., int]) -> None:
    """A plain INSERT held against every statement that changes the table: there the two releases differ most."""
    changes = (
        "enable-*", "set-property", "add-column", "comment", "create-or-replace", "restore", "optimize*", "merge-*",
    )
    sample = [("--race", f"matrix/by-date/serializable/insert-values~{one}") for one in changes]
    assert passed_elsewhere("delta-4.0", "test_matrix.py", *chain.from_iterable(sample)) >= 18


def test_every_order_every_anomaly_and_its_own_races_hold_on_delta_rs(passed_elsewhere: Callable[..., int]) -> None:
    """The orders that Spark only samples, all of them, where a race takes a tenth of a second."""
    suites = (
        "test_every_order.py", "test_anomalies.py", "test_random_histories.py", "test_free_races.py",
        "test_delta_rs_writers.py",
    )
    assert passed_elsewhere("delta-rs", *suites) >= 240
