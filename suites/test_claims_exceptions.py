"""Which exception does a loser get? Claims about the conflict classes, DDL and OPTIMIZE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace.conflicts import classify
from lakerace.drivers.phases import error_while_held
from lakerace.layouts import LAYOUTS, layout, layout_from_statements
from lakerace.orders import parse_order
from lakerace.race import Expected, Race, Write, Writer, held_against, statement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FLAT, BY_DATE, DV = layout("flat"), layout("by-date"), layout("flat-dv")
CREATE, *INSERTS = LAYOUTS["flat"].setup
WITH_FEATURE = layout_from_statements("with-feature", (
    CREATE.replace("TBLPROPERTIES (", "TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported', "), *INSERTS,
), "the layout flat, with a table feature that can be dropped")

COMMITS = Expected(word="commits")
APPEND = Expected(word="append", surfaced="ConcurrentAppendException", condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
DELETE_READ = Expected(word="delete-read", surfaced="ConcurrentDeleteReadException",
                       condition="DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT")
METADATA = Expected(word="metadata", surfaced="MetadataChangedException", sqlstate="2D521",
                    condition="DELTA_METADATA_CHANGED")
PROTOCOL = Expected(word="protocol", surfaced="ProtocolChangedException", sqlstate="2D521",
                    condition="DELTA_PROTOCOL_CHANGED")
TRANSACTION = Expected(word="transaction", surfaced="ConcurrentTransactionException", sqlstate="2D521",
                       condition="DELTA_CONCURRENT_TRANSACTION")
REBASED_BY_ITSELF = Expected(word="commits", version=10, isolation="SnapshotIsolation")

INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
UPDATE = "UPDATE {t} SET note = 'A' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
MERGE = "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'A'"
MERGE_11 = MERGE.replace("t.id = s.id", "t.id = s.id AND t.event_date = DATE'2026-08-11'")
OPTIMIZE = "OPTIMIZE {t}"
ADD_COLUMN = "ALTER TABLE {t} ADD COLUMN (extra INT)"
SET_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night shift')"
ROW_CHANGES = {"update": UPDATE, "delete": DELETE, "merge": MERGE}
WRITES = {"insert": INSERT, **ROW_CHANGES}
UPGRADES = {name: f"ALTER TABLE {{t}} SET TBLPROPERTIES ({properties})" for name, properties in {
    "minimum-versions": "'delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7'",
    "a-feature": "'delta.feature.checkConstraints' = 'supported'",
    "column-mapping": "'delta.columnMapping.mode' = 'name'",
    "deletion-vectors": "'delta.enableDeletionVectors' = 'true'",
}.items()}
DROP_FEATURE = "ALTER TABLE {t} DROP FEATURE checkConstraints"
FEATURE = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.v2Checkpoint' = 'supported')"


def append_of(application: str) -> Write:
    row = "SELECT 204L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note"
    return Write(select=row, options=(("txnAppId", application), ("txnVersion", "1")))


RACES = (
    *(held_against(f"held-{name}-loses-to-optimize-by-the-append-check", layout=FLAT, held=sql, winners=[OPTIMIZE],
                   expect=[APPEND, COMMITS], claims=("D-050", "D-079", *(("D-054",) if name == "merge" else ())))
      for name, sql in ROW_CHANGES.items()),
    *(held_against(f"held-optimize-loses-to-{name}-of-its-files", layout=FLAT, held=OPTIMIZE, winners=[sql],
                   expect=[DELETE_READ, COMMITS], claims=("D-050",)) for name, sql in ROW_CHANGES.items()),
    held_against("a-merge-with-a-literal-passes-optimize-of-another-date", layout=BY_DATE, held=MERGE_11,
                 winners=["OPTIMIZE {t} WHERE event_date = DATE'2026-08-12'"], expect=[COMMITS, COMMITS],
                 claims=("D-054",)),
    held_against("a-merge-with-deletion-vectors-loses-to-optimize-too", layout=DV, held=MERGE, winners=[OPTIMIZE],
                 expect=[APPEND, COMMITS], claims=("D-054", "D-050")),
    held_against("the-second-optimize-of-the-same-files-has-read-what-is-gone", layout=FLAT, held=OPTIMIZE,
                 winners=[OPTIMIZE], expect=[DELETE_READ, COMMITS], claims=("D-055",)),
    held_against("optimize-passes-a-blind-append", layout=FLAT, held=OPTIMIZE, winners=[INSERT],
                 expect=[REBASED_BY_ITSELF, COMMITS], claims=("D-082",)),
    held_against("one-of-two-deletes-in-a-file-fails-by-the-append-check", layout=FLAT,
                 held="DELETE FROM {t} WHERE id = 1", winners=[DELETE], expect=[APPEND, COMMITS], claims=("D-083",)),
    *(held_against(f"held-{name}-loses-to-a-new-column", layout=FLAT, held=sql, winners=[ADD_COLUMN],
                   expect=[METADATA, COMMITS],
                   claims=("D-056", "D-052", *(("D-058", "D-070") if name == "insert" else ())))
      for name, sql in WRITES.items()),
    *(held_against(f"held-{name}-loses-to-a-table-property", layout=FLAT, held=sql, winners=[SET_PROPERTY],
                   expect=[METADATA, COMMITS],
                   claims=("D-057", *(("D-058",) if name == "insert" else ()))) for name, sql in WRITES.items()),
    held_against("optimize-passes-a-new-column", layout=FLAT, held=OPTIMIZE, winners=[ADD_COLUMN],
                 expect=[COMMITS, COMMITS], claims=("D-056", "D-063")),
    held_against("optimize-passes-a-table-property", layout=FLAT, held=OPTIMIZE, winners=[SET_PROPERTY],
                 expect=[COMMITS, COMMITS], claims=("D-057",)),
    *(held_against(f"held-{held}-passes-an-upgrade-by-{name}", layout=FLAT, held=WRITES[held], winners=[sql],
                   expect=[Expected(word="commits", version=10), COMMITS],
                   claims=("D-059", "D-061", *(("D-057",) if name == "deletion-vectors" else ())))
      for name, sql in UPGRADES.items() for held in ("insert", "update")),
    *(held_against(f"held-{name}-loses-to-a-dropped-feature", layout=WITH_FEATURE, held=sql, winners=[DROP_FEATURE],
                   expect=[PROTOCOL, COMMITS], claims=("D-059", "D-061", "D-052")) for name, sql in WRITES.items()),
    held_against("the-second-of-two-protocol-changes-fails", layout=FLAT, held=FEATURE, winners=[FEATURE],
                 expect=[PROTOCOL, COMMITS], claims=("D-061",)),
    held_against("the-second-of-two-upgrades-by-version-fails-for-its-metadata", layout=FLAT,
                 held=UPGRADES["minimum-versions"], winners=[UPGRADES["minimum-versions"]], expect=[METADATA, COMMITS],
                 claims=("D-059", "D-061")),
    held_against("two-appends-with-one-application-id-conflict", layout=FLAT, held=append_of("x"),
                 winners=[append_of("x")], expect=[TRANSACTION, COMMITS], claims=("D-060", "D-052")),
    held_against("two-appends-with-two-application-ids-commit", layout=FLAT, held=append_of("x"),
                 winners=[append_of("y")], expect=[COMMITS, COMMITS], claims=("D-060",)),
    Race(name="one-new-column-ends-three-writers-in-flight", layout=FLAT,
         writers=(*(Writer(name=letter, statements=(statement(sql),))
                    for letter, sql in zip("ABC", (INSERT, UPDATE, MERGE), strict=True)),
                  Writer(name="D", statements=(statement(ADD_COLUMN),))),
         order=parse_order("A:read B:read C:read D:read D:commit A:commit B:commit C:commit"),
         expect=(("A", METADATA), ("B", METADATA), ("C", METADATA), ("D", COMMITS)), claims=("D-063",)),
)


def test_race(case, check):
    check(case)


PAIRS = {
    "append": (FLAT, UPDATE, "UPDATE {t} SET note = 'B' WHERE id = 16", "Please retry the operation"),
    "delete-read": (FLAT, UPDATE, "DELETE FROM {t} WHERE id IN (1, 2)", "Please retry the operation"),
    "metadata": (FLAT, UPDATE, SET_PROPERTY, "Please try the operation again"),
    "protocol": (WITH_FEATURE, UPDATE, DROP_FEATURE, "has been changed by a concurrent update"),
    "transaction": (FLAT, append_of("x"), append_of("x"), "Did you run multiple instances of the same streaming query"),
}


@pytest.mark.claim("D-064", "D-065", "D-052")
@pytest.mark.parametrize("kind", PAIRS)
def test_class_and_advice_of_a_conflict(engine, table_factory, kind):
    made, held_does, winner, advice = PAIRS[kind]
    table = table_factory(made)
    held = engine.hold(table, "A", statement(held_does))
    assert engine.run(table, "B", statement(winner)).word == "commits"
    outcome = held.release()
    assert outcome.word == kind
    assert outcome.root.startswith("io.delta.exceptions.")
    assert "table was modified by a concurrent update" not in outcome.message
    assert advice in outcome.message


@pytest.mark.claim("D-052", "D-064")
def test_seven_classes_and_their_parents(engine):
    from delta import exceptions

    found = {name for name in dir(exceptions) if name.endswith("Exception") and not name.startswith("Delta")}
    assert found == {
        "ConcurrentAppendException", "ConcurrentDeleteDeleteException", "ConcurrentDeleteReadException",
        "ConcurrentTransactionException", "ConcurrentWriteException", "MetadataChangedException",
        "ProtocolChangedException",
    }
    loader = engine.spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in found:
        chain, java_class = [], loader.loadClass(f"io.delta.exceptions.{name}")
        while java_class is not None:
            chain.append(str(java_class.getName()))
            java_class = java_class.getSuperclass()
        assert "io.delta.exceptions.DeltaConcurrentModificationException" in chain
        assert "java.util.ConcurrentModificationException" in chain
        assert "org.apache.spark.sql.delta.ConcurrentModificationException" not in chain


@pytest.mark.claim("D-052")
def test_in_python_the_classes_have_no_delta_parent():
    from delta import exceptions
    from pyspark.errors import PySparkException

    assert issubclass(exceptions.ConcurrentAppendException, PySparkException)
    assert not issubclass(exceptions.ConcurrentAppendException, exceptions.DeltaConcurrentModificationException)


@pytest.fixture
def while_held(engine, tmp_path) -> Callable[..., BaseException | None]:
    """``while_held(create, meanwhile) -> error``: ``create`` stands before its commit while ``meanwhile`` runs.

    An engine holds writers of a table that exists; here none does yet.
    """

    def racing(create: Callable[[], object], meanwhile: Callable[[], object]) -> BaseException | None:
        return error_while_held(engine._jvm.jvm, engine.hooks, tmp_path.name, create, meanwhile)

    return racing


def entries(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "_delta_log").glob("*.json"))


@pytest.mark.claim("D-062")
def test_two_dataframe_writes_that_create_one_table(delta, while_held, tmp_path):
    path = tmp_path / "table"
    error = while_held(lambda: delta.range(5).write.format("delta").save(str(path)),
                       lambda: delta.range(3).write.format("delta").save(str(path)))
    assert classify(error).kind == "protocol"
    assert entries(path) == ["00000000000000000000.json"]
    assert delta.read.format("delta").load(str(path)).count() == 3


@pytest.mark.claim("D-062")
def test_the_second_create_table_finds_the_name_taken(delta, while_held, tmp_path):
    path = tmp_path / "table"

    def meanwhile() -> None:
        with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
            delta.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta")

    assert while_held(lambda: delta.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta"), meanwhile) is None
    assert entries(path) == ["00000000000000000000.json"]
