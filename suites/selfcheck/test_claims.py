"""Every claim has an answer, and a race or a test stands behind it."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import pytest

from lakerace import claims
from lakerace.claims import NOT_SHOWN, PREDICTED, Claim, ClaimError, check_claims
from lakerace.home import suites_dir
from lakerace.named import ids_of

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

GOOD = Claim(id="D-001", text="a text", answer="confirmed", measured="seen", where=("a-race",))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"claims_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@lru_cache(maxsize=1)
def carriers() -> dict[str, frozenset[str]]:
    """The claim ids that each race and each test function of a ``test_claims_*.py`` carries."""
    found: dict[str, frozenset[str]] = {}
    for path in sorted(suites_dir().rglob("test_claims_*.py")):
        module = load(path)
        for race in module.RACES if path.parent == suites_dir() else ():
            assert race.name not in found, f"two races are called {race.name}"
            found[race.name] = frozenset(race.claims)
        for name, thing in vars(module).items():
            if name.startswith("test_") and (ids := ids_of(thing, "claim")):
                assert name not in found, f"two tests are called {name}"
                found[name] = frozenset(ids)
    return found


def test_the_ids_have_no_gap() -> None:
    assert [claim.id for claim in claims.load_claims()] == [
        f"{group}-{number:03d}" for group, last in (("B", 49), ("D", 83), ("G", 33)) for number in range(1, last + 1)
    ]


def test_what_is_said_of_databricks_is_predicted() -> None:
    """Save for what no rule can know, and what open source can show too."""
    said = {claim.id: claim.answer for claim in claims.load_claims()}
    assert {name: word for name, word in said.items() if name[0] == "B" and word != PREDICTED} == {
        "B-014": NOT_SHOWN, "B-023": "confirmed",
    }
    assert not [name for name, word in said.items() if name[0] != "B" and word == PREDICTED]


def test_every_claim_says_where_it_is_answered() -> None:
    for claim in claims.load_claims():
        carrying = {name for name, ids in carriers().items() if claim.id in ids}
        assert set(claim.where) == carrying, claim.id
        assert carrying or claim.answer == NOT_SHOWN, claim.id


def test_every_carried_id_is_known() -> None:
    assert {claim for ids in carriers().values() for claim in ids} <= claims.known_ids()


def test_no_race_of_these_suites_is_without_a_claim() -> None:
    assert [name for name, ids in carriers().items() if not ids] == []


def test_rows_are_what_the_list_says() -> None:
    assert len(claims.rows()) == 165
    assert claims.rows("contradicted") == [row for row in claims.rows() if row["answer"] == "contradicted"]
    assert set(claims.rows()[0]) == {"id", "text", "answer", "prediction", "measured", "where"}
    assert sum(claims.counts().values()) == 165


@pytest.mark.parametrize(("liar", "said"), [
    ([GOOD, GOOD], "D-001 stands twice"),
    ([msgspec.structs.replace(GOOD, answer="sort of")], "D-001: answer 'sort of'; use one of confirmed"),
    ([msgspec.structs.replace(GOOD, measured=" ")], "D-001: text and measured must say something"),
    ([msgspec.structs.replace(GOOD, where=())], "D-001: confirmed, but `where` names no race and no test"),
    ([msgspec.structs.replace(GOOD, answer=PREDICTED)], "D-001: a claim has a prediction when its answer is"),
    ([msgspec.structs.replace(GOOD, answer=PREDICTED, prediction=" ")], "D-001: a claim has a prediction when"),
    ([msgspec.structs.replace(GOOD, prediction="it commits")], "D-001: a claim has a prediction when"),
], ids=["twice", "answer", "empty", "nowhere", "no-prediction", "empty-prediction", "prediction-unasked"])
def test_a_wrong_claim_is_refused(liar: list[Claim], said: str) -> None:
    with pytest.raises(ClaimError, match=said):
        check_claims(liar)


def test_an_unknown_answer_is_refused() -> None:
    with pytest.raises(ClaimError, match="unknown answer 'maybe'"):
        claims.answered("maybe")
