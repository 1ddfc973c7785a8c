"""Does another log store change who conflicts? It writes one entry after the other, and what was read decides the rest.

``spark.delta.logStore.file.impl`` gives the paths of a local disk one of the stores that Delta brings along. That they
are told apart by the scheme of a path is what Delta asks of them; none of them is asked about a conflict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace.layouts import layout
from lakerace.outcomes import BLIND, COMMITS, LOSES, LOSES_P
from lakerace.race import Expected, Race, held_against

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakerace.engines.lines import Line
    from lakerace.race import Layout

VERSIONS = ">=4.0"
FLAT, BY_DATE = layout("flat"), layout("by-date")
STORE = "spark.delta.logStore.file.impl"
STORES = {
    "local": "io.delta.storage.LocalLogStore",
    "hdfs": "io.delta.storage.HDFSLogStore",
    "s3": "io.delta.storage.S3SingleDriverLogStore",
    "azure": "io.delta.storage.AzureLogStore",
    "gcs": "io.delta.storage.GCSLogStore",
}
INSERT = "INSERT INTO {t} VALUES (99, DATE'2026-08-12', 'FR', 1, 'new')"


def merge(named: str, key: int = 1, date: str = "11") -> str:
    return (f"MERGE INTO {{t}} t USING (SELECT {key}L AS id, DATE'2026-08-{date}' AS event_date, 'DE' AS country, "
            f"7 AS amount, 'merged' AS note) s ON t.id = s.id AND {named} "
            "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT *")


JOINED = "t.event_date = s.event_date"
MINE, OTHERS = "t.event_date = DATE'2026-08-11'", "t.event_date = DATE'2026-08-12'"
RESTORE = "RESTORE TABLE {t} TO VERSION AS OF 7"
OPTIMIZE_11 = "OPTIMIZE {t} WHERE event_date = DATE'2026-08-11'"
PAIRS: dict[str, tuple[Layout, str, str, Expected, Expected]] = {
    "a-merge-by-the-join-loses-to-an-insert": (BY_DATE, merge(JOINED), INSERT, LOSES_P, BLIND),
    "a-merge-by-a-literal-outlives-an-insert": (BY_DATE, merge(MINE), INSERT, COMMITS, BLIND),
    "a-merge-by-the-join-loses-to-a-merge": (BY_DATE, merge(JOINED), merge(JOINED, 10, "12"), LOSES_P, COMMITS),
    "a-merge-by-a-literal-outlives-a-merge": (BY_DATE, merge(MINE), merge(OTHERS, 10, "12"), COMMITS, COMMITS),
    "a-merge-loses-to-an-insert-without-partitions": (FLAT, merge(MINE), INSERT, LOSES, BLIND),
    "an-insert-outlives-a-merge": (FLAT, INSERT, merge(MINE), BLIND, COMMITS),
    "optimize-loses-to-a-merge": (BY_DATE, OPTIMIZE_11, merge(MINE), Expected(word="delete-read"), COMMITS),
    "optimize-outlives-an-insert": (BY_DATE, OPTIMIZE_11, INSERT, COMMITS, BLIND),
    "a-restore-loses-to-an-insert": (FLAT, RESTORE, INSERT, Expected(word="write"), BLIND),
}
IN_CORE = (("local", "a-merge-by-the-join-loses-to-an-insert"), ("local", "a-merge-by-a-literal-outlives-an-insert"))


def with_store(store: str, pair: str) -> Race:
    made, held, winner, *became = PAIRS[pair]
    return held_against(f"with-the-{store}-log-store-{pair}", layout=made, held=held, winners=[winner], expect=became,
                        settings=((STORE, STORES[store]),), reports=("A3", "E7"))


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    every = tuple((store, pair) for store in STORES for pair in PAIRS)
    return tuple(with_store(*one) for one in (every if profile == "full" else IN_CORE))


@pytest.fixture
def stores(engine, monkeypatch) -> list[str]:
    """The class of log store of each table that was raced, as its log has it when the race is over."""
    used: list[str] = []
    drop: Callable[..., None] = engine.drop

    def dropping(table) -> None:
        used.append(engine.log_store(table.path))
        drop(table)

    monkeypatch.setattr(engine, "drop", dropping)
    return used


def test_race(case, check, stores):
    check(case, rules=True)
    assert stores == [dict(case.settings)[STORE]]


@pytest.mark.report("E7")
@pytest.mark.parametrize("store", STORES)
def test_the_log_store_of_a_path_can_be_asked(engine, table_factory, setting, store):
    """A local path has the store that the context names for `file`."""
    setting(STORE, STORES[store])
    assert engine.log_store(table_factory("flat").path) == STORES[store]


@pytest.mark.report("E7")
def test_a_local_path_has_the_store_of_hdfs_by_default(engine, table_factory):
    """It renames under a lock of one JVM: not safe for writers in two."""
    assert engine.log_store(table_factory("flat").path) == "io.delta.storage.HDFSLogStore"


@pytest.mark.report("E7")
def test_a_setting_of_the_session_chooses_no_log_store(delta, engine, table_factory):
    """It is taken without a word and never looked at: what is to hold must stand there when the context starts."""
    delta.conf.set(STORE, STORES["local"])
    try:
        assert engine.log_store(table_factory("flat").path) == "io.delta.storage.HDFSLogStore"
    finally:
        delta.conf.unset(STORE)
