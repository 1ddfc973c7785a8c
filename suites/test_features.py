"""Does a table feature that comes or goes end the writers in flight? Enabled, supported, disabled, dropped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lakerace import deltalog
from lakerace.layouts import layout, layout_from_statements
from lakerace.pairs import pair
from lakerace.race import Race, Statement, statement
from lakerace.rules.refusals import TRACKING_SUSPENDED
from lakerace.rules.settings import ENFORCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakerace.engines.lines import Line
    from lakerace.race import Layout

VERSIONS = ">=4.0"
FLAT, TRACKED = layout("flat"), layout("row-tracking")
ALREADY = {"deletion-vectors": "flat-dv", "row-tracking": "row-tracking"}
CREATE, *INSERTS = FLAT.setup

FEATURES = {
    # The property that needs the feature, its value on and off, and the feature.
    "deletion-vectors": ("delta.enableDeletionVectors", "true", "false", "deletionVectors"),
    "row-tracking": ("delta.enableRowTracking", "true", "false", "rowTracking"),
    "in-commit-timestamps": ("delta.enableInCommitTimestamps", "true", "false", "inCommitTimestamp"),
    "column-mapping": ("delta.columnMapping.mode", "name", "none", "columnMapping"),
    "v2-checkpoints": ("delta.checkpointPolicy", "v2", "classic", "v2Checkpoint"),
    "change-data-feed": ("delta.enableChangeDataFeed", "true", "false", "changeDataFeed"),
    "type-widening": ("delta.enableTypeWidening", "true", "false", "typeWidening"),
    "append-only": ("delta.appendOnly", "true", "false", "appendOnly"),
}
OUTLIVED = ("deletion-vectors", "row-tracking", "in-commit-timestamps", "column-mapping", "v2-checkpoints")
"""What the newest release lets a writer in flight outlive."""
SUPPORTED = ("checkConstraints", "invariants", "generatedColumns", "identityColumns", "allowColumnDefaults",
             "deletionVectors", "columnMapping", "v2Checkpoint", "inCommitTimestamp", "domainMetadata", "rowTracking")
MUST_RESPECT = ("checkConstraints", "generatedColumns", "identityColumns", "allowColumnDefaults")
"""Features that bind every writer from the commit on that brings them (invariants came with the table's version)."""
ROWS = {
    "insert": "INSERT INTO {t} (id, event_date, country, amount, note) VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')",
    "update": "UPDATE {t} SET amount = 7 WHERE id = 1", "delete": "DELETE FROM {t} WHERE id = 2",
    "merge": "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = 7",
    "optimize": "OPTIMIZE {t}",
}
PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night')"
TRACK = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
UNTRACK = "ALTER TABLE {t} DROP FEATURE rowTracking"
STEPS = {1: "protocol", 2: "backfill", 3: "property"}
BACK = {1: "property", 2: "removal", 3: "protocol"}


DROPPABLE = ("deletion-vectors", "column-mapping", "in-commit-timestamps", "type-widening", "v2-checkpoints",
             "row-tracking")
SLOW = ("deletion-vectors", "column-mapping")
"""Their DROP FEATURE writes checkpoints for ten seconds."""
REMOVABLE_LATER = ("row-tracking",)
LAST = {"type-widening": 5, "v2-checkpoints": 5, "in-commit-timestamps": 2}
"""The last transaction of DROP FEATURE: the property's comes first, and three that commit nothing may lie between.
(That of deletion vectors begins one that it never commits, which no phase lock can follow.)"""
IDLE = layout_from_statements("with-check-feature", (
    CREATE.replace("TBLPROPERTIES (", "TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported', "), *INSERTS,
), "the layout flat with a feature that nothing uses")
CHECK = "ALTER TABLE {t} ADD CONSTRAINT small CHECK (amount < 100000)"


def set_to(name: str, on: bool) -> str:
    key, value, off, _ = FEATURES[name]
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{key}' = '{value if on else off}')"


def with_feature(name: str) -> Layout:
    if name in ALREADY:
        return layout(ALREADY[name])
    key, value, _, _ = FEATURES[name]
    made = CREATE.replace("TBLPROPERTIES (", f"TBLPROPERTIES ('{key}' = '{value}', ")
    return layout_from_statements(f"with-{name}", (made, *INSERTS), f"the layout flat with {name} on")


def supporting(feature: str) -> str:
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.feature.{feature}' = 'supported')"


def enabled(line: Line) -> Iterator[Race]:
    for name in FEATURES:
        on, reports = set_to(name, True), ("C17",) if name == "row-tracking" else ()
        for writer, does in ROWS.items():
            word = "commits" if name in OUTLIVED or writer == "optimize" else "metadata"
            yield pair(line, writer, f"enabled-{name}", FLAT, (does, on), word, *reports)
            yield pair(line, f"enabled-{name}", writer, FLAT, (on, does), "commits", *reports)
        both = "metadata" if name == "append-only" else "protocol"
        yield pair(line, f"enabled-{name}", f"enabled-{name}", FLAT, (on, on), both, *reports)
    for one, other in (("deletion-vectors", "row-tracking"), ("column-mapping", "change-data-feed")):
        does = set_to(one, True), set_to(other, True)
        yield pair(line, f"enabled-{one}", f"enabled-{other}", FLAT, does, "protocol")


def disabled(line: Line) -> Iterator[Race]:
    for name in FEATURES:
        off, made, rewrites = set_to(name, False), with_feature(name), name == "column-mapping"
        for writer, does in ROWS.items():
            if name == "append-only" and writer not in ("insert", "optimize"):
                continue  # refused there
            word = "commits" if writer == "optimize" and not rewrites else "metadata"
            yield pair(line, writer, f"disabled-{name}", made, (does, off), word)
            yield pair(line, f"disabled-{name}", writer, made, (off, does), "append" if rewrites else "commits")
        yield pair(line, f"disabled-{name}", f"disabled-{name}", made, (off, off), "metadata")


def supported(line: Line) -> Iterator[Race]:
    """``delta.feature.X = supported``: a protocol change by itself, and what the enforcing setting makes of it."""
    for feature in SUPPORTED:
        for writer in ("insert", "update", "optimize"):
            does = ROWS[writer], supporting(feature)
            word = "metadata" if feature == "rowTracking" and writer != "optimize" else "commits"
            yield pair(line, writer, f"supported-{feature}", FLAT, does, word, "C15")
            if line.sub_conditions:
                enforced = "protocol" if feature in MUST_RESPECT and writer != "optimize" else word
                yield pair(line, f"enforced-{writer}", f"supported-{feature}", FLAT, does, enforced, "C15",
                           settings=((ENFORCE, "true"),))
        name, held = f"supported-{feature}", supporting(feature)
        for writer, does in ROWS.items():
            yield pair(line, name, writer, FLAT, (held, does), "commits", "C15")
        yield pair(line, name, "set-property", FLAT, (held, PROPERTY), "metadata", "C15")
        other = "typeWidening"
        yield pair(line, name, f"supported-{other}", FLAT, (held, supporting(other)), "protocol", "C15")
        yield pair(line, name, name, FLAT, (held, held), "protocol", "C15")


def tracked(line: Line) -> Iterator[Race]:
    """Row tracking comes in three transactions and goes in three; each is held in turn."""
    ways = ((FLAT, TRACK, STEPS, "row-tracking"), (TRACKED, UNTRACK, BACK, "drop-of-row-tracking"))
    for layout_, does, steps, name in ways:
        for at, step in steps.items():
            if not line.sub_conditions and (at == 1 or does == UNTRACK):
                continue  # Delta 4.0 can't drop the feature, and doesn't tell how often a backfill tried to commit
            held = Statement(name=f"{name} at its {step}", does=does, at=at)
            for writer, winner in ROWS.items():
                yield pair(line, f"{name}-at-its-{step}", writer, layout_, (held, winner), "commits", "C17")
            # On 4.0 what ends a backfill surfaces in another exception.
            word = "metadata" if line.sub_conditions or step != "backfill" else "metadata!Py4JJavaError"
            yield pair(line, f"{name}-at-its-{step}", "set-property", layout_, (held, PROPERTY), word, "C17")
            if line.sub_conditions:
                yield from tracked_both_ways(line, name, held, layout_, step)


def tracked_both_ways(line: Line, name: str, held: Statement, layout_: Layout, step: str) -> Iterator[Race]:
    """Row tracking comes and goes at once. While it is being dropped, turning it on is refused."""
    label = f"{name}-at-its-{step}"
    if name == "row-tracking":
        twice = {"protocol": "protocol", "backfill": "commits", "property": "metadata"}[step]
        yield pair(line, label, "row-tracking", layout_, (held, TRACK), twice, "C17")
        if step != "protocol":  # nothing is there to be dropped before
            yield pair(line, label, "drop-of-row-tracking", layout_, (held, UNTRACK), "metadata", "C17")
        return
    refused = "commits" if step == "property" else f"fails [{TRACKING_SUSPENDED}]"
    yield pair(line, label, "row-tracking", layout_, (held, TRACK), "metadata" if step == "property" else "commits",
               "C17", ends=refused)
    if step != "protocol":  # the rules don't know that the second finds no row id left
        yield pair(line, label, "drop-of-row-tracking", layout_, (held, UNTRACK),
                   "metadata" if step == "property" else "protocol", "C17")


def dropped(line: Line) -> Iterator[Race]:
    """DROP FEATURE where only the protocol knows it, and where a property needs it first."""
    drop = "ALTER TABLE {t} DROP FEATURE checkConstraints"
    for writer, does in ROWS.items():
        word = "commits" if writer == "optimize" else "protocol"
        yield pair(line, writer, "drop-of-an-idle-feature", IDLE, (does, drop), word)
        yield pair(line, "drop-of-an-idle-feature", writer, IDLE, (drop, does), "commits")
    yield pair(line, "drop-of-an-idle-feature", "drop-of-an-idle-feature", IDLE, (drop, drop), "protocol")
    yield pair(line, "drop-of-an-idle-feature", "add-check", IDLE, (drop, CHECK), "revalidation")
    yield pair(line, "add-check", "drop-of-an-idle-feature", IDLE, (CHECK, drop), "protocol")
    for name in DROPPABLE:
        if name in REMOVABLE_LATER and not line.sub_conditions:
            continue
        label, made, gone = f"drop-of-{name}", with_feature(name), f"ALTER TABLE {{t}} DROP FEATURE {FEATURES[name][3]}"
        rewrites = name == "column-mapping"
        for writer, does in ROWS.items():
            if name in SLOW and writer in ("delete", "merge"):
                continue
            word = "commits" if writer == "optimize" and not rewrites else "metadata"
            yield pair(line, writer, label, made, (does, gone), word)
            yield pair(line, label, writer, made, (gone, does), "append" if rewrites else "commits")
        yield pair(line, label, label, made, (gone, gone), "metadata")
        yield pair(line, label, "set-property", made, (gone, PROPERTY), "metadata")
    yield from dropped_at_last(line)
    gone, made = "ALTER TABLE {t} DROP FEATURE deletionVectors", layout_from_statements(
        "with-deletion-vectors-in-use", (*with_feature("deletion-vectors").setup, "DELETE FROM {t} WHERE id = 3"),
        "the layout flat-dv with a file under a deletion vector")
    yield pair(line, "optimize", "drop-of-vectors-in-use", made, (ROWS["optimize"], gone), "metadata")
    yield pair(line, "drop-of-vectors-in-use", "update", made, (gone, ROWS["update"]), "commits")
    yield pair(line, "drop-of-vectors-in-use", "drop-of-vectors-in-use", made, (gone, gone), "metadata")


def dropped_at_last(line: Line) -> Iterator[Race]:
    """DROP FEATURE at its last commit: the property is off, nothing uses the feature, until the winner turns it on."""
    for name, at in LAST.items():
        made = with_feature(name)
        held = Statement(name=f"last of {name}", does=f"ALTER TABLE {{t}} DROP FEATURE {FEATURES[name][3]}", at=at)
        label = f"last-commit-of-the-drop-of-{name}"
        yield pair(line, label, f"enabled-{name}", made, (held, set_to(name, True)), "revalidation")
        yield pair(line, label, "insert", made, (held, ROWS["insert"]), "commits")


def inserted(line: Line) -> Iterator[Race]:
    """An INSERT that is numbered anew behind another writer of rows; what the log says of the ids is an invariant."""
    for winner, does in ROWS.items():
        yield pair(line, "insert", f"{winner}-with-row-tracking", TRACKED, (ROWS["insert"], does), "commits", "C17")
    for held in ("update", "merge", "delete", "optimize"):
        word = "commits" if held == "optimize" else "append"
        yield pair(line, f"{held}-with-row-tracking", "insert", TRACKED, (ROWS[held], ROWS["insert"]), word, "C17")


CORE = frozenset((
    "insert-passes-enabled-row-tracking", "update-passes-enabled-deletion-vectors",
    "merge-passes-enabled-in-commit-timestamps", "delete-passes-enabled-column-mapping",
    "insert-passes-enabled-v2-checkpoints",
    "insert-loses-to-enabled-change-data-feed", "enabled-column-mapping-passes-merge",
    "enabled-deletion-vectors-loses-to-enabled-deletion-vectors-too", "insert-loses-to-disabled-deletion-vectors",
    "insert-passes-supported-checkConstraints", "enforced-insert-loses-to-supported-checkConstraints",
    "enforced-insert-passes-supported-deletionVectors", "insert-loses-to-supported-rowTracking",
    "insert-loses-to-drop-of-an-idle-feature", "drop-of-an-idle-feature-passes-insert",
    "row-tracking-at-its-backfill-passes-update", "row-tracking-at-its-backfill-passes-optimize",
    "row-tracking-at-its-property-passes-insert", "drop-of-row-tracking-at-its-removal-passes-merge",
    "optimize-passes-drop-of-row-tracking", "drop-of-an-idle-feature-loses-to-add-check",
    "insert-loses-to-drop-of-in-commit-timestamps", "drop-of-in-commit-timestamps-passes-insert",
    "last-commit-of-the-drop-of-in-commit-timestamps-loses-to-enabled-in-commit-timestamps",
    "drop-of-row-tracking-at-its-removal-keeps-out-row-tracking",
    "insert-passes-insert-with-row-tracking",
    "insert-passes-merge-with-row-tracking", "insert-passes-update-with-row-tracking",
))


def races(line: Line, profile: str) -> Iterator[Race]:
    for race in (
        *enabled(line), *disabled(line), *supported(line), *tracked(line), *inserted(line), *dropped(line),
    ):
        if profile == "full" or race.name in CORE:
            yield race


def test_race(case, check):
    check(case, rules=True)


def row_ids(delta, table) -> list[int | None]:
    return [row[0] for row in delta.sql(f"SELECT _metadata.row_id FROM delta.`{table.path}`").collect()]


@pytest.mark.report("C17")
@pytest.mark.parametrize(("at", "winner"), [*((2, winner) for winner in ROWS), (1, "insert"), (3, "insert")])
def test_row_ids_are_unique_whoever_came_between_the_steps_of_a_backfill(delta, engine, table_factory, at, winner):
    table = table_factory("flat")
    held = engine.hold(table, "A", Statement(name="track", does=TRACK, at=at))
    assert engine.run(table, "B", statement(ROWS[winner])).word == "commits"
    assert held.release().word == "commits"
    found = row_ids(delta, table)
    assert len(found) == {"insert": 17, "delete": 15}.get(winner, 16)
    assert len(set(found)) == len(found)
    assert None not in found


@pytest.mark.report("C17")
@pytest.mark.parametrize("writer", ROWS)
def test_row_ids_are_unique_after_a_writer_that_outlived_the_whole_backfill(delta, engine, table_factory, writer):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(ROWS[writer]))
    assert engine.run(table, "B", statement(TRACK)).word == "commits"
    assert held.release().word == "commits"
    found = row_ids(delta, table)
    assert len(set(found)) == len(found)
    assert None not in found


@pytest.mark.report("C17")
def test_a_drop_of_row_tracking_ends_when_another_writer_backfills(engine, table_factory):
    """No SQL gets there: Spark refuses to turn row tracking on while it is dropped. Another engine need not ask."""
    if not engine.line.sub_conditions:
        pytest.skip("Delta 4.0 can't drop row tracking")
    table = table_factory("row-tracking", audited=False)
    held = engine.hold(table, "A", Statement(name="untrack", does=UNTRACK, at=2))
    entry = table.path / "_delta_log" / f"{deltalog.version_now(table.path) + 1:020d}.json"
    entry.write_text(json.dumps({"commitInfo": {"operation": "ROW TRACKING BACKFILL", "operationParameters": {}}}))
    lost = held.release()
    assert (lost.word, lost.condition) == (
        "revalidation", "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL")
    assert (lost.root, lost.sqlstate) == ("org.apache.spark.sql.delta.DeltaIllegalStateException", "22KD0")
