"""Are the reports true, complete and safe to show, whatever a race holds?"""

from __future__ import annotations

import datetime
import io
import json
import re
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.console import Console

from lakerace import results as results_module
from lakerace.catalogue import CATALOGUE
from lakerace.conflicts import KINDS
from lakerace.home import conf_dir
from lakerace.judge import DECLARED, ERROR, MEETS, UNDECLARED, UNSTEERABLE
from lakerace.layouts import LAYOUTS
from lakerace.observe import Commit, Event, Files, HistoryRow, Observation, Outcome
from lakerace.race import ISOLATIONS, Expected
from lakerace.report import ClaimRow, write
from lakerace.report.grid import print_grids
from lakerace.report.markdown import matrix
from lakerace.report.page import embedded, pack, page
from lakerace.report.progress import EVERY_RACES, EVERY_SECONDS, Progress
from lakerace.report.transcript import timeline, transcript
from lakerace.report.view import changes, duration, fields, grids
from lakerace.results import Result, Results, ResultsError, WorkerLog, load, merge, save
from lakerace.rules.findings import load_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = """INSERT INTO {t} SELECT '</script><script>alert(1)</script>' AS note, "<b>&amp;" -- | ` \u2028"""
DAY = datetime.date(2026, 8, 11)


def base_rows(changed: str = "base") -> tuple[tuple[object, ...], ...]:
    return tuple(
        (number, DAY + datetime.timedelta(days=number > 8), "DE" if number % 8 in (1, 2, 3, 4) else "FR",
         Decimal(number * 10) / 4, changed if number == 1 else "base")
        for number in range(1, 17)
    )


