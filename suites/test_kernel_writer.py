"""Does an INSERT by Delta Kernel count as Spark's own does?

With ``spark.databricks.delta.v2.enableMode`` at STRICT, Delta 4.4 hands tables to Spark's newer interface and writes
through Kernel. It appends only; every other statement is refused. It is a second writer that checks, in the same JVM.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from lakerace import deltalog
from lakerace.engines import session
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, statement

VERSIONS = ">=4.4"
STRICT = ("spark.databricks.delta.v2.enableMode", "STRICT")
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
UPDATE, OPTIMIZE = "UPDATE {t} SET note = 'A' WHERE id = 1", "OPTIMIZE {t}"


@pytest.mark.report("I12")
@pytest.mark.parametrize(("level", "held", "by_spark", "by_kernel"), [
    (SERIALIZABLE, UPDATE, "append", "append"),
    (WRITE_SERIALIZABLE, UPDATE, "commits", "append"),
    (WRITE_SERIALIZABLE, OPTIMIZE, "commits", "commits"),
])
@pytest.mark.parametrize("writer", ["spark", "kernel"])
def test_an_insert_by_kernel_is_not_excused_as_blind(engine, table_factory, level, held, by_spark, by_kernel, writer):
    """Its commit says isBlindAppend = false of literal rows, so WriteSerializable does not leave it out of the check.

    It records neither the version that it read nor the level either.
    """
    table = table_factory("flat", level)
    waiting = engine.hold(table, "A", statement(held))
    with session.setting(engine.spark, *STRICT) if writer == "kernel" else nullcontext():
        assert engine.run(table, "B", statement(INSERT)).word == "commits"
    row = deltalog.history(table.path, table.base_version)[0]
    assert ("Kernel" in (row.engineInfo or ""), row.isBlindAppend) == (writer == "kernel", writer == "spark")
    assert waiting.release().word == (by_kernel if writer == "kernel" else by_spark)


@pytest.mark.report("I12")
@pytest.mark.parametrize("text", [UPDATE, "DELETE FROM {t} WHERE id = 1", "INSERT OVERWRITE {t} SELECT * FROM {other}"])
def test_kernel_refuses_what_is_no_append(engine, table_factory, text):
    with session.setting(engine.spark, *STRICT):
        assert engine.run(table_factory("flat"), "A", statement(text)).word == "fails"
