"""What Databricks' documented rules predict, beside what open-source Delta does in the same race: no engine is needed.

The races and their outcomes on open-source Delta stand in ``test_claims_row_level.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakerace.diagnose.phrases import DATABRICKS_ONLY
from lakerace.diagnose.texts import DATABRICKS, read_text
from lakerace.engines.lines import line
from lakerace.layouts import LAYOUTS
from lakerace.named import named_races
from lakerace.race import ISOLATIONS, SERIALIZABLE, WRITE_SERIALIZABLE, Race, held_against
from lakerace.rules.predict import predict
from lakerace.rules.profiles import PROFILES

if TYPE_CHECKING:
    from lakerace.rules.model import Prediction

DATA = Path(__file__).parent / "data" / "diagnose"
RACES = {one.race.name: one.race for one in named_races(line("delta-4.4")) if one.suite == "claims_row_level"}
NOW, BEFORE = PROFILES["databricks"], PROFILES["databricks-before-14.3"]

APPEND, DELETE_READ = "DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ"
DISJOINT = "both writers' rows were compared and are disjoint"
WHOLE_TABLE = "this writer reads the whole table"
BLIND = "the winner is a blind append, which WriteSerializable leaves out"
MOVES = "OPTIMIZE ZORDER BY moves rows between files"
UNSEEN = "with deletion vectors others don't see it"
EVERY_PARTITION = "no predicate on a partition column alone, so it covers every partition"
NO_PARTITIONS = "the table has no partitions to tell reads apart"
PARTITIONED = f"{APPEND}.PARTITIONED_TABLE_WITHOUT_MERGE_SOURCE"


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the rules say of writer A; ``because`` is a part of the sentence, ``usable`` the number of predicates."""

    word: str
    because: str
    unit: str = "row"
    condition: str | None = None
    usable: int = 0


def commits(because: str, unit: str = "row", usable: int = 0) -> Said:
    return Said(word="commits", because=because, unit=unit, usable=usable)


def aborts(condition: str, because: str, unit: str = "row", usable: int = 0) -> Said:
    word = "append" if condition.startswith(APPEND) else "delete-read"
    return Said(word=word, because=because, unit=unit, condition=condition, usable=usable)


