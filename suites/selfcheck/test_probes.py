"""Is the anomaly grid whole, read as it is written, and is a cell what its race showed?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakerace.observe import FAILS
from lakerace.probes import PROBES, cell, columns, probe_of, read_anomalies, write_anomalies
from lakerace.race import ISOLATIONS, RaceError
from lakerace.serial.model import ANOMALY, EXPLAINED, UNKNOWN, Explanation, Replay
from selfcheck.seen import lost, observed, won

WRITERS = next(probe for probe in PROBES if probe.name == "lost-update")
READER = next(probe for probe in PROBES if probe.name == "dirty-read")
EXPLAINS = Replay(explanation=Explanation(verdict=EXPLAINED, order=("B",)), statements=1, seconds=0.0)
SHOWS = replace(EXPLAINS, explanation=Explanation(verdict=ANOMALY, anomaly="lost update", witness="..."))
SILENT = replace(EXPLAINS, explanation=Explanation(verdict=UNKNOWN, reason="rand() in it"))


@pytest.mark.parametrize(
    ("probe", "writers", "replay", "told"),
    [
        (WRITERS, (lost(), won()), EXPLAINS, "aborts append"),
        (WRITERS, (won(), lost("delete-read")), EXPLAINS, "aborts delete-read"),
        (WRITERS, (won(), won(writer="A", version=10)), EXPLAINS, "rebased"),
        (WRITERS, (won(), won(writer="A", version=10)), SHOWS, "possible"),
        (WRITERS, (won(), won(writer="A", outcome=FAILS, version=None)), EXPLAINS, "aborts fails"),
        (READER, (lost(),), EXPLAINS, "snapshot"),
        (READER, (lost(),), SHOWS, "possible"),
    ],
)
def test_a_cell_is_what_its_race_showed(probe, writers, replay, told):
    assert cell(probe, observed(*writers), replay) == told


@pytest.mark.parametrize(("more", "replay"), [({"error": "the JVM died"}, EXPLAINS), ({}, SILENT), ({}, None)])
def test_a_race_that_showed_nothing_has_no_cell(more, replay):
    with pytest.raises(RaceError, match="nothing can be said"):
        cell(WRITERS, observed(won(), **more), replay)


def test_what_an_engine_cannot_be_asked_is_not_applicable():
    assert cell(WRITERS, observed(unsteerable="no phase locks"), None) == "n/a"


def test_the_grid_has_a_cell_for_every_probe_engine_and_level():
    grid = read_anomalies()
    assert set(grid) == {(probe.name, *column) for probe in PROBES for column in columns()}
    assert read_anomalies(write_anomalies(grid, "again")) == grid
    assert len({probe.name for probe in PROBES}) == len(PROBES)


def test_every_anomaly_of_the_literature_is_probed():
    assert {probe.anomaly for probe in PROBES} >= {
        "dirty read", "aborted read", "non-repeatable read", "lost update", "write skew", "phantom", "read skew",
        "content changed by compaction",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("| lost-update |", "| lost-upd |"), "there is no probe 'lost-upd'"),
        (("| dirty-read | snapshot |", "| dirty-read |"), "dirty-read has 3 cells, there are 4 columns"),
        (("| phantom |", "phantom |"), "no row for phantom"),
    ],
)
def test_a_grid_that_is_not_whole_is_refused(change, message):
    text = write_anomalies(read_anomalies(), "Anomalies")
    with pytest.raises(RaceError, match=message):
        read_anomalies(text.replace(*change, 1))


def test_a_race_knows_its_probe_and_names_the_anomaly_it_must_show():
    for level in ISOLATIONS:
        shown = WRITERS.at(level, "possible")
        assert probe_of(shown.name) is WRITERS
        assert (shown.anomaly, shown.isolation) == ("lost update", level)
        assert WRITERS.at(level, "aborts append").anomaly == ""
    assert probe_of("matrix/flat/serializable/optimize~optimize") is None
    assert probe_of("anomaly/lost-update-application/serializable") is not WRITERS
