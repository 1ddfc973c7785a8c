"""What if a MERGE's source is not the same when it is read again? Delta reads it once and keeps it, unless told not to.

MERGE reads its source twice: to find the files that it touches, and to write them anew. ``changing(a, b)`` is ``a`` the
first time and ``b`` from then on, so the two passes disagree wherever the source is not kept in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import udf

from lakerace.race import statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSIONS = ">=4.0"
KEEP = "spark.databricks.delta.merge.materializeSource"
MERGE = (
    "MERGE INTO {t} t USING (SELECT changing(1, 16) AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET note = 'merged' WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, 'merged')"
)


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
    assert engine.run(table, "A", statement(MERGE)).word == "commits"
    assert merged(engine, table) == [1]


def test_a_source_that_is_not_kept_gives_a_key_twice(engine, table_factory, setting, changing):
    """The file of id 1 is found, but the row that is written belongs to id 16, which its own file holds already."""
    changing(False)
    setting(KEEP, "none")
    table = table_factory("flat")
    assert engine.run(table, "A", statement(MERGE)).word == "commits"
    assert merged(engine, table) == [16]
    assert [row[0] for row in engine.rows(table)[1]].count(16) == 2


def merged(engine, table) -> list[int]:
    return sorted(row[0] for row in engine.rows(table)[1] if row[-1] == "merged")
