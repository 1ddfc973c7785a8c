"""Which orders does serial replay try, and what of their results does it compare? By hand, and on drawn runs."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE
from lakerace.serial.explain import explain
from lakerace.serial.model import ANOMALY, EXPLAINED, Content, Fails, History, NotReplayable, Ran, Replayed
from selfcheck.toy import COLUMNS, STRICT, Toy, World, contents, insert, update

if TYPE_CHECKING:
    from collections.abc import Callable


def raced(world: World, *names: str) -> Toy:
    toy = Toy(world)
    for number, name in enumerate(names):
        toy.run(name, insert(name, number), f"INSERT {name}")
    return toy


def test_an_order_in_which_a_statement_fails_explains_nothing() -> None:
    toy = raced(STRICT[0], "B", "A")
    found = explain(toy.history(), lambda order: Fails("A fails: no such column") if "A" in order else toy.after(order))
    assert found.anomaly == "unknown anomaly"
    assert found.lines[1] == "B then A: A fails: no such column"


def test_a_replay_that_broke_judges_nothing() -> None:
    found = explain(raced(STRICT[0], "B").history(), lambda _: NotReplayable("the JVM died"))
    assert found.lines == ("can't be judged: the JVM died",)


def test_too_many_writers_for_every_order() -> None:
    weak = replace(STRICT[0], level=WRITE_SERIALIZABLE)
    toy = raced(weak, *"BCDEFGHI")
    assert toy.explain().verdict == EXPLAINED
    toy.states[-1] = {"t": toy.now["t"][1:]}
    assert toy.explain().reason == (
        "8 statements committed: of their orders only the 50 in which at most one has moved were tried, and none "
        "explains it"
    )


def test_a_writer_keeps_its_own_statements_in_turn() -> None:
    toy = Toy(replace(STRICT[0], level=WRITE_SERIALIZABLE))
    first, second = update(1, lambda _, __: 1, "one"), update(1, lambda _, __: 2, "two")
    toy.run("B.1", first, left=second(toy.now))
    toy.run("B.2", second, left=first(second(toy.tables)))
    found = toy.explain()
    assert found.verdict == ANOMALY
    assert [one.order for one in found.tried] == [("B.1", "B.2")]


def test_a_version_that_the_history_lacks_is_not_compared() -> None:
    toy = raced(STRICT[0], "B", "A")
    history = toy.history()
    assert explain(replace(history, states={"A": history.states["A"]}), toy.after).verdict == EXPLAINED
    gone = replace(history, states={"B": history.states["B"]}, final=history.states["B"])
    assert explain(gone, toy.after).lines[0].startswith("lost commit: A (INSERT A) was acknowledged")


def test_nobody_committed() -> None:
    toy = Toy(STRICT[0])
    toy.refuse("A", insert("a", 1), text="INSERT A")
    history = toy.history()
    assert explain(history, toy.after).lines == ("explained by: nobody",)
    left = replace(history, final=contents(insert("a", 1)(toy.tables)))
    assert explain(left, toy.after).lines == (
        "aborted read: A (INSERT A) did not commit, yet (a, 1, new), which it writes, is there",
        "nobody: expected (a, 1, new) not at all, seen once",
    )


def test_columns_count_too() -> None:
    toy = raced(STRICT[0], "B")
    history = toy.history()
    wider = {"t": Content((*COLUMNS, "extra"), tuple((*row, None) for row in history.final["t"].rows))}
    found = explain(replace(history, states={}, final=wider), toy.after)
    assert found.lines[1] == "B: expected columns k, n, note, seen k, n, note, extra"
    turned = {"t": Content(COLUMNS[::-1], tuple(row[::-1] for row in history.final["t"].rows))}
    assert explain(replace(history, states={}, final=turned), toy.after).verdict == EXPLAINED


VALUES = st.sampled_from((None, True, 0, 1, 1.0, -0.0, math.nan, "1", "", b"1", Decimal(1)))
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=5)


@st.composite
def serial_runs(draw: st.DrawFn) -> tuple[History, Callable[[tuple[str, ...]], Any]]:
    """One to five statements of random effect, run one after the other."""
    start, does = draw(ROWS), {}
    for name in "ABCDE"[: draw(st.integers(1, 5))]:
        new, every = draw(ROWS), draw(st.integers(1, 4))
        does[name] = lambda rows, new=new, every=every: [row for at, row in enumerate(rows) if at % every] + new
    states, rows = {}, list(start)
    for name, change in does.items():
        rows = change(sorted(rows, key=repr))
        draw(st.randoms(use_true_random=False)).shuffle(rows)
        states[name] = {"t": Content(("k", "v"), tuple(rows))}

    def after(order: tuple[str, ...]) -> Replayed:
        left = list(start)
        for name in order:
            left = does[name](sorted(left, key=repr))
        return Replayed({"t": Content(("k", "v"), tuple(left))})

    level = draw(st.sampled_from(ISOLATIONS))
    ran = tuple(Ran(name=name, writer=name, text=name, version=place) for place, name in enumerate(does))
    base = {"t": Content(("k", "v"), tuple(start))}
    return History(isolation=level, base=base, ran=ran, states=states, final=states[ran[-1].name]), after


@settings(max_examples=25, deadline=None)
@given(serial_runs())
def test_every_serial_run_is_explained_in_whatever_order_its_rows_come(run: Any) -> None:
    assert explain(*run).verdict == EXPLAINED


@settings(max_examples=25, deadline=None)
@given(serial_runs(), st.data())
def test_one_row_too_many_or_too_few_is_never_explained(run: Any, data: st.DataObject) -> None:
    history, after = run
    rows = list(history.final["t"].rows)
    if rows and data.draw(st.booleans()):
        rows.remove(data.draw(st.sampled_from(rows)))
    else:
        rows.append((data.draw(VALUES), "not there"))
    wrong = {"t": Content(("k", "v"), tuple(rows))}
    strict = replace(history, isolation=SERIALIZABLE, final=wrong)
    assert explain(strict, after).verdict == ANOMALY
