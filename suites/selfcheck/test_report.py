"""Are page and Markdown true, complete and safe to show, whatever a race holds?"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest

from lakerace.judge import UNDECLARED
from lakerace.report import ClaimRow, write
from lakerace.report.markdown import matrix
from lakerace.report.page import embedded, pack, page
from lakerace.report.templating import breakable
from lakerace.report.view import grids
from lakerace.results import Results, load
from lakerace.rules.findings import load_findings
from selfcheck.judged import CLAIMS, HOSTILE, REPORTS, made, named, run_of


@pytest.fixture(scope="module")
def html(ran: Results) -> str:
    return page(ran, CLAIMS, (), REPORTS)


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
        if tag not in ("meta", "link", "input", "br", "img", "wbr"):
            self.open.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def test_the_page_of_contention_is_named_when_it_lies_beside(tmp_path):
    link = '<a href="contention.html">contention.html</a>'
    one = replace(run_of(1), results=run_of(1).results[:1])
    write(one, tmp_path)
    assert link not in (tmp_path / "index.html").read_text()
    (tmp_path / "contention.html").touch()
    write(one, tmp_path)
    assert link in (tmp_path / "index.html").read_text()


def test_the_page_is_one_well_formed_file_that_fetches_nothing(html):
    read = Reader(html)
    assert read.open == []
    links = {link for one in REPORTS for link in one.report.links}
    assert all(address.startswith("#") or address in links for address in read.addresses)
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


def test_long_names_break_where_their_parts_end_and_stay_escaped():
    assert breakable("the ConflictCheckerPredicateElimination.of <b>") == (
        "the Conflict<wbr>Checker<wbr>Predicate<wbr>Elimination.<wbr>of &lt;b&gt;"
    )
    assert breakable("<script>alert(1)</script>") == "&lt;script&gt;alert(1)&lt;/<wbr>script&gt;"


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


def test_field_reports_stand_with_their_outcomes_advice_or_reason(ran, html):
    (row,) = re.findall(r'<tr id="report-a1".*?</tr>', html)
    assert "Two writers &lt;lose&gt;" in row
    assert '<a href="https://a.example/1">a.example/1</a>' in row
    assert "<span class=\"on\">delta-4.0:</span> A append, B commits<br>" in row
    assert f'data-i="{ran.results.index(named(ran, "two-streams"))}"' in row
    assert "two-streams-with-one-id</button> and 2 more</small>" in row
    assert "Not as the documents say (docs-gap): They name &lt;none&gt;." in row
    assert "Not shown here: cloud" in html


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


def test_findings_are_listed_on_the_page_and_in_the_text():
    found = msgspec.structs.replace(load_findings()[0], because="two <commits> pass", link="https://example.org/issue")
    ran = run_of(10)
    assert "Documented, but not so" not in page(ran)
    text = page(ran, (), (found,))
    assert "Documented, but not so" in text
    assert "two &lt;commits&gt; pass" in text
    assert f"| {found.rules} | {found.seen} | two &lt;commits> pass |" in matrix(ran, (), (found,))
