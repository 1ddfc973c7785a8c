"""Which exception? Every conflict class of Delta, by a race that raises it and a control beside it that must not.

Each aborted writer is declared whole: the class that surfaces in Python, the class in the JVM, the error condition, the
SQLSTATE and those parameters that are the same in every run. The order of Delta's own checks decides which class a race
can show: protocol, metadata, added files, removed files that were read, removed files that are removed again,
application transactions. So an UPDATE that lost its file to another UPDATE reports the *added* file.

``ConcurrentDeleteDeleteException`` is what remains when a writer removes files it did not read. On 4.4.0 one statement
does that: a dynamic partition overwrite of a partitioned table, which knows its partitions and not its files. Without a
partition to name (``WITHOUT_HINT``) no SQL statement reaches it: the last tests use Delta's own transaction API.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.conflicts import HINTED, KINDS, Conflict, classify
from lakerace.layouts import layout
from lakerace.race import SERIALIZABLE, WRITE_SERIALIZABLE, Expected, Layout, Race, Write, held_against

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakerace.engines.lines import Line

FLAT, BY_DATE = layout("flat"), layout("by-date")
EMPTIED = Layout(
    name="emptied", meaning="unpartitioned, all rows deleted: CLONE refuses a destination that holds rows",
    setup=(*FLAT.setup, "DELETE FROM {t}"),
)
COMMITS = Expected(word="commits", attempts=1)
COMMITS_AFTER_ONE_RETRY = Expected(word="commits", version=10, read_version=8, attempts=2)
"""It tried version 9, found the winner there, checked it, and wrote version 10."""
NAMES_NO_PARTITION, NAMES_11_AUGUST = "WITHOUT_HINT", "WITH_PARTITION_HINT"


def aborts(word: str, layout: Layout = FLAT, winner: str | Write = "", **more: Any) -> Expected:
    """The whole of an abort. What was read or removed is told with the ``winner``'s operation, at version 9, and with
    the partition when ``layout`` has any."""
    kind = KINDS[word]
    condition, parameters = kind.condition, ()
    if word in HINTED:
        condition = f"{condition}.{NAMES_11_AUGUST if layout.partitioned else NAMES_NO_PARTITION}"
        first = "INSERT" if isinstance(winner, Write) else winner.split(None, 1)[0]
        parameters = (("operation", "WRITE" if first == "INSERT" else first), ("version", "9"))
        if layout.partitioned:
            parameters += (("partitionValues", "[event_date=2026-08-11]"),)
    return Expected(
        word=word, surfaced=kind.exception, root=f"io.delta.exceptions.{kind.exception}", condition=condition,
        sqlstate="2D521", parameters=parameters, **more,
    )


def loses(
    name: str, layout: Layout, held: str | Write, winner: str | Write, *, by: str, won: Expected = COMMITS,
    level: str = SERIALIZABLE, reports: tuple[str, ...] = (),
) -> Race:
    """``held`` aborts ``by`` that kind of conflict at its first attempt."""
    lost = aborts(by, layout, winner, attempts=1)
    return held_against(name, layout=layout, held=held, winners=[winner], expect=[lost, won], isolation=level,
                        reports=reports)


def survives(
    name: str, layout: Layout, held: str | Write, winner: str | Write, *, won: Expected = COMMITS,
    level: str = SERIALIZABLE, **recorded: Any,
) -> Race:
    """The control: ``held`` finds the winner there, checks it, and commits; ``recorded`` is in its history row."""
    second = replace(COMMITS_AFTER_ONE_RETRY, **recorded)
    return held_against(name, layout=layout, held=held, winners=[winner], expect=[second, won], isolation=level)


def append_as(app: str, version: int, row: int) -> Write:
    return Write(
        select=f"SELECT {row}L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note",
        options=(("txnAppId", app), ("txnVersion", str(version))),
    )


UPDATE = "UPDATE {t} SET note = 'updated' WHERE id = 1"
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
DELETE_11_AUGUST = "DELETE FROM {t} WHERE event_date = DATE'2026-08-11'"
DELETE_ROW, DELETE_ROW_OF_12_AUGUST = (
    "DELETE FROM {t} WHERE id = 2", "DELETE FROM {t} WHERE event_date = DATE'2026-08-12' AND id = 16"
)
OVERWRITE_11_AUGUST = Write(
    select="SELECT 207L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note",
    mode="overwrite",
    options=(("partitionOverwriteMode", "dynamic"),),
)
COMPACT, ZORDER, TRUNCATE = "OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)", "TRUNCATE TABLE {t}"
RESTORE, CLONE = "RESTORE TABLE {t} TO VERSION AS OF 7", "CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}"
SET_PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('owner.team' = 'night shift')"

APPEND = (
    loses("an-update-loses-to-an-insert-and-no-partition-can-be-named", FLAT, UPDATE, INSERT, by="append",
          reports=("G5",)),
    loses("an-update-loses-to-an-insert-and-the-partition-is-named", BY_DATE, UPDATE, INSERT, by="append"),
    survives("an-insert-is-not-stopped-by-an-update", FLAT, INSERT, UPDATE, operation="WRITE", blind=True),
    survives("an-update-of-one-date-is-not-stopped-by-an-insert-into-another", BY_DATE,
             "UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-11'",
             "INSERT INTO {t} VALUES (202, DATE'2026-08-12', 'FR', 1, 'new')",
             operation="UPDATE", predicate="(event_date = 2026-08-11)"),
    survives("an-update-under-write-serializable-is-not-stopped-by-a-blind-insert", FLAT, UPDATE, INSERT,
             isolation="WriteSerializable", level=WRITE_SERIALIZABLE),
    loses("an-update-under-write-serializable-loses-to-an-insert-that-read-the-table", FLAT, UPDATE,
          "INSERT INTO {t} SELECT id + 1000, event_date, country, amount, note FROM {t} WHERE id = 16",
          by="append", won=replace(COMMITS, blind=False), level=WRITE_SERIALIZABLE),
    loses("under-write-serializable-an-update-that-finds-nothing-is-a-commit-and-can-lose", FLAT,
          "UPDATE {t} SET note = 'updated' WHERE id = 99", UPDATE, by="append", level=WRITE_SERIALIZABLE),
    survives("under-write-serializable-a-delete-that-finds-nothing-commits-an-empty-version", FLAT,
             "DELETE FROM {t} WHERE id = 99", INSERT, operation="DELETE", level=WRITE_SERIALIZABLE),
    loses("a-delete-loses-to-an-update-of-the-same-file-by-the-file-that-was-added", FLAT, DELETE_ROW, UPDATE,
          by="append"),
    loses("an-insert-from-the-table-itself-loses-to-an-insert", FLAT,
          "INSERT INTO {t} SELECT id + 1000, event_date, country, amount, note FROM {t} WHERE id = 1", INSERT,
          by="append"),
    loses("an-update-loses-to-a-compaction-that-changed-no-row", FLAT, UPDATE, COMPACT, by="append"),
    survives("a-compaction-is-not-stopped-by-an-insert", FLAT, COMPACT, INSERT,
             operation="OPTIMIZE", isolation="SnapshotIsolation"),
)

DELETE_READ = (
    loses("an-update-loses-to-a-delete-of-whole-files-and-no-partition-can-be-named", FLAT, UPDATE, DELETE_11_AUGUST,
          by="delete-read"),
    loses("an-update-loses-to-a-delete-of-its-partition-and-the-partition-is-named", BY_DATE, UPDATE, DELETE_11_AUGUST,
          by="delete-read"),
    loses("a-delete-of-a-partition-loses-to-the-same-delete-as-delete-read", BY_DATE, DELETE_11_AUGUST,
          DELETE_11_AUGUST, by="delete-read"),
    survives("a-delete-of-a-partition-is-not-stopped-by-a-delete-in-another", BY_DATE, DELETE_11_AUGUST,
             DELETE_ROW_OF_12_AUGUST, operation="DELETE"),
    loses("a-compaction-loses-to-a-compaction-as-delete-read", FLAT, COMPACT, COMPACT, by="delete-read",
          reports=("G1",)),
    loses("a-compaction-loses-to-a-zorder-as-delete-read", FLAT, COMPACT, ZORDER, by="delete-read", reports=("G1",)),
    loses("a-zorder-loses-to-a-delete-of-one-row", FLAT, ZORDER, DELETE_ROW, by="delete-read", reports=("G1",)),
    survives("a-compaction-of-one-date-is-not-stopped-by-an-update-of-another", BY_DATE,
             "OPTIMIZE {t} WHERE event_date = DATE'2026-08-11'",
             "UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-12'", operation="OPTIMIZE"),
    loses("a-replace-where-loses-to-a-delete-of-the-same-date", BY_DATE,
          "INSERT INTO {t} REPLACE WHERE event_date = DATE'2026-08-11' "
          "SELECT 206L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'new' AS note",
          DELETE_11_AUGUST, by="delete-read"),
    loses("a-truncate-loses-to-a-truncate", FLAT, TRUNCATE, TRUNCATE, by="delete-read"),
    loses("a-compaction-loses-to-a-restore-that-takes-a-file-away", FLAT, COMPACT, RESTORE,
          by="delete-read", won=Expected(word="commits")),
)

DELETE_DELETE = (
    loses("a-dynamic-overwrite-loses-to-a-delete-of-its-partition-as-delete-delete", BY_DATE, OVERWRITE_11_AUGUST,
          DELETE_11_AUGUST, by="delete-delete", reports=("G5",)),
    loses("a-dynamic-overwrite-loses-to-a-truncate-as-delete-delete", BY_DATE, OVERWRITE_11_AUGUST, TRUNCATE,
          by="delete-delete"),
    loses("a-delete-of-a-partition-loses-to-its-dynamic-overwrite-as-append", BY_DATE, DELETE_11_AUGUST,
          OVERWRITE_11_AUGUST, by="append"),
    loses("a-dynamic-overwrite-loses-to-a-dynamic-overwrite-as-append", BY_DATE, OVERWRITE_11_AUGUST,
          OVERWRITE_11_AUGUST, by="append"),
    loses("a-dynamic-overwrite-without-partitions-has-read-the-table", FLAT, OVERWRITE_11_AUGUST, DELETE_11_AUGUST,
          by="delete-read"),
    survives("a-dynamic-overwrite-is-not-stopped-by-a-delete-in-another-date", BY_DATE, OVERWRITE_11_AUGUST,
             DELETE_ROW_OF_12_AUGUST),
)

METADATA = (
    *(
        loses(f"a-blind-insert-loses-to-{what}", FLAT, INSERT, change, by="metadata")
        for what, change in (
            ("an-added-column", "ALTER TABLE {t} ADD COLUMN (extra INT)"),
            ("a-table-property", SET_PROPERTY),
            ("a-column-comment", "ALTER TABLE {t} ALTER COLUMN note COMMENT 'free text'"),
            ("an-added-constraint", "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (amount > 0)"),
            ("a-replaced-table", "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {other}"),
            ("an-append-that-adds-a-column", Write(
                select="SELECT 205L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, "
                       "'new' AS note, 1 AS extra",
                options=(("mergeSchema", "true"),),
            )),
        )
    ),
    loses("an-update-loses-to-change-data-feed-being-enabled", FLAT, UPDATE,
          "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')", by="metadata"),
    loses("two-table-properties-set-at-once-cannot-both-stand", FLAT,
          "ALTER TABLE {t} SET TBLPROPERTIES ('owner.team' = 'day shift')",
          "ALTER TABLE {t} SET TBLPROPERTIES ('cost.centre' = '4711')", by="metadata"),
    survives("a-table-property-is-not-stopped-by-an-insert", FLAT, SET_PROPERTY, INSERT,
             operation="SET TBLPROPERTIES"),
    survives("an-added-column-is-not-stopped-by-an-update", FLAT, "ALTER TABLE {t} ADD COLUMN (extra INT)", UPDATE,
             operation="ADD COLUMNS"),
    held_against(
        "a-compaction-survives-a-table-property-by-starting-over", layout=FLAT, held=COMPACT, winners=[SET_PROPERTY],
        expect=[Expected(word="commits", version=10, read_version=9, attempts=2, operation="OPTIMIZE"), COMMITS],
        why="OPTIMIZE catches the MetadataChangedException itself and commits in a second transaction: it reads at 9",
    ),
)

TRANSACTION = (
    loses("an-append-loses-to-one-of-the-same-application", FLAT,
          append_as("ingest", 1, 204), append_as("ingest", 1, 304), by="transaction"),
    loses("an-append-loses-to-a-later-one-of-the-same-application", FLAT,
          append_as("ingest", 1, 204), append_as("ingest", 2, 304), by="transaction"),
    survives("an-append-is-not-stopped-by-one-of-another-application", FLAT,
             append_as("ingest", 1, 204), append_as("backfill", 1, 304)),
    survives("an-insert-without-application-is-not-stopped-by-one-that-has-it", FLAT,
             INSERT, append_as("ingest", 1, 304)),
)

_ENABLE = "ALTER TABLE {{t}} SET TBLPROPERTIES ('{}' = '{}')"
DELETION_VECTORS = _ENABLE.format("delta.enableDeletionVectors", "true")
COLUMN_MAPPING = _ENABLE.format("delta.columnMapping.mode", "name")
ROW_TRACKING = _ENABLE.format("delta.enableRowTracking", "true")
IN_COMMIT_TIMESTAMPS = _ENABLE.format("delta.enableInCommitTimestamps", "true")
PROTOCOL = (
    *(
        loses(name, FLAT, held, winner, by="protocol")
        for name, held, winner in (
            ("row-tracking-cannot-be-enabled-while-deletion-vectors-are", ROW_TRACKING, DELETION_VECTORS),
            ("deletion-vectors-cannot-be-enabled-while-column-mapping-is", DELETION_VECTORS, COLUMN_MAPPING),
            ("column-mapping-cannot-be-enabled-while-deletion-vectors-are", COLUMN_MAPPING, DELETION_VECTORS),
            ("the-same-feature-cannot-be-enabled-twice-at-once", DELETION_VECTORS, DELETION_VECTORS),
        )
    ),
    loses("deletion-vectors-lose-to-row-tracking-which-commits-three-times", FLAT, DELETION_VECTORS, ROW_TRACKING,
          by="protocol", won=Expected(word="commits", version=11)),
    *(
        held_against(
            f"a-blind-insert-is-not-stopped-by-{what}-being-enabled", layout=FLAT, held=INSERT, winners=[change],
            expect=[Expected(word="commits", version=version, read_version=8, attempts=2),
                    Expected(word="commits", version=version - 1)],
        )
        for what, change, version in (
            ("deletion-vectors", DELETION_VECTORS, 10),
            ("column-mapping", COLUMN_MAPPING, 10),
            ("row-tracking", ROW_TRACKING, 12),
            ("in-commit-timestamps", IN_COMMIT_TIMESTAMPS, 10),
            ("a-feature-by-name", _ENABLE.format("delta.feature.allowColumnDefaults", "supported"), 10),
        )
    ),
    survives("deletion-vectors-being-enabled-is-not-stopped-by-an-insert", FLAT, DELETION_VECTORS, INSERT),
    loses("deletion-vectors-lose-to-a-property-by-the-metadata", FLAT, DELETION_VECTORS, SET_PROPERTY, by="metadata"),
)

_NEVER_CHECKED = (
    ("restore", FLAT, RESTORE, "RESTORE writes its commit without a conflict check: whatever came first, it gives up",
     (("an-insert", INSERT), ("a-delete", DELETE_ROW), ("a-compaction", COMPACT), ("a-table-property", SET_PROPERTY),
      ("a-restore", RESTORE))),
    ("clone", EMPTIED, CLONE, "CLONE commits the way RESTORE does",
     (("an-insert", INSERT), ("a-table-property", SET_PROPERTY), ("a-clone", CLONE))),
)
WRITE = (
    *(
        held_against(
            f"a-{name}-loses-to-{what}-by-the-base-class", layout=layout, held=held, winners=[change], why=why,
            expect=[aborts("write"), Expected(word="commits")],
        )
        for name, layout, held, why, winners in _NEVER_CHECKED
        for what, change in winners
    ),
    loses("an-insert-loses-to-a-clone-by-the-metadata", EMPTIED, INSERT, CLONE,
          by="metadata", won=Expected(word="commits", operation="CLONE")),
    survives("an-insert-is-not-stopped-by-a-restore", FLAT, INSERT, RESTORE,
             won=Expected(word="commits", operation="RESTORE")),
)

RACES = (*APPEND, *DELETE_READ, *DELETE_DELETE, *METADATA, *TRANSACTION, *PROTOCOL, *WRITE)


def test_race(case, check):
    check(case)


def test_every_kind_of_conflict_that_spark_can_raise_has_a_race_and_a_control():
    for group, word in (
        (APPEND, "append"), (DELETE_READ, "delete-read"), (DELETE_DELETE, "delete-delete"), (METADATA, "metadata"),
        (TRANSACTION, "transaction"), (PROTOCOL, "protocol"), (WRITE, "write"),
    ):
        words = {race.expected["A"].word for race in group}
        assert {word, "commits"} <= words, f"{word}: the races show {words}"


class _Api:
    """Delta's own transactions on one table, through py4j: what SQL statements are made of."""

    def __init__(self, spark: Any, path: str) -> None:
        jvm = spark._jvm
        delta = jvm.org.apache.spark.sql.delta
        self._lists = jvm.java.util.ArrayList, jvm.scala.jdk.javaapi.CollectionConverters
        self._operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
        self._log = delta.DeltaLog.forTable(spark._jsparkSession, path)

    def start(self) -> Any:
        """A transaction that has taken its snapshot."""
        return self._log.startTransaction()

    @staticmethod
    def files(transaction: Any) -> list[Any]:
        """The files of its snapshot, those of 2026-08-11 first."""
        return sorted(transaction.snapshot().allFiles().collect(), key=lambda file: str(file.partitionValues()))

    def remove(self, transaction: Any, file: Any) -> int | Conflict:
        """Commit the removal of ``file``; the version, or the conflict."""
        new_list, converters = self._lists
        actions = new_list()
        actions.add(file.removeWithTimestamp(1, True))
        try:
            return int(transaction.commit(converters.asScala(actions).toList(), self._operation))
        except Exception as error:
            conflict = classify(error)
            if conflict is None:
                raise
            return conflict


