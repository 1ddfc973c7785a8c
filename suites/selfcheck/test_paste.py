"""Does a race that was printed come back as the same race?"""

from __future__ import annotations

import shlex

import pytest

from lakerace import layouts, race
from lakerace.ask import asked_lines
from lakerace.layouts import LAYOUTS, layout_from_statements
from lakerace.orders import parse_order
from lakerace.paste import as_command, as_line, as_python
from lakerace.race import WRITE_SERIALIZABLE, Race, Reader, Statement, Write, Writer, held_against, statement

OWN = layout_from_statements(
    "own", ("CREATE TABLE {t} (id INT, note STRING) USING delta", "INSERT INTO {t} VALUES (1, 'it''s'), (2, NULL)")
)
BUMP = Statement(
    name="update",
    looks="SELECT max(id) FROM {t}",
    does="UPDATE {t} SET id = {seen} + 1 WHERE note = \"it's\"",
)
WHOLE = Race(
    name="whole",
    layout=OWN,
    writers=(
        Writer(name="A", statements=(BUMP,)),
        Writer(name="B", statements=(statement("DELETE FROM {t}"), statement("OPTIMIZE {twin}"))),
    ),
    readers=(Reader(name="R", queries=("SELECT * FROM {t}", "SELECT count(*) FROM {twin}")),),
    order=parse_order("R:open A:look B:read A:read B:commit A:commit R:pinned B:read B:commit R:open"),
    isolation=WRITE_SERIALIZABLE,
)
PLAIN = held_against("plain", layout=LAYOUTS["by-date"], held="DELETE FROM {t} WHERE id = 1", winners=["OPTIMIZE {t}"])
FRAME = held_against(
    "frame", layout=LAYOUTS["flat"], held=Write(select="SELECT * FROM {other}", options=(("mergeSchema", "true"),)),
    winners=["OPTIMIZE {t}"],
)


@pytest.mark.parametrize("made", [WHOLE, PLAIN, FRAME], ids=lambda one: one.name)
def test_python_makes_the_same_race(made: Race) -> None:
    names = {**vars(race), **vars(layouts), "parse_order": parse_order}
    assert eval(as_python(made), names) == made  # noqa: S307 - our own text


@pytest.mark.parametrize("made", [WHOLE, PLAIN], ids=lambda one: one.name)
def test_a_line_asks_for_the_same_race(made: Race) -> None:
    [asked] = asked_lines([as_line(made)])
    assert asked.race is not None, asked.error
    assert (asked.race.writers, asked.race.readers, asked.race.order) == (made.writers, made.readers, made.order)
    assert (asked.race.isolation, asked.race.layout.setup) == (made.isolation, made.layout.setup)


def test_a_command_survives_the_shell() -> None:
    words = shlex.split(as_command(WHOLE, "delta-rs"))
    assert words[0] == "echo"
    assert words[1] == as_line(WHOLE)
    assert words[2:] == ["|", "lakerace", "race", "--engine", "delta-rs", "--from", "-"]


def test_a_frame_has_no_line() -> None:
    with pytest.raises(ValueError, match="DataFrame write, which a line of SQL can't say"):
        as_line(FRAME)
