"""Is a question to `lakerace race` read as it was meant, or refused before an engine starts?"""

from __future__ import annotations

import re
from typing import Any

import pytest

from lakerace import ask as asking
from lakerace.race import Race, RaceError

UPDATE = "UPDATE {t} SET note = 'x' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
SETUP = [
    "CREATE TABLE {t} (id INT, part STRING) USING delta PARTITIONED BY (part)",
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("serializable", "serializable"),
        ("Serializable", "serializable"),
        ("SERIALIZABLE", "serializable"),
        ("WriteSerializable", "write-serializable"),
        ("write-serializable", "write-serializable"),
        ("write_serializable", "write-serializable"),
        ("writeSerializable", "write-serializable"),
    ],
)
def test_isolation_levels_may_be_spelt_as_delta_does(text: str, level: str) -> None:
    assert asking.isolation_named(text) == level


def test_a_race_has_a_default_layout_and_level() -> None:
    race = asking.ask(held=UPDATE, winners=[DELETE])
    assert (race.layout.name, race.isolation) == ("flat", "serializable")
    assert race.layout.kept


def test_a_setup_of_the_user_is_not_kept() -> None:
    assert not asking.layout_of_sql(SETUP).kept


def test_winners_end_at_z() -> None:
    assert asking.ask(held=UPDATE, winners=[DELETE] * 25).writers[-1].name == "Z"
    with pytest.raises(RaceError, match="26 winners; at most 25"):
        asking.ask(held=UPDATE, winners=[DELETE] * 26)


def test_braces_in_quotes_are_no_placeholders() -> None:
    asking.ask(held="UPDATE {t} SET note = '{\"a\": {x}}'", winners=['DELETE FROM {t} WHERE note = "{y}"'])


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE {t} SHALLOW CLONE {other}",
        "CREATE TABLE {t} LIKE {other}",
        "create table if not exists {t}(id INT) using DELTA",
    ],
)
def test_a_delta_table_may_be_made_in_many_ways(text: str) -> None:
    assert asking.layout_of_sql([text]).setup == (text,)


LINES = {
    '{"id": "a", "held": "DELETE FROM {t}", "winners": ["OPTIMIZE {t}"]}': None,
    '{"held": "DELETE FROM {t}", "winners": ["VACUUM {t}"], "layout": "flat", "isolation": "Serializable"}': None,
    "not json": "no race: JSON is malformed",
    "[]": "no race: Expected `object`",
    '{"held": "DELETE FROM {t}"}': "no race: give `held` and `winners`, or `order` and `writers`",
    '{"held": 1, "winners": []}': "no race: Expected `str | null`, got `int` - at `$.held`",
    '{"held": "DELETE FROM {t}", "winners": "OPTIMIZE {t}"}': "no race: Expected `array | null`",
    '{"held": "DELETE FROM {t}", "winners": []}': "no winner",
    '{"held": "DELETE FROM {t}", "winners": ["OPTIMIZE {t}"], "layuot": "flat"}': "unknown field `layuot`",
    '{"order": "A:read A:commit", "writers": {"A": ["VACUUM {t}"]}, "readers": {}}': None,
    '{"order": "A:look A:read A:commit", "writers": {"A": [{"looks": "SELECT max(id) FROM {t}", '
    '"does": "DELETE FROM {t} WHERE id = {seen}"}]}}': None,
    '{"order": "A:commit", "writers": {"A": ["VACUUM {t}"]}}': "the order: A commits before it reads",
    '{"order": "A:read A:commit"}': "the order names writer 'A', the race has none",
    '{"order": "A:read A:commit", "held": "VACUUM {t}"}': "`held` with `winners`, or `order` with `writers`, not both",
    '{"order": "A:read A:commit", "writers": {"A": ["OPTIMIZE {x}"]}}': "writer A: unknown placeholder {x}; {t} is",
    '{"order": "R:open A:read A:commit", "writers": {"A": ["VACUUM {t}"]}, "readers": {"R": ["SELECT ("]}}':
        "reader R: a bracket is not closed",
    '{"held": "VACUUM {t}", "winners": ["VACUUM {t}"], "layout": "flat", "setup": []}': "`setup` or `layout`, not both",
    '{"held": "DELETE FROM {t}", "winners": ["OPTIMIZE {t}"], "setup": []}': "setup-18: no statement",
    '{"held": "DELETE FROM {t}", "held": "VACUUM {t}", "winners": ["OPTIMIZE {t}"]}': "`held` stands twice",
    '{"order": "A:read A:commit", "writers": {"A": ["VACUUM {t}"], "A": ["VACUUM {t}"]}}': "`A` stands twice",
    '{"order": "A:open A:latest", "readers": {"A": ["SELECT * FROM {t}"]}}': "the order: no writer in it",
    '{"held": "DELETE FROM {t}", "winners": ["OPTIMIZE {t}"], "isolation": ""}': "unknown isolation level ''",
    f'{{"held": "DELETE FROM {{t}} WHERE {"NOT " * 3000} true", "winners": ["VACUUM {{t}}"]}}': "too deeply nested",
    f'{{"held": {"[" * 100_000}': "no race: ",
    '{"held": "VACUUM {t}", "winners": ["VACUUM {t}"], "setup": ["CREATE TABEL {t} (id INT)"]}': "followed by 'TABEL'",
}


