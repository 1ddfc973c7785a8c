"""How many attempts does a commit take under load? Engine-neutral laws, each on Delta with Spark and on delta-rs."""

from __future__ import annotations

import threading

import pytest

from lakerace import deltalog
from lakerace.catalogue import CATALOGUE
from lakerace.contention.arithmetic import in_step, in_turn
from lakerace.contention.scenarios import CLASHES, CROWDS, PARTITIONED, PRESSURES, SLOW_MINUTES, gather, meet, starve
from lakerace.layouts import layout
from lakerace.race import SERIALIZABLE, Expected, held_against
from lakerace.retry import Retry

ENGINES = ("delta-spark",)
BY_DATE = layout("by-date")
COMMITS = Expected(word="commits")
UPDATE_12 = "UPDATE {t} SET note = 'B' WHERE event_date = DATE'2026-08-12' AND id = 16"

RACES = (
    held_against("a-wide-rewrite-loses-to-an-update-anywhere", layout=BY_DATE, held=CATALOGUE["optimize"],
                 winners=[UPDATE_12], expect=[Expected(word="delete-read"), COMMITS], claims=("G-025",)),
    held_against("a-narrow-rewrite-does-not-lose-to-an-update-elsewhere", layout=BY_DATE,
                 held="OPTIMIZE {t} WHERE event_date = DATE'2026-08-11'", winners=[UPDATE_12],
                 expect=[COMMITS, COMMITS], claims=("G-025",)),
)


def test_race(case, check):
    check(case)


BY_KEY, BATCHED, SPLIT = PRESSURES[1], PRESSURES[5], PRESSURES[6]


@pytest.mark.claim("G-012")
@pytest.mark.parametrize("allowed", [1, 5, 15])
def test_a_slow_writer_starves_at_every_number_of_attempts(either, allowed):
    """A commit in every interval. On Spark fifteen would only be more of the same."""
    allowed = min(allowed, 5) if either.line.engine == "delta-spark" else allowed
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
    from deltalake import DeltaTable

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