def made(
    race: str,
    *,
    word: str = "commits",
    expected: str | None = None,
    verdict: str = MEETS,
    layout: str = "by-date",
    isolation: str = "serializable",
    held: str = "update-by-date",
    winner: str = "insert-values",
    text: str | None = None,
    suite: str = "test_matrix",
    claims: tuple[str, ...] = (),
    seed: int = 0,
) -> Result:
    """One judged race as an engine would give it: writer A held at version 8, writer B commits version 9."""
    kind, committed, broken = KINDS.get(word), word == "commits", verdict in (ERROR, UNSTEERABLE)
    hint = ".WITH_PARTITION_HINT" if layout.startswith("by-") else ".WITHOUT_HINT"
    loser = {} if kind is None else {
        "outcome": "aborts", "kind": word, "surfaced": kind.exception, "root": f"io.delta.exceptions.{kind.exception}",
        "condition": f"{kind.condition}{hint}", "sqlstate": "2D521",
        "parameters": {"operation": "WRITE", "tableName": f"delta.`/tables/{seed}`", "version": "9"},
        "message": f"[{kind.condition}{hint}] Transaction conflict detected. See the docs.",
    }
    winner_does, held_does = CATALOGUE[winner], CATALOGUE[held]
    rest = {"outcome": word} if kind is None else loser
    numbers = {"version": 10, "read_version": 8, "attempts": 2} if committed else {"read_version": 8}
    outcomes = () if broken else (
        Outcome(writer="A", statement=held, text=text or held_does.text, held=True, **rest, **numbers),
        Outcome(writer="B", statement=winner, text=winner_does.text, held=False, outcome="commits", version=9,
                read_version=8, attempts=1),
    )
    won = (*base_rows(), (201, DAY, "DE", Decimal(1), "new"))
    after = (*base_rows("updated"), won[-1]) if committed else won
    row = HistoryRow(version=9, operation="WRITE", readVersion=8, isolationLevel="Serializable", isBlindAppend=True,
                     metrics={"numFiles": "1", "numOutputRows": "1"}, engineInfo="Apache-Spark/4.2.0 Delta-Lake/4.4.0")
    late = HistoryRow(version=10, operation="UPDATE", readVersion=8, isolationLevel="Serializable", isBlindAppend=False,
                      predicate='["(event_date#1 = 2026-08-11)"]', metrics={"numUpdatedRows": "8"})
    seen = Observation(
        race=race, engine="delta-4.4", versions={"pyspark": "4.2.0", "delta-spark": "4.4.0", "java": "17.0.12"},
        driver="phases", layout=layout, isolation=isolation, order="A:read B:read B:commit A:commit",
        overlap=not broken,
        overlap_proof="nothing ran" if broken else "A read 8 < 9" + (" < 10" if committed else ", then aborted"),
        writers=outcomes,
        history=() if broken else ((late, row) if committed else (row,)),
        commits=() if broken else (Commit(version=9, operation="WRITE", added=(f"part-{seed:05d}.snappy.parquet",)),),
        columns=() if broken else ("id", "event_date", "country", "amount", "note"),
        rows_before=() if broken else base_rows(), rows_at_release=() if broken else won,
        rows_after=() if broken else after, rows_read_by="spark",
        files=None if broken else Files(
            live=9, on_disk=9 if committed else 10, unreferenced_bytes=0 if committed else 1412,
            unreferenced=() if committed else (f"part-{seed:05d}-staged.snappy.parquet",),
        ),
        timeline=() if broken else (
            Event(writer="A", what="read", version=8, at=0.0), Event(writer="A", what="hold", version=8, at=0.21),
            Event(writer="B", what="read", version=8, at=0.22), Event(writer="B", what="commits", version=9, at=0.41),
            Event(writer="A", what=word, version=10 if committed else 9, at=0.55),
        ),
        base_version=8, seconds=0.6,
        error="the JVM died during the race (Py4JNetworkError)" if verdict == ERROR else None,
        unsteerable="the statement never reached its commit" if verdict == UNSTEERABLE else None,
    )
    wanted = expected or word
    about = KINDS.get(wanted)
    return Result(
        nodeid=f"suites/{suite}.py::test_race[{race}]", race=race, suite=suite,
        question="Who wins? Every statement of the catalogue held against every other.", observation=seen,
        expected={
            "A": Expected(word=wanted, surfaced=about and about.exception, sqlstate="2D521" if about else None,
                          source=f"{layout}.{isolation}.md"),
            "B": Expected(word="commits", source=f"{layout}.{isolation}.md"),
        },
        verdict=verdict,
        differences={
            UNDECLARED: (f"A: expected {wanted}, seen {word}",),
            ERROR: (seen.error or "",),
            UNSTEERABLE: (seen.unsteerable or "",),
        }.get(verdict, ()),
        deviation="engine-change: 4.0 knows no sub-conditions (delta-io/delta#5720)" if verdict == DECLARED else None,
        expectation_source=f"{layout}.{isolation}.md", claims=claims, seconds=0.6,
        rerun=f"pytest --engine delta-4.4 --profile core 'suites/{suite}.py::test_race[{race}]'",
    )


def outcomes() -> Iterator[str]:
    """Words in a mix like a real run's, for ever."""
    while True:
        yield from ("commits", "append", "commits", "delete-read", "commits", "append", "metadata", "commits",
                    "protocol", "delete-delete", "commits", "no-commit", "append")


def run_of(count: int, *, statements: int = 16) -> Results:
    """A run of ``count`` races: the matrix over the layouts, and a few named ones that show every verdict."""
    names, words = list(CATALOGUE)[:statements], outcomes()
    named = [
        made("an-update-aborts-when-an-insert-lands-in-the-partition-it-read", word="commits", expected="append",
             verdict=UNDECLARED, suite="test_conflicts", claims=("D-013",)),
        made("optimize-aborts-when-a-delete-removes-its-input", word="delete-read", verdict=DECLARED, held="optimize",
             winner="delete-by-key", suite="test_conflicts", claims=("D-025",)),
        made("two-streams-with-one-id", word="transaction", held="txn-append", winner="txn-append",
             suite="test_conflicts"),
        made("a-statement-that-matches-nothing", verdict=UNSTEERABLE, suite="test_history"),
        made("the-engine-dies", verdict=ERROR, suite="test_history"),
        made("hostile", text=HOSTILE, suite="test_history"),
    ]
    cells = [
        (layout, isolation, held, winner)
        for layout in LAYOUTS for isolation in ISOLATIONS for held in names for winner in names
    ]
    listed = [
        made(f"matrix/{layout}/{isolation}/{held}~{winner}", word=next(words), layout=layout, isolation=isolation,
             held=held, winner=winner, seed=seed, verdict=DECLARED if seed == 7 else MEETS)
        for seed, (layout, isolation, held, winner) in enumerate(cells[:count - len(named)])
    ]
    return Results(
        engine="delta-4.4", meaning="Delta 4.4.0 on Spark 4.2.0, driver phases", profile="core",
        started="2026-08-11T10:00:00Z", seconds=312.4, versions={"lakerace": "0.1.0", "pyspark": "4.2.0"},
        results=tuple(sorted((*named, *listed), key=lambda one: one.race)),
    )