def test_each_line_of_a_file_is_read_by_itself() -> None:
    found = list(asking.asked_lines([*LINES, "  "]))
    assert len(found) == len(LINES)
    for number, (asked, message) in enumerate(zip(found, LINES.values(), strict=True), 1):
        assert asked.number == number
        if message is None:
            assert asked.error is None
            assert asked.race is not None
        else:
            assert asked.race is None
            assert message in str(asked.error)
    assert [asked.id for asked in found[:3]] == ["a", None, None]


def test_a_bad_line_keeps_its_id() -> None:
    [found] = asking.asked_lines(['{"id": 7, "held": "x"}'])
    assert (found.id, found.race) == (7, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"writers": ["A=DELETE FROM {t}"]}, "--writer, --reader and --looks need an --order"),
        ({"order": "A:read A:commit", "held": UPDATE}, "--held with --winner, or --order with --writer, not both"),
        ({"order": "A:read A:commit", "writers": ["DELETE FROM {t}"]}, "write NAME=SQL, e.g. A=DELETE FROM {t}"),
        ({"order": "A:read A:commit", "writers": [f"A={DELETE}"], "looks": ["A=SELECT 1"]}, "no statement of A has"),
        ({"order": "A:read A:commit", "writers": [f"A={DELETE}"], "looks": ["B=SELECT 1"]}, "there is no such writer"),
        ({"order": "A:read A:commit", "writers": ["A=SELECT 1"]}, "writer A: does not mention {t}"),
    ],
)
def test_an_order_and_its_parties_are_asked_for_together(options: dict[str, Any], message: str) -> None:
    given = {"held": None, "winners": [], "layout": None, "setup": None, "isolation": None, "source": None}
    with pytest.raises(RaceError, match=re.escape(message)):
        asking.gather(**{**given, **options})


def test_parties_are_given_by_name() -> None:
    race = asking.gather(
        held=None, winners=[], layout="by-date", setup=None, isolation=None, source=None,
        order="R:open A:look A:read A:commit A:read A:commit",
        writers=["A=UPDATE {t} SET amount = {seen} WHERE id = 1", f"A={DELETE}"],
        readers=["R = SELECT count(*) FROM {t}"], looks=["A=SELECT amount FROM {t} WHERE id = 2"],
    )
    assert isinstance(race, Race)
    assert [one.looks for one in race.writer("A").statements] == ["SELECT amount FROM {t} WHERE id = 2", ""]
    assert race.reader("R").queries == ("SELECT count(*) FROM {t}",)


def test_a_line_may_say_what_the_session_is_to_have() -> None:
    line = '{{"held": "DELETE FROM {{t}}", "winners": ["DELETE FROM {{t}}"], {}}}'
    function = '"name": "f", "parameters": "day DATE", "returns": "INT", "computes": "day(day)"'
    good, java, wrong, unknown = asking.asked_lines([
        line.format(f'"settings": {{"a.b": "1"}}, "functions": [{{{function}}}]'),
        line.format(f'"functions": [{{{function}, "java": "public ..."}}]'),
        line.format('"settings": {"a.b": 1}'),
        line.format(f'"functions": [{{{function}, "scala": "x"}}]'),
    ])
    assert good.race is not None
    assert java.race is not None
    assert good.race.settings == (("a.b", "1"),)
    assert [str(one.race.functions[0]) for one in (good, java)] == [
        "f(day DATE) RETURNS INT in SQL: day(day)", "f(day DATE) RETURNS INT in Java: day(day)",
    ]
    assert wrong.error == "no race: Expected `str`, got `int` - at `$.settings[...]`"
    assert unknown.error == "no race: Object contains unknown field `scala` - at `$.functions[0]`"
