"""Every form in which a conflict reaches Python, and every form that only looks like one. No Spark, no JVM."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lakerace.conflicts import (
    APPEND,
    ATTEMPTS,
    DELETE_DELETE,
    DELETE_READ,
    KINDS,
    METADATA,
    PROTOCOL,
    REVALIDATION,
    TRANSACTION,
    WRITE,
    Conflict,
    classify,
    outdated,
    taken,
)

BY_CONDITION_ONLY = (REVALIDATION, ATTEMPTS)
SPARK_KINDS = [kind for kind in KINDS.values() if kind.word not in BY_CONDITION_ONLY]


def python_class(name: str, module: str, *bases: type[Exception]) -> type[Exception]:
    return type(name, bases or (Exception,), {"__module__": module})


class JavaClass:
    def __init__(self, name: str) -> None:
        self._name = name

    def getName(self) -> str:  # noqa: N802
        return self._name


class Throwable:
    """A Java throwable as py4j shows it; ``answers`` are its getters, and a getter it lacks is an error."""

    def __init__(self, name: str, cause: Throwable | None = None, **answers: Any) -> None:
        self._name, self._cause, self._answers = name, cause, answers

    def getClass(self) -> JavaClass:  # noqa: N802
        return JavaClass(self._name)

    def getCause(self) -> Throwable | None:  # noqa: N802
        return self._cause

    def getMessage(self) -> str | None:  # noqa: N802
        return self._answers.get("getMessage", "boom")  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name not in self._answers:
            raise RuntimeError(f"Method {name}([]) does not exist")
        return lambda: self._answers[name]


class DeadThrowable(Throwable):
    def getClass(self) -> JavaClass:  # noqa: N802
        raise ConnectionResetError("the JVM is gone")


class SparkError(Exception):
    """An exception with the getters of ``PySparkException``."""

    __module__ = "pyspark.errors.exceptions.connect"

    def __init__(self, text: str, condition: str | None = None, sqlstate: str | None = None, **parameters: str) -> None:
        super().__init__(text)
        self._condition, self._sqlstate, self._parameters = condition, sqlstate, parameters

    def getCondition(self) -> str | None:  # noqa: N802
        return self._condition

    def getSqlState(self) -> str | None:  # noqa: N802
        return self._sqlstate

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802
        return self._parameters


def with_java(error: Exception, throwable: Throwable, name: str = "lakerace_throwable") -> Exception:
    setattr(error, name, throwable)
    return error


# Classic Spark: the Java throwable tells all.


@pytest.mark.parametrize("kind", SPARK_KINDS, ids=lambda kind: kind.word)
@pytest.mark.parametrize("package", ["io.delta.exceptions", "org.apache.spark.sql.delta"])
@pytest.mark.parametrize("attribute", ["lakerace_throwable", "java_exception", "_origin"])
def test_each_java_class_is_its_kind(kind: Any, package: str, attribute: str) -> None:
    typed = python_class(kind.exception, "delta.exceptions.captured")("text")
    found = classify(with_java(typed, Throwable(f"{package}.{kind.exception}"), attribute))
    assert found is not None
    assert (found.kind, found.root, found.surfaced) == (kind.word, f"{package}.{kind.exception}", kind.exception)
    assert not found.wrapped


def test_condition_sqlstate_and_parameters_come_from_the_throwable() -> None:
    throwable = Throwable(
        "io.delta.exceptions.ConcurrentAppendException", getCondition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT",
        getSqlState="2D521", getMessageParameters={"version": 9, "operation": "UPDATE"},
        getMessage="[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] ...",
    )
    assert classify(with_java(Exception("x"), throwable)) == Conflict(
        kind=APPEND, surfaced="Exception", root="io.delta.exceptions.ConcurrentAppendException",
        condition="DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT", sqlstate="2D521",
        parameters={"version": "9", "operation": "UPDATE"}, message="[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] ...",
    )


def test_older_spark_has_another_getter_for_the_condition() -> None:
    condition = "DELTA_CONCURRENT_DELETE_READ"
    throwable = Throwable("io.delta.exceptions.ConcurrentDeleteReadException", getErrorClass=condition)
    found = classify(with_java(Exception("x"), throwable))
    assert found is not None
    assert (found.condition, found.sqlstate, found.parameters) == (condition, None, {})


def test_a_conflict_deep_in_the_java_causes_is_found_and_said_to_be_wrapped() -> None:
    inner = Throwable("io.delta.exceptions.ConcurrentDeleteReadException")
    outer = Throwable("org.apache.spark.SparkException", Throwable("java.util.concurrent.ExecutionException", inner))
    found = classify(with_java(python_class("SparkException", "pyspark.errors")("Job aborted"), outer))
    assert found is not None
    assert (found.kind, found.surfaced, found.wrapped) == (DELETE_READ, "SparkException", True)


def test_the_outermost_conflict_of_the_java_causes_counts() -> None:
    inner = Throwable("io.delta.exceptions.ConcurrentAppendException")
    found = classify(with_java(Exception("x"), Throwable("io.delta.exceptions.MetadataChangedException", inner)))
    assert found is not None
    assert found.kind == METADATA


USED_UP = "org.apache.spark.sql.delta.DeltaIllegalStateException"


def test_used_up_attempts_are_known_by_their_condition_only() -> None:
    for getter in ("getCondition", "getErrorClass"):
        throwable = Throwable(USED_UP, **{getter: "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"})
        found = classify(with_java(python_class("Py4JJavaError", "py4j.protocol")("x"), throwable, "java_exception"))
        assert found is not None
        assert (found.kind, found.root, found.wrapped, found.rerun_can_help) == (ATTEMPTS, USED_UP, True, True)
    assert classify(with_java(Exception("x"), Throwable(USED_UP, getCondition="DELTA_SOMETHING_ELSE"))) is None


FEATURE = "org.apache.spark.sql.delta.DeltaTableFeatureException"
BACKFILL = "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL"


@pytest.mark.parametrize(("root", "condition"), [
    (FEATURE, "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"), (USED_UP, BACKFILL),
])
def test_a_drop_of_a_feature_in_use_again_is_known_by_its_condition_only(root: str, condition: str) -> None:
    throwable = Throwable("org.apache.spark.SparkException", Throwable(root, getCondition=condition))
    typed = with_java(python_class("Py4JJavaError", "py4j.protocol")("x"), throwable, "java_exception")
    for error in (typed, SparkError("Cannot drop ...", condition), Exception(f"[{condition}] Cannot drop ...")):
        found = classify(error)
        assert found is not None
        assert (found.kind, found.root, found.condition) == (REVALIDATION, root, condition)
        assert (found.wrapped, found.rerun_can_help) == (True, True)


@pytest.mark.parametrize("condition", [
    "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
])
def test_any_other_error_about_a_feature_is_no_conflict(condition: str) -> None:
    error = with_java(Exception(f"{FEATURE}: [{condition}] Cannot drop"), Throwable(FEATURE, getCondition=condition))
    assert classify(error) is None


DOMAIN = "A conflicting metadata domain delta.clustering is added."


@pytest.mark.parametrize("error", [
    python_class("ConcurrentTransactionException", "delta.exceptions.captured")(DOMAIN),
    SparkError(DOMAIN, "DELTA_CONCURRENT_TRANSACTION"),
    with_java(Exception("x"), Throwable("io.delta.exceptions.ConcurrentTransactionException",
                                        getCondition="DELTA_CONCURRENT_TRANSACTION", getMessage=DOMAIN)),
], ids=["class", "condition", "java"])
def test_two_changes_of_one_metadata_domain_are_not_two_copies_of_one_stream(error: Exception) -> None:
    found = classify(error)
    assert found is not None
    assert (found.kind, found.domain, found.rerun_can_help) == (TRANSACTION, "delta.clustering", True)
    assert "same metadata domain" in found.meaning


def test_databricks_has_a_condition_for_a_metadata_domain() -> None:
    found = classify(SparkError("This transaction failed ...", "DELTA_CONFLICTING_METADATA_DOMAIN"))
    assert found is not None
    assert (found.kind, found.rerun_can_help) == (TRANSACTION, True)


def test_nobody_else_s_text_makes_a_domain_of_a_conflict() -> None:
    found = classify(SparkError(DOMAIN, "DELTA_CONCURRENT_APPEND"))
    assert found is not None
    assert (found.kind, found.domain) == (APPEND, None)


def test_a_ring_of_java_causes_ends() -> None:
    ring = Throwable("java.lang.RuntimeException")
    ring._cause = ring
    assert classify(with_java(Exception("x"), ring)) is None


def test_a_java_class_of_that_name_from_elsewhere_is_no_conflict() -> None:
    assert classify(with_java(Exception("x"), Throwable("com.example.ConcurrentWriteException"))) is None


def test_a_dead_jvm_leaves_what_python_holds() -> None:
    typed = python_class("ConcurrentAppendException", "delta.exceptions.captured")("text")
    found = classify(with_java(typed, DeadThrowable("x")))
    assert found is not None
    assert (found.kind, found.condition) == (APPEND, None)


def test_used_up_attempts_are_read_from_a_text_too() -> None:
    found = classify(SparkError("[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] This commit has failed as it has been tried ..."))
    assert found is not None
    assert (found.kind, found.root, found.condition) == (ATTEMPTS, USED_UP, "DELTA_MAX_COMMIT_RETRIES_EXCEEDED")


# Python only: typed classes, Connect, text.


@pytest.mark.parametrize("kind", SPARK_KINDS, ids=lambda kind: kind.word)
def test_each_typed_python_class_is_its_kind_without_java(kind: Any) -> None:
    base = python_class("DeltaConcurrentModificationException", "delta.exceptions.base")
    found = classify(python_class(kind.exception, "delta.exceptions.connect", base)("text"))
    assert found is not None
    assert (found.kind, found.root) == (kind.word, f"io.delta.exceptions.{kind.exception}")


def test_the_base_class_alone_is_a_write_conflict() -> None:
    found = classify(python_class("DeltaConcurrentModificationException", "delta.exceptions.base")("text"))
    assert found is not None
    assert (found.kind, found.root) == (WRITE, "io.delta.exceptions.DeltaConcurrentModificationException")


@pytest.mark.parametrize("kind", SPARK_KINDS, ids=lambda kind: kind.word)
@pytest.mark.parametrize("sub", ["", ".WITHOUT_HINT"])
def test_connect_tells_by_condition(kind: Any, sub: str) -> None:
    found = classify(SparkError("text", f"{kind.condition}{sub}", "2D521", version="9"))
    assert found is not None
    assert (found.kind, found.condition, found.sqlstate) == (kind.word, f"{kind.condition}{sub}", "2D521")
    assert found.root == f"io.delta.exceptions.{kind.exception}"
    assert found.parameters == {"version": "9"}
    assert found.wrapped


def test_the_condition_is_read_from_the_text_when_no_getter_has_it() -> None:
    found = classify(SparkError("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict ...\nsecond line"))
    assert found is not None
    assert (found.kind, found.condition) == (APPEND, "DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
    assert "\n" not in found.message


STREAM_FAILED = """[STREAM_FAILED] Query [id = 4c692454-401d-4e58-9622, runId = bcadfea0-d2e9] terminated with \
exception: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "job.py", line 7, in upsert
    raise convert_exception(e)
