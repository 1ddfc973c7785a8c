"""What is lost when a job reads before it writes? Engine-neutral laws, each on Delta with Spark and on delta-rs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace.contention.scenarios import Tally, one_round
from lakerace.layouts import layout, layout_from_statements
from lakerace.orders import parse_order
from lakerace.race import Expected, Race, Statement, Writer, both_held, statement
from lakerace.retry import Retry
from lakerace.run import run_race

if TYPE_CHECKING:
    from lakerace.engines import Engine, Table

ENGINES = ("delta-spark",)
FLAT = layout("flat")
CREATE = "CREATE TABLE {t} (doctor STRING, on_call BOOLEAN) USING delta PARTITIONED BY (doctor)"
DOCTORS = layout_from_statements(
    "doctors", (CREATE, "INSERT INTO {t} VALUES ('ann', true)", "INSERT INTO {t} VALUES ('bob', true)"))

COMMITS, LOST = Expected(word="commits"), Expected(word="append", surfaced="ConcurrentAppendException")
REBASED = Expected(word="commits", attempts=2)
UPSERT = ("MERGE INTO {t} t USING (SELECT 300L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN "
          "INSERT (id, event_date, country, amount, note) VALUES (s.id, DATE'2026-08-11', 'DE', 1, 'once')")
CHECKED = ("INSERT INTO {t} SELECT 300L, DATE'2026-08-11', 'DE', 1, 'once' "
           "WHERE NOT EXISTS (SELECT 1 FROM {t} WHERE id = 300)")
BLIND = "INSERT INTO {t} VALUES (300, DATE'2026-08-11', 'DE', 1, 'once')"
OFF_CALL = "UPDATE {{t}} SET on_call = false WHERE doctor = '{}'"

RACES = (
    both_held("two-doctors-go-off-call-and-nobody-is-left", layout=DOCTORS, first=OFF_CALL.format("ann"),
              second=OFF_CALL.format("bob"), expect=[COMMITS, REBASED], claims=("G-017",)),
    both_held("two-checks-in-code-then-two-inserts-double-the-row", layout=FLAT, first=BLIND, second=BLIND,
              expect=[COMMITS, REBASED], claims=("G-017", "G-018")),
    both_held("two-merges-on-the-key-do-not-both-insert-it", layout=FLAT, first=UPSERT, second=UPSERT,
              expect=[COMMITS, LOST], claims=("G-018",)),
    both_held("two-inserts-that-check-inside-do-not-both-insert", layout=FLAT, first=CHECKED, second=CHECKED,
              expect=[COMMITS, LOST], claims=("G-018",)),
)


def test_race(case, check):
    check(case)


def amount_of(engine: Engine, table: Table, key: int) -> int:
    """What an application reads before it computes."""
    return next(row[3] for row in engine.rows(table)[1] if row[0] == key)


def keys(engine: Engine, table: Table) -> list[int]:
    return sorted(row[0] for row in engine.rows(table)[1])


ADD_ONE = Statement(name="add-one", looks="SELECT amount FROM {t} WHERE id = 1",
                    does="UPDATE {t} SET amount = {seen} + 1 WHERE id = 1")


@pytest.mark.claim("G-008")
@pytest.mark.parametrize(("order", "word", "amount"), [
    ("A:look B:look A:read B:read B:commit A:commit", "append", 11),
    ("A:look B:look B:read B:commit A:read A:commit", "commits", 11),
    ("B:look B:read B:commit A:look A:read A:commit", "commits", 12),
], ids=["refused", "sent-again", "done-again"])
def test_a_computed_value_sent_again_loses_an_update(either, order, word, amount):
    """Two applications see 10 and add one. The engine refuses the loser's 11; sent again it is taken, and one addition
    is lost without an error; only who looks again gets 12."""
    writers = tuple(Writer(name=name, statements=(ADD_ONE,)) for name in "AB")
    seen = run_race(Race(name="add-one", layout=FLAT, writers=writers, order=parse_order(order)), either)
    assert (seen.outcome("A").word, seen.outcome("B").word) == (word, "commits")
    assert next(row[3] for row in seen.rows_after if row[0] == 1) == amount


@pytest.mark.claim("G-008")
def test_what_reads_again_loses_none(either, flat_table):
    """The same with lakerace.retry, which runs the reading too."""
    rivals = [1]

    def add_one() -> None:
        computed = statement(f"UPDATE {{t}} SET amount = {amount_of(either, flat_table, 1) + 1} WHERE id = 1")
        held = either.hold(flat_table, "A", computed)
        for _ in range(rivals.pop() if rivals else 0):
            assert either.run(flat_table, "B", computed).word == "commits"
        outcome = held.release()
        if outcome.word != "commits":
            raise CONFLICT

    done = Retry(sleep=lambda _: None).run(add_one)
    assert [str(attempt) for attempt in done.attempts] == ["append", "no conflict"]
    assert amount_of(either, flat_table, 1) == 12


class Lost(Exception):
    """What the engine said, as its caller would have caught it."""

    def getCondition(self) -> str:  # noqa: N802 - as Spark spells it
        return "DELTA_CONCURRENT_APPEND"


CONFLICT = Lost("a conflict")


@pytest.mark.claim("G-017")
def test_two_doctors_go_off_call_on_delta_rs_too(delta_rs):
    race = both_held("doctors", layout=DOCTORS, first=OFF_CALL.format("ann"), second=OFF_CALL.format("bob"))
    seen = run_race(race, delta_rs)
    assert seen.overlap
    assert (seen.outcome("A").word, {row[1] for row in seen.rows_after}) == ("commits", {False})


@pytest.mark.claim("G-018")
@pytest.mark.parametrize(("sql", "word"), [(BLIND, "commits"), (UPSERT, "append"), (CHECKED, "commits")],
                         ids=["in-code", "merge", "insert-not-exists"])
def test_on_delta_rs_only_a_merge_makes_the_check_visible(delta_rs, sql, word):
    seen = run_race(both_held("check", layout=FLAT, first=sql, second=sql), delta_rs)
    assert (seen.overlap, seen.outcome("A").word) == (True, word)
    assert [row[0] for row in seen.rows_after].count(300) == (2 if word == "commits" else 1)


@pytest.mark.claim("G-027")
@pytest.mark.parametrize(("sql", "same"), [(UPSERT, True), (CHECKED, True), (BLIND, False)],
                         ids=["merge", "insert-not-exists", "insert"])
def test_a_job_started_twice(either, flat_table, sql, same):
    either.run(flat_table, "B", statement(sql))
    once = either.rows(flat_table)[1]
    either.run(flat_table, "B", statement(sql))
    assert (either.rows(flat_table)[1] == once) == same


def upsert_of(*wanted: int) -> str:
    rows = " UNION ALL ".join(f"SELECT {key}L AS id" for key in wanted)
    return (f"MERGE INTO {{t}} t USING ({rows}) s ON t.id = s.id WHEN NOT MATCHED THEN "
            "INSERT (id, event_date, country, amount, note) VALUES (s.id, DATE'2026-08-11', 'DE', 1, 'job')")


def insert_of(missing: list[int]) -> str:
    return "INSERT INTO {t} VALUES " + ", ".join(f"({key}, DATE'2026-08-11', 'DE', 1, 'job')" for key in missing)


@pytest.mark.claim("G-031")
@pytest.mark.parametrize(("inside", "again", "left"), [
    (True, True, [301, 302, 303]), (True, False, [302, 303]),
    (False, True, [301, 302, 302, 303]), (False, False, [301, 302, 302, 303]),
], ids=["inside-again", "inside-once", "outside-again", "outside-once"])
def test_the_two_questions_to_every_job(either, flat_table, inside, again, left):
    """Is the check inside the write, and does the job run again when it lost? Only two times yes is right.

    Two jobs bring keys 301 and 302, and 302 and 303, where missing; both have looked before either commits.
    """
    jobs = [(301, 302), (302, 303)]

    def sql(wanted: tuple[int, ...]) -> str:
        there = keys(either, flat_table)
        return upsert_of(*wanted) if inside else insert_of([key for key in wanted if key not in there])

    asked = [sql(wanted) for wanted in jobs]
    losers = one_round(either, flat_table, asked[::-1], Tally())
    for lost in losers * again:
        assert either.run(flat_table, "B", statement(lost)).word == "commits"
    assert [key for key in keys(either, flat_table) if key > 300] == left
