"""Which class does Python see? After which import, through which API, in a batch of a stream, and over Connect.

The class that surfaces in the suite's own session stands with the races (``surfaced``). What an import changes can't be
taken back in a process, and over Connect no phase lock can be set: so these are tests, in a process of their own.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from lakerace.engines.lines import Line, line
from lakerace.home import locked, work_root

VERSIONS = ">=4.0"
SCRIPT = Path(__file__).parent / "processes" / "seen_classes.py"
LIMIT_S = 900
CAPTURED = "delta.exceptions.captured"
RAW, OF_A_STREAM = "py4j.protocol.Py4JJavaError", "pyspark.errors.exceptions.captured.StreamingQueryException"
CLASSES = {
    "append": "ConcurrentAppendException",
    "delete-read": "ConcurrentDeleteReadException",
    "delete-delete": "ConcurrentDeleteDeleteException",
    "metadata": "MetadataChangedException",
    "protocol": "ProtocolChangedException",
    "transaction": "ConcurrentTransactionException",
    "write": "ConcurrentWriteException",
}
OVER_CONNECT = {
    "append": ("DELTA_CONCURRENT_APPEND", "2D521"),
    "delete-read": ("DELTA_CONCURRENT_DELETE_READ", "2D521"),
    "delete-delete": ("DELTA_CONCURRENT_DELETE_DELETE", "2D521"),
    "metadata": ("DELTA_METADATA_CHANGED", "2D521"),
    "protocol": ("DELTA_PROTOCOL_CHANGED", "2D521"),
    "transaction": ("DELTA_CONCURRENT_TRANSACTION", "2D521"),
}
"""The condition, without what comes after its dot, and the SQLSTATE."""
OF = {"optimize": "delete-read"}
UNKNOWN = "pyspark.errors.exceptions.connect.UnknownException"
Seen = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def chosen(pytestconfig: pytest.Config) -> Line:
    return line(pytestconfig.getoption("lakerace_engine"))


@pytest.fixture(scope="module")
def seen(chosen: Line) -> Seen:
    """What the script tells of each step and conflict; over Connect too where its client is installed.

    It runs once, whichever worker asks first.
    """
    folder = work_root() / f"classes-{chosen.name}"
    with locked(folder.with_suffix(".lock"), LIMIT_S, "to see the classes"):
        if not (folder / "told").exists():
            (folder / "tmp").mkdir(parents=True, exist_ok=True)
            parts = ("classic", *(("connect",) if importlib.util.find_spec("grpc") else ()))
            run = subprocess.run(
                [sys.executable, str(SCRIPT), chosen.name, str(folder), *parts], check=False, capture_output=True,
                text=True, timeout=LIMIT_S,
            )
            assert run.returncode == 0, run.stderr[-4000:]
            (folder / "told").write_text(run.stdout, encoding="utf-8")
    lines = (folder / "told").read_text(encoding="utf-8").splitlines()
    told = [json.loads(text) for text in lines if text.startswith("{")]
    return {(one["step"], one["kind"]): one for one in told}


@pytest.mark.report("G5")
@pytest.mark.parametrize("step", ["pyspark", "delta.tables", "delta.exceptions", CAPTURED])
@pytest.mark.parametrize("kind", ["append", "metadata"])
def test_the_class_after_each_import(seen: Seen, chosen: Line, step: str, kind: str) -> None:
    """With pyspark alone it is always Py4JJavaError. After delta.tables or delta.exceptions it is Delta's own class on
    4.4, and still Py4JJavaError on 4.0; after delta.exceptions.captured it is Delta's own on both."""
    mapped = {"pyspark": False, CAPTURED: True}.get(step, Version(chosen.delta) >= Version("4.4"))
    assert seen[step, kind]["class"] == (f"{CAPTURED}.{CLASSES[kind]}" if mapped else RAW)


@pytest.mark.report("G5")
@pytest.mark.parametrize("kind", CLASSES)
def test_delta_s_own_classes_tell_nothing_more_and_have_no_common_base(seen: Seen, kind: str) -> None:
    """Each kind has its own class, whose getCondition() and getSqlState() give nothing, and `except
    DeltaConcurrentModificationException` catches none of them."""
    found = seen[CAPTURED, kind]
    assert found["class"] == f"{CAPTURED}.{CLASSES[kind]}"
    assert (found["condition"], found["sqlstate"], found["parameters"], found["bases"]) == (None, None, [], [])


