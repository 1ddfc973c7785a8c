"""When does an INSERT lose to an INSERT? Every shape of one, against a plain INSERT that commits first, and after it.

An append is blind when its query scans nothing of the table it writes. What it reads elsewhere, whether it is random,
what columns the table has, how it was called: none of that matters, save for an identity column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace.layouts import layout, layout_from_statements
from lakerace.outcomes import BLIND, COMMITS, LOSES, LOSES_METADATA, LOSES_P, NOT_BLIND
from lakerace.race import WRITE_SERIALIZABLE, Expected, Race, Write, held_against, statement

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

VERSIONS = ">=4.0"
FLAT, BY_DATE = layout("flat"), layout("by-date")

ROW = "DATE'2026-08-11', 'DE', 1, 'new'"
PLAIN = f"INSERT INTO {{t}} VALUES (99, {ROW})"
COPY_OF_ROW_1 = "SELECT id + 1000 AS id, event_date, country, amount, note FROM {t} WHERE id = 1"
BLIND_SHAPES: dict[str, str | Write] = {
    "values": f"INSERT INTO {{t}} VALUES (201, {ROW})",
    "a-select-of-literals": f"INSERT INTO {{t}} SELECT 201, {ROW}",
    "a-range": f"INSERT INTO {{t}} SELECT id + 300, {ROW} FROM range(3)",
    "random-numbers": f"INSERT INTO {{t}} SELECT CAST(rand() * 100 AS BIGINT) + 400, {ROW}",
    "another-table": "INSERT INTO {t} SELECT * FROM {other}",
    "table-of-another": "INSERT INTO {t} TABLE {other}",
    "another-table-by-with": "INSERT INTO {t} WITH s AS (SELECT * FROM {other}) SELECT * FROM s",
    "another-table-by-with-in-front": "WITH s AS (SELECT * FROM {other}) INSERT INTO {t} SELECT * FROM s",
    "a-union-of-others": "INSERT INTO {t} SELECT * FROM {other} UNION ALL SELECT * FROM {other}",
    "columns-by-name": "INSERT INTO {t} BY NAME SELECT 'new' AS note, 1 AS amount, 'DE' AS country, "
                       "DATE'2026-08-11' AS event_date, 201L AS id",
    "listed-columns": "INSERT INTO {t} (id, event_date, country, amount, note) SELECT * FROM {other}",
    "itself-where-false": "INSERT INTO {t} SELECT * FROM {t} WHERE false UNION ALL SELECT * FROM {other}",
    "an-older-version-of-itself": f"INSERT INTO {{t}} {COPY_OF_ROW_1.replace('{t}', '{t} VERSION AS OF 3')}",
    "a-frame": Write(select="SELECT * FROM {other}"),
    "a-frame-with-merge-schema": Write(select="SELECT * FROM {other}", options=(("mergeSchema", "true"),)),
    "a-frame-with-a-transaction-id":
        Write(select="SELECT * FROM {other}", options=(("txnAppId", "job"), ("txnVersion", "1"))),
}
READING_SHAPES: dict[str, str | Write] = {
    "itself": f"INSERT INTO {{t}} {COPY_OF_ROW_1}",
    "table-of-itself": "INSERT INTO {t} TABLE {t}",
    "not-exists": "INSERT INTO {t} SELECT * FROM {other} o WHERE NOT EXISTS (SELECT 1 FROM {t} x WHERE x.id = o.id)",
    "not-in": "INSERT INTO {t} SELECT * FROM {other} o WHERE o.id NOT IN (SELECT id FROM {t})",
    "an-anti-join": "INSERT INTO {t} SELECT o.* FROM {other} o LEFT ANTI JOIN {t} x ON x.id = o.id",
    "an-outer-join": "INSERT INTO {t} SELECT o.* FROM {other} o LEFT JOIN {t} x ON x.id = o.id WHERE x.id IS NULL",
    "except": "INSERT INTO {t} SELECT * FROM {other} EXCEPT SELECT * FROM {t}",
    "a-union-with-itself": f"INSERT INTO {{t}} SELECT * FROM {{other}} UNION ALL {COPY_OF_ROW_1}",
    "a-distinct-union-with-itself": f"INSERT INTO {{t}} SELECT * FROM {{other}} UNION {COPY_OF_ROW_1}",
    "with": "INSERT INTO {t} WITH m AS (SELECT max(id) AS top FROM {t}) "
            "SELECT o.id + m.top, o.event_date, o.country, o.amount, o.note FROM {other} o, m",
    "its-maximum": f"INSERT INTO {{t}} SELECT max(id) + 1, {ROW} FROM {{t}}",
    "its-count": f"INSERT INTO {{t}} SELECT count(*) + 100, {ROW} FROM {{t}}",
    "a-scalar-subquery": f"INSERT INTO {{t}} SELECT (SELECT max(id) FROM {{t}}) + 1, {ROW}",
    "exists": f"INSERT INTO {{t}} SELECT 201, {ROW} WHERE EXISTS (SELECT 1 FROM {{t}})",
    "a-frame-that-read-it": Write(select=COPY_OF_ROW_1),
    "a-frame-without-its-rows": Write(select="SELECT o.* FROM {other} o LEFT ANTI JOIN {t} x ON x.id = o.id"),
}
IN_CORE = ("values", "itself-where-false", "a-frame-with-merge-schema", "itself", "not-exists", "a-frame-that-read-it")
REPORTS = {True: {"reports": ("A5",)}, False: {"reports": ("A7",)}}


def shape(name: str, held: bool) -> Race:
    """An INSERT of that shape against a plain one, as the loser to be or as the winner."""
    blind = name in BLIND_SHAPES
    does = BLIND_SHAPES[name] if blind else READING_SHAPES[name]
    if not held:
        return held_against(f"a-plain-insert-survives-an-insert-of-{name}", layout=FLAT, held=PLAIN, winners=[does],
                            expect=[BLIND, BLIND if blind else NOT_BLIND], **REPORTS[blind])
    return held_against(
        f"an-insert-of-{name}-{'is-blind-and-survives' if blind else 'has-read-the-table-and-loses'}", layout=FLAT,
        held=does, winners=[PLAIN], expect=[BLIND if blind else LOSES, BLIND], **REPORTS[blind],
    )


SHAPES = {(name, held): shape(name, held) for name in (*BLIND_SHAPES, *READING_SHAPES) for held in (True, False)}
TWINS = {
    name: held_against(
        f"of-two-inserts-of-{name}-{'both-commit' if name in BLIND_SHAPES else 'one-commits'}", layout=FLAT,
        held=does, winners=[does], expect=[BLIND, BLIND] if name in BLIND_SHAPES else [LOSES, NOT_BLIND],
        **REPORTS[name in BLIND_SHAPES],
    )
    for name, does in {**BLIND_SHAPES, **READING_SHAPES}.items()
    if name in ("values", "another-table", "not-exists", "its-maximum", "a-scalar-subquery")
}


def into(date: str) -> str:
    return PLAIN.replace("2026-08-11", f"2026-08-{date}")


def next_of(date: str) -> str:
    return f"INSERT INTO {{t}} SELECT max(id) + 1, {ROW} FROM {{t}} WHERE event_date = DATE'2026-08-{date}'"


NEW_TO = "INSERT INTO {t} SELECT * FROM {other} o WHERE NOT EXISTS (SELECT 1 FROM {t} x WHERE x.id = o.id AND "
PARTITIONS = (
    held_against("appends-to-one-partition-both-commit", layout=BY_DATE, held=into("11"), winners=[into("11")],
                 expect=[BLIND, BLIND], **REPORTS[True]),
    held_against("appends-of-frames-to-one-partition-both-commit", layout=BY_DATE,
                 held=Write(select="SELECT * FROM {other} WHERE event_date = DATE'2026-08-11'"), winners=[into("11")],
                 expect=[BLIND, BLIND], **REPORTS[True]),
    held_against("an-insert-that-read-one-partition-survives-an-insert-into-another", layout=BY_DATE,
                 held=next_of("12"), winners=[into("11")], expect=[NOT_BLIND, BLIND], **REPORTS[False],
                 why="what counts is the partition read, 08-12, and not the one written, 08-11"),
    held_against("an-insert-that-read-one-partition-loses-to-an-insert-there", layout=BY_DATE, held=next_of("12"),
                 winners=[into("12")], expect=[LOSES_P, BLIND], **REPORTS[False]),
    held_against("not-exists-in-one-partition-survives-an-insert-into-another", layout=BY_DATE,
                 held=f"{NEW_TO}x.event_date = DATE'2026-08-12')", winners=[into("11")], expect=[NOT_BLIND, BLIND],
                 **REPORTS[False]),
    held_against("not-exists-in-the-partition-of-the-row-loses-to-an-insert-anywhere", layout=BY_DATE,
                 held=f"{NEW_TO}x.event_date = o.event_date) AND o.event_date = DATE'2026-08-11'",
                 winners=[into("12")], expect=[LOSES_P, BLIND], **REPORTS[False],
                 why="the optimizer could carry the literal over the join, but this scan reads every partition"),
)


def own_columns(name: str, declared: str, *more: str) -> dict[str, object]:
    return {"layout": layout_from_statements(name, (f"CREATE TABLE {{t}} ({declared}) USING delta", *more))}


NUMBERED = "id BIGINT GENERATED {} AS IDENTITY, note STRING"
IDENTITY = {"why": "the highest number given is in the table's metadata, so both write a metadata action",
            "reports": ("A5",)}
COLUMNS = (
    held_against("with-a-check-constraint-inserts-both-commit",
                 **own_columns("checked", "id BIGINT, note STRING", "INSERT INTO {t} VALUES (1, 'base')",
                               "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)"),
                 held="INSERT INTO {t} VALUES (7, 'a')", winners=["INSERT INTO {t} VALUES (8, 'b')"],
                 expect=[BLIND, BLIND], **REPORTS[True]),
    held_against("with-a-column-not-null-inserts-both-commit",
                 **own_columns("not-null", "id BIGINT NOT NULL, note STRING", "INSERT INTO {t} VALUES (1, 'base')"),
                 held="INSERT INTO {t} VALUES (7, 'a')", winners=["INSERT INTO {t} VALUES (8, 'b')"],
                 expect=[BLIND, BLIND], **REPORTS[True]),
    held_against("with-a-default-inserts-both-commit", held="INSERT INTO {t} (id) VALUES (7)",
                 winners=["INSERT INTO {t} (id) VALUES (8)"], expect=[BLIND, BLIND], **REPORTS[True],
                 layout=layout_from_statements("defaults", (
                     ("CREATE TABLE {t} (id BIGINT, note STRING DEFAULT 'none') USING delta TBLPROPERTIES "
                      "('delta.feature.allowColumnDefaults' = 'supported')"), "INSERT INTO {t} VALUES (1, 'base')"))),
    held_against("with-a-generated-column-inserts-both-commit",
                 **own_columns("generated", "id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2)",
                               "INSERT INTO {t} (id) VALUES (1)"),
                 held="INSERT INTO {t} (id) VALUES (7)", winners=["INSERT INTO {t} (id) VALUES (8)"],
                 expect=[BLIND, BLIND], **REPORTS[True]),
    *(held_against(f"with-an-identity-column-{name}-an-insert-loses-to-an-insert",
                   **own_columns(f"identity-{name}", NUMBERED.format(kind), "INSERT INTO {t} (note) VALUES ('base')"),
                   held="INSERT INTO {t} (note) VALUES ('a')", winners=["INSERT INTO {t} (note) VALUES ('b')"],
                   expect=[LOSES_METADATA, BLIND], **IDENTITY)
      for name, kind in {"always": "ALWAYS", "by-default": "BY DEFAULT"}.items()),
    held_against("with-an-identity-column-an-insert-of-given-numbers-survives",
                 **own_columns("identity-given", NUMBERED.format("BY DEFAULT"), "INSERT INTO {t} VALUES (1, 'base')"),
                 held="INSERT INTO {t} VALUES (70, 'a')", winners=["INSERT INTO {t} (note) VALUES ('b')"],
                 expect=[BLIND, BLIND], reports=("A5",)),
    held_against("with-an-identity-column-an-update-loses-as-ever",
                 **own_columns("identity-updated", NUMBERED.format("ALWAYS"), "INSERT INTO {t} (note) VALUES ('base')"),
                 held="UPDATE {t} SET note = 'u'", winners=["INSERT INTO {t} (note) VALUES ('b')"],
                 expect=[LOSES, BLIND], reports=("A5",)),
)
IDENTITY_IN_CORE = ("with-an-identity-column-always-an-insert-loses-to-an-insert",
                    "with-an-identity-column-an-insert-of-given-numbers-survives")
UPSERT = (f"MERGE INTO {{t}} t USING (SELECT 1L AS id, {ROW.replace(', 1', ', 1 AS amount')}) s ON t.id = s.id "
          "WHEN MATCHED THEN UPDATE SET note = 'merged'")
SERIALIZABLE_ALREADY = {"reports": ("A13",),
                        "why": "the answer to raise the level to Serializable changes nothing: that is the default"}
WORKFLOWS = (
    held_against("a-merge-loses-to-the-append-workflow", layout=FLAT, held=UPSERT, winners=[PLAIN],
                 expect=[LOSES, Expected(word="commits", blind=True, isolation="Serializable")],
                 **SERIALIZABLE_ALREADY),
    held_against("the-append-workflow-survives-a-merge", layout=FLAT, held=PLAIN, winners=[UPSERT],
                 expect=[Expected(word="commits", blind=True, isolation="Serializable"), COMMITS],
                 **SERIALIZABLE_ALREADY),
    held_against("under-write-serializable-a-merge-survives-the-append-workflow", layout=FLAT, held=UPSERT,
                 winners=[PLAIN], expect=[COMMITS, BLIND], isolation=WRITE_SERIALIZABLE, reports=("A13",)),
)


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    if profile == "full":
        return (*SHAPES.values(), *TWINS.values(), *PARTITIONS, *COLUMNS, *WORKFLOWS)
    return (*(SHAPES[name, True] for name in IN_CORE), TWINS["not-exists"], PARTITIONS[2],
            *(race for race in COLUMNS if race.name in IDENTITY_IN_CORE), *WORKFLOWS[:2])


def test_race(case, check):
    check(case, rules=True)


NEXT = f"SELECT max(id) + 1 AS id, {ROW.replace(', 1', ', 1 AS amount')} FROM {{t}}"
SEEN = {
    "a-view": f"CREATE TEMPORARY VIEW seen AS {NEXT}",
    "a-cached-query": f"CACHE TABLE seen AS {NEXT}",
    "a-lazily-cached-query": f"CACHE LAZY TABLE seen AS {NEXT}",
}


@pytest.fixture
def seen(engine, delta, table_factory):
    """``seen(how) -> Table``: a fresh table, and ``seen``, by which the session knows what it read of it."""

    def seeing(how):
        table = table_factory("flat")
        delta.sql(engine.fill(SEEN[how], table))
        return table

    yield seeing
    delta.sql("DROP VIEW IF EXISTS seen")
    delta.catalog.clearCache()


def raced(engine, table):
    """What becomes of an INSERT from ``seen`` against a plain one, and the number of rows of the number it gave."""
    held = engine.hold(table, "A", statement("INSERT INTO {t} SELECT * FROM seen"))
    assert engine.run(table, "B", statement(PLAIN.replace("99", "17"))).word == "commits"
    outcome = held.release()
    return outcome.word, sum(row[0] == 17 for row in engine.rows(table)[1])


@pytest.mark.report("A7")
def test_a_view_of_the_table_is_looked_through(engine, seen):
    assert raced(engine, seen("a-view")) == ("append", 1)


@pytest.mark.report("A7")
@pytest.mark.parametrize("how", ["a-cached-query", "a-lazily-cached-query"])
def test_a_cached_read_of_the_table_is_not_recorded(engine, seen, how):
    """An INSERT of rows that were read from the table before, and cached, is blind: it commits, and is out of date."""
    table = seen(how)
    assert raced(engine, table) == ("commits", 2)
    assert engine.read_back(table).history[0].isBlindAppend is True


@pytest.mark.report("A5")
def test_a_streaming_append_is_blind_and_a_plain_insert_survives_it(engine, delta, table_factory, tmp_path):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(PLAIN))
    rows = delta.readStream.format("delta").load(engine.fill("{other}", table).split("`")[1])
    stream = rows.writeStream.format("delta").option("checkpointLocation", str(tmp_path))
    stream.trigger(availableNow=True).start(str(table.path)).awaitTermination()
    assert held.release().word == "commits"
    assert [(row.operation, row.isBlindAppend) for row in engine.read_back(table).history] == [
        ("WRITE", True), ("STREAMING UPDATE", True),
    ]
