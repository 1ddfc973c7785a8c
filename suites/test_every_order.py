"""What if they come in any order? Every order of the stops of a few writers and readers, forced.

Two writers that read and commit have 6 orders, three have 90, two whose applications look first have 20, a writer and a
reader of four stops 15, a writer of two statements beside another 15; of the 2,520 of four writers some are drawn. What
becomes of every writer must be what the rules predict for that very order, and a serial order must explain rows and
readers; where an application looked before another committed, the update that is lost is named. Profile ``core`` takes
all of them on delta-rs; on Spark two pairs whole and a sample, drawn by a seed, of the rest. ``full`` takes all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import LAYOUTS
from lakerace.orders import (
    AGAIN,
    COMMIT,
    LATEST,
    LOOK,
    OPEN,
    PINNED,
    READ,
    WRITER_STOPS,
    Order,
    Step,
    every_order,
    order_text,
    sample_orders,
)
from lakerace.race import Race, Reader, Statement, Writer, on
from lakerace.rules.findings import by_the_rules, predicted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakerace.engines.lines import Line

ENGINES = ("delta-spark", "delta-rs")
VERSIONS = ">=0"
SEED, SAMPLE = 20260811, 5
PAIRS = (
    ("by-date", ("update-by-key", "insert-values")),
    ("flat-dv", ("merge-with-literal", "merge-other-literal")),
    ("by-date", ("merge-with-literal", "merge-other-literal")),
    ("by-date", ("optimize", "update-by-key")),
    ("flat", ("update-by-key", "add-column")),
    ("by-date", ("replace-where", "insert-select-self")),
)
TRIPLE = ("by-date", ("update-by-date", "merge-other-literal", "insert-values"))
FOUR = ("by-date", (*TRIPLE[1], "optimize"))
ONCE = (READ, COMMIT)
COUNTS = Statement(
    name="count",
    looks="SELECT amount FROM {t} WHERE id = 1",
    does="UPDATE {t} SET amount = {seen} + 1 WHERE id = 1",
)
SERIES = ("update-by-key", "insert-values")


def race_in(
    order: Order, layout: str, writers: Sequence[Sequence[Statement]], readers: tuple[Reader, ...] = ()
) -> Race:
    names = [chr(ord("A") + number) for number in range(len(writers))]
    said = "+".join("-then-".join(one.name for one in does) for does in writers) + ("+reader" if readers else "")
    return Race(
        name=f"order/{layout}/{said}/{order_text(order).replace(' ', ',')}",
        layout=LAYOUTS[layout],
        writers=tuple(Writer(name=name, statements=tuple(does)) for name, does in zip(names, writers, strict=True)),
        readers=readers,
        order=order,
    )


def looks_are_stale(order: Order) -> bool:
    """Whether the later of two applications looked before the earlier one committed."""
    place = {step: index for index, step in enumerate(order)}
    first, last = sorted("AB", key=lambda name: place[Step(name, COMMIT)])
    return place[Step(last, LOOK)] < place[Step(first, COMMIT)]


def races(line: Line, profile: str) -> Iterator[Race]:
    whole = profile == "full" or line.engine == "delta-rs"

    def orders(parties: Sequence[str] | Mapping[str, Sequence[str]], sample: int = SAMPLE) -> tuple[Order, ...]:
        return every_order(parties) if whole else sample_orders(parties, sample, SEED)

    def catalogued(layout: str, names: Sequence[str]) -> tuple[str, list[list[Statement]]]:
        return layout, [[CATALOGUE[name]] for name in names]

    for pair in PAIRS if whole else PAIRS[:2]:
        yield from (race_in(order, *catalogued(*pair)) for order in every_order("AB"))
    yield from (race_in(order, *catalogued(*TRIPLE)) for order in orders("ABC", 2 * SAMPLE))
    four = sample_orders("ABCD", 4 * SAMPLE if whole else 3, SEED)
    yield from (race_in(order, *catalogued(*FOUR)) for order in four)
    for order in orders({"A": WRITER_STOPS, "B": WRITER_STOPS}):
        yield race_in(order, "by-date", [[COUNTS], [COUNTS]])
    for order in orders({"A": ONCE, "R": (OPEN, AGAIN, PINNED, LATEST)}):
        yield race_in(order, "by-date", [[CATALOGUE["update-by-key"]]], (Reader(name="R"),))
    for order in orders({"A": 2 * ONCE, "B": ONCE}):
        series = [CATALOGUE[name] for name in SERIES]
        yield race_in(order, "by-date", [series, [CATALOGUE["update-by-date"]]])


def test_race(case, check, engine):
    outcomes = by_the_rules(predicted(case, engine.line))
    both_looked = case.writers[0].statements == (COUNTS,) and looks_are_stale(case.order)
    if both_looked and all(one.word == "commits" for one in outcomes.values()):
        case = on(case, anomaly="lost update")
    check(case, outcomes, rules=True, replay=True)
