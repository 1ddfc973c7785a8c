"""Does serial replay know what it sees? Small histories of every kind, made by a toy engine, with known answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.observe import ABORTS, FAILS, NO_COMMIT
from lakerace.race import WRITE_SERIALIZABLE
from lakerace.serial.anomalies import ANOMALIES
from lakerace.serial.explain import explain
from lakerace.serial.model import ANOMALY, EXPLAINED, UNKNOWN
from selfcheck.toy import STRICT, WORLDS, Does, Toy, delete, everything, insert, number_of, on, update, upsert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEAST = 30

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
