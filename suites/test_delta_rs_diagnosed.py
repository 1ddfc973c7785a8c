"""Does a diagnosis find the winner of a real race of delta-rs, and agree with the rules? Each pair that loses."""

from __future__ import annotations

import datetime
import shutil
import traceback
from typing import TYPE_CHECKING

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from lakerace.diagnose.texts import read_text
from selfcheck.diagnosing import diagnosed, won

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deltalake.table import TableMerger


def rows(*ids: int, day: datetime.date = datetime.date(2026, 8, 11), note: str = "new") -> pyarrow.Table:
    return pyarrow.table({
        "id": pyarrow.array(ids, pyarrow.int64()),
        "day": pyarrow.array([day] * len(ids), pyarrow.date32()),
        "note": pyarrow.array([note] * len(ids), pyarrow.string()),
    })


def matched(table: DeltaTable) -> TableMerger:
    return table.merge(rows(1), "t.id = s.id", source_alias="s", target_alias="t")


REAL: dict[str, tuple[Callable[[DeltaTable], object], str | None]] = {
    "append": (lambda t: write_deltalake(t, rows(99), mode="append"),
               "INSERT INTO t VALUES (99, DATE'2026-08-11', 'new')"),
    "update": (lambda t: t.update(updates={"note": "'u'"}, predicate="id = 1"), "UPDATE t SET note = 'u' WHERE id = 1"),
    "update-day": (lambda t: t.update(updates={"note": "'u'"}, predicate="day = '2026-08-12'"),
                   "UPDATE t SET note = 'u' WHERE day = '2026-08-12'"),
    "delete": (lambda t: t.delete("id = 1"), "DELETE FROM t WHERE id = 1"),
    "merge": (lambda t: matched(t).when_matched_update_all().execute(),
              "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"),
    "optimize": (lambda t: t.optimize.compact(), "OPTIMIZE t"),
    "property": (lambda t: t.alter.set_table_properties({"delta.appendOnly": "false"}), None),
    "constraint": (lambda t: t.alter.add_constraint({"positive": "id > 0"}), None),
}


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables ``flat`` and ``by-day``: four commits with two rows each, two of them of one day."""
    made = tmp_path_factory.mktemp("layouts")
    for name, partitioned in (("flat", None), ("by-day", ["day"])):
        for number, day in enumerate((11, 11, 12, 12)):
            write_deltalake(
                made / name, rows(2 * number + 1, 2 * number + 2, day=datetime.date(2026, 8, day)), mode="append",
                partition_by=partitioned,
            )
    return made


@pytest.mark.parametrize("layout", ["flat", "by-day"])
@pytest.mark.parametrize("winner", REAL)
@pytest.mark.parametrize("held", ["append", "update", "update-day", "delete", "merge", "optimize"])
def test_a_real_race_of_delta_rs(tmp_path: Path, layouts: Path, held: str, winner: str, layout: str) -> None:
    table = shutil.copytree(layouts / layout, tmp_path / "table")
    stale = DeltaTable(table)
    read = stale.version()
    REAL[winner][0](DeltaTable(table))
    act, statement = REAL[held]
    try:
        act(stale)
    except Exception as error:
        text = "".join(traceback.format_exception(error))
    else:
        return  # both commit: nothing to diagnose
    reported = read_text(text)
    assert reported is not None
    assert (reported.engine, reported.client) == ("delta-rs", "python")
    for more in ({}, {"statement": statement}, {"read_version": read}, {"statement": statement, "read_version": read}):
        found = diagnosed(table, reported=reported, **more)
        assert won(found) == read + 1
        assert (found.profile, found.kind) == ("delta-rs", reported.kind)
        assert found.agrees in (None, True)
        assert found.check is not None
        assert found.check.kind == reported.kind
        assert found.change is not None
