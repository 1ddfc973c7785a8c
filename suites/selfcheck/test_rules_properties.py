"""What must hold for the rules whatever is raced: properties over drawn transactions, statements and profiles."""

from __future__ import annotations

import datetime
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import LAYOUTS
from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE, RaceError, Statement, held_against
from lakerace.rules.model import DataFile, ReadPredicate, Table, Transaction
from lakerace.rules.predict import Commit, judge_transaction, predict
from lakerace.rules.profiles import DATABRICKS, DELTA, DELTA_RS, PROFILES
from lakerace.rules.statements import NotModelled

if TYPE_CHECKING:
    from collections.abc import Iterable

DAYS = tuple(datetime.date(2026, 8, day) for day in (11, 12, 13))
PATHS = tuple(f"f{number}" for number in range(6))
FILES = {
    path: DataFile(
        path=path, partition={"event_date": DAYS[number % 3]}, rows=({"id": number},), bounds={"id": (number, number)}
    )
    for number, path in enumerate(PATHS)
}
SPARK = [profile for profile in PROFILES.values() if profile.engine == DELTA]
ALL = list(PROFILES.values())

# Each part is drawn as a whole, the simplest first: to draw it piece by piece takes several times as long.
tables = st.sampled_from(
    [
        Table(
            columns={"id": "int", "event_date": "date"},
            partitioned=partitioned,
            properties=properties,
            files=tuple(FILES.values()),
        )
        for partitioned in ((), ("event_date",))
        for properties in ({}, {"delta.enableDeletionVectors": "true"})
    ]
)


def read_of(days: frozenset[datetime.date], everything: bool) -> ReadPredicate:
    def matches(values):
        return everything or values.get("event_date") in days

    return ReadPredicate(
        partition="" if everything else "event_date IN (...)",
        matches=matches,
        covers=lambda file: matches(file.partition),
    )