CLAIMS = (
    ClaimRow(id="D-013", text="A blind append never makes an UPDATE lose", answer="contradicted",
             measured="under Serializable the UPDATE aborts with ConcurrentAppendException",
             races=("an-update-aborts-when-an-insert-lands-in-the-partition-it-read", "not-in-this-run")),
    ClaimRow(id="D-025", text="Two MERGEs over different rows still fail", answer="depends", measured="on the layout"),
    ClaimRow(id="D-012", text="ADLS gives <exclusive> create", answer="not-shown", measured="no such storage here"),
    ClaimRow(id="D-002", text="One commit is one JSON file", answer="confirmed", measured="always"),
    ClaimRow(id="B-001", text="Two rows of one file pass", answer="predicted", prediction="rows are <compared>",
             measured="files are"),
)


@pytest.fixture(scope="module")
def ran() -> Results:
    return run_of(60)


@pytest.fixture(scope="module")
def html(ran: Results) -> str:
    return page(ran, CLAIMS)


def named(results: Results, start: str) -> Result:
    return next(result for result in results.results if result.race.startswith(start))


# ---- results.json


def test_what_is_logged_by_two_workers_is_merged_sorted_and_read_back_the_same(tmp_path, ran):
    for number, result in enumerate(reversed(ran.results)):
        WorkerLog(tmp_path / f"gw{number % 2}.jsonl").add(result)
    merged = merge(tmp_path, profile="core", versions={"lakerace": "0.1.0"})
    assert [one.race for one in merged.results] == [one.race for one in ran.results]
    assert (merged.engine, merged.profile, merged.notes) == ("delta-4.4", "core", ())
    assert merged.versions == {"lakerace": "0.1.0", "pyspark": "4.2.0", "delta-spark": "4.4.0", "java": "17.0.12"}
    save(merged, tmp_path / "results.json")
    assert load(tmp_path / "results.json") == merged


def test_dates_decimals_bytes_and_not_a_number_are_stable_text(tmp_path):
    odd = (DAY, Decimal("1.50"), b"\x00\xff", float("nan"), 2**60, None, True, {"day": DAY}, [Decimal(1)],
           datetime.datetime(2026, 8, 11, 10, tzinfo=datetime.timezone.utc))
    result = made("odd")
    result = replace(result, observation=replace(result.observation, rows_after=(odd,)))
    WorkerLog(tmp_path / "main.jsonl").add(result)
    (row,) = merge(tmp_path).results[0].observation.rows_after
    assert list(row) == ["2026-08-11", "1.50", "0x00ff", "nan", 2**60, None, True, {"day": "2026-08-11"}, ["1"],
                         "2026-08-11T10:00:00+00:00"]


def test_a_line_cut_off_by_a_killed_worker_is_a_note_and_the_rest_is_kept(tmp_path, ran):
    log = WorkerLog(tmp_path / "gw1.jsonl")
    log.add(ran.results[0])
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + whole[:50])
    merged = merge(tmp_path)
    assert len(merged.results) == 1
    assert merged.notes == ("gw1: its last race was cut off while being written and is missing here",)
    assert "cut off" in matrix(merged)
    assert "cut off" in page(merged)