@pytest.mark.report("G1", "G5")
@pytest.mark.parametrize(("kind", "of"), [
    ("optimize", "delete-read"), ("optimize by method", "delete-read"), ("append by method", "append"),
])
def test_optimize_and_the_methods_of_delta_table_are_not_wrapped(seen: Seen, kind: str, of: str) -> None:
    """OPTIMIZE, by SQL or by method, and DeltaTable.update end in the class of the conflict itself."""
    assert seen[CAPTURED, kind]["class"] == f"{CAPTURED}.{CLASSES[of]}"


@pytest.mark.report("G5")
def test_used_up_attempts_have_no_class_of_delta(seen: Seen) -> None:
    """They are a Py4JJavaError with Delta's classes imported too, and no `except` of one of those catches them."""
    assert seen[CAPTURED, "attempts"]["class"] == RAW


@pytest.mark.report("G5")
def test_in_a_batch_of_a_stream(seen: Seen) -> None:
    """Inside foreachBatch it is Delta's own class; what ends the stream is StreamingQueryException, with a condition of
    its own (STREAM_FAILED) and the conflict in its text only."""
    assert seen[CAPTURED, "append inside foreachBatch"]["class"] == f"{CAPTURED}.{CLASSES['append']}"
    around = seen[CAPTURED, "append around foreachBatch"]
    assert (around["class"], around["condition"], around["sqlstate"]) == (OF_A_STREAM, "STREAM_FAILED", "XXKST")
    told = seen[CAPTURED, "append as the exception of the query"]
    assert (told["class"], told["condition"]) == (OF_A_STREAM, None)


@pytest.mark.report("G1", "G3", "G5")
def test_whatever_the_class_lakerace_knows_the_conflict(seen: Seen) -> None:
    """lakerace.conflicts.classify names the kind in every one of these forms, raw, typed, wrapped or over Connect."""
    told = {kind: (one["classified"] or [None])[0] for kind, one in seen.items()}
    assert told == {(step, kind): OF.get(word, word) for step, kind in seen for word in [kind.partition(" ")[0]]}


@pytest.fixture
def connected(seen: Seen) -> Seen:
    if not any(step == "connect" for step, _ in seen):
        pytest.skip("no client of Spark Connect here: pip install 'lakerace[connect]'")
    return seen


@pytest.mark.report("G3")
@pytest.mark.parametrize("kind", OVER_CONNECT)
def test_over_connect_the_class_is_unknown_and_the_condition_is_told(connected: Seen, kind: str) -> None:
    """Without an import of Delta it is an UnknownException of the client with condition and SQLSTATE, so only `except
    ConcurrentAppendException` is lost."""
    found = connected["connect", kind]
    assert found["class"] == UNKNOWN
    assert (found["condition"].partition(".")[0], found["sqlstate"]) == OVER_CONNECT[kind]


@pytest.mark.report("G3")
@pytest.mark.parametrize("kind", OVER_CONNECT)
def test_over_connect_after_an_import_of_delta_connect(connected: Seen, chosen: Line, kind: str) -> None:
    """After an import of delta.connect it is Delta's own class on 4.4, with condition and SQLSTATE, and on 4.0 still an
    UnknownException."""
    found = connected["connect delta.connect", kind]
    mapped = Version(chosen.delta) >= Version("4.4")
    assert found["class"] == (f"delta.connect.exceptions.{CLASSES[kind]}" if mapped else UNKNOWN)
    assert (found["condition"].partition(".")[0], found["sqlstate"]) == OVER_CONNECT[kind]


@pytest.mark.report("G3")
@pytest.mark.parametrize("step", ["connect", "connect delta.connect"])
def test_over_connect_some_conflicts_tell_their_parameters_and_none_has_the_base(
    connected: Seen, chosen: Line, step: str
) -> None:
    """On 4.4 what was added or removed comes with table, operation and version, a changed metadata with table and
    commit, the others with nothing, and on 4.0 nothing does. `except DeltaConcurrentModificationException` catches none
    of them, with Delta's own classes or without."""
    told = {kind: tuple(connected[step, kind]["parameters"]) for kind in OVER_CONNECT}
    of_files = ("docLink", "operation", "partitionValues", "tableName", "version")
    expected = {
        **dict.fromkeys(("append", "delete-read", "delete-delete"), of_files),
        "metadata": ("conflictingCommit", "docLink", "tableName"),
    }
    assert told == {kind: expected.get(kind, ()) if chosen.sub_conditions else () for kind in OVER_CONNECT}
    assert [base for kind in OVER_CONNECT for base in connected[step, kind]["bases"]] == []
