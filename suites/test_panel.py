"""Is the panel true: every choice as the rules say, the known grid, what was measured, and nothing from the network?"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import cli
from lakerace.catalogue import CATALOGUE
from lakerace.engines.lines import load_lines
from lakerace.expect import deviation_for, from_cell, grid_path, load_deviations, read_grid
from lakerace.layouts import LAYOUTS
from lakerace.observe import ABORTS, COMMITS, FAILS
from lakerace.panel.answers import CONTROLS, NO_RACE, UNITS, Board, board, command
from lakerace.panel.choices import AXES, HELD, WINNERS, State, mirrored, race_of
from lakerace.panel.page import page
from lakerace.rules.findings import load_findings
from lakerace.rules.predict import predict
from lakerace.rules.profiles import PROFILES

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 2_000_000
ROW_LEVEL = "row-level"
UNSTATED = "Unstated"


@pytest.fixture(scope="module", name="board")
def every_choice() -> Board:
    return board()


@pytest.fixture(scope="module")
def text() -> str:
    return page()


@pytest.fixture(scope="module")
def data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def chosen(
    layout: str = "flat",
    *,
    held: str = "merge/key",
    winner: str = "merge",
    serializable: bool = False,
    vectors: bool = True,
    profile: str = "databricks",
) -> State:
    return State(
        profile=profile,
        layout=layout,
        vectors=vectors,
        serializable=serializable,
        held=AXES["held"].names.index(held),
        winner=AXES["winner"].names.index(winner),
    )


def test_every_choice_is_answered_as_the_rules_predict(data: dict[str, Any], board: Board) -> None:
    axes = data["axes"]
    assert {axis: tuple(one["names"]) for axis, one in axes.items()} == {axis: one.names for axis, one in AXES.items()}
    assert len(data["answers"]) == len(board.states) == len(set(board.states))
    for place, state in enumerate(board.states):
        seen = {axis: one["names"][place // one["stride"] % len(one["names"])] for axis, one in axes.items()}
        assert (seen["profile"], seen["layout"]) == (state.profile, state.layout)
        assert (seen["vectors"] == "on", seen["serializable"] == "on") == (state.vectors, state.serializable)
        outlook = predict(race_of(state), PROFILES[state.profile])
        said, found = data["answer"][data["answers"][place]], outlook.of("A").prediction
        if FAILS in (found.word, outlook.of("B").word):
            assert said["word"] in (FAILS, NO_RACE)
            assert said["outcome"] == ""
            continue
        assert (said["word"], said["sentence"]) == (found.word, found.sentence)
        assert said["outcome"] == (ABORTS if found.aborts else COMMITS)
        assert said["usable"] == list(found.usable)
        assert said["unit"] == UNITS[found.unit]
        assert [(mark == "fired", name) for mark, name, _ in said["checks"]] == [
            (one.fired, one.name) for one in found.checks
        ]
        assert said["check"] in {one.name for one in found.checks}
        assert said["source"]
        if found.fired:
            assert (said["check"], said["source"]) == (found.fired.name, found.fired.source)
            assert found.condition is None or said["raised"].endswith(found.condition)


# Id, choice, outcome of the held writer, deciding check, and what else is claimed of it.
KNOWN = [
    ("B-036", chosen(), COMMITS, ROW_LEVEL),
    ("B-037", chosen("by-date"), ABORTS, "added-files"),
    ("B-038", chosen("by-date", held="merge/dates"), ABORTS, "added-files"),
    ("B-039", chosen("by-date", held="merge/literal"), COMMITS, "added-files"),
    ("B-040", chosen("by-date", held="merge/literal", winner="merge-same-date"), ABORTS, "added-files"),
    *(("B-041", chosen(layout, winner="insert"), COMMITS, "added-files") for layout in AXES["layout"].names),
    ("B-042", chosen(winner="insert", serializable=True), ABORTS, ROW_LEVEL),
    ("B-043", chosen(winner="zorder"), ABORTS, ROW_LEVEL),
    ("B-044", chosen(winner="optimize"), COMMITS, ROW_LEVEL),
    ("B-045", chosen(winner="optimize", vectors=False), ABORTS, None),
    ("B-046", chosen(vectors=False), ABORTS, "added-files"),
    ("B-047", chosen(winner="merge-same-rows"), ABORTS, ROW_LEVEL),
    ("B-048", chosen(serializable=True), COMMITS, ROW_LEVEL),
]


@pytest.mark.parametrize(
    ("state", "outcome", "check"), [one[1:] for one in KNOWN], ids=[f"{one[0]}-{one[1].layout}" for one in KNOWN]
)
def test_the_well_known_grid(board: Board, state: State, outcome: str, check: str | None) -> None:
    said = board.answers[board.states.index(state)]
    assert said.outcome == outcome
    assert said.check == (check or said.check)


@pytest.mark.parametrize(("held", "count"), [("merge/key", 0), ("merge/dates", 0), ("merge/literal", 1)])
def test_usable_predicates_of_the_three_conditions_on_a_partitioned_table(board: Board, held: str, count: int) -> None:
    said = board.answers[board.states.index(chosen("by-date", held=held))]
    assert len(said.usable) == count
    assert bool(said.unusable) == (count == 0)


def test_overlapping_rows_are_named_by_their_own_condition(board: Board) -> None:
    said = board.answers[board.states.index(chosen(winner="merge-same-rows"))]
    assert said.raised == "ConcurrentAppendException, DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"


def test_a_blind_append_is_said_to_be_left_out(board: Board) -> None:
    said = board.answers[board.states.index(chosen(winner="insert"))]
    assert "blind append, which WriteSerializable leaves out" in said.sentence


def test_an_insert_that_reads_the_target_is_judged_like_any_winner_that_is_not_blind(board: Board) -> None:
    for layout in AXES["layout"].names:
        for serializable in (False, True):
            merge, insert = (
                board.answers[board.states.index(chosen(layout, winner=winner, serializable=serializable))]
                for winner in ("merge", "insert-select")
            )
            assert (insert.outcome, insert.check) == (merge.outcome, merge.check)


def test_zorder_conflicts_with_every_condition_and_layout(board: Board) -> None:
    for layout in ("flat", "by-date", "by-date-country"):
        for held in ("merge/key", "merge/dates", "merge/literal"):
            assert board.answers[board.states.index(chosen(layout, held=held, winner="zorder"))].outcome == ABORTS


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(chosen(serializable=True), id="B-048"),
        pytest.param(chosen(winner="insert-other-rows", serializable=True), id="B-042"),
        pytest.param(chosen("by-date", winner="optimize"), id="B-027"),
        pytest.param(chosen(held="update/key"), id="B-025-update"),
        pytest.param(chosen(winner="delete"), id="B-025-delete"),
    ],
)
def test_what_the_documentation_leaves_open_is_said(board: Board, state: State) -> None:
    assert any(note.startswith(UNSTATED) for note in board.answers[board.states.index(state)].notes)
    assert not any(note.startswith(UNSTATED) for note in board.answers[board.states.index(chosen())].notes)


class Page(HTMLParser):
    """The controls of the page with what they start with, and every address that it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.start: dict[str, str] = {}
        self.options: dict[str, list[str]] = {}
        self.addresses: list[str] = []
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [given[name] or "" for name in ("src", "href", "action", "data", "srcset") if name in given]
        name = given.get("name") or ""
        if tag == "select":
            self._select = name
        elif tag == "option":
            self._take(self._select, given["value"] or "", "selected" in given)
        elif tag == "input":
            self._take(name, given.get("value") or "on", "checked" in given)

    def _take(self, name: str, value: str, chosen: bool) -> None:
        self.options.setdefault(name, []).append(value)
        if chosen:
            self.start[name] = value