def test_a_broken_line_in_the_middle_says_where(tmp_path, ran):
    log = WorkerLog(tmp_path / "gw1.jsonl")
    log.add(ran.results[0])
    log.path.write_bytes(b"{}\n" + log.path.read_bytes())
    with pytest.raises(ResultsError, match=r"gw1\.jsonl, line 1: not lakerace-results/1"):
        merge(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not lakerace-results/1"),
        ('{"format": "lakerace-results/2"}', "not lakerace-results/1"),
        ('{"format":"lakerace-results/1","engine":"x","profile":"","started":"yesterday","seconds":1}', "started"),
    ],
)
def test_a_file_that_is_no_results_file_is_one_clear_line(tmp_path, text, said):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=said) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ResultsError, match="No such file"):
        load(tmp_path / "missing.json")


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ValueError, match="unknown verdict 'passed'"):
        made("x", verdict="passed")


def test_the_committed_schema_is_the_one_of_the_types():
    committed = (conf_dir() / "schemas" / "results.schema.json").read_text(encoding="utf-8")
    assert committed == results_module.schema_text(), (
        "write it anew: python -c 'from lakerace import results; print(results.schema_text(), end=\"\")' "
        "> conf/schemas/results.schema.json"
    )


def test_a_results_file_is_what_the_types_say(tmp_path, ran):
    save(ran, tmp_path / "results.json")
    assert msgspec.convert(json.loads((tmp_path / "results.json").read_text(encoding="utf-8")), Results) == load(
        tmp_path / "results.json"
    )


def test_a_results_file_validates_against_the_schema(tmp_path):
    validator = pytest.importorskip("jsonschema", reason="jsonschema is not installed (it is in the extra dev)")
    save(run_of(10), tmp_path / "results.json")
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    validator.validate(written, results_module.schema())
    written["results"][0]["verdict"] = "passed"
    with pytest.raises(validator.ValidationError, match="passed"):
        validator.validate(written, results_module.schema())


# ---- what the reports work out


def test_of_several_runs_of_a_race_the_grid_shows_the_one_to_look_at():
    name = "matrix/flat/serializable/update-by-key~insert-values"
    runs = (made(name), made(name, word="append", expected="commits", verdict=UNDECLARED), made(name))
    (grid,) = grids(Results(engine="e", profile="", started="2026-08-11T10:00:00Z", seconds=1, results=runs))
    assert grid.cells["update-by-key", "insert-values"].marked == "≠ append"
    assert grid.cells["update-by-key", "insert-values"].index == 1


def test_a_grid_raced_in_part_is_dense_at_its_top_left():
    names = list(CATALOGUE)
    pairs = {(held, winner) for held in names[5:15] for winner in names[5:15]}
    pairs |= {(held, names[9]) for held in names}
    runs = tuple(made(f"matrix/flat/serializable/{held}~{winner}", held=held, winner=winner) for held, winner in pairs)
    (grid,) = grids(Results(engine="e", profile="", started="2026-08-11T10:00:00Z", seconds=1, results=runs))
    assert grid.winners[0] == names[9]
    assert set(grid.winners[1:]) == set(names[5:15]) - {names[9]}
    assert grid.held[:10] == tuple(names[5:15])


def test_rows_that_came_went_changed_and_stayed_are_told_apart():
    before = ((1, "a"), (2, "b"), (2, "b"), (3, "c"), (10, "d"))
    after = ((1, "A"), (2, "b"), (4, "e"), (10, "d"))
    found = [(change.sign, change.row, change.old) for change in changes(before, after)]
    assert found == [
        ("~", (1, "A"), (1, "a")), ("=", (2, "b"), None), ("-", (2, "b"), None), ("-", (3, "c"), None),
        ("+", (4, "e"), None), ("=", (10, "d"), None),
    ]


def test_a_column_that_was_added_changes_only_the_rows_that_fill_it():
    found = [(change.sign, change.row) for change in changes(((1, "a"), (2, "b")), ((1, "a", None), (2, "b", 7)))]
    assert found == [("=", (1, "a", None)), ("~", (2, "b", 7))]


