"""What happens in a commit? Claims about log entries, staged files and what others see of them."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from lakerace import deltalog
from lakerace.layouts import layout
from lakerace.race import Expected, held_against, statement

FLAT, BY_DATE = layout("flat"), layout("by-date")
COMMITS = Expected(word="commits")
INSERT = "INSERT INTO {t} VALUES (201, DATE'2026-08-11', 'DE', 1, 'new')"
INSERT_12 = "INSERT INTO {t} VALUES (202, DATE'2026-08-12', 'DE', 1, 'new')"
UPDATE = "UPDATE {t} SET amount = amount + 1 WHERE id = 1"
UPDATE_11 = "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-11'"
UPDATE_12 = "UPDATE {t} SET note = 'B' WHERE event_date = DATE'2026-08-12'"
DELETE_12 = "DELETE FROM {t} WHERE event_date = DATE'2026-08-12' AND id = 9"
DELETE_11 = "DELETE FROM {t} WHERE event_date = DATE'2026-08-11'"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def append_at(version: int) -> Expected:
    return Expected(word="append", surfaced="ConcurrentAppendException", parameters=(("version", str(version)),))


RACES = (
    held_against("three-harmless-winners-move-the-commit-on-by-three", layout=BY_DATE, held=UPDATE_11,
                 winners=[UPDATE_12, INSERT_12, DELETE_12],
                 expect=[Expected(word="commits", version=12, read_version=8, attempts=2), COMMITS, COMMITS, COMMITS],
                 claims=("D-005", "D-006")),
    held_against("the-first-conflicting-winner-of-four-is-named", layout=BY_DATE, held=UPDATE_11,
                 winners=[UPDATE_12, INSERT_12, UPDATE_11, DELETE_11],
                 expect=[append_at(11), COMMITS, COMMITS, COMMITS, COMMITS], claims=("D-005",)),
    held_against("an-insert-that-comes-late-becomes-the-next-version", layout=FLAT, held=INSERT, winners=[INSERT],
                 expect=[Expected(word="commits", version=10, read_version=8, attempts=2),
                         Expected(word="commits", version=9)], claims=("D-006", "D-004")),
    held_against("a-loser-leaves-the-rows-of-the-winner", layout=FLAT, held=UPDATE, winners=[UPDATE],
                 expect=[append_at(9), COMMITS], claims=("D-009", "D-010")),
)


def test_race(case, check):
    check(case)


@pytest.mark.claim("D-001")
def test_a_loser_hears_of_the_conflict_at_its_commit(race):
    seen = race(held=UPDATE, winners=[UPDATE], layout="flat")
    assert [(event.writer, event.what) for event in seen.timeline] == [
        ("A", "read"), ("A", "hold"), ("B", "read"), ("B", "commits"), ("A", "append"),
    ]


@pytest.mark.claim("D-002")
def test_a_commit_is_one_file_named_by_its_version(engine, table_factory):
    table = table_factory("flat")
    log = table.path / "_delta_log"
    before = {path.name for path in log.glob("*.json")}
    engine.run(table, "A", statement(INSERT))
    assert {path.name for path in log.glob("*.json")} - before == {"00000000000000000009.json"}


@pytest.mark.claim("D-003")
def test_staged_files_have_names_of_their_own(race):
    seen = race(held=UPDATE, winners=[UPDATE], layout="flat")
    staged, committed = set(seen.files.unreferenced), set(seen.commits[0].added)
    assert staged
    assert committed
    assert not staged & committed
    assert all(UUID.search(name) for name in staged | committed)


@pytest.mark.claim("D-004")
@pytest.mark.parametrize(("late", "word"), [(INSERT, "commits"), (UPDATE, "append")], ids=["harmless", "conflicting"])
def test_the_late_writer_never_touches_the_entry(engine, table_factory, late, word):
    table = table_factory("flat")
    entry = table.path / "_delta_log" / "00000000000000000009.json"
    held = engine.hold(table, "A", statement(late))
    engine.run(table, "B", statement(UPDATE))
    before = hashlib.sha256(entry.read_bytes()).hexdigest()
    assert held.release().word == word
    assert hashlib.sha256(entry.read_bytes()).hexdigest() == before


@pytest.mark.claim("D-007")
def test_an_entry_written_by_another_hand_stays(engine, table_factory):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(INSERT))
    entry = table.path / "_delta_log" / "00000000000000000009.json"
    entry.write_text(json.dumps({"commitInfo": {"operation": "WRITE", "timestamp": 1, "isBlindAppend": True}}) + "\n")
    before = entry.read_bytes()
    outcome = held.release()
    assert (outcome.word, outcome.version) == ("commits", 10)
    assert entry.read_bytes() == before


@pytest.mark.claim("D-008")
def test_a_reader_of_a_version_sees_that_version_only(delta, engine, table_factory):
    table = table_factory("flat")
    pinned = delta.read.format("delta").option("versionAsOf", table.base_version).load(str(table.path))
    latest = delta.read.format("delta").load(str(table.path))
    counts = [(pinned.count(), latest.count())]
    engine.run(table, "A", statement(INSERT))
    counts.append((pinned.count(), latest.count()))
    assert counts == [(16, 16), (16, 17)]


@pytest.mark.claim("D-008")
def test_an_open_reader_is_not_disturbed(delta, engine, table_factory):
    table = table_factory("flat")
    reader = delta.read.format("delta").load(str(table.path)).repartition(4).toLocalIterator()
    found = [next(reader)]
    engine.run(table, "A", statement("DELETE FROM {t}"))
    assert len([*found, *reader]) == 16
    assert delta.read.format("delta").load(str(table.path)).count() == 0


@pytest.mark.claim("D-009")
def test_plain_parquet_loses_an_update_without_a_word(delta, tmp_path):
    folder = str(tmp_path / "plain")
    delta.createDataFrame([(1, 10), (2, 20)], "id INT, amount INT").write.parquet(folder)
    mine = theirs = delta.read.parquet(folder).collect()
    for own, rows in ((2, theirs), (1, mine)):
        changed = [(row.id, row.amount + 1 if row.id == own else row.amount) for row in rows]
        delta.createDataFrame(changed, "id INT, amount INT").write.mode("overwrite").parquet(folder)
    assert sorted(map(tuple, delta.read.parquet(folder).collect())) == [(1, 11), (2, 20)]


@pytest.mark.claim("D-010")
def test_nobody_reads_what_is_only_staged(delta, engine, table_factory):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(INSERT))
    assert deltalog.files(table.path).unreferenced
    assert delta.read.format("delta").load(str(table.path)).count() == 16
    assert held.release().word == "commits"
    assert delta.read.format("delta").load(str(table.path)).count() == 17


@pytest.mark.claim("D-011")
def test_a_loser_has_done_all_its_work(race):
    merge = "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'A'"
    seen = race(held=merge, winners=[merge], layout="flat")
    assert seen.outcome("A").word == "append"
    assert len(seen.files.unreferenced) == 1
    assert seen.files.unreferenced_bytes > 0