def test_controls_and_their_defaults(text: str) -> None:
    found = Page(text)
    assert found.options["layout"] == ["flat", "by-date", "by-date-country", "clustered"]
    assert found.options["condition-merge"] == ["key", "dates", "literal"]
    assert found.options["condition-update"] == found.options["condition-delete"] == ["key", "literal", "date", "none"]
    assert {"merge", "insert", "zorder", "optimize"} < set(found.options["winner"])
    assert found.options["profile"] == list(PROFILES)
    assert found.start == {
        "layout": "flat",
        "vectors": "on",
        "held": "merge",
        "condition-merge": "key",
        "condition-update": "key",
        "condition-delete": "key",
        "winner": "merge",
        "profile": "databricks",
    }
    for shown in (
        "s.id = t.id",
        "s.event_date = t.event_date",
        "t.event_date = &#39;2026-08-12&#39;",
        "PARTITIONED BY (event_date)",
        "delta.isolationLevel = Serializable",
    ):
        assert shown in text


def test_the_page_is_one_small_file_without_network(text: str) -> None:
    assert len(text.encode()) < MOST_BYTES
    assert all(address.startswith("#") for address in Page(text).addresses)
    assert "default-src 'none'" in text
    outside = re.sub(r"http://www\.w3\.org/\S+?['\"]", "", text)
    for finding in load_findings():  # told where it can be read up, and fetched by nobody
        outside = outside.replace(f"({finding.link})", "")
    assert not re.search(r"https?:|@import|url\((?!data:)", outside)


def test_the_layouts_are_their_own_mirror_images() -> None:
    for layout in LAYOUTS.values():
        create, *inserts = layout.setup
        assert mirrored(create) == create
        rows = {row for insert in inserts for row in re.findall(r"\((\d+), DATE'([\d-]+)', '(\w+)'", insert)}
        assert len(rows) == 16
        for number, date, country in rows:
            other = mirrored(f"id = {number} DATE'{date}' '{country}'")
            assert re.findall(r"id = (\d+) DATE'([\d-]+)' '(\w+)'", other)[0] in rows


def test_what_counts_as_a_mirror_image_is_one() -> None:
    source_country = re.compile(r"'(DE|FR)' AS country")
    for played in (*HELD, *WINNERS):
        assert mirrored(mirrored(played.statement.text)) == played.statement.text
        if played.mirror:
            image = mirrored(CATALOGUE[played.mirror].text)
            assert source_country.sub("", image) == source_country.sub("", played.statement.text)
        if played.exact:
            assert CATALOGUE[played.exact].text == played.statement.text