def test_a_field_that_was_not_stated_never_differs():
    result = made("x", word="append")
    lines = {field.label: field for field in fields(result, result.observation.outcome("A"))}
    assert lines["error condition"].expected is None
    assert not any(line.differs for line in lines.values())
    other = made("x", word="delete-read", expected="append", verdict=UNDECLARED)
    assert [line.label for line in fields(other, other.observation.outcome("A")) if line.differs] == ["outcome"]


@pytest.mark.parametrize(("seconds", "said"), [(4.21, "4.2 s"), (185, "3 min 05 s"), (3720, "1 h 02 min")])
def test_a_duration_reads_like_speech(seconds, said):
    assert duration(seconds) == said


def test_an_unknown_answer_to_a_claim_is_refused():
    with pytest.raises(ValueError, match="claim D-001: unknown answer 'maybe'"):
        ClaimRow(id="D-001", text="x", answer="maybe", measured="y")


# ---- index.html


class Reader(HTMLParser):
    """The tags of a page, the words outside scripts and styles, and the addresses it would fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "input", "br", "img"):
            self.open.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def test_the_page_is_one_well_formed_file_that_fetches_nothing(html):
    read = Reader(html)
    assert read.open == []
    assert all(address.startswith("#") for address in read.addresses)
    assert "default-src 'none'" in html
    assert "innerHTML" not in html
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", html)


def test_nothing_a_race_holds_becomes_markup(ran):
    hostile = replace(
        made("<img src=x onerror=alert(1)>", text=HOSTILE, suite="</script>"), question=HOSTILE, differences=(HOSTILE,),
        deviation=HOSTILE, rerun=HOSTILE, verdict=UNDECLARED, claims=("</script>",),
    )
    bad = replace(ran, results=(*ran.results, hostile), engine=HOSTILE, notes=(HOSTILE,), versions={HOSTILE: HOSTILE})
    claims = (ClaimRow(id="</script>", text=HOSTILE, answer="contradicted", measured=HOSTILE, races=(HOSTILE,)),)
    plain, read = Reader(page(replace(bad, results=ran.results), ())), Reader(page(bad, claims))
    assert read.tags.count("script") == plain.tags.count("script") == 2
    assert "img" not in read.tags
    assert "b" in plain.tags  # our own
    assert read.open == []


def test_the_grid_can_be_read_without_a_script(ran, html):
    words = [word for word in Reader(html).words if word.strip()]
    for text in ("insert-values", "commits", "append", "by-date", "D-013", f"{ran.meaning}."):
        assert text in words, text
    assert html.count("<td><button class=\"open w-") == 54
    assert "≠ differs" not in html  # sign and word are apart, so that a screen reader reads the word


def test_contradicted_claims_come_first_and_as_news(html):
    places = [html.index(f'id="claim-{name}"') for name in ("d-013", "d-025", "d-002", "b-001", "d-012")]
    assert places == sorted(places)
    assert "News: 1 public statement the engine contradicts" in html
    assert "News" not in page(run_of(10), CLAIMS[1:])


def test_a_prediction_stands_beside_what_was_measured(ran, html):
    row = html[html.index('id="claim-b-001"'):].partition("</tr>")[0]
    assert "Databricks, predicted:</b> rows are &lt;compared&gt;" in row
    assert "Open source, measured:</b> files are" in row
    assert html.count("Databricks, predicted:") == 1
    assert "no such engine was raced" in html
    assert "no such engine was raced" not in page(ran, CLAIMS[:-1])
    assert "| Databricks, predicted: rows are &lt;compared> Open source, measured: files are |" in matrix(ran, CLAIMS)


def test_an_empty_run_still_gives_a_page(tmp_path):
    empty = Results(engine="delta-rs", profile="core", started="2026-08-11T10:00:00Z", seconds=0)
    write(empty, tmp_path / "new" / "folder")
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "index.html", "matrix.md", "results.json",
    ]
    assert "No race of the matrix was in this run." in (tmp_path / "new" / "folder" / "index.html").read_text()


def test_a_thousand_races_stay_below_four_megabytes(tmp_path):
    write(run_of(1000), tmp_path, CLAIMS)
    assert (tmp_path / "index.html").stat().st_size < 4_000_000
    assert len(load(tmp_path / "results.json").results) == 1000


def unpack(part: object, shared: list[object]) -> object:
    """What the page's script does with :func:`pack`."""
    if isinstance(part, list):
        return [unpack(inner, shared) for inner in part]
    if not isinstance(part, dict):
        return part
    if "$" in part:
        return unpack(shared[part["$"]], shared)
    return {name.removeprefix("$"): unpack(inner, shared) for name, inner in part.items()}


