"""Is what comes out of a run that of the race, and not of the folder it ran in?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakerace.observe import Outcome
from lakerace.run import portable

TABLE = Path("/data/lakerace-1-x/jvm-y/tables/flat-1")
LOST = Outcome(writer="A", statement="update", text="UPDATE ...", held=True, outcome="aborts", kind="append")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"added data to table delta.`file:{TABLE}` committed at version 9", "added data to table {t} committed at"),
        (f"no column x in `spark_catalog`.`delta`.`{TABLE}`.", "no column x in {t}."),
        (f"the table delta.`{TABLE}/` is gone", "the table {t} is gone"),
        (f"can't read file://{TABLE}/part-0.parquet twice", "can't read {t}/part-0.parquet twice"),
        (f"{TABLE}: no log", "{t}: no log"),
        (f"nor does {TABLE}1, {TABLE}-dv or /tables/flat-1 change", f"nor does {TABLE}1, {TABLE}-dv or /tables/flat-1"),
    ],
)
def test_the_table_is_told_as_it_was_written(said: str, told: str) -> None:
    found = portable(replace(LOST, message=said, parameters={"tableName": said}), TABLE)
    assert str(found.message).startswith(told)
    assert found.parameters == {"tableName": found.message}


def test_what_names_no_table_stays() -> None:
    assert portable(LOST, TABLE) == LOST
