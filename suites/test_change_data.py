"""Does the change data feed change who wins, and does anybody ever see the change data of a loser?"""

from __future__ import annotations

import pytest

from lakerace import deltalog
from lakerace.layouts import layout, layout_from_statements
from lakerace.race import Expected, held_against, statement

VERSIONS = ">=4.0"
COMMITS = Expected(word="commits")
APPEND = Expected(word="append", surfaced="ConcurrentAppendException",
                  condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
UPDATE = "UPDATE {t} SET note = 'A' WHERE id = 1"
OTHER_UPDATE = "UPDATE {t} SET note = 'B' WHERE id = 16"
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
DELETE = "DELETE FROM {t} WHERE id = 1"
MERGE = ("MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'A' "
         "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
WITHOUT = {"without-vectors": layout("flat"), "with-vectors": layout("flat-dv")}
WITH = {
    name: layout_from_statements(f"{name}-and-feed", (
        made.setup[0].replace("TBLPROPERTIES (", "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "),
        *made.setup[1:],
    ), f"{made.meaning}, change data feed on")
    for name, made in WITHOUT.items()
}
HELD = {"an-update": UPDATE, "a-delete": DELETE, "a-merge": MERGE}

RACES = (
    *(held_against(f"{held}-loses-to-an-update-{feed}-the-feed-{name}", layout=made, held=sql, winners=[OTHER_UPDATE],
                   expect=[APPEND, COMMITS], reports=("I10",))
      for feed, layouts in (("with", WITH), ("without", WITHOUT)) for name, made in layouts.items()
      for held, sql in HELD.items()),
    *(held_against(f"an-insert-passes-an-update-with-the-feed-{name}", layout=made, held=INSERT, winners=[UPDATE],
                   expect=[COMMITS, COMMITS], reports=("I10",)) for name, made in WITH.items()),
)


def test_race(case, check):
    check(case, rules=True)


@pytest.mark.report("I10")
@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
@pytest.mark.parametrize("name", WITH)
def test_the_feed_tells_the_winner_only(delta, engine, table_factory, name, held):
    """A loser's change files lie in _change_data, in no log entry, and the feed tells the winner's rows only.

    (A DELETE that writes a deletion vector stages no change file: the feed reads the vector.)
    """
    table = table_factory(WITH[name])
    loser = engine.hold(table, "A", statement(held))
    assert engine.run(table, "B", statement(OTHER_UPDATE)).word == "commits"
    staged = {file for file in deltalog.data_files(table.path) if file.startswith("_change_data/")}
    assert loser.release().word == "append"
    (won,) = deltalog.read_commits(table.path, table.base_version)
    assert bool(staged - set(won.change_data)) is not (name == "with-vectors" and held == DELETE)
    assert set(won.change_data) <= staged
    feed = delta.read.format("delta").option("readChangeFeed", "true").option("startingVersion", won.version)
    told = sorted((row["id"], row["note"], row["_change_type"]) for row in feed.load(str(table.path)).collect())
    assert told == [(16, "B", "update_postimage"), (16, "base", "update_preimage")]
