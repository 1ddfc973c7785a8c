"""Does the driver hold a writer right before its commit, and let go of it whatever happens? With a Delta of Python."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lakerace import deltalog
from lakerace.drivers.phases import Hand, HeldByPhases, Locks, probe
from lakerace.engines import Unsteerable
from lakerace.observe import COMMITS, FAILS, NO_COMMIT, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PHASES = ("analysis", "initial", "prepare", "commit", "backfill", "postCommit")
FIVE, BEFORE = PHASES[1:], PHASES[:3]
LIMIT_S = 30.0
SOON_S = 0.05


class Barrier:
    """Delta's ``AtomicBarrier``, its text as on every release."""

    def __init__(self) -> None:
        self.state, self.opened = "Blocked", threading.Event()

    def toString(self) -> str:  # noqa: N802 - Java's name
        return f"AtomicBarrier(state={self.state})"

    def unblock(self) -> None:
        self.state = "Unblocked"
        self.opened.set()

    def walk_through(self) -> None:
        if self.state == "Blocked":
            self.state = "Requested"
        assert self.opened.wait(LIMIT_S), "nobody opened this barrier"
        self.state = "Passed"


class Delta:
    """A Delta whose log is a folder, with phase locks that a transaction of the steered thread walks through."""

    def __init__(self, path: Path, phases: tuple[str, ...] = PHASES, *, follows_retry: bool = True) -> None:
        self.path, self.phases, self.follows_retry = path, phases, follows_retry
        (path / "_delta_log").mkdir(parents=True)
        self.thread = threading.local()
        self.made: list[Any] = []
        self.add_version(8)

    @property
    def version(self) -> int:
        return deltalog.latest_version(self.path)

    def add_version(self, number: int) -> None:
        (self.path / "_delta_log" / f"{number:020d}.json").write_text("{}\n", encoding="utf-8")

    def transaction(self) -> None:
        """One transaction in the calling thread, steered or not."""
        observer = getattr(self.thread, "observer", None)
        for phase in self.phases:
            if observer is not None:
                observer.locks[phase].entry.walk_through()
            if phase == "commit":
                self.add_version(self.version + 1)
        if observer is not None and observer.next is not None:
            observer.locks[self.phases[-1]].exit.walk_through()
            self.thread.observer = observer.next[0]

    def lock(self, name: str, of: str = "entry") -> Barrier:
        """A barrier of the newest statement."""
        return getattr(self.made[-1].locks[name], of)  # type: ignore[no-any-return]

    @property
    def jvm(self) -> Any:
        fuzzer = SimpleNamespace(
            OptimisticTransactionPhases=SimpleNamespace(forName=self._phases),
            PhaseLockingTransactionExecutionObserver=self._observer,
        )
        registry = SimpleNamespace(
            getObserver=lambda: getattr(self.thread, "observer", None),
            setObserver=lambda observer: setattr(self.thread, "observer", observer),
        )
        delta = SimpleNamespace(fuzzer=fuzzer, TransactionExecutionObserver=registry)
        here = SimpleNamespace(currentThread=lambda: SimpleNamespace(getName=lambda: threading.current_thread().name))
        return SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(sql=SimpleNamespace(delta=delta)))),
            java=SimpleNamespace(lang=SimpleNamespace(Thread=here)),
        )

    def _phases(self, _: str) -> Any:
        locks = {name: SimpleNamespace(entry=Barrier(), exit=Barrier()) for name in self.phases}
        getters = {
            f"{name}Phase": lambda lock=lock: SimpleNamespace(
                entryBarrier=lambda: lock.entry, exitBarrier=lambda: lock.exit
            )
            for name, lock in locks.items()
        }
        return SimpleNamespace(locks=locks, getClass=lambda: java_class(*getters), **getters)

    def _observer(self, phases: Any) -> Any:
        methods = ("setNextObserver",) if self.follows_retry else ()
        made = SimpleNamespace(locks=phases.locks, next=None, getClass=lambda: java_class(*methods))
        made.setNextObserver = lambda observer, auto: setattr(made, "next", (observer, auto))
        self.made.append(made)
        return made