def test_packed_races_unpack_to_the_same():
    races = [
        {"a": ["a text that is long enough", {"$": 0}, {"$$x": "a text that is long enough"}], "n": number, "e": {}}
        for number in range(3)
    ]
    packed = pack(races)
    assert unpack(packed["races"], packed["shared"]) == races
    assert json.dumps(packed).count("long enough") == 1


def test_json_in_a_script_element_cannot_end_it():
    text = embedded({"sql": HOSTILE})
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"sql": HOSTILE}


# ---- matrix.md


def test_the_markdown_grid_reads_back_cell_by_cell(ran):
    text = matrix(ran, CLAIMS)
    assert "# Conflict matrix: delta-4.4" in text
    assert "| differs (undeclared) | 1 |" in text
    assert "| D-013 | **contradicted** |" in text
    section = text.split("## delta-4.4 · flat · serializable")[1].split("\n## ")[0]
    header, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    winners = [cell.strip() for cell in header.strip("|").split("|")][1:]
    read = {}
    for line in rows:
        held, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == len(winners)
        read |= {(held, winner): cell for winner, cell in zip(winners, cells, strict=True) if cell}
    (grid, *_) = grids(ran)
    assert read == {place: cell.marked for place, cell in grid.cells.items()}


def test_markdown_cells_are_not_broken_by_what_is_in_them(ran):
    odd = replace(named(ran, "an-update"), differences=("A: a | b <script> `c`\nsecond line",))
    line = next(line for line in matrix(replace(ran, results=(odd,))).splitlines() if "second line" in line)
    assert "a \\| b &lt;script> \\`c\\` second line" in line


# ---- the terminal


def console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("statements", [2, 16, len(CATALOGUE)])
def test_a_grid_in_the_terminal_keeps_to_its_width_and_loses_no_cell(width, statements):
    screen, ran = console(width), run_of(120, statements=statements)
    print_grids(ran, screen)
    lines = screen.file.getvalue().splitlines()
    assert max(len(line) for line in lines) <= width
    assert not any("…" in line for line in lines)
    rows = (re.match(r" ?(?:\d+ )?([a-z-]+)(?= )", line) for line in lines)
    cells = [row.string[row.end():].replace("·", "").split() for row in rows if row and row[1] in CATALOGUE]
    different = {frozenset((place, cell.marked) for place, cell in grid.cells.items()) for grid in grids(ran)}
    assert sum(map(len, cells)) == sum(map(len, different))


def test_equal_grids_are_printed_once_under_both_titles():
    names = [f"matrix/{layout}/serializable/update-by-key~insert-values" for layout in ("flat", "by-date")]
    runs = (*map(made, names), made("matrix/clustered/serializable/update-by-key~insert-values", word="append"))
    screen = console(80)
    print_grids(Results(engine="e", profile="", started="2026-08-11T10:00:00Z", seconds=1, results=runs), screen)
    text = screen.file.getvalue()
    assert "delta-4.4 · flat · serializable (1 race)\ndelta-4.4 · by-date · serializable (1 race)\nheld" in text
    assert text.count("\nupdate-by-key ") == 2


