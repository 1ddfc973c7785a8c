"""Does each reproducer of a field report still show what its paragraph says? It is run as it stands."""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.engines.lines import line
from lakerace.field import Report, load_reports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

ENGINES, VERSIONS = ("delta-spark",), ">=4.0"
SHOWS = {
    "A7": r"  10  WRITE: read 8, Serializable, blind append yes",
    "A9": r'"rows_after": \[\[99, "2026-08-12"',
    "C1": r"B commits nothing",
    "C15": r"A aborts with MetadataChangedException",
    "C19": r"00000000000000000003\.json(?s:.*)DELTA_VERSIONS_NOT_CONTIGUOUS",
    "G5": r"A aborts with ConcurrentAppendException \(DELTA_CONCURRENT_APPEND\)",
    "I8": r'"root": "org.apache.spark.sql.delta.DeltaIllegalStateException"',
    "I11": r"open .*16 row\(s\): 1, \d;(?s:.*)latest .*16 row\(s\): 1, (?:1[6-9]|2\d|3[01]);",
    "I12": r"isBlindAppend=True, (?s:.*)STRICT Row\(isBlindAppend=False, engineInfo='Kernel",
    "I13": r"Serial replay: (?s:.*)write skew",
    "I14": r"16 before, 32 after: 16 new, 0 gone",
}
"""By report a pattern of what is printed."""
REPRODUCED = [report for report in load_reports() if report.reproducer]


def test_what_each_shows_is_looked_for() -> None:
    assert [report.id for report in REPRODUCED] == list(SHOWS)


@contextmanager
def settings_kept(spark: SparkSession) -> Iterator[None]:
    """A script that fails half way leaves no setting behind for the tests that come after it."""
    before = dict(spark.conf.getAll)
    try:
        yield
    finally:
        for key in spark.conf.getAll.keys() - before.keys():
            spark.conf.unset(key)


@pytest.mark.parametrize("report", REPRODUCED, ids=lambda report: report.id)
def test_a_reproducer_shows_what_is_told_of_it(
    report: Report, engine: Any, told: Callable[..., tuple[int, str, str]], lend: Callable[[], None],
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments, given = report.command or ((), "")
    wanted = line(arguments[arguments.index("--engine") + 1] if "--engine" in arguments else None)
    if wanted != engine.line and wanted.engine == engine.line.engine:
        pytest.skip(f"it is about {wanted.name}")
    if wanted == engine.line:
        lend()
    if report.command is None:
        with settings_kept(engine.spark):
            exec(compile(report.reproducer, report.id, "exec"), {})  # noqa: S102 - what stands in conf/field.toml
        printed = capsys.readouterr().out
    else:
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        code, printed, complaints = told(*arguments)
        assert (code, complaints) == (0, "")
    assert re.search(SHOWS[report.id], printed), printed
