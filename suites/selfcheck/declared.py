"""Two races with all that is declared of them: an UPDATE that loses to an INSERT, and one that survives it."""

from __future__ import annotations

from lakerace.engines.lines import line
from lakerace.layouts import LAYOUTS
from lakerace.race import Expected, Race, held_against

LINE = line("delta-4.4")
APPEND = Expected(
    word="append", surfaced="ConcurrentAppendException", root="io.delta.exceptions.ConcurrentAppendException",
    condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT", sqlstate="2D521", parameters=(("operation", "WRITE"),),
    read_version=8, attempts=1,
)
INSERTED = Expected(
    word="commits", version=9, read_version=8, attempts=1, operation="WRITE", blind=True, isolation="Serializable"
)
UPDATED = Expected(
    word="commits", version=10, read_version=8, attempts=2, operation="UPDATE", blind=False, isolation="Serializable",
    predicate="(id = 1)",
)


def _race(name: str, held: Expected) -> Race:
    return held_against(
        name, layout=LAYOUTS["flat"], held="UPDATE {t} SET note = 'x' WHERE id = 1",
        winners=["INSERT INTO {t} VALUES (2)"], expect=[held, INSERTED],
    )


LOSES = _race("an-update-loses-to-an-insert", APPEND)
BOTH = _race("an-update-survives-an-insert", UPDATED)