def test_the_legend_of_a_terminal_grid_names_every_short_word_used():
    screen = console(80)
    print_grids(run_of(120), screen)
    text = screen.file.getvalue()
    for line in ("ok  commits        it commits", "ap  append", "me  metadata", "~   after it"):
        assert line in text


def test_a_transcript_tells_the_race_the_difference_the_why_and_the_way_home(ran):
    text = transcript(named(ran, "an-update"))
    lines = text.splitlines()
    assert lines[0] == (
        "differs (undeclared): an-update-aborts-when-an-insert-lands-in-the-partition-it-read   "
        "[delta-4.4 · by-date · serializable]"
    )
    assert "  A  read v8 -- hold ........................... commits v10" in lines
    assert "  B                     read v8 -- commits v9" in lines
    assert any(re.fullmatch(r" +outcome +append +commits   <-- differs", line) for line in lines)
    assert "      UPDATE {t} SET note = 'updated' WHERE event_date = DATE'2026-08-11'" in lines
    assert any(line.startswith("  why:      A expected append: the winner added files") for line in lines)
    assert "            ~ 1, 2026-08-11, DE, 2.5, updated" in lines
    assert "  differs:  A: expected append, seen commits" in lines
    assert lines[-1].startswith("  again:    pytest --engine delta-4.4 ")


def test_a_transcript_of_a_race_that_never_ran_says_the_reason(ran):
    assert "  reason:   the statement never reached its commit" in transcript(named(ran, "a-statement"))
    assert "  error:    the JVM died during the race (Py4JNetworkError)" in transcript(named(ran, "the-engine"))


def test_a_timeline_too_wide_for_a_terminal_runs_downwards():
    events = [
        Event(writer=letter, what=what, version=version, at=version + at)
        for version, letter in enumerate("ABCDEF", 8) for at, what in ((0.0, "read"), (0.5, "commits"))
    ]
    lines = list(timeline(events))
    assert len(lines) == 13
    assert max(map(len, lines)) < 110
    assert lines[3] == "     9.000  v9     " + " " * 13 + "read v9"


# ---- progress


def test_without_a_terminal_progress_is_a_line_now_and_then():
    now, screen = [0.0], console(200)
    progress = Progress(screen, clock=lambda: now[0])
    progress.start(130)
    for number in range(EVERY_RACES + 1):
        progress.running("gw0", f"race {number}")
        progress.done("gw0", MEETS)
    now[0] += EVERY_SECONDS
    progress.done("gw1", UNDECLARED)
    progress.done("gw1", "a test")
    progress.say("[odd] text")
    progress.stop()
    progress.stop()
    assert screen.file.getvalue().splitlines() == [
        "lakerace: 50/130 races, 0.0 s: 50 meets",
        "lakerace: 52/130 races, 15.0 s: 1 differs (undeclared), 51 meets",
        "[odd] text",
        "lakerace: 53/130 races, 15.0 s: 1 differs (undeclared), 51 meets, 1 a test",
    ]


def test_on_a_terminal_progress_shows_counts_and_the_races_that_run():
    screen = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    progress = Progress(screen)
    progress.start(3)
    progress.running("gw0", "matrix/flat/serializable/optimize~insert-values")
    progress.running("gw1", "[odd]name")
    progress.done("gw2", MEETS)
    progress.stop()
    text = screen.file.getvalue()
    assert "1/3" in text
    assert "1 meets" in text
    assert "flat/serializable/optimize~insert-values | [odd]name" in text


def test_progress_without_a_console_leaves_no_open_descriptor():
    progress = Progress()
    progress.start(1)
    progress.done("gw0", MEETS)
    progress.stop()


def test_findings_are_listed_on_the_page_and_in_the_text():
    found = replace(load_findings()[0], because="two <commits> pass", link="https://example.org/issue")
    ran = run_of(10)
    assert "Documented, but not so" not in page(ran)
    text = page(ran, (), (found,))
    assert "Documented, but not so" in text
    assert "two &lt;commits&gt; pass" in text
    assert f"| {found.rules} | {found.seen} | two &lt;commits> pass |" in matrix(ran, (), (found,))
