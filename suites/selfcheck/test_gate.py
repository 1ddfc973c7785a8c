"""Does the gate stop the first who comes and nobody after it was opened? No Spark: plain threads come to it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from lakerace.drivers.gate import Gate
from lakerace.drivers.threads import in_a_thread
from lakerace.engines import Unsteerable

if TYPE_CHECKING:
    from pathlib import Path


def test_who_stands_at_the_gate_passes_when_it_opens_and_later_ones_at_once(tmp_path: Path) -> None:
    gate, passed = Gate(tmp_path), []
    thread = threading.Thread(target=lambda: passed.append(gate.function(1)))
    thread.start()
    gate.wait()
    assert passed == []
    gate.open()
    thread.join()
    assert [*passed, gate.function(2)] == [1, 2]


def test_nobody_at_the_gate_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unsteerable, match=r"gave up after 0\.01 s: nobody came to the gate"):
        Gate(tmp_path).wait(0.01)


def test_work_in_a_thread_gives_its_value_or_its_error() -> None:
    assert in_a_thread(lambda: threading.current_thread() is threading.main_thread()) is False
    assert isinstance(in_a_thread(lambda: {}["none"]), KeyError)
    stuck = threading.Event()
    with pytest.raises(Unsteerable, match=r"gave up after 0\.01 s: the thread has not ended"):
        in_a_thread(stuck.wait, 0.01)
    stuck.set()
