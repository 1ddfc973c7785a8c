"""What if they come in any order? Every order in which two writers, or three, can read and commit.

Two writers have 6 orders, three have 90, the serial ones among them. Each is forced; what became of every writer must
be what the rules predict for that very order, and the rows must be those of a serial order of who committed. Profile
``core`` takes two pairs whole and ten orders of three writers, drawn by a seed; ``full`` takes all.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import LAYOUTS
from lakerace.orders import Order, every_order, order_text
from lakerace.race import Race, Writer
from lakerace.rules.findings import by_the_rules, predicted

if TYPE_CHECKING:
    from lakerace.engines.lines import Line

ENGINES = ("delta-spark", "delta-rs")
VERSIONS = ">=0"
SEED, SAMPLE = 20260811, 10
PAIRS = (
    ("by-date", ("update-by-key", "insert-values")),
    ("flat-dv", ("merge-with-literal", "merge-other-literal")),
    ("by-date", ("merge-with-literal", "merge-other-literal")),
    ("by-date", ("optimize", "update-by-key")),
    ("flat", ("update-by-key", "add-column")),
    ("by-date", ("replace-where", "insert-select-self")),
)
TRIPLE = ("by-date", ("update-by-date", "merge-other-literal", "insert-values"))


def race_in(order: Order, layout: str, statements: tuple[str, ...]) -> Race:
    names = [chr(ord("A") + number) for number in range(len(statements))]
    return Race(
        name=f"order/{layout}/{'+'.join(statements)}/{order_text(order).replace(' ', ',')}",
        layout=LAYOUTS[layout],
        writers=tuple(
            Writer(name=name, statements=(CATALOGUE[one],)) for name, one in zip(names, statements, strict=True)
        ),
        order=order,
    )


def races(_line: Line, profile: str) -> tuple[Race, ...]:
    whole = profile == "full"
    pairs = [race_in(order, *pair) for pair in (PAIRS if whole else PAIRS[:2]) for order in every_order("AB")]
    three = [race_in(order, *TRIPLE) for order in every_order("ABC")]
    return (*pairs, *(three if whole else random.Random(SEED).sample(three, SAMPLE)))  # noqa: S311 - no secret


def test_race(case, check, engine):
    check(case, by_the_rules(predicted(case, engine.line)), rules=True, replay=True)
