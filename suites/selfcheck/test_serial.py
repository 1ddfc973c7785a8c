"""Does serial replay know what it sees? Small histories of every kind, made by a toy engine, with known answers."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakerace.observe import ABORTS, FAILS, NO_COMMIT
from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE
from lakerace.serial.anomalies import ANOMALIES
from lakerace.serial.explain import explain
from lakerace.serial.model import (
    ANOMALY,
    EXPLAINED,
    UNKNOWN,
    Content,
    Explanation,
    Fails,
    History,
    Look,
    NotReplayable,
    Ran,
    Replayed,
)

Row = tuple[Any, ...]
Tables = dict[str, list[Row]]
Does = Callable[[Tables], Tables]
COLUMNS = ("k", "n", "note")
LEAST = 30


@dataclass(frozen=True, kw_only=True)
class World:
    """A start: keys of some type, rows, a level, and whether others have work before and after the raced statements."""

    keys: tuple[Any, ...]
    note: Any
    level: str
    doubled: bool
    before: bool
    after: bool

    @property
    def start(self) -> list[Row]:
        rows = [(key, 10 * place, self.note) for place, key in enumerate(self.keys)]
        return rows + ([rows[-1]] * 2 if self.doubled else [])


KEYS: tuple[tuple[Any, ...], ...] = (
    (1, 2, 3), (1, 1.0, "1"), (math.nan, 0.5, -1.5, 2.5), ("a", "", "NULL", "b"), (None, 1, 2), (True, 1, 0),
    (datetime.date(2026, 8, 11), datetime.date(2026, 8, 12), datetime.date(2026, 8, 13)),
    (Decimal("1.0"), Decimal("1.00"), Decimal("2.5")), (b"a", b"b", b"\x00"), ((1, 2), (1, 2.0), (2,)),
)  # fmt: skip
WORLDS = tuple(
    World(keys=keys, note=note, level=level, doubled=doubled, before=bool(turn & 1), after=bool(turn & 2))
    for turn, (keys, (note, doubled), level) in enumerate(
        itertools.product(KEYS, ((None, False), ("x", True)), ISOLATIONS)
    )
)
STRICT = tuple(replace(world, level=SERIALIZABLE) for world in WORLDS)


@dataclass
class Toy:
    """A toy engine: statements are functions on tables; what really happens may differ from what they do."""

    world: World
    tables: Tables = field(default_factory=dict)
    does: dict[str, Does] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)
    states: list[Tables] = field(default_factory=list)
    queries: dict[tuple[str, int], Callable[[Tables], list[Row]]] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    twins: bool = False

    def __post_init__(self) -> None:
        self.tables = {"t": self.world.start} | ({"twin": self.world.start} if self.twins else {})
        self.states = [self.tables]
        if self.world.before:
            self.run("X", insert("x", 7), "INSERT x")
            self.run("Y", lambda tables: tables, "OPTIMIZE t", keeps=True)

    @property
    def now(self) -> Tables:
        return self.states[-1]

    def run(self, name: str, does: Does, text: str = "", sees: int | None = None, left: Tables | None = None,
            table: str = "t", **more: Any) -> None:
        """Run a statement on what it ``sees`` (a place in the states, the latest by default) and put its rows into the
        latest tables; or leave what is given."""
        self.does[name] = does
        self.ran.append(Ran(name=name, writer=name.partition(".")[0], text=text or f"UPDATE {name}", table=table,
                            version=len(self.states) + 8, **more))
        if left is None and sees is None:
            left = does(self.now)
        elif left is None:
            old = self.states[sees]  # type: ignore[index]
            left = {one: moved(self.now[one], old[one], rows) for one, rows in does(old).items()}
        self.states.append(left)

    def refuse(self, name: str, does: Does, outcome: str = ABORTS, text: str = "") -> None:
        self.does[name] = does
        self.ran.append(Ran(name=name, writer=name, text=text or f"UPDATE {name}", outcome=outcome))

    def look(self, how: str, query: Callable[[Tables], list[Row]], place: int, reader: str = "R", number: int = 1,
             tables: str = "t", at: int | None = None, saw: list[Row] | None = None) -> None:
        """``place`` is the state that the reader sees, ``at`` how many had committed then."""
        self.queries[reader, number] = query
        found = query(self.states[place]) if saw is None else saw
        self.looks.append(Look(reader=reader, how=how, query=number, text=str(number), tables=frozenset(tables.split()),
                               saw=Content(("a", "b"), tuple(row[:2] for row in found)),
                               commits=len(self.states) - 1 if at is None else at))

    def history(self) -> History:
        committed = [one.name for one in self.ran if one.committed]
        if self.world.after:
            self.run("Z", insert("z", 9), "INSERT z")
            committed.append("Z")
        return History(
            isolation=self.world.level, base=contents(self.tables), ran=tuple(self.ran), final=contents(self.now),
            states=dict(zip(committed, map(contents, self.states[1:]), strict=True)), looks=tuple(self.looks),
        )

    def after(self, order: tuple[str, ...]) -> Replayed | Fails | NotReplayable:
        tables = self.tables
        for name in order:
            tables = self.does[name](tables)
        return Replayed(contents(tables), {
            asked: Content(("a", "b"), tuple(row[:2] for row in query(tables))) for asked, query in self.queries.items()
        })

    def explain(self) -> Explanation:
        return explain(self.history(), self.after)


def contents(tables: Tables) -> dict[str, Content]:
    return {name: Content(COLUMNS, tuple(rows)) for name, rows in tables.items()}


def moved(now: list[Row], old: list[Row], new: list[Row]) -> list[Row]:
    """``now`` with the rows taken away and put there that went and came from ``old`` to ``new``."""
    left = list(now)
    for row in beyond(old, new):
        if row in left:
            left.remove(row)
    return left + beyond(new, old)


def beyond(rows: list[Row], others: list[Row]) -> list[Row]:
    left, found = list(map(repr, others)), []
    for row in rows:
        if repr(row) in left:
            left.remove(repr(row))
        else:
            found.append(row)
    return found


def on(change: Callable[[list[Row]], list[Row]], table: str = "t") -> Does:
    return lambda tables: {**tables, table: change(tables[table])}


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def insert(key: Any, number: int, table: str = "t") -> Does:
    return on(lambda rows: [*rows, (key, number, "new")], table)


def delete(key: Any) -> Does:
    return on(lambda rows: [row for row in rows if not same(row[0], key)])


def update(key: Any, of: Callable[[int, list[Row]], int], note: Any = "set", table: str = "t") -> Does:
    return on(lambda rows: [(row[0], of(row[1], rows), note) if same(row[0], key) else row for row in rows], table)


def upsert(key: Any) -> Does:
    return on(lambda rows: rows if any(same(row[0], key) for row in rows) else [*rows, (key, 5, "put")])


def number_of(key: Any) -> Callable[[int, list[Row]], int]:
    """1 more than the number in the row of ``key``."""
    return lambda _, rows: next(row[1] for row in rows if same(row[0], key)) + 1


def everything(tables: Tables) -> list[Row]:
    return tables["t"]


Case = tuple[Toy, str]
"""A toy with a history in it, and what its witness must tell (for ``explained``: the order)."""


def explained() -> Iterator[Case]:
    for world in WORLDS:
        toy, first = Toy(world), world.keys[0]
        toy.run("A", update(first, lambda n, _: n + 1))
        toy.run("B", upsert("new"), "MERGE B")
        toy.refuse("C", delete(first), NO_COMMIT)
        toy.look("open", everything, -1)
        toy.run("D", delete(world.keys[1]))
        toy.look("again", everything, -2)
        toy.look("latest", everything, -1)
        yield toy, "explained by: " + " then ".join((*("X" * world.before), "A", "B", "D", *("Z" * world.after)))
        if world.level == WRITE_SERIALIZABLE:
            toy = Toy(world)
            start = len(toy.states) - 1
            toy.run("B", insert("b", 3), "INSERT B")
            toy.run("A", on(lambda rows: [(*row[:2], "all") for row in rows]), sees=start)
            if not world.before:
                yield toy, "explained by: A then B"


def lost_updates() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, key = Toy(world), world.keys[turn % len(world.keys)]
        start = toy.now
        toy.run("B", update(key, lambda n, _: n + 1))
        if turn % 3 == 0:
            toy.run("C", insert("c", 1), "INSERT c")
            start = insert("c", 1)(start)
        plus = update(key, lambda n, _: n + 2)
        toy.run("A", plus, left=plus(start))
        yield toy, "A (UPDATE A) overwrote what B (UPDATE B) had made of"


def lost_commits() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, key = Toy(world), world.keys[turn % len(world.keys)]
        start = toy.now
        if turn % 2:
            toy.run("B", delete(key), left=start)
        else:
            toy.run("B", insert("b", 3))
            toy.run("A", update(key, lambda n, _: n + 1), left=update(key, lambda n, _: n + 1)(start))
        yield toy, "B (UPDATE B) was acknowledged, but the rows are as if it had never run"


def write_skews() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy = Toy(world)
        one, other = world.keys[turn % 2], world.keys[1 - turn % 2]
        toy.run("B", update(one, number_of(other)))
        toy.run("A", update(other, number_of(one)), sees=len(toy.states) - 2)
        yield toy, "A (UPDATE A) did not see what B (UPDATE B) had done, nor would B have seen what A did"


def phantoms() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy = Toy(world)
        text = ("INSERT", "MERGE")[turn % 2]
        toy.run("B", upsert("new"), f"{text} B")
        toy.run("A", upsert("new"), f"{text} A", sees=len(toy.states) - 2)
        yield toy, f"{('check-then-append', 'duplicate upsert')[turn % 2]}: A ({text} A) did not see what B"
    for turn, world in enumerate(STRICT):
        toy = Toy(world)
        toy.run("B", insert("b", 3), "INSERT B")
        every: Does = on(lambda rows: []) if turn % 2 else on(lambda rows: [(*row[:2], "all") for row in rows])
        toy.run("A", every, "DELETE A", sees=len(toy.states) - 2)
        yield toy, "A (DELETE A) did not see what B (INSERT B) had done: it left (b, 3, new), which its condition"


def stale_reads() -> Iterator[Case]:
    for turn, world in enumerate(STRICT):
        toy = Toy(world)
        one, other = world.keys[turn % 2], world.keys[1 - turn % 2]
        toy.run("B", update(one, lambda n, _: n + 100))
        toy.run("A", update(other, number_of(one)), sees=len(toy.states) - 2)
        yield toy, "A (UPDATE A) did not see what B (UPDATE B) had done, and acted on the values from before it"


def dirty_writes() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, key = Toy(world), world.keys[turn % 2]
        toy.run("B", update(key, lambda n, _: n + 1))
        toy.run("A", update(key, lambda n, _: n + 2), sees=len(toy.states) - 2)
        yield toy, "B (UPDATE B) and A (UPDATE A) both changed"


def aborted_reads() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, key = Toy(world), world.keys[turn % len(world.keys)]
        does = (insert("c", 4), delete(key), update(key, lambda n, _: n + 5))[turn % 3]
        toy.refuse("C", does, (ABORTS, FAILS)[turn % 2])
        if turn % 4 == 3:
            toy.run("B", insert("b", 3), "INSERT B")
            toy.look("open", everything, -1, saw=does(toy.now)["t"])
            yield toy, "R:open saw what C (UPDATE C) did, which never committed"
        else:
            toy.run("B", insert("b", 3), "INSERT B", left=does(insert("b", 3)(toy.now)))
            yield toy, "C (UPDATE C) did not commit, yet"


def dirty_reads() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, key = Toy(world), world.keys[turn % len(world.keys)]
        toy.run("B", insert("b", 3), "INSERT B")
        toy.run("A", (delete(key), insert("a", 4), update(key, lambda n, _: n + 5))[turn % 3])
        toy.look(("open", "latest")[turn % 2], everything, -1, at=len(toy.states) - 2)
        yield toy, "saw what A (UPDATE A) committed only later"


def non_repeatable_reads() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, key = Toy(world), world.keys[turn % len(world.keys)]
        toy.look("open", everything, -1)
        toy.run("B", update(key, lambda n, _: n + 1) if turn % 2 else delete(key))
        toy.run("A", insert("a", 3), "INSERT A")
        toy.look(("again", "pinned")[turn % 2], everything, -1)
        yield toy, "when it was asked again"


def phantom_reads() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy = Toy(world)
        toy.look("open", everything, -1)
        toy.run("B", insert("b", 3), "INSERT B")
        toy.look(("again", "pinned")[turn % 2], everything, -1)
        yield toy, "(b, 3) was there only when it was asked again"


def read_skews() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy = Toy(world, twins=True)
        toy.look("open", everything, -1, number=1)
        toy.run("B", insert("b", 3), "INSERT B")
        toy.run("C", insert("c", 4, "twin"), "INSERT C", table="twin")
        if turn % 2:
            toy.look("open", lambda tables: tables["twin"], -1, number=2, tables="twin")
            yield toy, "no moment fits both"
        else:
            toy.looks.clear()
            toy.look("open", lambda tables: tables["t"] + tables["twin"], -1, tables="t twin",
                     saw=[*toy.states[-3]["t"], *toy.now["twin"]])
            yield toy, "C in one table, but not B (INSERT B) in the other"


def non_monotonic_reads() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, key = Toy(world), world.keys[turn % len(world.keys)]
        toy.run("B", (delete(key), insert("b", 3))[turn % 2])
        toy.look(("latest", "open")[turn % 3 == 0], everything, -1)
        toy.look("latest", everything, -2)
        yield toy, "R:latest saw the table as it was"


def compactions() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, text = Toy(world), ("OPTIMIZE t", "VACUUM t", "ALTER TABLE t SET ...")[turn % 3]
        start = toy.now["t"]
        left = (start * 2, start[:-1], [*start[1:], (*start[0][:2], "changed")])[turn // 3 % 3]
        toy.run("B", lambda tables: tables, text, left={"t": left}, keeps=True)
        yield toy, f"B ({text}) must change no row"


def unknown_anomalies() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy = Toy(world)
        toy.run("B", insert("b", 3), "INSERT B")
        rows = insert("b", 3)(toy.states[-2])["t"]
        toy.run("A", insert("a", 4), "INSERT A", left={"t": [*rows[1:], ("who", turn, None)]})
        yield toy, f"(who, {turn}, NULL) is there"


def unknowns() -> Iterator[Case]:
    for turn, world in enumerate(WORLDS):
        toy, why = Toy(world), f"it calls rand() {turn}"
        toy.run("B", insert("b", 3), "INSERT B", refused=why)
        yield toy, f"can't be judged: B: {why}"
        toy = Toy(world)
        toy.run("B", insert("b", 3), "INSERT B")
        toy.look("open", everything, -1)
        toy.looks = [replace(toy.looks[0], refused=why)]
        yield toy, f"can't be judged: the query of R: {why}"


KINDS: dict[str, tuple[str, Callable[[], Iterator[Case]]]] = {
    "explained": (EXPLAINED, explained),
    "unknown": (UNKNOWN, unknowns),
    "lost update": ("lost update", lost_updates),
    "lost commit": ("lost commit", lost_commits),
    "write skew": ("write skew", write_skews),
    "phantom": ("phantom", phantoms),
    "phantom, by a reader": ("phantom", phantom_reads),
    "stale read": ("stale read", stale_reads),
    "dirty write": ("dirty write", dirty_writes),
    "aborted read": ("aborted read", aborted_reads),
    "dirty read": ("dirty read", dirty_reads),
    "non-repeatable read": ("non-repeatable read", non_repeatable_reads),
    "read skew": ("read skew", read_skews),
    "non-monotonic read": ("non-monotonic read", non_monotonic_reads),
    "compaction": ("content changed by compaction", compactions),
    "unknown anomaly": ("unknown anomaly", unknown_anomalies),
}


def test_every_anomaly_has_its_histories() -> None:
    assert {name for name, _ in KINDS.values()} == {EXPLAINED, UNKNOWN, *ANOMALIES}


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_known(kind: str) -> None:
    answer, build = KINDS[kind]
    cases = list(build())
    assert len(cases) >= LEAST
    for number, (toy, told) in enumerate(cases):
        found = toy.explain()
        assert (found.anomaly or found.verdict, number) == (answer, number), (found, toy.world, toy.states)
        assert told in "\n".join(found.lines), (number, found.lines, toy.world)
        assert (found.verdict == ANOMALY) == (answer in ANOMALIES)


def test_other_orders_are_asked_for_only_when_that_of_the_history_fails() -> None:
    for toy, _ in explained():
        asked: list[tuple[str, ...]] = []

        def after(order: tuple[str, ...], toy: Toy = toy, asked: list[tuple[str, ...]] = asked) -> Any:
            asked.append(order)
            return toy.after(order)

        history = toy.history()
        names = tuple(one.name for one in history.committed if not one.keeps)
        assert explain(history, after).verdict == EXPLAINED
        straight = {names[:count] for count in range(len(names) + 1)}
        assert len(asked) == len(set(asked))
        assert toy.world.level == WRITE_SERIALIZABLE or set(asked) <= straight


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
