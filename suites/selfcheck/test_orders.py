"""Does the order notation say what it means?"""

from __future__ import annotations

import doctest

import pytest

from lakerace import orders
from lakerace.layouts import LAYOUTS
from lakerace.orders import (
    OrderError,
    commit_order,
    draw,
    every_order,
    held_writers,
    meant_overlaps,
    order_text,
    parse_order,
)
from lakerace.race import Expected, Race, RaceError, Statement, Writer, both_held, held_against, on


@pytest.mark.parametrize(
    ("text", "held", "committed"),
    [
        ("A:read A:commit", (), ("A",)),
        ("A:read A:commit B:read B:commit", (), ("A", "B")),
        ("A:read B:read B:commit A:commit", ("A",), ("B", "A")),
        ("A:read B:read B:commit C:read C:commit A:commit", ("A",), ("B", "C", "A")),
        ("B:read A:read B:commit A:commit", ("B", "A"), ("B", "A")),
        ("A:read B:read C:read C:commit B:commit A:commit", ("A", "B"), ("C", "B", "A")),
    ],
)
def test_an_order_tells_who_is_held_and_who_commits_when(
    text: str, held: tuple[str, ...], committed: tuple[str, ...]
) -> None:
    order = parse_order(text)
    assert order_text(order) == text
    assert held_writers(order) == held
    assert commit_order(order) == committed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the order has no steps"),
        ("A", "step 'A' is not WRITER:read or WRITER:commit"),
        ("A:write", "step 'A:write' is not WRITER:read or WRITER:commit"),
        (":read", "step ':read' is not"),
        ("A:commit", "A commits before it reads"),
        ("A:commit A:read", "A commits before it reads"),
        ("A:read", "A reads but never commits"),
        ("A:read A:read A:commit", "step 'A:read' stands twice"),
        ("A:read B:read B:commit", "A reads but never commits"),
    ],
)
def test_an_order_that_cannot_be_followed_is_refused(text: str, message: str) -> None:
    with pytest.raises(OrderError, match=message):
        parse_order(text)


def test_an_order_is_drawn_as_lanes() -> None:
    drawn = draw(parse_order("A:read B:read B:commit C:read C:commit A:commit")).splitlines()
    assert [lane[0] for lane in drawn] == ["A", "B", "C"]
    ends = [lane.index("commit") for lane in drawn]
    starts = [lane.index("read") for lane in drawn]
    assert starts == sorted(starts)
    assert ends[0] > ends[2] > ends[1]


def test_the_docstring_draws_what_it_shows() -> None:
    assert doctest.testmod(orders).failed == 0


def test_one_writer_is_held_against_several() -> None:
    race = held_against("r", layout=LAYOUTS["flat"], held="DELETE FROM {t}", winners=["OPTIMIZE {t}", "VACUUM {t}"])
    assert order_text(race.order) == "A:read B:read B:commit C:read C:commit A:commit"
    assert [writer.name for writer in race.writers] == ["A", "B", "C"]
    assert race.writer("C").statements[0].name == "vacuum"


def test_two_writers_are_held_and_released_in_turn() -> None:
    race = both_held("r", layout=LAYOUTS["flat"], first="OPTIMIZE {t}", second="DELETE FROM {t}")
    assert held_writers(race.order) == ("B", "A")
    assert commit_order(race.order) == ("B", "A")


def test_a_race_that_contradicts_itself_is_refused() -> None:
    race = held_against("r", layout=LAYOUTS["flat"], held="DELETE FROM {t}", winners=["OPTIMIZE {t}"])
    with pytest.raises(RaceError, match="the order names writer 'Z', the race has A, B"):
        on(race, order=parse_order("A:read Z:read Z:commit A:commit"))
    with pytest.raises(RaceError, match="an outcome is declared for writer 'C'"):
        on(race, expect=(("C", None),))
    with pytest.raises(RaceError, match="unknown isolation level 'snapshot'"):
        on(race, isolation="snapshot")
    twice = Writer(name="A", statements=(Statement(name="a", does="DELETE FROM {t}"),) * 2)
    with pytest.raises(RaceError, match="writer A has 2 statements, the order steps through 1"):
        Race(name="r", layout=race.layout, writers=(twice, race.writers[1]), order=race.order)


@pytest.mark.parametrize("declared", [1, 3])
def test_the_outcome_of_every_writer_is_declared_or_of_none(declared: int) -> None:
    outcomes = [Expected(word="commits")] * declared
    with pytest.raises(RaceError, match=f"r: outcomes declared: {declared}, writers: 2"):
        held_against("r", layout=LAYOUTS["flat"], held="OPTIMIZE {t}", winners=["VACUUM {t}"], expect=outcomes)
    with pytest.raises(RaceError, match=f"r: outcomes declared: {declared}, writers: 2"):
        both_held("r", layout=LAYOUTS["flat"], first="OPTIMIZE {t}", second="VACUUM {t}", expect=outcomes)


@pytest.mark.parametrize(("writers", "count"), [("", 0), ("A", 1), ("AB", 6), ("ABC", 90), ("ABCD", 2520)])
def test_every_order_is_there_once(writers: str, count: int) -> None:
    found = every_order(writers)
    assert len(found) == len(set(found)) == count
    for order in found:
        assert sorted(commit_order(order)) == list(writers)
        assert parse_order(order_text(order)) == order


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("A:read A:commit B:read B:commit", ()),
        ("A:read B:read B:commit A:commit", (("A", "B"),)),
        ("A:read B:read A:commit B:commit", (("B", "A"),)),
        ("A:read B:read C:read C:commit B:commit A:commit", (("B", "C"), ("A", "C"), ("A", "B"))),
    ],
)
def test_an_order_tells_whose_commit_comes_between(text: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert meant_overlaps(parse_order(text)) == pairs