REWRITTEN = f"{APPEND}.PREDICATES_NEED_REWRITE"
MET = f"{APPEND}.ROW_LEVEL_CHANGES"
NO_HINT = f"{APPEND}.WITHOUT_HINT"
PREDICTED = {
    "two-rows-of-one-file-are-not-told-apart": commits(DISJOINT),
    "a-merge-into-another-country-ends-a-merge": commits(DISJOINT),
    "a-merge-into-another-country-ends-a-merge-without-deletion-vectors": aborts(NO_HINT, NO_PARTITIONS, "table"),
    "a-merge-into-another-country-ends-a-merge-on-a-partitioned-table": aborts(PARTITIONED, EVERY_PARTITION, "table"),
    "a-merge-into-another-country-ends-a-merge-on-a-partitioned-table-without-deletion-vectors":
        aborts(f"{APPEND}.WITH_PARTITION_HINT", EVERY_PARTITION, "table"),
    "a-merge-into-another-country-ends-a-merge-on-a-clustered-table": commits(DISJOINT),
    "a-merge-into-another-country-ends-a-merge-at-serializable": commits(DISJOINT),
    "two-merges-of-one-row-get-the-class-of-any-two-merges": aborts(MET, "both change the row id=9"),
    "a-region-each-is-not-enough-on-a-table-clustered-by-region": commits(DISJOINT),
    "a-merge-of-another-row-ends-an-update": commits(DISJOINT),
    "a-merge-of-another-row-ends-a-delete": commits(DISJOINT),
    "an-update-without-a-filter-loses-to-a-merge": aborts(f"{APPEND}.WHOLE_TABLE_READ", WHOLE_TABLE),
    "a-delete-without-a-filter-loses-to-a-merge": aborts(f"{APPEND}.WHOLE_TABLE_READ", WHOLE_TABLE),
    "a-merge-by-what-is-not-in-its-source-loses-to-a-merge": aborts(f"{APPEND}.WHOLE_TABLE_READ", WHOLE_TABLE),
    "an-insert-of-all-its-own-rows-loses-to-a-merge": aborts(f"{APPEND}.WHOLE_TABLE_READ", WHOLE_TABLE),
    "a-condition-on-a-struct-changes-nothing": aborts(REWRITTEN, "the condition holds a struct", "table"),
    "a-condition-on-an-array-changes-nothing": aborts(REWRITTEN, "the condition holds an array", "table"),
    "a-condition-on-a-map-changes-nothing": aborts(REWRITTEN, "the condition holds a map", "table"),
    "a-merge-by-rand-is-refused": aborts(REWRITTEN, "holds an expression that is not deterministic", "table"),
    "a-merge-by-uuid-is-refused": aborts(REWRITTEN, "holds an expression that is not deterministic", "table"),
    "a-merge-by-a-correlated-subquery-is-refused": aborts(REWRITTEN, "the condition holds a subquery", "table"),
    **{f"zorder-ends-{held}": aborts(f"{DELETE_READ}.WITHOUT_HINT", MOVES) for held in (
        "a-merge-by-key", "a-merge-by-key-and-date", "a-merge-with-a-date-literal",
        "a-merge-with-literals-down-to-the-row", "an-update-of-one-row")},
    "zorder-of-another-date-passes-a-date-literal":
        commits("OPTIMIZE ZORDER BY moved no file that this writer read", "partition", 1),
    "compaction-ends-a-merge-with-deletion-vectors-too": commits(UNSEEN),
    "compaction-ends-a-merge-by-the-append-check": aborts(NO_HINT, NO_PARTITIONS, "table"),
    "compaction-ends-a-merge-on-a-partitioned-table-with-deletion-vectors": commits(UNSEEN, "table"),
    "equal-dates-in-source-and-target-are-no-predicate": aborts(PARTITIONED, EVERY_PARTITION, "table"),
    "equal-keys-in-source-and-target-are-no-predicate": aborts(PARTITIONED, EVERY_PARTITION, "table"),
    "a-date-as-text-is-a-predicate":
        commits("no added file lies in a partition that this writer read", "partition", 1),
    "a-date-as-text-does-not-part-writers-of-that-date": aborts(PARTITIONED, "event_date=2026-08-12", "partition", 1),
    "without-the-property-an-update-of-one-row-loses-to-an-insert": commits(BLIND, "table"),
    **{f"an-insert-passes-a-merge-on-{made}": commits(BLIND, unit) for made, unit in (
        ("flat", "table"), ("flat-dv", "row"), ("by-date-dv", "table"), ("clustered-dv", "row"))},
    **{f"at-serializable-an-insert-of-{which}-ends-a-merge":
       aborts(NO_HINT, "at Serializable a blind append can conflict, whatever its keys")
       for which in ("another-row", "the-same-key")},
    "an-insert-that-reads-its-table-ends-a-merge-on-flat": aborts(NO_HINT, NO_PARTITIONS, "table"),
    "an-insert-that-reads-its-table-ends-a-merge-on-flat-dv": commits(DISJOINT),
    "an-insert-that-reads-its-table-ends-a-merge-on-by-date-dv": aborts(PARTITIONED, EVERY_PARTITION, "table"),
    **{f"{held}-outlives-deletion-vectors-being-turned-on":
       Said(word="metadata", condition="DELTA_METADATA_CHANGED", because="delta.enableDeletionVectors", unit=unit)
       for held, unit in (
           ("an-insert", "nothing"), ("an-update", "table"), ("a-delete", "table"), ("a-merge", "table"))},
}
"""For every race of ``test_claims_row_level.py``: Databricks Runtime 14.3 LTS and later, at the level it would have."""


def of(race: Race, profile=NOW, **changes) -> Prediction:
    """What the rules say of writer A, with some fields of the race changed first."""
    return predict(replace(race, **changes), profile).of("A").prediction


