"""Does the suite run on another release? A sample of the matrix on Delta 4.0.1, in an environment of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

ENGINES = ("delta-spark",)
VERSIONS = ">=4.4"
SUITES = Path(__file__).parent
LIMIT_S = 900


def test_a_sample_of_the_matrix_holds_on_delta_4_0(
    inner_pytest: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A plain INSERT held against every statement: feature enabling is where the two releases differ most."""
    sample = ["--race", "matrix/by-date/serializable/insert-values~*", "--results", str(tmp_path / "results")]
    run = inner_pytest(SUITES, "test_matrix.py", "--engine", "delta-4.0", "-q", *sample)
    out, _ = run.communicate(timeout=LIMIT_S)
    passed = re.search(r"(\d+) passed", out)
    assert run.returncode == 0, out[-4000:]
    assert passed, out[-4000:]
    assert int(passed[1]) >= 40, out[-4000:]
