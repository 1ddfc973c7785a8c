"""Which files and rows does a setup of one's own leave in the table?"""

from __future__ import annotations

import pytest

from lakerace.layouts import layout_from_statements
from lakerace.rules.tables import table_of
from selfcheck.planning import only


def test_a_setup_becomes_files_with_their_partitions():
    made = table_of(
        layout_from_statements(
            "own",
            (
                (
                    "CREATE TABLE {t} (id INT, day STRING, v DOUBLE) USING delta PARTITIONED BY (day) "
                    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
                ),
                "INSERT INTO {t} VALUES (1, 'mon', 1.5), (2, 'tue', NULL)",
                "INSERT INTO {t} (day, id) VALUES ('mon', 3)",
                "DELETE FROM {t} WHERE id = 2",
            ),
        )
    )
    assert made.partitioned == ("day",)
    assert "deletionVectors" in made.features
    assert sorted((file.partition["day"], [row["id"] for row in file.rows]) for file in made.files) == [
        ("mon", [1]),
        ("mon", [3]),
    ]


def test_rows_that_the_text_does_not_tell_leave_their_place_open():
    made = table_of(
        layout_from_statements(
            "own",
            (
                "CREATE TABLE {t} (id INT, day STRING) USING delta PARTITIONED BY (day)",
                "INSERT INTO {t} SELECT id, uuid() FROM somewhere",
            ),
        )
    )
    (file,) = made.files
    assert file.rows is None
    found = only("DELETE FROM {t} WHERE day = 'mon'", made)
    assert len(found.removes) == 1


@pytest.mark.parametrize(
    ("setup", "places"),
    [
        (
            [
                "CREATE TABLE {t} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} SELECT id, CAST(id % 2 AS STRING) FROM range(0, 4)",
            ],
            {"0": [0, 2], "1": [1, 3]},
        ),
        (
            [
                "CREATE TABLE {t} (id INT, p INT GENERATED ALWAYS AS (id % 10)) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} (id) VALUES (11), (22)",
            ],
            {1: [11], 2: [22]},
        ),
        (
            [
                "CREATE TABLE {t} (id INT, p STRING DEFAULT 'x') USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} (id) VALUES (1)",
            ],
            {"x": [1]},
        ),
        (
            ["CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1 AS id, 'a' AS p UNION ALL SELECT 2, 'b'"],
            {"a": [1], "b": [2]},
        ),
        (
            [
                "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} WITH a AS (SELECT 1 AS id), b AS (SELECT id FROM a) SELECT id, 'w' FROM b",
            ],
            {"w": [1]},
        ),
        (
            [
                "SET spark.sql.shuffle.partitions = 1",
                "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)",
                "INSERT INTO {t} SELECT col1, col2 FROM VALUES (1, 'v')",
            ],
            {"v": [1]},
        ),
    ],
)
def test_setups_of_many_shapes_are_read(setup, places):
    made = table_of(layout_from_statements("own", tuple(setup)))
    found: dict[object, list[object]] = {}
    for file in made.files:
        found.setdefault(file.partition["p"], []).extend(row["id"] for row in file.rows)
    assert found == places