def test_measured_is_what_a_grid_holds_of_this_very_pair(board: Board) -> None:
    names = board.raced.lines
    assert set(names) == {"delta-4.4", "delta-4.0", "delta-rs"}
    assert all(PROFILES[name].predicted_only is False for name in names)
    for state, said, measured in zip(board.states, board.answers, board.measured, strict=True):
        if measured is None:
            continue
        line, held, winner = names[state.profile], HELD[state.held], WINNERS[state.winner]
        pair = (held.mirror, winner.mirror) if measured.mirror else (held.exact, winner.exact)
        assert measured.race == f"matrix/{state.layout_name}/{state.isolation}/{'~'.join(pair)}"
        assert measured.engine == line.meaning
        deviation = deviation_for(measured.race, "A", load_deviations(line))
        grid = read_grid(grid_path(line, state.layout_name, state.isolation))
        assert measured.word == from_cell(deviation.expect if deviation else grid[pair], line, "").word
        assert (measured.word == said.word) == (not measured.finding)
    assert sum(one is not None for one in board.measured) > 1000


def test_a_race_of_the_pair_people_know_is_found(board: Board) -> None:
    state = chosen("by-date", profile="delta-4.4", serializable=True, vectors=False)
    measured = board.measured[board.states.index(state)]
    assert measured is not None
    assert measured.race == "matrix/by-date/serializable/merge-on-key~merge-other-literal"
    assert measured.mirror
    assert measured.engine == load_lines()["delta-4.4"].meaning


def test_each_change_is_one_choice_and_flips_the_verdict(board: Board) -> None:
    place_of = {state: place for place, state in enumerate(board.states)}
    for state, said, changes in zip(board.states, board.answers, board.changes, strict=True):
        assert [one.control for one in changes] == sorted((one.control for one in changes), key=CONTROLS.index)
        for change in changes:
            other = board.answers[place_of[_changed(state, change.control, change.value)]]
            assert {said.outcome, other.outcome} == {COMMITS, ABORTS}
            assert other.word == change.word


def _changed(state: State, control: str, value: str) -> State:
    if control == "condition":
        kind = HELD[state.held].kind.name
        return replace(state, held=AXES["held"].names.index(f"{kind}/{value}"))
    if control == "winner":
        return replace(state, winner=AXES["winner"].names.index(value))
    return replace(state, **{control: {"on": True, "off": False}.get(value, value)})


def test_no_change_is_named_only_where_none_flips(board: Board) -> None:
    place_of = {state: place for place, state in enumerate(board.states)}
    silent = [place for place, one in enumerate(board.changes) if not one and board.answers[place].outcome]
    for place in silent[::97]:
        state = board.states[place]
        kind = HELD[state.held].kind
        others = [
            *(replace(state, held=number) for number, one in enumerate(HELD) if one.kind == kind),
            *(replace(state, winner=number) for number in range(len(WINNERS))),
            *(replace(state, profile=name) for name in PROFILES),
            *(replace(state, layout=name) for name in AXES["layout"].names),
            replace(state, vectors=not state.vectors),
            replace(state, serializable=not state.serializable),
        ]
        assert {board.answers[place_of[other]].outcome for other in others} <= {board.answers[place].outcome, ""}


def test_one_change_flips_the_start_and_the_partitioned_table(board: Board) -> None:
    changes = {one.control: one for one in board.changes[board.states.index(chosen())]}
    assert (changes["layout"].value, changes["layout"].word) == ("by-date", "append")
    first = board.changes[board.states.index(chosen("by-date"))][0]
    assert (first.control, first.value, first.word) == ("condition", "literal", COMMITS)


@pytest.mark.parametrize("held", AXES["held"].names)
def test_the_command_to_copy_asks_the_same(board: Board, capsys: pytest.CaptureFixture[str], held: str) -> None:
    for state in (chosen(held=held), chosen("by-date", held=held, winner="update", profile="delta-4.4")):
        said = board.answers[board.states.index(state)]
        program, *arguments = shlex.split(command("predict", state))
        assert program == "lakerace"
        assert cli.run([*arguments, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["sentence"] == said.sentence


def test_the_race_to_copy_runs_and_ends_as_predicted(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    state = chosen("by-date", winner="update", profile="delta-rs", serializable=True, vectors=False)
    assert state.layout_name in board.raced.layouts["delta-rs"]
    _, *arguments = shlex.split(command("race", state, "delta-rs"))
    assert cli.run([*arguments, "--expect", board.answers[board.states.index(state)].word]) == 0
    capsys.readouterr()


def test_the_command_writes_the_page(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakerace.panel.page.page", lambda: text)
    out = tmp_path / "site" / "panel.html"
    assert cli.run(["panel", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"panel: {out}\n"
    assert out.read_text(encoding="utf-8") == text
    assert text.startswith("<!doctype html>")
    assert cli.run(["panel", "--out", str(tmp_path)]) == cli.BAD_INPUT
    assert capsys.readouterr().err == f"lakerace: --out {tmp_path} is a folder; name a file\n"
