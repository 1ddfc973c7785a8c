"""What does an application's transaction id protect? Equal, lower and higher versions of one id, and two ids.

A writer gives an id and a version (``txnAppId`` and ``txnVersion``, as options of a DataFrame or as settings of the
session). One after the other, a version that is not higher than the last one is skipped; side by side, any two of one
id conflict, whatever their versions.
"""

from __future__ import annotations

import pytest

from lakerace import deltalog
from lakerace.layouts import layout
from lakerace.race import Expected, Write, held_against, statement

VERSIONS = ">=4.0"
FLAT = layout("flat")
COMMITS = Expected(word="commits")
TRANSACTION = Expected(word="transaction", surfaced="ConcurrentTransactionException", sqlstate="2D521",
                       root="io.delta.exceptions.ConcurrentTransactionException",
                       condition="DELTA_CONCURRENT_TRANSACTION")
AS_ID_5 = (("spark.databricks.delta.write.txnAppId", "loader"), ("spark.databricks.delta.write.txnVersion", "5"))
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
CHANGES = {
    "update": "UPDATE {t} SET note = 'A' WHERE id = 1",
    "delete": "DELETE FROM {t} WHERE id = 1",
    "merge": "MERGE INTO {t} t USING {other} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
}


def append(version: int, application: str = "loader") -> Write:
    row = "SELECT 204L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note"
    return Write(select=row, options=(("txnAppId", application), ("txnVersion", str(version))))


RACES = (
    *(held_against(f"version-{loser}-loses-to-version-{winner}-of-the-same-application", layout=FLAT,
                   held=append(loser), winners=[append(winner)], expect=[TRANSACTION, COMMITS], reports=("D1",))
      for winner, loser in ((5, 6), (6, 5), (5, 5))),
    held_against("versions-of-two-applications-both-commit", layout=FLAT, held=append(5),
                 winners=[append(5, "other loader")], expect=[COMMITS, COMMITS], reports=("D1",)),
    held_against("an-append-with-an-id-passes-one-without", layout=FLAT, held=append(5), winners=[INSERT],
                 expect=[COMMITS, COMMITS], reports=("D1",)),
    held_against("an-append-without-an-id-passes-one-with", layout=FLAT, held=INSERT, winners=[append(5)],
                 expect=[COMMITS, COMMITS], reports=("D1",)),
    *(held_against(f"the-id-of-the-session-is-checked-before-the-rows-of-{name}", layout=FLAT, held=sql,
                   winners=[INSERT], settings=AS_ID_5, expect=[TRANSACTION, COMMITS], reports=("D1", "D9"))
      for name, sql in {"insert": INSERT, **CHANGES}.items()),
    held_against("an-id-that-one-thread-set-ends-the-different-insert-of-another", layout=FLAT, held=INSERT,
                 winners=[INSERT.replace("201", "202")], settings=AS_ID_5, expect=[TRANSACTION, COMMITS],
                 reports=("D9",),
                 why="writers A and B are threads of one session, and its settings are everybody's"),
    held_against("without-an-id-in-the-session-two-different-inserts-both-commit", layout=FLAT, held=INSERT,
                 winners=[INSERT.replace("201", "202")], expect=[COMMITS, COMMITS], reports=("D9",)),
)


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("D1")
@pytest.mark.parametrize(("then", "word"), [(4, "no-commit"), (5, "no-commit"), (6, "commits")])
def test_one_after_the_other_a_version_that_is_not_higher_is_skipped(engine, table_factory, then, word):
    """After version 5 of an id, versions 4 and 5 are skipped without a word, and version 6 is written."""
    table = table_factory("flat")
    assert engine.run(table, "A", statement(append(5))).word == "commits"
    assert engine.run(table, "A", statement(append(then))).word == word
    assert engine.run(table, "A", statement(append(then, "other loader"))).word == "commits"


@pytest.mark.report("D1")
@pytest.mark.parametrize("sql", [INSERT, *CHANGES.values()], ids=["insert", *CHANGES])
def test_a_statement_run_again_under_its_id_is_skipped(engine, table_factory, setting, sql):
    """INSERT, UPDATE, DELETE and MERGE all skip their second run when the session gives an id and a version."""
    table = table_factory("flat")
    for key, value in AS_ID_5:
        setting(key, value)
    assert [engine.run(table, "A", statement(sql)).word for _ in range(2)] == ["commits", "no-commit"]
    assert deltalog.read_commits(table.path, table.base_version)[0].transactions == ("loader=5",)
