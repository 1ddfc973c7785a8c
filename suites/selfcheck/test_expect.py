"""Do grids, cells and deviations say what was seen, and nothing else?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakerace.catalogue import CATALOGUE
from lakerace.engines.lines import line, load_lines
from lakerace.expect import (
    ExpectationError,
    alone_path,
    cell,
    check_names,
    from_cell,
    grid_path,
    load_deviations,
    read_grid,
    write_grid,
)
from lakerace.home import conf_dir
from lakerace.judge import compare
from lakerace.layouts import LAYOUTS
from lakerace.observe import Outcome
from lakerace.race import ISOLATIONS, WORDS
from selfcheck.seen import lost, observed

if TYPE_CHECKING:
    from pathlib import Path

SPARK, OLD, RS = line("delta-4.4"), line("delta-4.0"), line("delta-rs")


def aborted(word: str, condition: str | None, surfaced: str | None = None) -> Outcome:
    return lost(word, condition=condition, **({"surfaced": surfaced} if surfaced else {}))


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("append", aborted("append", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT")),
        ("append+p", aborted("append", "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")),
        ("delete-read", aborted("delete-read", "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT")),
        ("metadata", aborted("metadata", "DELTA_METADATA_CHANGED")),
        ("protocol", aborted("protocol", "DELTA_PROTOCOL_CHANGED")),
        ("write", aborted("write", "DELTA_CONCURRENT_WRITE")),
        (
            "delete-read+p!Py4JJavaError",
            aborted("delete-read", "DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT", "Py4JJavaError"),
        ),
        ("append [DELTA_OF_TOMORROW]", aborted("append", "DELTA_OF_TOMORROW")),
        ("commits", Outcome(writer="A", statement="s", text="s", held=True, outcome="commits", version=9)),
        ("no-commit", Outcome(writer="A", statement="s", text="s", held=True, outcome="no-commit")),
        (
            "fails [DIVIDE_BY_ZERO]",
            Outcome(writer="A", statement="s", text="s", held=True, outcome="fails", condition="DIVIDE_BY_ZERO"),
        ),
    ],
)
def test_a_cell_is_written_and_read_back(text: str, outcome: Outcome) -> None:
    assert cell(outcome) == text
    assert list(compare(from_cell(text, SPARK, "grid"), outcome, observed(outcome))) == []


def test_every_word_can_stand_in_a_cell() -> None:
    for word in WORDS:
        assert from_cell(word, SPARK, "grid").word == word


def test_a_cell_means_less_on_an_engine_that_tells_less() -> None:
    assert from_cell("append+p", SPARK, "g").condition == "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"
    assert from_cell("append", OLD, "g").condition == "DELTA_CONCURRENT_APPEND"
    told = from_cell("append", RS, "g")
    assert (told.surfaced, told.root, told.condition, told.sqlstate) == ("CommitFailedError", None, None, None)


@pytest.mark.parametrize("text", ["", "Commits", "apend", "append +p", "append+x", "append [lower]", "commits commits"])
def test_a_cell_with_a_typo_is_refused(text: str) -> None:
    with pytest.raises(ExpectationError, match=r"g\.md: .* is no outcome; use one of append, attempts, commits"):
        from_cell(text, SPARK, "g.md")


def test_a_grid_is_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "flat.serializable.md"
    cells = {("optimize", "insert-values"): "commits", ("insert-values", "add-column"): "metadata"}
    write_grid(path, "flat, serializable", cells, CATALOGUE)
    assert read_grid(path) == cells
    assert path.read_text(encoding="utf-8").startswith("# flat, serializable\n")
    write_grid(path, "flat, serializable", {**cells, ("zorder", "zorder"): "commits"}, CATALOGUE)
    assert read_grid(path)[("zorder", "zorder")] == "commits"


def test_a_grid_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_grid(tmp_path / "none.md") == {}


@pytest.mark.parametrize("name", load_lines())
def test_the_grids_and_deviations_of_the_project_have_no_typo(name: str) -> None:
    chosen = line(name)
    load_deviations(chosen)
    check_names(alone_path(chosen), CATALOGUE, LAYOUTS)
    for text in read_grid(alone_path(chosen)).values():
        from_cell(text, chosen, alone_path(chosen).name)
    known = {grid_path(chosen, layout, isolation) for layout in LAYOUTS for isolation in ISOLATIONS}
    for path in known:
        check_names(path, CATALOGUE, CATALOGUE)
        for text in read_grid(path).values():
            from_cell(text, chosen, path.name)
    found = set((conf_dir() / "expect" / chosen.engine).glob("*.md"))
    assert found <= known | {alone_path(chosen)}, "a grid that no layout and isolation level is called after"


def test_the_last_deviation_wins(tmp_path: Path) -> None:
    from lakerace.expect import deviation_for

    text = '[[deviation]]\nraces = ["a*"]\nversions = ""\nexpect = "%s"\nkind = "vendor"\nbecause = "b"\nlink = "l"\n'
    file = tmp_path / "v.toml"
    file.write_text(text % "commits" + text % "write", encoding="utf-8")
    found = deviation_for("abc", "A", load_deviations(SPARK, [file]))
    assert found is not None
    assert found.expect == "write"
    assert str(found) == "vendor: b (l)"
    assert found.source == "v.toml, deviation 2"


def test_a_deviation_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=r"none\.toml: "):
        load_deviations(SPARK, [tmp_path / "none.toml"])


def test_versions_before_a_release_count_as_in_its_range(tmp_path: Path) -> None:
    file = tmp_path / "v.toml"
    file.write_text(
        '[[deviation]]\nraces = ["a"]\nversions = ">=4.4"\nexpect = "commits"\nkind = "vendor"\nbecause = "b"\n',
        encoding="utf-8",
    )
    assert load_deviations(replace(SPARK, delta="4.5.0rc1"), [file])
    assert not load_deviations(replace(SPARK, delta="4.3.1"), [file])
