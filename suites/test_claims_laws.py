"""What holds for every table with optimistic commits? Engine-neutral laws, each on Delta with Spark and on delta-rs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakerace import deltalog
from lakerace.catalogue import CATALOGUE
from lakerace.contention.arithmetic import in_step, in_turn
from lakerace.contention.scenarios import (
    CLASHES,
    CROWDS,
    PARTITIONED,
    PRESSURES,
    SLOW_MINUTES,
    Tally,
    gather,
    meet,
    one_round,
    starve,
)
from lakerace.layouts import layout, layout_from_statements
from lakerace.orders import parse_order
from lakerace.race import (
    SERIALIZABLE,
    WRITE_SERIALIZABLE,
    Expected,
    Race,
    Statement,
    Write,
    Writer,
    both_held,
    held_against,
    statement,
)
from lakerace.retry import Retry
from lakerace.run import run_race

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakerace.engines import Engine, Table

ENGINES = ("delta-spark",)
FLAT, BY_DATE = layout("flat"), layout("by-date")
CREATE = "CREATE TABLE {t} (doctor STRING, on_call BOOLEAN) USING delta PARTITIONED BY (doctor)"
DOCTORS = layout_from_statements(
    "doctors", (CREATE, "INSERT INTO {t} VALUES ('ann', true)", "INSERT INTO {t} VALUES ('bob', true)"))

COMMITS, LOST = Expected(word="commits"), Expected(word="append", surfaced="ConcurrentAppendException")
REBASED = Expected(word="commits", attempts=2)
INSERT, COMPACT = CATALOGUE["insert-values"], CATALOGUE["optimize"]
UPDATE = "UPDATE {t} SET note = 'A' WHERE id = 1"
UPDATE_11 = "UPDATE {t} SET note = 'A' WHERE event_date = DATE'2026-08-11' AND id = 1"
UPDATE_12 = "UPDATE {t} SET note = 'B' WHERE event_date = DATE'2026-08-12' AND id = 16"
UPDATE_ALL = "UPDATE {t} SET note = 'all'"
MERGE = "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'merged'"
UPSERT = ("MERGE INTO {t} t USING (SELECT 300L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN "
          "INSERT (id, event_date, country, amount, note) VALUES (s.id, DATE'2026-08-11', 'DE', 1, 'once')")
CHECKED = ("INSERT INTO {t} SELECT 300L, DATE'2026-08-11', 'DE', 1, 'once' "
           "WHERE NOT EXISTS (SELECT 1 FROM {t} WHERE id = 300)")
BLIND = "INSERT INTO {t} VALUES (300, DATE'2026-08-11', 'DE', 1, 'once')"
OVERWRITE_11 = Write(
    select="SELECT 400L AS id, DATE'2026-08-11' AS event_date, 'DE' AS country, 1 AS amount, 'over' AS note",
    mode="overwrite", options=(("replaceWhere", "event_date = DATE'2026-08-11'"),))
OFF_CALL = "UPDATE {{t}} SET on_call = false WHERE doctor = '{}'"

RACES = (
    both_held("two-writers-of-one-row-both-do-their-work-and-the-second-to-commit-loses", layout=FLAT, first=UPDATE,
              second=UPDATE, expect=[COMMITS, LOST], claims=("G-001", "G-006")),
    both_held("two-inserts-that-try-one-version-get-one-each", layout=FLAT, first=INSERT, second=INSERT,
              expect=[Expected(word="commits", version=9, attempts=1),
                      Expected(word="commits", version=10, attempts=2)],
              claims=("G-002", "G-004")),
    both_held("two-compactions-of-the-same-files-do-not-both-commit", layout=FLAT, first=COMPACT, second=COMPACT,
              expect=[COMMITS, Expected(word="delete-read")], claims=("G-006",)),
    both_held("two-overwrites-of-one-partition-do-not-both-commit", layout=BY_DATE, first=OVERWRITE_11,
              second=OVERWRITE_11, expect=[COMMITS, LOST], claims=("G-006",)),
    held_against("a-merge-loses-to-an-insert-into-what-it-read", layout=FLAT, held=MERGE, winners=[INSERT],
                 expect=[LOST, COMMITS], claims=("G-007",)),
    held_against("a-conditional-update-loses-to-an-insert-into-what-it-read", layout=FLAT, held=UPDATE,
                 winners=[INSERT], expect=[LOST, COMMITS], claims=("G-007",)),
    held_against("writers-of-other-partitions-both-land-and-one-is-rebased", layout=BY_DATE, held=UPDATE_11,
                 winners=[UPDATE_12], expect=[REBASED, COMMITS], claims=("G-010",)),
    both_held("two-doctors-go-off-call-and-nobody-is-left", layout=DOCTORS, first=OFF_CALL.format("ann"),
              second=OFF_CALL.format("bob"), expect=[COMMITS, REBASED], claims=("G-017",)),
    both_held("two-checks-in-code-then-two-inserts-double-the-row", layout=FLAT, first=BLIND, second=BLIND,
              expect=[COMMITS, REBASED], claims=("G-017", "G-018")),
    both_held("two-merges-on-the-key-do-not-both-insert-it", layout=FLAT, first=UPSERT, second=UPSERT,
              expect=[COMMITS, LOST], claims=("G-018",)),
    both_held("two-inserts-that-check-inside-do-not-both-insert", layout=FLAT, first=CHECKED, second=CHECKED,
              expect=[COMMITS, LOST], claims=("G-018",)),
    held_against("a-wide-rewrite-loses-to-an-update-anywhere", layout=BY_DATE, held=COMPACT, winners=[UPDATE_12],
                 expect=[Expected(word="delete-read"), COMMITS], claims=("G-025",)),
    held_against("a-narrow-rewrite-does-not-lose-to-an-update-elsewhere", layout=BY_DATE,
                 held="OPTIMIZE {t} WHERE event_date = DATE'2026-08-11'", winners=[UPDATE_12],
                 expect=[COMMITS, COMMITS], claims=("G-025",)),
)


def test_race(case, check):
    check(case)


@pytest.fixture(params=["delta-spark", "delta-rs"])
def either(request) -> Engine:
    """Each law on both engines; the one without a JVM needs no Spark."""
    return request.getfixturevalue("engine" if request.param == "delta-spark" else "delta_rs")


@pytest.fixture
def make(either) -> Iterator[Callable[..., Table]]:
    made: list[Table] = []

    def making(name: Any = FLAT, isolation: str = SERIALIZABLE) -> Table:
        made.append(either.make(name, isolation))
        return made[-1]

    yield making
    for table in made:
        either.drop(table)


def told(engine: Engine, race: Race) -> dict[str, str]:
    """What became of each writer; the order must have been forced."""
    seen = run_race(race, engine)
    assert seen.overlap, seen.error or seen.unsteerable or seen.overlap_proof
    return {outcome.writer: outcome.word for outcome in seen.writers}


def spark(engine: Engine) -> bool:
    return engine.line.engine == "delta-spark"


def run(engine: Engine, table: Table, sql: str) -> str:
    return engine.run(table, "B", statement(sql)).word


def amount_of(engine: Engine, table: Table, key: int) -> int:
    """What an application reads before it computes."""
    return next(row[3] for row in engine.rows(table)[1] if row[0] == key)


def keys(engine: Engine, table: Table) -> list[int]:
    return sorted(row[0] for row in engine.rows(table)[1])


@pytest.mark.claim("G-001", "G-003", "G-020")
def test_work_goes_on_beside_a_writer_that_has_staged(engine, table_factory):
    """Two writers have all their files on disk, none in the log; a reader sees neither; a third commits meanwhile."""
    table = table_factory("flat")
    held = [engine.hold(table, name, statement(UPDATE)) for name in ("A", "C")]
    staged = deltalog.files(table.path).unreferenced
    assert len(set(staged)) == 2
    assert engine.rows(table)[1] == table.rows
    assert run(engine, table, UPDATE) == "commits"
    assert [writer.release().word for writer in held] == ["append", "append"]
    assert deltalog.files(table.path).unreferenced == staged


@pytest.mark.claim("G-004")
@pytest.mark.parametrize("winners", [1, 3])
def test_a_compatible_loser_tries_again_by_itself(either, winners):
    """delta-rs looks for newer versions before it writes its entry, so it counts no second attempt here."""
    seen = run_race(
        held_against("hidden", layout=FLAT, held=INSERT, winners=[statement(BLIND)] * winners), either)
    assert (seen.outcome("A").word, seen.outcome("A").attempts, seen.outcome("A").version) == (
        "commits", 2 if spark(either) else 1, 9 + winners)


@pytest.mark.claim("G-005")
def test_a_rebase_does_not_run_the_source_again(engine, table_factory, tick):
    table = table_factory("flat")
    held = engine.hold(table, "A", statement(
        "INSERT INTO {t} SELECT tick(id), DATE'2026-08-11', 'DE', 1, 'new' FROM range(300, 301)"))
    assert run(engine, table, BLIND) == "commits"
    outcome = held.release()
    assert (outcome.word, outcome.attempts) == ("commits", 2)
    assert tick() == 1


@pytest.mark.claim("G-005")
def test_a_rebase_of_delta_rs_does_not_read_its_source_again(delta_rs):
    table = delta_rs.make(FLAT, SERIALIZABLE)
    handle, reads = DeltaTable(table.path), []
    schema = DeltaTable(table.path).to_pyarrow_table().schema

    def batches() -> Iterator[pa.RecordBatch]:
        reads.append(1)
        yield pa.RecordBatch.from_pylist([{"id": 301, "event_date": None, "country": "DE", "amount": 1, "note": "new"}],
                                         schema=schema)

    assert run(delta_rs, table, BLIND) == "commits"
    write_deltalake(handle, pa.RecordBatchReader.from_batches(schema, batches()), mode="append")
    assert (deltalog.latest_version(table.path), reads) == (10, [1])
    delta_rs.drop(table)


PAIRS = {
    "compactions": (FLAT, COMPACT, COMPACT), "updates": (FLAT, UPDATE, UPDATE),
    "overwrites": (BY_DATE, OVERWRITE_11, OVERWRITE_11),
}


@pytest.mark.claim("G-006")
@pytest.mark.parametrize(("pair", "word"), [
    ("compactions", "commits"), ("updates", "append"), ("overwrites", "append"),
])
def test_on_delta_rs_two_compactions_both_commit(delta_rs, pair, word):
    table, first, second = PAIRS[pair]
    assert told(delta_rs, both_held(pair, layout=table, first=first, second=second))["A"] == word


@pytest.mark.claim("G-007")
@pytest.mark.parametrize("held", [MERGE, "UPDATE {t} SET note = 'A' WHERE amount < 50"], ids=["merge", "update"])
def test_a_changed_read_set_is_a_conflict(either, held):
    """The winner writes a row that the held writer would have read."""
    winner = "UPDATE {t} SET amount = 1 WHERE id = 1"
    assert told(either, held_against("read-set", layout=FLAT, held=held, winners=[winner])) == {
        "A": "append", "B": "commits"}


ADD_ONE = Statement(name="add-one", looks="SELECT amount FROM {t} WHERE id = 1",
                    does="UPDATE {t} SET amount = {seen} + 1 WHERE id = 1")


@pytest.mark.claim("G-008")
@pytest.mark.parametrize(("order", "word", "amount"), [
    ("A:look B:look A:read B:read B:commit A:commit", "append", 11),
    ("A:look B:look B:read B:commit A:read A:commit", "commits", 11),
    ("B:look B:read B:commit A:look A:read A:commit", "commits", 12),
], ids=["refused", "sent-again", "done-again"])
def test_a_computed_value_sent_again_loses_an_update(either, order, word, amount):
    """Two applications see 10 and add one. The engine refuses the loser's 11; sent again it is taken, and one addition
    is lost without an error; only who looks again gets 12."""
    writers = tuple(Writer(name=name, statements=(ADD_ONE,)) for name in "AB")
    seen = run_race(Race(name="add-one", layout=FLAT, writers=writers, order=parse_order(order)), either)
    assert (seen.outcome("A").word, seen.outcome("B").word) == (word, "commits")
    assert next(row[3] for row in seen.rows_after if row[0] == 1) == amount


@pytest.mark.claim("G-008")
def test_what_reads_again_loses_none(either, make):
    """The same with lakerace.retry, which runs the reading too."""
    table, rivals = make(), [1]

    def add_one() -> None:
        computed = amount_of(either, table, 1) + 1
        held = either.hold(table, "A", statement(f"UPDATE {{t}} SET amount = {computed} WHERE id = 1"))
        for _ in range(rivals.pop() if rivals else 0):
            assert run(either, table, f"UPDATE {{t}} SET amount = {computed} WHERE id = 1") == "commits"
        outcome = held.release()
        if outcome.word != "commits":
            raise CONFLICT

    done = Retry(sleep=lambda _: None).run(add_one)
    assert [str(attempt) for attempt in done.attempts] == ["append", "no conflict"]
    assert amount_of(either, table, 1) == 12


class Lost(Exception):
    """What the engine said, as its caller would have caught it."""

    def getCondition(self) -> str:  # noqa: N802 - as Spark spells it
        return "DELTA_CONCURRENT_APPEND"


CONFLICT = Lost("a conflict")


@pytest.mark.claim("G-009")
@pytest.mark.parametrize("gap", [0, 1, 6])
@pytest.mark.parametrize(("held", "word"), [(UPDATE_11, "append"), (UPDATE_12, "commits")], ids=["overlap", "apart"])
def test_the_verdict_does_not_depend_on_how_much_came_between(either, gap, held, word):
    """The deciding commit first, then others that touch nothing of it: the writer is that much later."""
    harmless = "INSERT INTO {t} VALUES (500, DATE'2026-08-20', 'XX', 1, 'far')"
    race = held_against("gap", layout=BY_DATE, held=held, winners=[UPDATE_11, *[harmless] * gap])
    assert told(either, race)["A"] == word


@pytest.mark.claim("G-010", "G-023")
def test_writers_of_other_partitions_both_land(either):
    seen = run_race(held_against("apart", layout=BY_DATE, held=UPDATE_11, winners=[UPDATE_12]), either)
    outcome = seen.outcome("A")
    assert (outcome.word, outcome.version) == ("commits", 10)
    assert seen.files is not None
    assert seen.files.unreferenced == (), "nothing was computed twice"


@pytest.mark.claim("G-011")
def test_a_reader_keeps_its_version(delta, engine, table_factory):
    table = table_factory("flat")
    frame = delta.read.format("delta").load(str(table.path)).select("id", "note").orderBy("id")
    before = frame.collect()
    assert run(engine, table, UPDATE_ALL) == "commits"
    assert frame.collect() == before
    assert {row.note for row in delta.read.format("delta").load(str(table.path)).collect()} == {"all"}


@pytest.mark.claim("G-011")
def test_a_handle_keeps_its_version(delta_rs):
    table = delta_rs.make(FLAT, SERIALIZABLE)
    handle = DeltaTable(table.path)
    before = handle.to_pyarrow_table()
    assert run(delta_rs, table, UPDATE_ALL) == "commits"
    assert handle.to_pyarrow_table() == before
    assert set(DeltaTable(table.path).to_pyarrow_table()["note"].to_pylist()) == {"all"}
    delta_rs.drop(table)


BY_KEY, BATCHED, SPLIT = PRESSURES[1], PRESSURES[5], PRESSURES[6]


@pytest.mark.claim("G-012")
@pytest.mark.parametrize("allowed", [1, 5, 15])
def test_a_slow_writer_starves_at_every_number_of_attempts(either, allowed):
    """A commit in every interval. On Spark fifteen would only be more of the same."""
    allowed = min(allowed, 5) if spark(either) else allowed
    dot = starve(either, BY_KEY, every=SLOW_MINUTES, limit=allowed)
    assert (dot.given_up, dot.commits, dot.attempts, dot.refused) == (True, 0, allowed, ("append",) * allowed)


@pytest.mark.claim("G-013", "G-024")
@pytest.mark.parametrize(("pressure", "every", "attempts", "commits"), [
    (BY_KEY, 2 * SLOW_MINUTES, 2, 1), (BATCHED, SLOW_MINUTES, 2, 1), (SPLIT, SLOW_MINUTES, 10, 8),
], ids=["fewer-commits", "batched", "split"])
def test_what_cures_starvation(either, pressure, every, attempts, commits):
    dot = starve(either, pressure, every)
    assert (dot.given_up, dot.attempts, dot.commits, dot.predicted) == (False, attempts, commits, attempts)


IN_STEP, ONE_BY_ONE, _, OWN_LANE, ONE_OWNER = CROWDS
CROWD = {"delta-spark": (2, 4), "delta-rs": (2, 4, 8, 16)}


@pytest.mark.claim("G-014", "G-015", "G-021", "G-022", "G-023")
def test_attempts_grow_faster_than_commits_unless_there_is_an_owner(either):
    sizes = CROWD[either.line.engine]
    worst, best, own, owner = (
        [gather(either, crowd, count) for count in sizes] for crowd in (IN_STEP, ONE_BY_ONE, OWN_LANE, ONE_OWNER))
    assert [dot.attempts for dot in worst] == [in_step(count) for count in sizes]
    assert [dot.attempts for dot in best] == [in_turn(count) for count in sizes]
    assert [dot.attempts for dot in own] == [dot.attempts for dot in owner] == list(sizes)
    assert [len(dot.refused) for dot in worst] == [count * (count - 1) // 2 for count in sizes]
    assert [dot.wasted for dot in own] == [dot.wasted for dot in owner] == [0] * len(sizes)
    each = {dot.wasted // len(dot.refused) for dot in (*worst, *best)}
    assert max(each) > 0
    assert [[dot.commits for dot in dots] for dots in (worst, best, own, owner)] == [list(sizes)] * 4


@pytest.mark.claim("G-015", "G-032")
@pytest.mark.parametrize("writers", [2, 4, 8, 16])
@pytest.mark.parametrize("run_number", [1, 2, 3])
def test_threads_that_run_free_stay_within_the_bounds(delta_rs, writers, run_number):
    """All have opened the table before the first commits; after that nobody steers, and nobody says who wins."""
    table = delta_rs.make(PARTITIONED, SERIALIZABLE)
    start, attempts, faults = threading.Barrier(writers, timeout=60), [], []

    def writer() -> None:
        first = [True]

        def add_one() -> None:
            handle = DeltaTable(table.path)
            if first.pop() if first else False:
                start.wait()
            handle.update(updates={"amount": "amount + 1"}, predicate="id = 1 AND lane = 0")

        try:
            attempts.append(len(Retry(attempts=writers, first_wait=0, longest_wait=0).run(add_one).attempts))
        except Exception as error:  # an assertion in a thread would be heard by nobody
            faults.append(error)

    threads = [threading.Thread(target=writer) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert faults == []
    assert in_turn(writers) <= sum(attempts) <= in_step(writers)
    assert next(row[2] for row in delta_rs.rows(table)[1] if row[0] == 1) == 10 + writers
    assert deltalog.latest_version(table.path) == table.base_version + writers
    delta_rs.drop(table)


@pytest.mark.claim("G-032")
def test_in_a_forced_order_who_commits_first_wins(either):
    race = both_held("first", layout=FLAT, first=UPDATE, second=MERGE)
    turned = both_held("turned", layout=FLAT, first=MERGE, second=UPDATE)
    assert [told(either, one)["B"] for one in (race, turned)] == ["commits"] * 2
    assert [told(either, one)["A"] for one in (race, turned)] == ["append"] * 2


ELSEWHERE = {"delta-spark": "commits", "delta-rs": "delete-read"}


@pytest.mark.claim("G-016", "G-025")
@pytest.mark.parametrize("clash", CLASHES, ids=lambda clash: clash.name.replace(" ", "-").replace(",", ""))
def test_compaction_meets_ingestion(either, clash):
    """Each attempt meets one commit of the other side; two attempts tell whether that ends it every time."""
    dot = meet(either, clash, 0, limit=2)
    assert dot.as_predicted
    assert dot.given_up == (dot.attempts == 2)
    if clash.name == "OPTIMIZE against MERGE, other partition":
        assert (dot.refused or ("commits",))[0] == ELSEWHERE[either.line.engine]


@pytest.mark.claim("G-017")
def test_two_doctors_go_off_call_on_delta_rs_too(delta_rs):
    race = both_held("doctors", layout=DOCTORS, first=OFF_CALL.format("ann"), second=OFF_CALL.format("bob"))
    seen = run_race(race, delta_rs)
    assert seen.overlap
    assert (seen.outcome("A").word, {row[1] for row in seen.rows_after}) == ("commits", {False})


@pytest.mark.claim("G-018")
@pytest.mark.parametrize(("sql", "word"), [(BLIND, "commits"), (UPSERT, "append"), (CHECKED, "commits")],
                         ids=["in-code", "merge", "insert-not-exists"])
def test_on_delta_rs_only_a_merge_makes_the_check_visible(delta_rs, sql, word):
    seen = run_race(both_held("check", layout=FLAT, first=sql, second=sql), delta_rs)
    assert (seen.overlap, seen.outcome("A").word) == (True, word)
    assert [row[0] for row in seen.rows_after].count(300) == (2 if word == "commits" else 1)


@pytest.mark.claim("G-020", "G-021")
def test_losing_costs_files_and_no_rows(either, make):
    table = make()
    held = either.hold(table, "A", statement(UPDATE))
    assert run(either, table, UPDATE) == "commits"
    after = either.rows(table)[1]
    assert held.release().word == "append"
    left = deltalog.files(table.path)
    assert (len(left.unreferenced), left.unreferenced_bytes > 0, either.rows(table)[1] == after) == (1, True, True)


@pytest.mark.claim("G-027")
@pytest.mark.parametrize(("sql", "same"), [(UPSERT, True), (CHECKED, True), (BLIND, False)],
                         ids=["merge", "insert-not-exists", "insert"])
def test_a_job_started_twice(either, make, sql, same):
    table = make()
    run(either, table, sql)
    once = either.rows(table)[1]
    run(either, table, sql)
    assert (either.rows(table)[1] == once) == same


@pytest.mark.claim("G-029")
@pytest.mark.parametrize(("isolation", "words"), [
    (SERIALIZABLE, {"delta-spark": "append", "delta-rs": "append"}),
    (WRITE_SERIALIZABLE, {"delta-spark": "commits", "delta-rs": "append"}),
])
def test_a_looser_level_saves_the_retry_and_shows_what_no_history_explains(either, isolation, words):
    """The history says: insert, then update every row. The inserted row is not updated."""
    race = held_against("levels", layout=FLAT, held=UPDATE_ALL, winners=[BLIND], isolation=isolation)
    seen = run_race(race, either)
    assert (seen.overlap, seen.outcome("A").word) == (True, words[either.line.engine])
    if seen.outcome("A").word == "commits":
        assert [row.operation for row in seen.history] == ["UPDATE", "WRITE"]
        assert next(row[4] for row in seen.rows_after if row[0] == 300) == "once"


@pytest.mark.claim("G-030")
@pytest.mark.parametrize("rewrite", ["OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)"], ids=["compact", "zorder"])
def test_maintenance_changes_no_row(either, make, rewrite):
    table = make()
    assert run(either, table, rewrite) == "commits"
    assert either.rows(table)[1] == table.rows


@pytest.mark.claim("G-030")
def test_two_compactions_of_delta_rs_double_every_row(delta_rs):
    seen = run_race(both_held("twice", layout=FLAT, first=COMPACT, second=COMPACT), delta_rs)
    assert sorted(seen.rows_after) == sorted([*seen.rows_before, *seen.rows_before])


def upsert_of(*wanted: int) -> str:
    rows = " UNION ALL ".join(f"SELECT {key}L AS id" for key in wanted)
    return (f"MERGE INTO {{t}} t USING ({rows}) s ON t.id = s.id WHEN NOT MATCHED THEN "
            "INSERT (id, event_date, country, amount, note) VALUES (s.id, DATE'2026-08-11', 'DE', 1, 'job')")


def insert_of(missing: list[int]) -> str:
    return "INSERT INTO {t} VALUES " + ", ".join(f"({key}, DATE'2026-08-11', 'DE', 1, 'job')" for key in missing)


@pytest.mark.claim("G-031")
@pytest.mark.parametrize(("inside", "again", "left"), [
    (True, True, [301, 302, 303]), (True, False, [302, 303]),
    (False, True, [301, 302, 302, 303]), (False, False, [301, 302, 302, 303]),
], ids=["inside-again", "inside-once", "outside-again", "outside-once"])
def test_the_two_questions_to_every_job(either, make, inside, again, left):
    """Is the check inside the write, and does the job run again when it lost? Only two times yes is right.

    Two jobs bring keys 301 and 302, and 302 and 303, where missing; both have looked before either commits.
    """
    table = make()
    jobs = [(301, 302), (302, 303)]

    def sql(wanted: tuple[int, ...]) -> str:
        there = keys(either, table)
        return upsert_of(*wanted) if inside else insert_of([key for key in wanted if key not in there])

    asked = [sql(wanted) for wanted in jobs]
    losers = one_round(either, table, asked[::-1], Tally())
    for lost in losers * again:
        assert run(either, table, lost) == "commits"
    assert [key for key in keys(either, table) if key > 300] == left
