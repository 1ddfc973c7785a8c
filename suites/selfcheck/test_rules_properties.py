"""What must hold for the rules whatever is raced: properties over drawn transactions, statements and profiles."""

from __future__ import annotations

import datetime
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from lakerace.catalogue import CATALOGUE
from lakerace.layouts import LAYOUTS
from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE, RaceError, Statement, held_against
from lakerace.rules.model import DataFile, ReadPredicate, Table, Transaction
from lakerace.rules.predict import Commit, judge_transaction, predict
from lakerace.rules.profiles import DATABRICKS, DELTA, DELTA_RS, PROFILES
from lakerace.rules.statements import NotModelled

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

tables = st.builds(
    Table,
    columns=st.just({"id": "int", "event_date": "date"}),
    partitioned=st.sampled_from([(), ("event_date",)]),
    properties=st.sampled_from([{}, {"delta.enableDeletionVectors": "true"}]),
    files=st.just(tuple(FILES.values())),
)


def read_of(days: frozenset[datetime.date], everything: bool) -> ReadPredicate:
    def matches(values):
        return everything or values.get("event_date") in days

    return ReadPredicate(
        partition="" if everything else "event_date IN (...)",
        matches=matches,
        covers=lambda file: matches(file.partition),
    )


reads = st.builds(read_of, st.frozensets(st.sampled_from(DAYS), max_size=2), st.booleans())
files = st.lists(st.sampled_from(PATHS), max_size=3, unique=True).map(
    lambda names: tuple(FILES[name] for name in names)
)
added = st.lists(st.sampled_from(DAYS), max_size=2).map(
    lambda days: tuple(DataFile(path=f"new-{day}", partition={"event_date": day}) for day in days)
)
properties = st.sampled_from(
    [None, frozenset(), frozenset({"schema"}), frozenset({"owner"}), frozenset({"delta.enableDeletionVectors"})]
)
transactions = st.builds(
    Transaction,
    operation=st.sampled_from(["WRITE", "UPDATE", "DELETE", "MERGE"]),
    reads=st.lists(reads, max_size=2).map(tuple),
    read_files=st.frozensets(st.sampled_from(PATHS), max_size=3),
    whole_table=st.booleans(),
    adds=added,
    removes=files,
    data_change=st.booleans(),
    metadata=properties,
    protocol=st.sampled_from([None, frozenset(), frozenset({"deletionVectors"})]),
    applications=st.frozensets(st.sampled_from(["a", "b"]), max_size=1),
    sets=st.frozensets(st.sampled_from(["a", "b"]), max_size=1),
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