def java_class(*methods: str) -> Any:
    return SimpleNamespace(getMethods=lambda: [SimpleNamespace(getName=lambda name=name: name) for name in methods])


class _Missing:
    """What py4j gives for a class that isn't there: a package, which can't be called."""

    def __getattr__(self, name: str) -> _Missing:
        return self


@pytest.fixture(params=[(PHASES, True), (FIVE, True), (FIVE[:3], False)], ids=["4.4", "4.0", "3.2"])
def delta(request: pytest.FixtureRequest, tmp_path: Path) -> Delta:
    phases, follows_retry = request.param
    return Delta(tmp_path / "table", phases, follows_retry=follows_retry)


@pytest.fixture
def hand(delta: Delta) -> Iterator[Hand]:
    made = Hand(delta.jvm, 0)
    yield made
    made.stop()
    made._thread.join(LIMIT_S)
    assert not made._thread.is_alive()


def held(
    delta: Delta, hand: Hand, attempt: Callable[[], None], *, within: float = LIMIT_S, alive: bool = True, at: int = 1
) -> HeldByPhases:
    """``A (update)`` on version 8; a raised error is that of the statement."""

    def attempting() -> BaseException | None:
        try:
            attempt()
        except Exception as error:
            return error
        return None

    def end(error: BaseException | None, before: int, read_version: int) -> Outcome:
        seen = FAILS if error else COMMITS if delta.version > before else NO_COMMIT
        return Outcome(
            writer="A", statement="update", text="UPDATE ...", held=True, outcome=seen, read_version=read_version,
            version=delta.version if seen == COMMITS else None, message=str(error) if error else None,
        )

    locks = Locks(delta.jvm, probe(delta.jvm), "A", at)
    return HeldByPhases(
        "A (update)", delta.path, locks, hand, attempt=attempting, end=end, alive=lambda: alive, within=within
    )


def test_a_writer_stands_before_its_commit_until_it_is_released(delta: Delta, hand: Hand) -> None:
    writer = held(delta, hand, delta.transaction)
    writer.start()
    assert (writer.early, delta.version, hand.busy) == (None, 8, True)
    delta.transaction()  # a winner, in a thread that nobody steers
    assert delta.version == 9
    outcome = writer.release()
    assert (outcome.outcome, outcome.version, outcome.read_version) == (COMMITS, 10, 8)
    assert (hand.busy, hand.jvm_thread) == (False, "lakerace-hand-0")


def test_a_writer_of_three_transactions_stands_before_its_second(tmp_path: Path, hand: Hand) -> None:
    delta = Delta(tmp_path / "three")

    def three() -> None:
        for _ in range(3):
            delta.transaction()

    writer = held(delta, hand, three, at=2)
    writer.start()
    assert (writer.early, delta.version) == (None, 9)
    assert writer.release().version == 11


def test_without_a_second_transaction_there_is_nothing_to_hold(tmp_path: Path, hand: Hand) -> None:
    delta = Delta(tmp_path / "one")
    writer = held(delta, hand, delta.transaction, at=2)
    with pytest.raises(Unsteerable, match=r"^A \(update\) committed without passing Delta's phase locks$"):
        writer.start()
    short = Delta(tmp_path / "short", FIVE[:3], follows_retry=False)
    with pytest.raises(Unsteerable, match="end with the first transaction"):
        held(short, hand, short.transaction, at=2)


def test_a_thread_serves_one_writer_after_the_other(delta: Delta, hand: Hand) -> None:
    for version in (9, 10):
        writer = held(delta, hand, delta.transaction)
        writer.start()
        assert writer.release().version == version
    assert delta.version == 10


