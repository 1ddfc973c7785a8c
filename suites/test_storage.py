"""What do storage, log store, checkpoint and VACUUM do to a commit that was acknowledged?

Here are no two transactions that conflict, and so no exception: the damage shows up when somebody reads. What is made
by hand (the parts of two checkpoints) or breaks the table (a VACUUM without retention) is a test; a race must leave
every live file on disk, so the races are those of a VACUUM that spares what is staged.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from lakerace.layouts import layout
from lakerace.outcomes import COMMITS
from lakerace.race import held_against, statement
from lakerace.rules.settings import RETENTION

if TYPE_CHECKING:
    from lakerace.engines.lines import Line
    from lakerace.race import Race

VERSIONS = ">=4.0"
VACUUM_NOW, VACUUM_LITE, VACUUM = "VACUUM {t} RETAIN 0 HOURS", "VACUUM {t} LITE RETAIN 0 HOURS", "VACUUM {t}"
STAGED = {
    "insert": "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')",
    "update": "UPDATE {t} SET note = 'A' WHERE id = 1",
    "delete": "DELETE FROM {t} WHERE id = 1",
    "optimize": "OPTIMIZE {t}",
}
UNCHECKED = ((RETENTION, "false"),)
RACES = tuple(
    held_against(f"{held}-outlives-vacuum{name}", layout=layout("flat-dv"), held=STAGED[held], winners=[vacuum],
                 expect=[COMMITS, COMMITS], settings=settings, reports=("E13",))
    for held in STAGED
    for name, vacuum, settings in (("", VACUUM, ()), ("-lite-without-retention", VACUUM_LITE, UNCHECKED))
)


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    """In the core those of the INSERT."""
    return RACES if profile == "full" else RACES[:2]


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("E13")
@pytest.mark.parametrize(("held", "vacuum"), [
    *((held, VACUUM_NOW) for held in STAGED), *product(("insert", "optimize"), (VACUUM_LITE, VACUUM)),
])
def test_vacuum_without_retention_eats_what_is_staged(delta, engine, table_factory, setting, held, vacuum):
    """The writer commits all the same; a scan of that file fails. The count from statistics and every scan that skips
    the file go on as if nothing were. LITE, which deletes only what the log names, and the default spare it."""
    setting(RETENTION, "false")
    table = table_factory("flat-dv", audited=vacuum != VACUUM_NOW)
    writer = engine.hold(table, "A", statement(STAGED[held]))
    assert engine.run(table, "B", statement(vacuum)).word == "commits"
    assert writer.release().word == "commits"
    rows = {"insert": 17, "delete": 15}.get(held, 16)
    everything = engine.fill("SELECT * FROM {t}", table)
    assert delta.sql(everything.replace("*", "count(*)")).head() == (rows,)
    if vacuum != VACUUM_NOW:
        assert len(delta.sql(everything).collect()) == rows
        return
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|does not exist"):
        delta.sql(everything).collect()
    if held != "optimize":
        assert len(delta.sql(f"{everything} WHERE id = 5").collect()) == 1


@pytest.mark.report("E11")
@pytest.mark.parametrize("wrong", ["protocol", "files"])
def test_mixed_parts_of_two_checkpoints_lose_files_without_a_word(delta, engine, table_factory, setting, wrong):
    """A second attempt at a checkpoint spreads the files over its parts anew; a part of each together is none.

    Where the part with protocol and metadata is the wrong one, the table can't be read; else rows are missing.
    """
    import pyarrow.parquet

    table = table_factory("flat")
    setting("spark.databricks.delta.checkpoint.partSize", "5")
    delta._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(delta._jsparkSession, str(table.path)).checkpoint()
    parts = sorted((table.path / "_delta_log").glob("*.checkpoint.*.parquet"))
    whole = pyarrow.concat_tables(pyarrow.parquet.read_table(part) for part in parts)
    whole = whole.take(sorted(range(whole.num_rows), key=lambda row: whole["add"][row].is_valid))
    # The first attempt: protocol, metadata and four files; four files. The second: four files; the rest.
    first, second = (whole.slice(0, 6), whole.slice(6)), (whole.slice(2, 4), whole.slice(6))
    mixed = (second[0], first[1]) if wrong == "protocol" else (first[0], second[0])
    for part, content in zip(parts, mixed, strict=True):
        pyarrow.parquet.write_table(content, part)
    for checksum in parts[0].parent.glob(".*.crc"):
        checksum.unlink()
    engine.forget(table.path)
    read = engine.fill("SELECT id FROM {t}", table)
    if wrong == "protocol":
        with pytest.raises(Exception, match="DELTA_STATE_RECOVER_ERROR"):
            delta.sql(read).collect()
    else:
        assert (len(delta.sql(read).collect()), len(table.rows)) == (8, 16)
