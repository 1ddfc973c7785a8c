"""A toy engine for serial replay: statements are functions on lists of rows, and what they leave may be a lie."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from lakerace.observe import ABORTS
from lakerace.race import ISOLATIONS, SERIALIZABLE
from lakerace.serial.explain import explain
from lakerace.serial.model import Content, Explanation, Fails, History, Look, NotReplayable, Ran, Replayed

Row = tuple[Any, ...]
Tables = dict[str, list[Row]]
Does = Callable[[Tables], Tables]
COLUMNS = ("k", "n", "note")


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