delta.exceptions.captured.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict
 SQLSTATE: XXKST"""


def test_a_conflict_in_a_batch_of_a_stream_is_in_the_text_of_what_ends_the_stream() -> None:
    error = SparkError(STREAM_FAILED, "STREAM_FAILED", "XXKST", id="4c692454", message="An exception was raised by ...")
    found = classify(error)
    assert found is not None
    assert (found.kind, found.condition, found.sqlstate) == (APPEND, "DELTA_CONCURRENT_APPEND.WITHOUT_HINT", None)
    assert (found.root, found.parameters) == ("io.delta.exceptions.ConcurrentAppendException", {})
    assert found.wrapped
    assert found.rerun_can_help
    assert classify(SparkError("[STREAM_FAILED] Query ... ValueError: a bug", "STREAM_FAILED", "XXKST")) is None


def test_the_class_is_read_from_the_text_of_a_wrapping_error() -> None:
    text = "An error occurred while calling o1.sql.\n: io.delta.exceptions.ConcurrentDeleteReadException: files ..."
    found = classify(python_class("Py4JJavaError", "py4j.protocol")(text))
    assert found is not None
    assert (found.kind, found.root) == (DELETE_READ, "io.delta.exceptions.ConcurrentDeleteReadException")


@pytest.mark.parametrize("text", [
    "Job aborted.\nCaused by: com.databricks.sql.transaction.tahoe.ConcurrentAppendException: Files were added ...",
    "Traceback (most recent call last):\n  ...\ndelta.exceptions.ConcurrentAppendException: Files were added ...",
    "delta.exceptions.captured.ConcurrentAppendException",
])
def test_a_class_without_a_condition_is_read_from_a_text(text: str) -> None:
    found = classify(RuntimeError(text))
    assert found is not None
    assert (found.kind, found.condition, found.wrapped) == (APPEND, None, True)


def test_a_java_class_of_databricks_is_its_kind() -> None:
    name = "com.databricks.sql.transaction.tahoe.MetadataChangedException"
    found = classify(with_java(Exception("x"), Throwable(name)))
    assert found is not None
    assert (found.kind, found.root) == (METADATA, name)


class GroupError(Exception):
    """What ``ExceptionGroup`` is, which Python 3.10 has not."""

    def __init__(self, text: str, *exceptions: BaseException) -> None:
        super().__init__(text)
        self.exceptions = exceptions


LOST = SparkError("text", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
STREAM = SparkError("text", "DELTA_CONCURRENT_TRANSACTION")


def test_a_group_of_conflicts_is_the_one_that_no_rerun_can_cure_else_the_first() -> None:
    for members, kind, again in (((LOST,), APPEND, True), ((LOST, STREAM), TRANSACTION, False)):
        found = classify(GroupError("2 sub-exceptions", *members))
        assert found is not None
        assert (found.kind, found.surfaced, found.rerun_can_help) == (kind, "GroupError", again)
    nested = classify(GroupError("outer", GroupError("inner", LOST)))
    assert nested is not None
    assert (nested.kind, nested.surfaced, nested.wrapped) == (APPEND, "GroupError", True)


def test_a_group_with_anything_else_in_it_is_no_conflict() -> None:
    assert classify(GroupError("two", LOST, ValueError("a bug"))) is None
    assert classify(GroupError("none")) is None
    ring = GroupError("ring")
    ring.exceptions = (ring,)
    assert classify(ring) is None
    listed = ValueError("has a list of that name")
    listed.exceptions = ["ConcurrentAppendException"]  # type: ignore[attr-defined]
    assert classify(listed) is None


def test_a_conflict_that_caused_another_exception_is_found() -> None:
    def fail(*, explicit: bool) -> None:
        try:
            raise python_class("ConcurrentTransactionException", "delta.exceptions.captured")("text")
        except Exception as error:
            if explicit:
                raise ValueError("job failed") from error
            raise ValueError("job failed")  # noqa: B904

    for explicit in (True, False):
        with pytest.raises(ValueError, match="job failed") as caught:
            fail(explicit=explicit)
        found = classify(caught.value)
        assert found is not None
        assert (found.kind, found.surfaced, found.rerun_can_help) == (TRANSACTION, "ValueError", False)


def test_a_context_that_was_cut_off_is_not_followed() -> None:
    error = ValueError("unrelated")
    error.__context__ = python_class("ConcurrentAppendException", "delta.exceptions.captured")("text")
    assert classify(error) is not None
    error.__suppress_context__ = True
    assert classify(error) is None


def test_a_ring_of_python_causes_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert classify(first) is None


# delta-rs: one class, and a text.

_LOST = "Failed to commit transaction: "
DELTA_RS = (
    (APPEND, _LOST + "Commit failed: a concurrent transactions added new data.\nHelp: This transaction's query ..."),
    (DELETE_READ, _LOST + "Commit failed: a concurrent transaction deleted data this operation read.\nHelp: ..."),
    (DELETE_DELETE,
     _LOST + "Commit failed: a concurrent transaction deleted the same data your transaction deletes.\nHelp: you ..."),
    (METADATA, _LOST + "Metadata changed since last commit."),
    (PROTOCOL, _LOST + "Protocol changed since last commit: required read/write 3/7, current read/write 1/2"),
    (PROTOCOL, _LOST + "Protocol changed since last commit: protocol changed"),
    (TRANSACTION, _LOST + "Concurrent transaction failed."),
    (ATTEMPTS, _LOST + "0"),
    (ATTEMPTS, _LOST + "15"),
)


@pytest.mark.parametrize(("word", "text"), DELTA_RS)
def test_delta_rs_texts(word: str, text: str) -> None:
    found = classify(python_class("CommitFailedError", "_internal")(text))
    assert found is not None
    assert (found.kind, found.surfaced, found.root) == (word, "CommitFailedError", "CommitFailedError")
    assert (found.condition, found.sqlstate) == (None, None)
    assert "\n" not in found.message


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("a concurrent transaction deleted data this operation read"),
        KeyError("ConcurrentAppendException"),
        python_class("CommitFailedError", "_internal")("Unsupported table features required: [RowTracking]"),
        python_class("DeltaError", "_internal")("Failed to commit transaction: disk full"),
        python_class("ConcurrentWriteException", "some.queue")("two writers"),
        python_class("CommitFailedError", "kafka.errors")("group has rebalanced"),
        SparkError("[TABLE_OR_VIEW_NOT_FOUND] no such table", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        SparkError("[TABLE_OR_VIEW_ALREADY_EXISTS] choose a name", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
        SparkError("[DELTA_METADATA_MISMATCH] a column too many", "DELTA_METADATA_MISMATCH", "42KDG"),
        ValueError("catch delta.exceptions.ConcurrentAppendException and go on"),
        SparkError("[DELTA_CONCURRENT_APPENDIX] no such condition", "DELTA_CONCURRENT_APPENDIX"),
        with_java(Exception("x"), Throwable("org.apache.spark.sql.AnalysisException")),
        with_java(Exception("x"), DeadThrowable("x")),
        KeyboardInterrupt(),
    ],
    ids=lambda error: re.sub(r"\W+", "-", repr(error))[:60],
)
def test_what_is_no_conflict(error: BaseException | None) -> None:
    assert classify(error) is None


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text without a JVM")


class MisleadingError(SparkError):
    def getMessageParameters(self) -> Any:  # noqa: N802
        return ["not", "a", "mapping"]


OUTDATED = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


@pytest.mark.parametrize("error", [
    SparkError("changed", OUTDATED),
    Exception(f"[{OUTDATED}] The schema of your Delta table has changed"),
    with_java(Exception("An error occurred"), Throwable("java.lang.X", Throwable("Delta", getCondition=OUTDATED))),
], ids=["getter", "text", "java cause"])
def test_an_outdated_frame_is_told_apart_from_a_conflict(error: Exception) -> None:
    assert outdated(error)
    assert classify(error) is None


@pytest.mark.parametrize("error", [
    None, SparkError("changed", "DELTA_METADATA_CHANGED"), Exception("x"), with_java(Exception(), DeadThrowable("x")),
    # An old frame is told so too, and so is everybody who writes a column too many.
    SparkError("[DELTA_METADATA_MISMATCH] A schema mismatch", "DELTA_METADATA_MISMATCH"),
], ids=["nothing", "conflict", "other", "dead JVM", "mismatch"])
def test_nothing_else_is_outdated_or_taken(error: Exception | None) -> None:
    assert not outdated(error)
    assert not taken(error)


@pytest.mark.parametrize("error", [
    SparkError("Cannot create table", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    Exception("[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create table"),
    with_java(Exception("x"), Throwable("Delta", getCondition="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION")),
    python_class("DeltaError", "_internal")("Generic error: A Delta Lake table already exists at that location."),
    python_class("DeltaError", "_internal")("Generic error: A table already exists at: file:///tmp/t/"),
], ids=["getter", "text", "java", "delta-rs create", "delta-rs write"])
def test_a_place_that_is_taken_is_told_apart_from_a_conflict(error: Exception) -> None:
    assert taken(error)
    assert classify(error) is None
    assert not outdated(error)


def test_the_words_of_delta_rs_count_in_its_own_errors_only() -> None:
    assert not taken(ValueError("A Delta Lake table already exists at that location."))


def test_it_never_raises() -> None:
    assert classify(UnprintableError()) is None
    found = classify(MisleadingError("text", "DELTA_CONCURRENT_APPEND"))
    assert found is not None
    assert (found.kind, found.parameters) == (APPEND, {})


def test_every_kind_says_what_it_means_and_whether_a_rerun_helps() -> None:
    for word, kind in KINDS.items():
        found = Conflict(kind=word, surfaced="X", root=kind.root)
        assert found.meaning
        assert found.rerun_can_help is (word != TRANSACTION)
