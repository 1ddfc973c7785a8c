"""What the tests of a diagnosis share: a report as an error gives it, the diagnosis, and which version won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakerace.diagnose.explain import Diagnosis, explain
from lakerace.diagnose.logread import open_log
from lakerace.diagnose.reported import Reported
from lakerace.diagnose.view import diagnosis_text

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = {"day": "2026-08-11"}, {"day": "2026-08-12"}
MERGE = (
    "MERGE INTO orders t USING updates s ON t.id = s.id AND t.day = s.day "
    "WHEN MATCHED THEN UPDATE SET note = s.note"
)
BY_SOURCE = (
    "MERGE INTO orders t USING u s ON t.id = s.id AND t.day = '2026-08-11' "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE"
)


def said(kind: str, **more: Any) -> Reported:
    return Reported(kind=kind, exception="AnException", **more)


def diagnosed(table: Path, *args: Any, **kwargs: Any) -> Diagnosis:
    """The diagnosis, which must be printable too."""
    found = explain(open_log(str(table)), *args, **kwargs)
    assert diagnosis_text(found)
    return found


def won(found: Diagnosis) -> int | None:
    return None if found.winner is None else found.winner.version
