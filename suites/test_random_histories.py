"""Random histories: are drawn races what the rules predict, and does a serial order explain what they leave?

Profile ``core`` tries a few seeds, ``full`` many, ``soak`` new ones for the time of ``--soak-for``, ``--soak-seed``
being the first. A race that surprises is shrunk and printed to be pasted.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakerace import soak
from lakerace.engines import open_engine
from lakerace.engines.lines import line
from lakerace.histories import races
from lakerace.serial.engine import Replayer
from lakerace.soak import EXAMPLES, Surprise, seconds_of, seeds, try_seed

ENGINES = ("delta-spark", "delta-rs")
VERSIONS = ">=0"
# A race on Spark takes a few seconds, most of them for its own table.
CORE = {"delta-spark": ([1], 8), "delta-rs": ([1, 2], 25)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "drawn" not in metafunc.fixturenames:
        return
    config = metafunc.config
    profile, chosen = config.getoption("lakerace_profile"), line(config.getoption("lakerace_engine"))
    if profile == "soak":
        new = seeds(config.getoption("lakerace_soak_seed"), seconds_of(config.getoption("lakerace_soak_for")))
        metafunc.parametrize("drawn", [(new, EXAMPLES)], ids=["new-seeds"])
    elif profile == "core":
        metafunc.parametrize("drawn", [CORE[chosen.engine]], ids=["core"])
    else:
        every = [([seed], EXAMPLES) for seed in range(1, 21)]
        metafunc.parametrize("drawn", every, ids=lambda drawn: f"seed-{drawn[0][0]}")


def test_drawn_races_are_as_predicted_and_explained(drawn, engine, replayer):
    found, count = drawn
    for seed in found:
        tally = try_seed(engine, replayer, seed, count)
        print(tally)
        assert tally.races == tally.explained["explained"] == count


def test_what_surprises_is_made_small_and_printed_to_be_run_again(monkeypatch):
    """A planted liar: rules that say every UPDATE loses."""
    true = soak.predicted

    def lying(race, of):
        told = true(race, of)
        for writer in race.writers:
            if writer.statements[0].text.startswith("UPDATE") and writer.name in told:
                told[writer.name] = replace(told[writer.name], word="protocol")
        return told

    monkeypatch.setattr(soak, "predicted", lying)
    engine = open_engine(line("delta-rs"))
    try:
        with pytest.raises(Surprise) as caught:
            try_seed(engine, Replayer(engine), seed=1, examples=25, races=races(3))
    finally:
        engine.close()
    race, told = caught.value.race, str(caught.value)
    assert len(race.writers) == 2
    assert len(race.layout.setup) == 2
    assert any(writer.statements[0].text.startswith("UPDATE") for writer in race.writers)
    for part in ("the rules predict protocol", "Race(", "lakerace race --engine delta-rs --from -", "--seed 1"):
        assert part in told