@pytest.fixture
def api(delta, table_factory) -> Callable[[str], _Api]:
    def opening(name: str) -> _Api:
        return _Api(delta, str(table_factory(name).path))

    return opening


def _condition(word: str, hint: str, line: Line) -> str | None:
    return f"{KINDS[word].condition}.{hint}" if line.sub_conditions else KINDS[word].condition


@pytest.mark.parametrize(("name", "hint"), [("flat", NAMES_NO_PARTITION), ("by-date", NAMES_11_AUGUST)])
def test_removing_a_file_that_was_removed_without_having_read_it_is_delete_delete(api, engine, name, hint):
    table = api(name)
    held, winner, control = table.start(), table.start(), table.start()
    first, second, *_ = table.files(held)
    assert table.remove(winner, first) == 9
    lost = table.remove(held, first)
    assert isinstance(lost, Conflict)
    assert (lost.kind, lost.surfaced, lost.condition) == (
        "delete-delete", "ConcurrentDeleteDeleteException", _condition("delete-delete", hint, engine.line))
    assert table.remove(control, second) == 10


@pytest.mark.parametrize(("name", "hint"), [("flat", NAMES_NO_PARTITION), ("by-date", NAMES_11_AUGUST)])
def test_the_same_removal_by_a_transaction_that_has_read_the_files_is_delete_read(api, engine, name, hint):
    table = api(name)
    held, winner, control = table.start(), table.start(), table.start()
    first, second, third, *_ = table.files(held)
    held.filterFiles()
    assert table.remove(winner, first) == 9
    lost = table.remove(held, second)
    assert isinstance(lost, Conflict)
    assert (lost.kind, lost.surfaced, lost.condition) == (
        "delete-read", "ConcurrentDeleteReadException", _condition("delete-read", hint, engine.line))
    assert table.remove(control, third) == 10
