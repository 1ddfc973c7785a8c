"""When does maintenance lose: with files marked by vectors, beside its neighbours, behind an insert?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakerace.layouts import layout_from_statements
from lakerace.race import WRITE_SERIALIZABLE, Write, held_against
from lakerace.rules.dropped import MAPPING, without_field
from lakerace.rules.model import DataFile, NotModelled, Table
from lakerace.rules.predict import predict
from lakerace.rules.settings import AT_ONCE
from selfcheck.planning import SPARK, planned


def test_optimize_runs_again_when_a_file_went_that_it_had_not_compacted():
    made = layout_from_statements(
        "own",
        (
            "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO {t} VALUES (3, 'a')",
        ),
    )
    words = {
        gone: predict(
            held_against("r", layout=made, held="OPTIMIZE {t}", winners=(f"DELETE FROM {{t}} WHERE p = '{gone}'",)),
            SPARK,
        )
        .of("A")
        .word
        for gone in ("a", "b")
    }
    assert words == {"a": "delete-read", "b": "commits"}


MARKED = layout_from_statements(
    "marked",
    (
        (
            "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p) "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        ),
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a')",
        "INSERT INTO {t} VALUES (3, 'b'), (4, 'b')",
        "INSERT INTO {t} VALUES (5, 'a')",
        "DELETE FROM {t} WHERE id = 1",
    ),
)


def held_word(held, *winners):
    return predict(held_against("r", layout=MARKED, held=held, winners=winners), SPARK).of("A").word


@pytest.mark.parametrize(
    ("held", "winners", "word"),
    [
        ("OPTIMIZE {t}", ["DELETE FROM {t} WHERE id = 2"], "delete-read"),
        ("OPTIMIZE {t}", ["DELETE FROM {t} WHERE id = 5", "RESTORE TABLE {t} TO VERSION AS OF 4"], "commits"),
        ("OPTIMIZE {t}", ["DELETE FROM {t} WHERE id = 3", "RESTORE TABLE {t} TO VERSION AS OF 4"], "commits"),
        ("OPTIMIZE {t}", ["RESTORE TABLE {t} TO VERSION AS OF 3"], "delete-read"),
        ("OPTIMIZE {t}", ["ALTER TABLE {t} ADD COLUMN (q INT)"], "commits"),
        ("OPTIMIZE {t}", ["ALTER TABLE {t} ADD COLUMN (q INT)", "DELETE FROM {t} WHERE id = 5"], "metadata"),
        (
            "OPTIMIZE {t}",
            [
                "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
                "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
            ],
            "metadata",
        ),
        ("REORG TABLE {t} APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 5"], "commits"),
        ("REORG TABLE {t} APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 2"], "delete-read"),
        ("REORG TABLE {t} WHERE p = 'b' APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 2"], "no-commit"),
        ("REORG TABLE {t} WHERE id = 1 APPLY (PURGE)", ["DELETE FROM {t} WHERE id = 2"], "fails"),
        ("REORG TABLE {t} APPLY (SHRINK)", ["DELETE FROM {t} WHERE id = 2"], "fails"),
        ("DELETE FROM {t} WHERE p = 'a' AND id = 5", ["REORG TABLE {t} APPLY (PURGE)"], "append"),
        ("DELETE FROM {t} WHERE p = 'b' AND id = 3", ["REORG TABLE {t} APPLY (PURGE)"], "commits"),
    ],
)
def test_maintenance_looks_for_its_files_under_their_vectors(held, winners, word):
    assert held_word(held, *winners) == word


MAPPED = (
    (
        "CREATE TABLE {t} (id INT, s STRUCT<x: INT, y: INT>, n INT) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    ),
    "INSERT INTO {t} SELECT 1, NULL, 1",
    "INSERT INTO {t} SELECT 2, NULL, 2",
)


def purge_word(*changes):
    made = layout_from_statements("mapped", (*MAPPED, *(f"ALTER TABLE {{t}} {change}" for change in changes)))
    winner = "DELETE FROM {t} WHERE id = 1"
    race = held_against("r", layout=made, held="REORG TABLE {t} APPLY (PURGE)", winners=[winner])
    return predict(race, SPARK).of("A").word


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("DROP COLUMN n", "delete-read"),
        ("DROP COLUMNS IF EXISTS (n)", "delete-read"),
        ("DROP COLUMN s.x", "delete-read"),
        ("REPLACE COLUMNS (id INT, n INT)", "delete-read"),
        ("RENAME COLUMN n TO m", "no-commit"),
        ("ADD COLUMN (m INT)", "no-commit"),
        ("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')", "no-commit"),
    ],
)
def test_a_purge_takes_the_files_that_have_more_columns_than_the_table(change, word):
    assert purge_word(change) == word


def test_a_renamed_column_that_is_dropped_is_purged():
    assert purge_word("RENAME COLUMN n TO m", "DROP COLUMN m") == "delete-read"


def test_a_column_that_is_there_again_is_not_guessed_at():
    with pytest.raises(NotModelled, match="the rules can't tell whether n is the column that was dropped before"):
        purge_word("DROP COLUMN n", "ADD COLUMN (n INT)")


def test_a_file_of_unknown_age_is_not_guessed_at():
    table = Table(columns={"id": "int"}, properties={MAPPING: "name"}, files=(DataFile(path="f"),))
    with pytest.raises(NotModelled, match="the rules can't tell which columns f has"):
        planned("REORG TABLE {t} APPLY (PURGE)", table)
    unmapped = replace(table, properties={})
    assert planned("REORG TABLE {t} APPLY (PURGE)", unmapped).transactions == ()


@pytest.mark.parametrize(
    ("kind", "path", "left"),
    [
        ("struct<x: int, y: struct<z: int, w: int>>", "y.z", "struct<x: int, y: struct<w: int>>"),
        ("array<struct<a: int, b: int>>", "element.a", "array<struct<b: int>>"),
        ("map<string, struct<a: int, b: int>>", "value.b", "map<string, struct<a: int>>"),
        ("struct<x: int>", "q.z", "struct<x: int>"),
        ("no <type", "x", "no <type"),
    ],
)
def test_a_field_is_taken_out_of_a_type(kind, path, left):
    assert without_field(kind, path) == left


@pytest.mark.parametrize(("changes", "word"), [("false", "commits"), ("true", "append")])
def test_a_rewrite_that_changes_no_data_passes_appends(changes, word):
    rewrite = Write(select="SELECT * FROM {t}", mode="overwrite", options=(("dataChange", changes),))
    assert held_word(rewrite, "INSERT INTO {t} VALUES (6, 'a')") == word


@pytest.mark.parametrize(
    ("held", "on", "at_once", "word"),
    [
        ("p = 'a'", "true", "false", "append"),
        ("p = 'a'", "true", "true", "commits"),
        ("p = 'a'", "false", "false", "commits"),
        ("p = 'b'", "true", "false", "commits"),
    ],
    ids=["compacted", "counted", "turned off", "elsewhere"],
)
def test_auto_compaction_is_one_more_commit_behind_an_excused_insert(held, on, at_once, word):
    turned = f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.autoOptimize.autoCompact' = '{on}')"
    race = held_against(
        "r", layout=replace(MARKED, setup=(*MARKED.setup, turned)), held=f"UPDATE {{t}} SET id = 9 WHERE {held}",
        winners=("INSERT INTO {t} VALUES (6, 'a')",), isolation=WRITE_SERIALIZABLE, settings=((AT_ONCE, at_once),),
    )
    outlook = predict(race, SPARK)
    assert outlook.of("A").word == word
    operations = [commit.done.operation for commit in outlook.commits if commit.writer == "B"]
    assert operations == ["WRITE", "OPTIMIZE"][: 1 + (on == "true" and at_once == "false")]


IDLE = layout_from_statements(
    "idle", ("CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported')",)
)
CLUSTERED = layout_from_statements(
    "clustered-by-id",
    ("CREATE TABLE {t} (id INT, p STRING) USING delta CLUSTER BY (id)", "INSERT INTO {t} VALUES (1, 'a')"),
)
DROP, CHECK = "ALTER TABLE {t} DROP FEATURE checkConstraints", "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)"
BY_ID, BY_P = (f"ALTER TABLE {{t}} CLUSTER BY ({name})" for name in ("id", "p"))


@pytest.mark.parametrize(("layout", "held", "winner", "word", "check"), [
    (IDLE, DROP, CHECK, "revalidation", "protocol"), (IDLE, CHECK, DROP, "protocol", "protocol"),
    (IDLE, DROP, "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'night')", "metadata", "metadata"),
    (CLUSTERED, BY_ID, BY_P, "transaction", "domain-metadata"),
    (CLUSTERED, "ALTER TABLE {t} ADD COLUMN (more INT)", BY_P, "commits", None),
    (CLUSTERED, BY_P, "ALTER TABLE {t} ADD COLUMN (more INT)", "metadata", "metadata"),
])
def test_a_feature_in_use_again_and_a_clustering_changed_again(layout, held, winner, word, check):
    found = predict(held_against("r", layout=layout, held=held, winners=(winner,)), SPARK).of("A").prediction
    assert (found.word, found.fired and found.fired.name) == (word, check)
