"""What if a MERGE's source is not the same when it is read again? Delta reads it once and keeps it, unless told not to.

MERGE reads its source twice: to find the files that it touches, and to write them anew. ``changing(a, b)`` is ``a`` the
first time and ``b`` from then on, so the two passes disagree wherever the source is not kept in between.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow
import pyarrow.parquet
import pytest
from deltalake import write_deltalake
from pyspark.sql.functions import udf

from lakerace.drivers.gate import Gate
from lakerace.drivers.phases import WITHIN
from lakerace.race import statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakerace.race import Statement

VERSIONS = ">=4.0"
KEEP = "spark.databricks.delta.merge.materializeSource"
AUTO_OR_NOT = pytest.mark.parametrize("keep", ["auto", "none"])


def merge(source: str) -> Statement:
    """What updates or inserts the ids that ``source`` gives."""
    return statement(
        f"MERGE INTO {{t}} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, 'merged')"
    )


CHANGES = merge("SELECT changing(1, 16) AS id")


@pytest.fixture
def changing(delta, tmp_path) -> Iterator[Callable[[bool], None]]:
    """``changing(deterministic)`` registers the function, as one that Spark may take for deterministic or not."""
    asked = str(tmp_path / "asked")

    def give(first: int, then: int) -> int:
        import os

        if os.path.exists(asked):  # noqa: PTH110
            return then
        open(asked, "w").close()  # noqa: PTH123
        return first

    def registering(deterministic: bool) -> None:
        made = udf(give, "bigint", useArrow=False)
        delta.udf.register("changing", made if deterministic else made.asNondeterministic())

    yield registering
    delta.sql("DROP TEMPORARY FUNCTION IF EXISTS changing")


@pytest.mark.parametrize("deterministic", [False, True], ids=["non-deterministic", "said-to-be-deterministic"])
@pytest.mark.parametrize("keep", ["auto", "all"])
def test_a_source_that_is_kept_is_read_once(engine, table_factory, setting, changing, keep, deterministic):
    changing(deterministic)
    setting(KEEP, keep)
    table = table_factory("flat")
    assert engine.run(table, "A", CHANGES).word == "commits"
    assert merged(engine, table) == [1]


def test_a_source_that_is_not_kept_gives_a_key_twice(engine, table_factory, setting, changing):
    """The file of id 1 is found, but the row that is written belongs to id 16, which its own file holds already."""
    changing(False)
    setting(KEEP, "none")
    table = table_factory("flat")
    assert engine.run(table, "A", CHANGES).word == "commits"
    assert merged(engine, table) == [16]
    assert [row[0] for row in engine.rows(table)[1]].count(16) == 2


@pytest.mark.parametrize(("keep", "notes"), [("auto", [1]), ("none", [16])])
def test_a_target_with_deletion_vectors_is_no_other(engine, table_factory, setting, changing, keep, notes):
    changing(False)
    setting(KEEP, keep)
    table = table_factory("flat-dv")
    assert engine.run(table, "A", CHANGES).word == "commits"
    assert merged(engine, table) == notes


@pytest.mark.parametrize("source", {
    "rand": "SELECT CAST(1 + floor(rand() * 16) AS BIGINT) AS id",
    "limit": "SELECT id FROM {t} LIMIT 1",
    "uuid": "SELECT CAST(1 + abs(hash(uuid())) % 16 AS BIGINT) AS id",
}.items(), ids=lambda item: item[0])
@AUTO_OR_NOT
def test_what_chance_decides_is_decided_once_for_both_passes(engine, table_factory, setting, source, keep):
    """rand() and uuid() take their seed when the statement is planned, and LIMIT meets the same files again."""
    setting(KEEP, keep)
    table = table_factory("flat")
    assert engine.run(table, "A", merge(source[1])).word == "commits"
    assert len(merged(engine, table)) == 1
    assert len({row[0] for row in engine.rows(table)[1]}) == 16


def test_a_frame_that_is_cached_is_read_once(delta, engine, table_factory, changing):
    changing(False)
    table = table_factory("flat")
    frame = delta.sql("SELECT changing(1, 16) AS id").cache()
    frame.createOrReplaceTempView("cached")
    try:
        assert engine.run(table, "A", merge("SELECT id FROM cached")).word == "commits"
        assert merged(engine, table) == [1]
    finally:
        frame.unpersist()


@pytest.fixture
def while_it_is_read(delta, engine, table_factory, tmp_path):
    """``while_it_is_read(source, change) -> (outcome, merged ids)``: a MERGE has begun to read its source, and
    ``change`` is made before it reads it again. There is one core: a change must not ask Spark for anything."""

    def running(source, change):
        table, gate = table_factory("flat"), Gate(tmp_path)
        delta.udf.register("gate", udf(gate.function, "bigint", useArrow=False))
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(engine.run, table, "A", merge(f"SELECT gate(id) AS id FROM {source}"))
            try:
                gate.wait()
                change()
            finally:
                gate.open()
            return run.result(WITHIN), merged(engine, table)

    yield running
    delta.sql("DROP TEMPORARY FUNCTION IF EXISTS gate")


def ids_of(row: int) -> pyarrow.Table:
    return pyarrow.table({"id": pyarrow.array([row], pyarrow.int64())})


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@AUTO_OR_NOT
def test_a_delta_table_that_is_written_meanwhile_is_read_once(setting, tmp_path, while_it_is_read, keep, mode):
    setting(KEEP, keep)
    source = str(tmp_path / "source")
    write_deltalake(source, ids_of(1))
    done, notes = while_it_is_read(f"delta.`{source}`", lambda: write_deltalake(source, ids_of(16), mode=mode))
    assert (done.word, notes) == ("commits", [1])


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with one Parquet file, of the id 1."""
    made = tmp_path / "source"
    made.mkdir()
    pyarrow.parquet.write_table(ids_of(1), made / "part.parquet")
    return made


@pytest.mark.parametrize(("keep", "notes"), [("auto", [1]), ("none", [16])])
def test_a_parquet_file_that_is_replaced_meanwhile(setting, folder, while_it_is_read, keep, notes):
    """Not kept, its second content is what is written over the first one's file: the key is there twice."""
    setting(KEEP, keep)

    def replace() -> None:
        pyarrow.parquet.write_table(ids_of(16), folder / "_later")
        (folder / "_later").replace(folder / "part.parquet")

    done, found = while_it_is_read(f"parquet.`{folder}`", replace)
    assert (done.word, found) == ("commits", notes)


@pytest.mark.parametrize(("keep", "word", "notes"), [("auto", "commits", [1]), ("none", "fails", [])])
def test_a_parquet_folder_that_is_overwritten_meanwhile(setting, folder, while_it_is_read, keep, word, notes):
    """Not kept, the file that was listed is missed by the second pass, and no harm is done."""
    setting(KEEP, keep)

    def overwrite() -> None:
        (folder / "part.parquet").unlink()
        pyarrow.parquet.write_table(ids_of(16), folder / "other.parquet")

    done, found = while_it_is_read(f"parquet.`{folder}`", overwrite)
    assert (done.word, found) == (word, notes)


def merged(engine, table) -> list[int]:
    return sorted(row[0] for row in engine.rows(table)[1] if row[-1] == "merged")
