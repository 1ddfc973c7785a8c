"""CREATE TABLE by Delta's own API, where SQL of a release refuses generated columns: what it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakerace.engines import table_api
from lakerace.engines.lines import line

tables = pytest.importorskip("delta.tables")
BY_DAY = """
    CREATE TABLE {t} (id BIGINT NOT NULL, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))
    USING delta PARTITIONED BY (day) TBLPROPERTIES ('delta.checkpointInterval' = '100')"""


class Builder:
    """Writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def noting(*given: Any, **more: Any) -> Builder:
            self.asked.append((name, *given, *more.items()))
            return self

        return noting


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    made = Builder()
    monkeypatch.setattr(tables.DeltaTable, "create", lambda _: made)
    return made


def test_columns_partitions_and_properties_are_those_of_the_statement(builder: Builder) -> None:
    table_api.create(None, BY_DAY, Path("/t"))
    assert builder.asked == [
        ("location", "/t"), ("addColumn", "id", "BIGINT", ("nullable", False)), ("addColumn", "at", "TIMESTAMP"),
        ("addColumn", "day", "DATE", ("generatedAlwaysAs", "CAST(at AS DATE)")), ("partitionedBy", "day"),
        ("property", "delta.checkpointInterval", "100"), ("execute",),
    ]


@pytest.mark.parametrize(("declared", "how"), [
    ("ALWAYS AS IDENTITY", ("generatedAlwaysAs", 1, 1)),
    ("BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 2)", ("generatedByDefaultAs", 5, 2)),
])
def test_an_identity_column_has_start_and_step(builder: Builder, declared: str, how: tuple[str, int, int]) -> None:
    table_api.create(None, f"CREATE TABLE {{t}} (id BIGINT GENERATED {declared}) USING delta", Path("/t"))
    key, start, step = how
    assert builder.asked[1] == ("addColumn", "id", "BIGINT", (key, tables.IdentityGenerator(start, step)))


@pytest.mark.parametrize("text", [
    "CREATE TABLE {t} (id BIGINT DEFAULT 1) USING delta", "CREATE TABLE {t} USING delta AS SELECT 1",
    "CREATE TABLE {t} (id BIGINT) USING delta COMMENT 'x'",
])
def test_what_it_does_not_understand_is_no_table(builder: Builder, text: str) -> None:
    with pytest.raises(ValueError, match=r"is not understood|no CREATE TABLE with columns"):
        table_api.create(None, text, Path("/t"))
    assert ("execute",) not in builder.asked


@pytest.mark.parametrize(("text", "name", "needed"), [
    (BY_DAY, "delta-4.0", True), (BY_DAY, "delta-4.4", False),
    ("INSERT INTO {t} VALUES ('generated always as')", "delta-4.0", False),
    ("CREATE TABLE {t} (generated BIGINT) USING delta", "delta-4.0", False),
])
def test_only_generated_columns_on_a_release_that_refuses_them_need_it(text: str, name: str, needed: bool) -> None:
    assert table_api.needs_api(text, line(name)) is needed
