"""No log, however broken, gets more than an answer or one line: entries with any value in any place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakerace.conflicts import KINDS
from lakerace.diagnose.audit import audit
from lakerace.diagnose.explain import explain
from lakerace.diagnose.handmade import by_day
from lakerace.diagnose.logread import open_log
from lakerace.diagnose.reported import Reported
from lakerace.diagnose.store import TableUnreadable
from lakerace.diagnose.view import diagnosis_text
from lakerace.diagnose.view_audit import audit_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STRANGE = st.sampled_from(
    [None, 0, 1, -5, 2**70, 1e99, True, "", "x", "2026", "[", "\ud800", [], [1], [["a"]], {}, {"a": 1}]
)
STATEMENTS = (
    None, "UPDATE t SET note = 'x' WHERE id = 1 AND day = '2026-08-12'", "DELETE FROM t", "OPTIMIZE t",
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *", "INSERT INTO t SELECT * FROM t",
)


def entries() -> dict[str, list[Any]]:
    with TemporaryDirectory() as folder:
        log = by_day(Path(folder)) / "_delta_log"
        return {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in log.iterdir()}


ENTRIES = entries()


def places(found: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value in nested JSON, the whole left out."""
    if before:
        yield before
    members = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for name, value in members:
        yield from places(value, (*before, name))


PLACES = [(name, place) for name, lines in sorted(ENTRIES.items()) for place in places(lines)]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    changes=st.lists(st.tuples(st.sampled_from(PLACES), STRANGE), max_size=4),
    lost=st.sets(st.sampled_from(sorted(ENTRIES)), max_size=1),
    cut=st.none() | st.tuples(st.sampled_from(sorted(ENTRIES)), st.integers(0, 300)),
    kind=st.sampled_from(sorted(KINDS)),
    version=st.sampled_from([None, 3, 5, 99]),
    statement=st.sampled_from(STATEMENTS),
)
def test_any_log_is_an_answer_or_one_line(
    changes: list[tuple[tuple[str, tuple[Any, ...]], Any]], lost: set[str], cut: tuple[str, int] | None, kind: str,
    version: int | None, statement: str | None,
) -> None:
    made = copy.deepcopy(ENTRIES)
    for (name, place), value in changes:
        put(made[name], place, value)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "_delta_log"
        log.mkdir()
        for name in made.keys() - lost:
            content = "\n".join(map(json.dumps, made[name])).encode()
            (log / name).write_bytes(content[: cut[1]] if cut and cut[0] == name else content)
        answered(lambda: audit_text(plain(audit(open_log(folder)))))
        reported = Reported(kind=kind, exception="AnException", version=version)
        answered(lambda: diagnosis_text(plain(explain(open_log(folder), reported=reported, statement=statement))))


def put(found: Any, place: tuple[Any, ...], value: Any) -> None:
    """Put ``value`` at ``place``, unless an earlier change left no such place."""
    for name in place[:-1]:
        if not has(found, name):
            return
        found = found[name]
    if isinstance(found, dict) or has(found, place[-1]):
        found[place[-1]] = value


def has(found: Any, name: Any) -> bool:
    if isinstance(found, list):
        return isinstance(name, int) and name < len(found)
    return isinstance(found, dict) and name in found


def plain(found: Any) -> Any:
    """``found``, which must be JSON too."""
    assert msgspec.json.encode(found)
    return found


def answered(ask: Callable[[], str]) -> None:
    try:
        told, lines = ask(), 1000
    except TableUnreadable as refused:
        told, lines = str(refused), 1
    assert told
    assert told.count("\n") < lines
