"""Are parties of every sort led as the order says: look-ups, readers, several statements, two tables? No JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakerace.layouts import LAYOUTS
from lakerace.orders import OrderError, count_orders, every_order, order_text, parse_order, sample_orders
from lakerace.race import Race, RaceError, Reader, Statement, Writer, on, statement
from lakerace.rules.predict import predict
from lakerace.rules.profiles import profile_of
from lakerace.run import run_race

if TYPE_CHECKING:

    from lakerace.engines import Engine

THREE_STOPS = {"A": ("look", "read", "commit"), "B": ("look", "read", "commit")}
BUMP = Statement(
    name="bump",
    looks="SELECT amount FROM {t} WHERE id = 1",
    does="UPDATE {t} SET amount = {seen} + 1 WHERE id = 1",
)
INSERT = statement("INSERT INTO {t} VALUES (90, DATE'2026-08-11', 'DE', 1, 'new')")
DELETE = statement("DELETE FROM {t} WHERE id = 1")
COUNT = "SELECT count(*) AS n FROM {t}"


def race(order: str, *writers: tuple[Statement, ...], queries: tuple[str, ...] = ()) -> Race:
    return Race(
        name="walk",
        layout=LAYOUTS["by-date"],
        writers=tuple(Writer(name=name, statements=does) for name, does in zip("ABC", writers, strict=False)),
        readers=(Reader(name="R", queries=queries),) if queries else (),
        order=parse_order(order),
    )


def test_three_stops_of_two_writers_make_twenty_orders() -> None:
    found = every_order(THREE_STOPS)
    assert len(set(found)) == count_orders(THREE_STOPS) == 20
    assert all(parse_order(order_text(order)) == order for order in found)


@pytest.mark.parametrize(("count", "drawn"), [(0, 0), (7, 7), (20, 20), (1000, 20)])
def test_a_sample_is_the_same_for_the_same_seed(count: int, drawn: int) -> None:
    found = sample_orders(THREE_STOPS, count, seed=3)
    assert found == sample_orders(THREE_STOPS, count, seed=3)
    assert len(set(found)) == len(found) == drawn
    assert set(found) <= set(every_order(THREE_STOPS))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R:pinned", "R reads pinned before it opens"),
        ("R:open R:commit", "R is a reader and can't commit"),
        ("A:read R:open A:open A:commit", "A is a writer and can't open"),
        ("A:look A:commit", "A commits before it reads"),
        ("A:look A:look A:read A:commit", "step 'A:look' stands twice"),
        ("A:read A:look A:commit", "A looks after it has read"),
        ("A:read A:commit A:commit", "A commits before it reads"),
        ("A:read A:commit A:look", "A looks but never reads"),
        ("A:read A:commit A:read", "A reads but never commits"),
    ],
)
def test_what_no_party_can_do_is_refused(text: str, message: str) -> None:
    with pytest.raises(OrderError, match=message):
        parse_order(text)


def test_a_race_says_what_its_parties_lack() -> None:
    whole = race("R:open A:read A:commit", (DELETE,), queries=(COUNT,))
    for changes, message in (
        ({"readers": ()}, "the order names reader 'R', the race has none"),
        ({"readers": (Reader(name="R", queries=(COUNT, COUNT)),)}, "reader R has 2 queries, the order opens 1"),
        ({"order": parse_order("R:open A:look A:read A:commit")}, "A is to look, but delete says nothing to look for"),
        ({"order": parse_order("R:open A:read A:commit A:read A:commit")}, "1 statements, the order steps through 2"),
    ):
        with pytest.raises(RaceError, match=message):
            on(whole, **changes)
    with pytest.raises(RaceError, match=r"need each other"):
        race("A:read A:commit", (statement("UPDATE {t} SET amount = {seen}"),))


def test_who_looks_before_another_commits_carries_the_old_value(delta_rs: Engine) -> None:
    asked = race("A:look B:look B:read B:commit A:read A:commit", (BUMP,), (BUMP,))
    seen = run_race(asked, delta_rs)
    assert [(one.word, one.looked) for one in seen.writers] == [("commits", "10"), ("commits", "10")]
    assert [row[3] for row in seen.rows_after if row[0] == 1] == [11]
    outlook = predict(asked, profile_of(delta_rs.line))
    assert [row[3] for row in outlook.rows() or () if row[0] == 1] == [11]


def test_who_looks_when_reading_carries_the_new_value(delta_rs: Engine) -> None:
    seen = run_race(race("A:read A:commit B:read B:commit", (BUMP,), (BUMP,)), delta_rs)
    assert [one.looked for one in seen.writers] == ["10", "11"]
    assert [row[3] for row in seen.rows_after if row[0] == 1] == [12]


def test_a_reader_sees_its_snapshot_again_and_pinned_and_else_the_latest(delta_rs: Engine) -> None:
    seen = run_race(race("R:open A:read A:commit R:again R:pinned R:latest", (DELETE,), queries=(COUNT,)), delta_rs)
    assert [(look.how, look.versions["{t}"], look.rows) for look in seen.looks] == [
        ("open", 8, ((16,),)),
        ("again", 8, ((16,),)),
        ("pinned", 8, ((16,),)),
        ("latest", 9, ((15,),)),
    ]
    assert [event.what for event in seen.timeline if event.writer == "R"] == ["open", "again", "pinned", "latest"]


def test_statements_of_one_writer_are_stepped_through_and_all_told(delta_rs: Engine) -> None:
    asked = race("A:read B:read A:commit A:read B:commit A:commit", (INSERT, DELETE), (DELETE,))
    seen = run_race(asked, delta_rs)
    first, last = (*seen.outcome("A").earlier, seen.outcome("A"))
    assert (first.word, first.version, first.read_version) == ("commits", 9, 8)
    assert (last.word, last.read_version, seen.outcome("B").version) == ("delete-read", 9, 10)
    assert seen.overlap_proof == "B read 8 < 9 < 10; A read 9 < 10, then aborted"
    outlook = predict(asked, profile_of(delta_rs.line))
    assert [(one.writer, one.word) for one in outlook.forecasts] == [("A", "delete-read"), ("B", "commits")]


def test_a_writer_that_failed_takes_no_further_step(delta_rs: Engine) -> None:
    bad = statement("DELETE FROM {t} WHERE nope = 1")
    seen = run_race(race("A:read A:commit A:read A:commit B:read B:commit", (bad, INSERT), (DELETE,)), delta_rs)
    assert (seen.outcome("A").word, seen.outcome("A").earlier) == ("fails", ())
    assert [row.version for row in seen.history] == [9] == [seen.outcome("B").version]


def test_two_tables_have_a_log_each(delta_rs: Engine) -> None:
    raise_t = statement("UPDATE {t} SET amount = (SELECT max(amount) FROM {twin}) WHERE id = 1")
    lower_twin = statement("UPDATE {twin} SET amount = (SELECT min(amount) FROM {t}) WHERE id = 16")
    asked = race("A:read B:read B:commit A:commit", (raise_t,), (lower_twin,))
    seen = run_race(asked, delta_rs)
    assert [(one.table, one.word, one.version) for one in seen.writers] == [
        ("{t}", "commits", 9),
        ("{twin}", "commits", 9),
    ]
    assert seen.twin is not None
    assert [commit.version for commit in seen.twin.commits] == [9]
    assert seen.overlap_proof == "A stood at 8 while B committed to {twin}"
    assert {"lowest": [row[3] for row in seen.twin.rows_after if row[0] == 16]} == {"lowest": [10]}


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (("SELECT nope FROM {t}",), "R: 'SELECT nope FROM {t}' failed: "),
        (("SELECT count(*) AS n FROM {nobody}",), "R: 'SELECT count"),
    ],
)
def test_a_query_that_fails_is_an_error_of_the_race(delta_rs: Engine, queries: tuple[str, ...], message: str) -> None:
    seen = run_race(race("R:open A:read A:commit", (DELETE,), queries=queries), delta_rs)
    assert str(seen.error).startswith(message), seen.error


def test_who_looks_for_more_than_one_value_is_told_so(delta_rs: Engine) -> None:
    many = Statement(name="many", looks="SELECT amount FROM {t}", does="UPDATE {t} SET amount = {seen} WHERE id = 1")
    seen = run_race(race("A:read A:commit", (many,)), delta_rs)
    assert seen.error == "A looks for one value, 'SELECT amount FROM {t}' gives 16 rows: ask for one value"
