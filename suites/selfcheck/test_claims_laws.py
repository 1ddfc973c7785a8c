"""Laws of optimistic concurrency that need no engine: a toy log on a real file system, arithmetic, advice."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from lakerace.contention.advice import TAGS, outlook
from lakerace.contention.arithmetic import Beat, Load, in_lanes, in_step, needed

if TYPE_CHECKING:
    from pathlib import Path

WRITERS = (2, 4, 16)


class ToyLog:
    """One file for each version, holding who wrote it. Version 41 is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place(41).write_text("base")

    def place(self, version: int) -> Path:
        return self.folder / f"{version:020}"

    def latest(self) -> int:
        return max(int(path.name) for path in self.folder.iterdir() if path.name.isdigit())

    def create(self, version: int, who: str) -> bool:
        """Put if absent: whether ``who`` has got the version."""
        try:
            with self.place(version).open("x") as file:
                file.write(who)
        except FileExistsError:
            return False
        return True

    def replace(self, version: int, who: str) -> None:
        """What a store without put-if-absent does: the last one to write is there."""
        staged = self.folder / f"{who}.staged"
        staged.write_text(who)
        staged.replace(self.place(version))


@pytest.mark.claim("G-002", "G-019")
@pytest.mark.parametrize("writers", WRITERS)
def test_one_of_many_threads_gets_a_version(tmp_path: Path, writers: int) -> None:
    log, start, won = ToyLog(tmp_path), threading.Barrier(writers, timeout=30), []

    def writer(name: str) -> None:
        wanted = log.latest() + 1
        start.wait()
        if log.create(wanted, name):
            won.append(name)

    threads = [threading.Thread(target=writer, args=(f"w{number}",)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1
    assert (log.latest(), log.place(42).read_text()) == (42, won[0])


TRY = "import sys; input(); open(sys.argv[1], 'x').write(sys.argv[2])"


@pytest.mark.claim("G-002", "G-019")
def test_one_of_many_processes_gets_a_version(tmp_path: Path) -> None:
    """All are started before any is let go."""
    log = ToyLog(tmp_path)
    command = [sys.executable, "-I", "-S", "-c", TRY, str(log.place(42))]
    tries = [
        subprocess.Popen([*command, f"w{number}"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    for one in tries:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate(timeout=60)[1] for one in tries]
    assert sorted("FileExistsError" in text for text in said) == [False, True, True, True]
    assert log.place(42).read_text() == f"w{[one.returncode for one in tries].index(0)}"


@pytest.mark.claim("G-002")
def test_losers_that_go_on_lose_no_increment(tmp_path: Path) -> None:
    """A counter that is its version: everyone gets one, in at most n(n + 1) / 2 attempts."""
    log, start, attempts, writers = ToyLog(tmp_path), threading.Barrier(8, timeout=30), [], 8

    def writer(name: str) -> None:
        start.wait()
        while True:
            wanted = log.latest() + 1
            attempts.append(name)
            if log.create(wanted, name):
                return

    threads = [threading.Thread(target=writer, args=(f"w{number}",)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert log.latest() == 41 + writers
    assert {log.place(version).read_text() for version in range(42, 50)} == {f"w{number}" for number in range(8)}
    assert writers <= len(attempts) <= in_step(writers)


@pytest.mark.claim("G-019")
def test_without_put_if_absent_a_commit_is_lost_in_silence(tmp_path: Path) -> None:
    """Both have looked, neither saw version 42, both are told that they have it."""
    log = ToyLog(tmp_path)
    wanted = {name: log.latest() + 1 for name in ("A", "B")}
    for name, version in wanted.items():
        assert version == 42
        log.replace(version, name)
    assert (log.latest(), log.place(42).read_text()) == (42, "B")


@pytest.mark.claim("G-001", "G-033")
def test_a_locking_engine_lets_the_second_writer_not_even_begin(tmp_path: Path) -> None:
    """SQLite locks the whole database: what a lock on the table would be. Here nobody waits, so the refusal is seen."""
    first, second = (sqlite3.connect(tmp_path / "db", timeout=0, isolation_level=None) for _ in range(2))
    try:
        first.execute("CREATE TABLE t (id INTEGER, amount INTEGER)")
        first.execute("INSERT INTO t VALUES (1, 10), (2, 10)")
        first.execute("BEGIN IMMEDIATE")
        first.execute("UPDATE t SET amount = 11 WHERE id = 1")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            second.execute("UPDATE t SET amount = 11 WHERE id = 2")
        first.execute("COMMIT")
        second.execute("UPDATE t SET amount = 11 WHERE id = 2")
    finally:
        first.close()
        second.close()


@pytest.mark.claim("G-033")
@pytest.mark.parametrize("jobs", [10, 200])
def test_a_lock_costs_time_where_jobs_are_disjoint_and_saves_work_where_they_are_not(jobs: int) -> None:
    """Jobs of 20 minutes that start together. Under a lock they run one after the other, each once; without it disjoint
    ones run at once, and ones that all conflict are under way as long as with it, for up to n(n + 1) / 2 runs."""
    minutes = 20
    locked = jobs * minutes
    assert in_lanes(jobs, jobs) * minutes == locked
    assert locked / minutes == jobs, "so much longer than disjoint jobs that run side by side"
    assert in_step(jobs) / jobs == (jobs + 1) / 2, "so much more work than under the lock, in the same time"


@pytest.mark.claim("G-012", "G-022")
def test_no_number_of_attempts_reaches_a_writer_that_always_meets_a_commit() -> None:
    """Twenty minutes against a commit every thirty seconds, by the beat and at random."""
    assert Beat(minutes=40, every=1).attempts(lambda _: True, limit=100_000) is None
    load = Load(commits_per_hour=120, minutes=20)
    assert load.success_in_beat == 0
    assert load.within(1000) < 1e-13
    assert needed(load.success, 0.5) > 1e16


@pytest.mark.claim("G-022")
def test_first_the_rate_then_the_retries() -> None:
    """Five attempts: hopeless at four conflicting commits an attempt, as good as sure at a quarter of one."""
    hot, cooled = Load(commits_per_hour=240, minutes=1), Load(commits_per_hour=240, minutes=1, overlap=1 / 16)
    assert (hot.within(5) < 0.1, cooled.within(5) > 0.999) == (True, True)
    assert hot.within(50) < 0.7, "ten times as many attempts do less than a sixteenth of the overlap"


@pytest.mark.claim("G-013", "G-024")
@pytest.mark.parametrize("batch", [1, 2, 5, 10, 60])
def test_fewer_commits_and_shorter_attempts_are_worth_the_same(batch: int) -> None:
    whole = Load(commits_per_hour=60, minutes=20)
    batched = Load(commits_per_hour=60 / batch, minutes=20)
    split = Load(commits_per_hour=60, minutes=20 / batch)
    assert batched.success == pytest.approx(split.success)
    assert batched.attempts == pytest.approx(whole.attempts ** (1 / batch))


@pytest.mark.claim("G-026")
@pytest.mark.parametrize(("rate", "warned"), [(30, False), (60, False), (180, True), (6000, True)])
def test_the_tool_asks_for_another_design_above_a_threshold(told, rate: int, warned: bool) -> None:
    load = ("--commits-per-hour", str(rate), "--slow-minutes", "1", "--overlap", "0.5")
    code, out, err = told("contention", *load, "--json")
    assert (code, json.loads(out)["redesign"]) == (0, warned)
    assert ("redesign, don't retry harder" in err) == warned


@pytest.mark.claim("G-028")
def test_each_piece_of_advice_is_one_of_three() -> None:
    found = outlook(Load(commits_per_hour=60, minutes=5, overlap=0.5), 5)
    assert [one.tag for one in found.advice] == ["fewer", "larger", "disjoint", "disjoint"]
    assert set(TAGS) == {"fewer", "larger", "disjoint"}
    assert all(one.load.attempts < found.load.attempts for one in found.advice)