def between(held: str, winner: str, made: str = "flat-dv", level: str = WRITE_SERIALIZABLE, profile=NOW) -> Prediction:
    race = held_against("drawn", layout=LAYOUTS[made], held=held, winners=[winner], isolation=level)
    return predict(race, profile).of("A").prediction


def merge(row: int, on: str = "s.id = t.id") -> str:
    return (f"MERGE INTO {{t}} t USING (SELECT {row}L AS id, DATE'2026-08-{11 if row < 9 else 12}' AS event_date) s "
            f"ON {on} WHEN MATCHED THEN UPDATE SET note = 'merged'")


LITERAL = "s.id = t.id AND t.event_date = '2026-08-12'"
CONDITIONS = {"s.id = t.id": 0, "s.id = t.id AND s.event_date = t.event_date": 0, LITERAL: 1}
"""The conditions of the panel, with the number of predicates that count on a table partitioned by date."""
WINNERS = {
    "merge elsewhere": (merge(13), "commits"),
    "insert": ("INSERT INTO {t} VALUES (201, DATE'2026-08-12', 'DE', 1, 'new')", "commits"),
    "zorder": ("OPTIMIZE {t} ZORDER BY (id)", "delete-read"),
    "compaction": ("OPTIMIZE {t}", "commits"),
}
"""The winners of the panel, with what becomes of its default writer on its default table."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.claim(*race.claims)) for name, race in RACES.items()]
)
def test_what_databricks_rules_predict_for_the_race(name: str) -> None:
    race, said = RACES[name], PREDICTED[name]
    by_default = name.startswith("without-the-property-")
    found = of(race, isolation=NOW.default_isolation if by_default else race.isolation)
    assert (found.word, found.condition, found.unit) == (said.word, said.condition, said.unit)
    assert said.because in found.sentence
    assert len(found.usable) == said.usable
    assert found.assumed == ()


def test_every_race_has_its_prediction() -> None:
    assert set(PREDICTED) == set(RACES)
    assert {claim for race in RACES.values() for claim in race.claims} >= {f"B-{number:03d}" for number in range(1, 14)}


# Rows


@pytest.mark.claim("B-002", "B-003", "B-004", "B-005")
@pytest.mark.parametrize("partitioned", [False, True], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "no-vectors"])
@pytest.mark.parametrize("runtime", [NOW, BEFORE], ids=lambda profile: profile.name)
def test_rows_are_compared_in_one_of_eight_cases(runtime, vectors, partitioned) -> None:
    made = ("by-date" if partitioned else "flat") + ("-dv" if vectors else "")
    found = of(RACES["two-rows-of-one-file-are-not-told-apart"], runtime, layout=LAYOUTS[made])
    active = runtime is NOW and vectors and not partitioned
    assert found.word == ("commits" if active else "append")
    assert found.unit == ("row" if active else "table")
    missing = [check.detail for check in found.checks if "rows are not compared" in check.detail]
    assert len(missing) == (not active)


@pytest.mark.claim("B-005")
@pytest.mark.parametrize("runtime", [NOW, BEFORE], ids=lambda profile: profile.name)
def test_a_partitioned_table_has_partitions_for_units_and_nothing_finer(runtime) -> None:
    other_rows, other_date = (between(merge(9, LITERAL), merge(row), "by-date-dv", profile=runtime) for row in (10, 1))
    assert (other_rows.word, other_rows.unit) == ("append", "partition")
    assert (other_date.word, other_date.unit) == ("commits", "partition")


@pytest.mark.claim("B-007", "B-016", "B-047")
@pytest.mark.parametrize("winner", [merge(9), "UPDATE {t} SET note = 'B' WHERE id = 9", "DELETE FROM {t} WHERE id = 9"],
                         ids=["merge", "update", "delete"])
def test_the_same_row_is_a_conflict_however_it_was_changed(winner) -> None:
    found = between(merge(9), winner)
    assert (found.word, found.condition) == ("append", MET)
    assert found.fired.on == "id=9"


@pytest.mark.claim("B-016")
def test_comparing_rows_rules_no_conflict_out() -> None:
    ended = {said.condition for said in PREDICTED.values() if said.unit == "row" and said.condition}
    assert ended == {MET, f"{APPEND}.WHOLE_TABLE_READ", NO_HINT, f"{DELETE_READ}.WITHOUT_HINT"}


@pytest.mark.claim("B-020", "B-029")
def test_what_is_lost_by_partitioning_comes_back_without_it() -> None:
    words = [between(merge(9), merge(13), made).word for made in ("by-date-dv", "flat-dv", "clustered-dv")]
    assert words == ["append", "commits", "commits"]


CHANGES = {
    "update": "UPDATE {{t}} SET note = 'A' WHERE id = {row}", "delete": "DELETE FROM {{t}} WHERE id = {row}",
    "merge": "MERGE INTO {{t}} t USING (SELECT {row}L AS id) s ON s.id = t.id WHEN MATCHED THEN UPDATE SET note = 'A'",
}


@pytest.mark.claim("B-025")
@pytest.mark.parametrize("winner", CHANGES)
@pytest.mark.parametrize("held", CHANGES)
def test_any_two_changes_of_different_rows_pass(held, winner) -> None:
    found = between(CHANGES[held].format(row=9), CHANGES[winner].format(row=10))
    assert (found.word, found.unit) == ("commits", "row")


# Predicates


@pytest.mark.claim("B-008")
@pytest.mark.parametrize("filtered", [False, True], ids=["all-rows", "one-row"])
@pytest.mark.parametrize("held", [
    "UPDATE {t} SET note = 'A'", "DELETE FROM {t}",
    "INSERT INTO {t} SELECT id + 1000, event_date, country, amount, note FROM {t}",
], ids=["update", "delete", "insert"])
def test_without_a_filter_the_whole_table_is_read(held, filtered) -> None:
    found = between(f"{held} WHERE id = 9" if filtered else held, merge(13))
    assert found.condition == (None if filtered else f"{APPEND}.WHOLE_TABLE_READ")


@pytest.mark.parametrize(("condition", "holds"), [
    pytest.param(condition, holds, id=condition, marks=pytest.mark.claim(claim)) for claim, holds, *conditions in (
        ("B-009", "a struct", "t.place = named_struct('city', 'Bonn', 'zip', 1)", "t.place IS NOT NULL",
         "struct(t.id) = struct(s.id)"),
        ("B-010", "an array", "t.tags = array('a')", "array_contains(t.tags, 'a')", "array(t.note) = array('base')"),
        ("B-011", "a map", "t.marks['a'] = 1", "element_at(t.marks, 'a') = 1", "map('a', t.id)['a'] = s.id"),
        ("B-012", "an expression that is not deterministic", "rand() < 2", "randn() < 9", "uuid() <> t.note"),
        ("B-013", "a subquery", "EXISTS (SELECT 1 FROM {other} o WHERE o.id = t.id + 100)",
         "NOT EXISTS (SELECT 1 FROM {other} o WHERE o.id = t.id)", "t.id IN (SELECT o.id - 100 FROM {other} o)",
         "t.id < (SELECT max(o.id) FROM {other} o WHERE o.note <> t.note)"),
    ) for condition in conditions
])
def test_a_condition_that_rows_cannot_be_compared_by(condition, holds) -> None:
    race = RACES["a-condition-on-a-struct-changes-nothing"]
    held, winner = (writer.statements[0].text for writer in race.writers)
    before, after = held.split(" AND ", 1)[0], held.partition(" WHEN ")[2]
    given = held_against("given", layout=race.layout, held=f"{before} AND {condition} WHEN {after}", winners=[winner],
                         isolation=WRITE_SERIALIZABLE)
    found = of(given)
    assert (found.word, found.condition) == ("append", REWRITTEN)
    assert found.sentence.endswith(f"rows were not compared: the condition holds {holds}")
    plain = held_against("plain", layout=race.layout, held=f"{before} AND t.note = 'base' WHEN {after}",
                         winners=[winner], isolation=WRITE_SERIALIZABLE)
    assert of(plain).word == "commits"


# What an error text says


@pytest.mark.parametrize("sub", [
    pytest.param(sub, marks=pytest.mark.claim(*claims)) for sub, *claims in (
        ("PARTITIONED_TABLE_WITHOUT_MERGE_SOURCE", "B-006", "B-015"), ("ROW_LEVEL_CHANGES", "B-007", "B-015"),
        ("WHOLE_TABLE_READ", "B-008", "B-015"),
        ("PREDICATES_NEED_REWRITE", "B-009", "B-010", "B-011", "B-012", "B-013", "B-015"),
        ("ALLOTTED_TIME_EXCEEDED", "B-014", "B-015"),
    )
])
def test_the_sub_condition_is_read_from_an_error_text(sub) -> None:
    text = (DATA / f"dbr-append-{sub.lower().replace('_', '-')}.txt").read_bytes()
    found = read_text(text)
    assert found is not None
    assert (found.condition, found.sub_condition, found.sqlstate) == (APPEND, sub, "2D521")
    assert (found.kind, found.engine) == ("append", DATABRICKS)
    assert sub in DATABRICKS_ONLY


@pytest.mark.claim("B-014")
def test_the_rules_know_no_clock() -> None:
    conditions = {of(race, profile).condition or "" for race in RACES.values() for profile in (NOW, BEFORE)}
    assert not [one for one in conditions if "ALLOTTED_TIME" in one]


# OPTIMIZE


@pytest.mark.claim("B-017", "B-019")
@pytest.mark.parametrize("on", [
    "t.event_date = DATE'2026-08-12'", "t.event_date = s.event_date", "t.event_date IN (DATE'2026-08-12')",
    "t.event_date BETWEEN DATE'2026-08-12' AND DATE'2026-08-13'", "t.event_date > DATE'2026-08-11' OR t.id = 9",
    "year(t.event_date) = 2026", "t.note IS NOT NULL", "t.id = 9", "t.id IN (9, 10)",
    "t.country = 'DE' AND t.amount = 90",
])
@pytest.mark.parametrize("made", ["flat-dv", "by-date-dv"])
def test_no_predicate_helps_against_zorder_of_the_table(on, made) -> None:
    found = between(merge(9, f"s.id = t.id AND {on}"), "OPTIMIZE {t} ZORDER BY (id)", made)
    assert found.word == "delete-read"
    assert MOVES in found.sentence


@pytest.mark.claim("B-017")
@pytest.mark.parametrize("level", ISOLATIONS)
@pytest.mark.parametrize("made", ["flat", "flat-dv", "by-date-dv"])
def test_a_held_zorder_loses_to_any_change_and_to_no_insert(made, level) -> None:
    zorder, (insert, _) = "OPTIMIZE {t} ZORDER BY (id)", WINNERS["insert"]
    for winner in (merge(9), "DELETE FROM {t} WHERE id = 1", "UPDATE {t} SET note = 'B' WHERE id = 16"):
        assert between(zorder, winner, made, level).aborts
    assert between(zorder, insert, made, level).word == "commits"


@pytest.mark.claim("B-026")
@pytest.mark.parametrize(("day", "word"), [(11, "commits"), (12, "delete-read")])
def test_zorder_of_one_partition_ends_only_who_read_it(day, word) -> None:
    winner = f"OPTIMIZE {{t}} WHERE event_date = DATE'2026-08-{day}' ZORDER BY (id)"
    assert between(merge(9, LITERAL), winner, "by-date-dv").word == word


@pytest.mark.claim("B-018", "B-027", "B-044", "B-045")
@pytest.mark.parametrize("made", LAYOUTS)
def test_compaction_goes_unseen_wherever_there_are_deletion_vectors(made) -> None:
    held, compacted = merge(9), "OPTIMIZE {t}"
    assert between(held, compacted, made).word == ("commits" if made.endswith("-dv") else "append")
    if made.endswith("-dv"):
        assert between(compacted, held, made).word == "commits"


# Levels and blind appends


@pytest.mark.claim("B-022", "B-033")
@pytest.mark.parametrize("profile", [NOW, BEFORE], ids=lambda profile: profile.name)
def test_databricks_tables_are_write_serializable_unless_told_otherwise(profile) -> None:
    assert profile.default_isolation == WRITE_SERIALIZABLE
    assert PROFILES["delta-4.4"].default_isolation == SERIALIZABLE
    held, (insert, _) = "UPDATE {t} SET note = 'A' WHERE id = 9", WINNERS["insert"]
    assert [between(held, insert, "flat", level, profile).word for level in ISOLATIONS] == ["append", "commits"]


@pytest.mark.claim("B-042")
@pytest.mark.parametrize(("made", "row"), [
    ("flat-dv", 201), ("flat-dv", 9), ("flat", 201), ("by-date-dv", 201),
])
def test_at_serializable_an_insert_ends_a_merge(made, row) -> None:
    insert = f"INSERT INTO {{t}} VALUES ({row}, DATE'2026-08-12', 'DE', 1, 'new')"
    assert between(merge(9), insert, made, SERIALIZABLE).word == "append"


@pytest.mark.claim("B-048")
@pytest.mark.parametrize("winner", [merge(13), merge(9), merge(10)])
def test_the_level_makes_no_difference_to_a_winner_that_is_not_blind(winner) -> None:
    one, other = (between(merge(9), winner, level=level) for level in ISOLATIONS)
    assert (one.word, one.condition) == (other.word, other.condition)


@pytest.mark.claim("B-049")
@pytest.mark.parametrize(("plus", "word"), [(1000, "commits"), (8, "append")])
def test_an_insert_that_reads_its_table_is_no_blind_append(plus, word) -> None:
    insert = f"INSERT INTO {{t}} SELECT id + {plus}, event_date, country, amount, note FROM {{t}} WHERE id = 1"
    found = between(merge(9), insert)
    assert found.word == word
    assert "blind" not in found.sentence
    assert between(insert, merge(1)).condition == MET
    assert between(insert, "DELETE FROM {t} WHERE id = 1").condition == MET
    assert between(insert, merge(13)).word == "commits"


# What the panel offers


@pytest.mark.claim("B-030", "B-036", "B-037")
@pytest.mark.parametrize(("made", "word", "unit"), [("flat-dv", "commits", "row"), ("by-date-dv", "append", "table")])
def test_the_layout_alone_flips_the_default_pair(made, word, unit) -> None:
    found = between(merge(9), merge(13), made)
    assert (found.word, found.unit, found.usable) == (word, unit, ())


@pytest.mark.claim("B-031", "B-038", "B-039")
@pytest.mark.parametrize(("on", "usable"), CONDITIONS.items())
def test_only_a_literal_is_a_usable_predicate(on, usable) -> None:
    found = between(merge(9, on), merge(1), "by-date-dv")
    assert len(found.usable) == usable
    assert found.word == ("commits" if usable else "append")
    assert between(merge(9, on), merge(1)).usable == ()


@pytest.mark.claim("B-032", "B-043", "B-044")
@pytest.mark.parametrize("winner", WINNERS)
def test_each_winner_has_its_verdict(winner) -> None:
    does, word = WINNERS[winner]
    assert between(merge(9), does).word == word


@pytest.mark.claim("B-034", "B-046")
def test_deletion_vectors_alone_flip_the_default_pair() -> None:
    assert [between(merge(9), merge(13), made).word for made in ("flat-dv", "flat")] == ["commits", "append"]


@pytest.mark.claim("B-035")
@pytest.mark.parametrize("profile", [NOW, BEFORE], ids=lambda profile: profile.name)
@pytest.mark.parametrize("level", ISOLATIONS)
@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("on", CONDITIONS)
@pytest.mark.parametrize("made", ["flat", "flat-dv", "by-date", "by-date-dv"])
def test_every_verdict_has_a_reason_and_a_rule_with_its_source(made, on, winner, level, profile) -> None:
    found = between(merge(9, on), WINNERS[winner][0], made, level, profile)
    reason = found.sentence.partition(": ")[2]
    assert reason
    deciding = found.fired or next(check for check in reversed(found.checks) if check.detail == reason)
    assert deciding.detail == reason
    assert deciding.source.startswith(("Databricks: isolation levels and write conflicts", "ConflictChecker."))