def test_a_writer_that_never_reaches_its_commit_is_told_and_let_go(delta: Delta, hand: Hand) -> None:
    writer = held(delta, hand, lambda: reads_until(delta.lock("commit").opened), within=SOON_S)
    with pytest.raises(Unsteerable) as told:
        writer.start()
    board = ", ".join(f"{told_as(name)} {'un' if name in BEFORE else ''}blocked" for name in delta.phases)
    assert str(told.value) == f"gave up after {SOON_S:g} s: A (update) was to reach its commit; phases: {board}"
    assert writer._done.wait(LIMIT_S)  # let go of, it ends; how soon is the machine's business
    assert not hand.busy
    assert {delta.lock(name).state for name in delta.phases} == {"Unblocked"}
    again = held(delta, hand, delta.transaction)
    again.start()
    assert again.release().version == 9


def test_a_writer_that_does_not_end_even_then_keeps_its_thread_and_nobody_else(delta: Delta, hand: Hand) -> None:
    over = threading.Event()
    writer = held(delta, hand, lambda: reads_until(over), within=SOON_S)
    with pytest.raises(Unsteerable, match=r"A \(update\) was to reach its commit"):
        writer.start()
    assert hand.busy
    writer.cancel()  # a second time it waits no longer, either
    assert hand.busy
    over.set()


def test_a_released_writer_that_does_not_end_is_told(delta: Delta, hand: Hand) -> None:
    over = threading.Event()

    def slow() -> None:
        delta.transaction()
        reads_until(over)

    writer = held(delta, hand, slow)
    writer.start()
    writer._within = SOON_S
    with pytest.raises(Unsteerable, match=r"^gave up after 0\.05 s: A \(update\) was to end after its release; "):
        writer.release()
    over.set()


def test_a_writer_that_ends_before_its_commit_says_how(delta: Delta, hand: Hand) -> None:
    def fails() -> None:
        raise ValueError("no such column")

    writer = held(delta, hand, fails)
    writer.start()
    assert writer.early is not None
    assert (writer.early.outcome, writer.early.message) == (FAILS, "no such column")
    nothing = held(delta, hand, lambda: None)
    nothing.start()
    assert nothing.early is not None
    assert nothing.early.outcome == NO_COMMIT


def test_a_commit_past_the_locks_is_no_race(delta: Delta, hand: Hand) -> None:
    writer = held(delta, hand, lambda: delta.add_version(9))
    with pytest.raises(Unsteerable, match=r"^A \(update\) committed without passing Delta's phase locks$"):
        writer.start()


def test_a_held_writer_is_let_go(delta: Delta, hand: Hand) -> None:
    writer = held(delta, hand, delta.transaction)
    writer.start()
    writer.cancel()
    assert not hand.busy


def test_a_fault_of_the_steering_is_raised_where_somebody_hears_it(
    delta: Delta, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(self: Locks) -> None:
        raise ConnectionError("the gateway is gone")

    monkeypatch.setattr(Locks, "attach", lost)
    with pytest.raises(ConnectionError, match="the gateway is gone"):
        held(delta, hand, delta.transaction).start()
    assert not hand.busy
    dead = held(delta, hand, delta.transaction, alive=False)
    dead.start()
    assert dead.early is not None
    assert (dead.early.outcome, dead.early.message) == (FAILS, "the gateway is gone")


def told_as(phase: str) -> str:
    return {"postCommit": "post-commit"}.get(phase, phase)


def reads_until(over: threading.Event) -> None:
    assert over.wait(LIMIT_S)


def test_a_delta_without_phase_locks_cannot_be_steered_and_says_so() -> None:
    with pytest.raises(Unsteerable, match=r"this Delta has no phase locks \(TypeError\); 3\.2 was the first release"):
        probe(_Missing())


def test_a_delta_without_a_commit_phase_cannot_be_steered_and_says_so(tmp_path: Path) -> None:
    without = Delta(tmp_path, ("initial", "prepare"))
    with pytest.raises(Unsteerable, match="this Delta has the phases initial, prepare only: the commit can't be held"):
        probe(without.jvm)


def test_the_phase_list_of_each_release_is_found(delta: Delta) -> None:
    hooks = probe(delta.jvm)
    assert hooks.phases == tuple(map(told_as, delta.phases))
    assert hooks.follows_retry == delta.follows_retry