def up_to(most: int, things: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The combinations of at most so many things."""
    listed = list(things)
    return [found for size in range(most + 1) for found in combinations(listed, size)]


def rarely(things: list[Any]) -> st.SearchStrategy[Any]:
    """The first of ``things`` three times in four: what comes first in the chain hides what comes after it."""
    return st.sampled_from([things[0]] * 3 * len(things) + things)


READS = [read_of(frozenset(days), everything) for days in up_to(2, DAYS) for everything in (False, True)]
added = st.sampled_from(
    [
        tuple(DataFile(path=f"new-{number}", partition={"event_date": day}) for number, day in enumerate(days))
        for size in range(3)
        for days in product(DAYS, repeat=size)
    ]
)
switches = st.sampled_from(list(product((False, True), (True, False))))
changes = rarely(
    list(
        product(
            (None, *map(frozenset, ((), ("schema",), ("owner",), ("delta.enableDeletionVectors",)))),
            (None, frozenset(), frozenset({"deletionVectors"})),
        )
    )
)
applications = rarely(list(product(map(frozenset, up_to(1, "ab")), repeat=2)))


def transaction(operation, reads, read_files, adds, removes, switched, changed, named):
    return Transaction(
        operation=operation,
        reads=reads,
        read_files=frozenset(read_files),
        adds=adds,
        removes=removes,
        whole_table=switched[0],
        data_change=switched[1],
        metadata=changed[0],
        protocol=changed[1],
        applications=named[0],
        sets=named[1],
    )


transactions = st.builds(
    transaction,
    st.sampled_from(["WRITE", "UPDATE", "DELETE", "MERGE"]),
    st.sampled_from([()] * len(READS) + up_to(2, READS)),
    st.sampled_from(up_to(3, PATHS)),
    added,
    st.sampled_from(up_to(3, FILES.values())),
    switches,
    changes,
    applications,
)
commits = st.lists(transactions, max_size=4).map(
    lambda done: tuple(
        Commit(writer="B", version=number, read_version=0, done=one) for number, one in enumerate(done, 9)
    )
)
levels = st.sampled_from(ISOLATIONS)
profiles = st.sampled_from(ALL)


def aborts(held, winners, table, level, profile):
    return any(check.fired for check in judge_transaction(held, winners, table, level, profile))


@given(transactions, commits, tables, levels, profiles, st.integers(0, 4), transactions)
def test_one_more_winner_never_turns_an_abort_into_a_commit(held, winners, table, level, profile, place, more):
    longer = (*winners[:place], Commit(writer="C", version=99, read_version=0, done=more), *winners[place:])
    if aborts(held, winners, table, level, profile):
        assert aborts(held, longer, table, level, profile)


@given(transactions, commits, tables, profiles)
def test_serializable_aborts_whenever_write_serializable_does(held, winners, table, profile):
    if aborts(held, winners, table, WRITE_SERIALIZABLE, profile):
        assert aborts(held, winners, table, SERIALIZABLE, profile)


@given(added, commits, tables, levels, st.sampled_from([one for one in ALL if one.engine != DELTA_RS]))
def test_a_blind_append_never_loses_to_changes_of_data(fresh, winners, table, level, profile):
    data_only = tuple(
        replace(one, done=replace(one.done, metadata=None, protocol=None, sets=frozenset())) for one in winners
    )
    assert not aborts(Transaction(operation="WRITE", adds=fresh), data_only, table, level, profile)


@given(transactions, commits, tables, levels, st.sampled_from(SPARK), st.data())
def test_a_narrower_read_set_never_adds_a_conflict(held, winners, table, level, profile, data):
    narrow = replace(
        held,
        whole_table=False,
        reads=tuple(
            replace(read, matches=lambda values, read=read: read.matches(values) and values["event_date"] == DAYS[0])
            for read in held.reads
        ),
        read_files=frozenset(data.draw(st.lists(st.sampled_from(sorted(held.read_files)), unique=True)))
        if held.read_files
        else frozenset(),
    )
    if aborts(narrow, winners, table, level, profile):
        assert aborts(held, winners, table, level, profile)


@given(transactions, commits, tables, levels, profiles)
def test_the_chain_ends_with_the_first_check_that_fires_and_keeps_the_order_of_winners(
    held, winners, table, level, profile
):
    chain = judge_transaction(held, winners, table, level, profile)
    assert not any(check.fired for check in chain[:-1])
    assert [check.version for check in chain] == sorted(check.version for check in chain)
    assert all(check.source and check.detail for check in chain)


@settings(max_examples=100)
@given(
    st.sampled_from(sorted(CATALOGUE)),
    st.lists(st.sampled_from(sorted(CATALOGUE)), min_size=1, max_size=3),
    st.sampled_from(sorted(LAYOUTS)),
    levels,
    profiles,
)
def test_every_race_of_the_catalogue_is_answered(held, winners, layout, level, profile):
    race = held_against(
        "drawn",
        layout=LAYOUTS[layout],
        held=CATALOGUE[held],
        isolation=level,
        winners=tuple(CATALOGUE[name] for name in winners),
    )
    outlook = predict(race, profile)
    assert [forecast.writer for forecast in outlook.forecasts] == [writer.name for writer in race.writers]
    found = outlook.of("A").prediction
    assert found.aborts == (found.fired is not None)
    assert found.sentence.startswith("A ")


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_any_text_is_planned_or_refused_in_one_line(text):
    race = held_against(
        "drawn", layout=LAYOUTS["flat"], held=Statement(name="drawn", does=text), winners=("OPTIMIZE {t}",)
    )
    told = ""
    try:
        predict(race, PROFILES["delta-4.4"])
    except (NotModelled, RaceError) as error:
        told = str(error)
    assert "\n" not in told


def test_swapping_profiles_changes_a_blind_append_only_for_delta_rs():
    race = held_against(
        "drawn", layout=LAYOUTS["flat"], held=CATALOGUE["insert-values"], winners=(CATALOGUE["update-by-key"],)
    )
    lost = {profile.engine for profile in ALL if predict(race, profile).of("A").prediction.aborts}
    assert lost == {DELTA_RS}
    assert DATABRICKS in {profile.engine for profile in ALL}
