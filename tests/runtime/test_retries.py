"""A run retries errors that may pass, ends at once with others, and says which of the two it does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException, PythonException

import rowtime as rt
from rowtime.client.log_contract import lost
from rowtime.core.errors import Failure, Problem, causes, refuse
from rowtime.core.secrets import Secrets
from rowtime.runtime.quiet import hiding
from rowtime.runtime.retries import PAUSES, Retries, permanent
from rowtime.state.liveness import liveness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM a (n INT);
INSERT INTO a (ROWTIME, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1), (TIMESTAMP '2024-01-01 10:00:01', 2);
SELECT STREAM n FROM a"""


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def failure(code: str) -> Failure:
    return Failure(Problem(code, "it failed"))


UDF = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n{}\n'


@pytest.mark.parametrize(
    "error",
    [
        failure("R501"),
        failure("R583"),
        refuse("R204", "the writer is open"),
        OSError(28, "No space left on device"),
        ConnectionRefusedError("no"),
        caused(failure("R509"), TimeoutError("the server of the function")),
        caused(failure("R512"), PythonException(UDF.format("ConnectionError: the server of the function"))),
        PySparkException(message="Job aborted due to stage failure: ExecutorLostFailure (worker died)"),
        PythonException(UDF.format("OSError: [Errno 28] No space left on device")),
        PySparkException(message="[FAILED_READ_FILE.FILE_NOT_EXIST] gone. SQLSTATE: KD001"),
    ],
    ids=str,
)
def test_failures_that_another_try_can_overcome_are_transient(error: Exception) -> None:
    assert not permanent(error)


@pytest.mark.parametrize(
    "error",
    [
        failure("R507"),
        failure("R901"),
        lost(Path("/home/logs/s"), "the writer a has other items than before, up to position 3"),
        refuse("R107", "no such function"),
        caused(failure("R509"), ValueError("a bug in the function")),
        caused(failure("R512"), PythonException(UDF.format("ValueError: a bug in the function"))),
        ValueError("a bug"),
        AnalysisException(message="[UNRESOLVED_ROUTINE] f. SQLSTATE: 42883"),
        PySparkException(message="Job aborted: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"),
        PySparkException(message="Job aborted: [USER_RAISED_EXCEPTION] none SQLSTATE: P0001"),
        PythonException(UDF.format("pkg.mod.MyError: no\nDuring handling\nZeroDivisionError: division by zero")),
    ],
    ids=str,
)
def test_failures_that_would_occur_again_are_permanent(error: Exception) -> None:
    assert permanent(error)


@pytest.mark.parametrize("implied", [False, True])
def test_causes_of_an_error_that_causes_itself_are_finite(implied: bool) -> None:
    own, disk = failure("R511"), OSError(28, "No space left on device")
    caused(own, caused(disk, disk))
    assert list(islice(causes(own, implied=implied), 9)) == [own, disk]
    caused(disk, own)
    assert list(islice(causes(own, implied=implied), 9)) == [own, disk]
    assert not permanent(own)
    with pytest.raises(Failure) as raised, hiding(Secrets({"device": "***"})):
        raise own
    assert list(causes(raised.value)) == [raised.value], "its cause quotes a secret"


def test_an_error_without_a_cause_has_an_implied_one() -> None:
    error, before = ValueError("v"), KeyError("k")
    error.__context__ = before
    assert list(causes(error)) == [error]
    assert list(causes(error, implied=True)) == [error, before]


def test_retries_say_which_error_which_attempt_and_when_the_next_is() -> None:
    retries = Retries()
    for _ in range(3):
        retries.failed(failure("R501"))
    assert str(retries) == "Retrying after R501, attempt 3, next in 1 s"
    for _ in range(20):
        retries.failed(failure("R501"))
    assert retries.pause == PAUSES[-1]
    retries.succeeded()
    assert (retries.failures, retries.error) == (0, None)


class Flaky:
    """A sink function that raises ``error`` for the first ``times`` calls."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.left, self.rows = error, times, list[int]()
        self.called = threading.Event()

    def __call__(self, batch: rt.Batch) -> None:
        self.called.set()
        if self.left:
            self.left -= 1
            raise self.error
        if batch.count:
            self.rows += batch.table()["n"].to_pylist()


@contextmanager
def started(spark: SparkSession, folder: Path, function: Callable[[rt.Batch], None]) -> Iterator[rt.Query]:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(SQL).sink("result", function)
    query = pipeline.start(folder / "check", interval=0.05)
    try:
        yield query
    finally:
        query.stop()


def wait_for(told: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not told():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_sink_function_that_raises_ends_the_run_with_its_name(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "rowtime"), started(spark, tmp_path, Flaky(KeyError("v"), 99)) as query:
        wait_for(lambda: not query.isActive)
        assert isinstance(query.exception, rt.Failure)
        assert query.exception.problems[0].code == "R509"
        assert "result raised KeyError: 'v'" in str(query.exception)
        assert query.status["message"].startswith("Terminated with exception: R509 the function of")
        with pytest.raises(rt.Failure, match="R509"):
            query.awaitTermination()
        found = liveness(query.checkpoint)
        assert (found.state, found.error[:4]) == ("crashed", "R509")
    record = next(r for r in caplog.records if getattr(r, "event", "") == "failed")
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None


def test_a_sink_function_whose_server_is_away_is_called_again(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtime.runtime.retries.PAUSES", (0.2, 1.0))
    sink = Flaky(ConnectionRefusedError("no server"), 2)
    with caplog.at_level(logging.INFO, "rowtime"), started(spark, tmp_path, sink) as query:
        wait_for(lambda: query.status.get("attempts") == 2)
        assert query.isActive
        assert query.status["isDataAvailable"], "what the tick has read waits for the next try"
        assert query.status["message"].startswith("Retrying after R509, attempt 2, next in ")
        assert "no server" in query.status["error"]
        wait_for(lambda: liveness(query.checkpoint).failures == 2)
        assert liveness(query.checkpoint).state == "retrying"
        wait_for(lambda: sink.rows and query.failing is None)
        wait_for(lambda: liveness(query.checkpoint).state == "running")
        wait_for(lambda: not query.status["isTriggerActive"])
        told = {"message": "Waiting for data to arrive", "isDataAvailable": False, "isTriggerActive": False}
        wait_for(lambda: query.status == told)
    assert sink.rows == [1, 2]
    levels = [
        (r.levelname, bool(r.exc_info)) for r in caplog.records if getattr(r, "event", "") in ("retry", "recovered")
    ]
    assert levels == [("WARNING", True), ("WARNING", True), ("INFO", False)]


def test_an_interrupt_during_a_retry_is_not_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    from rowtime.cli import running

    @contextmanager
    def interrupted() -> Iterator[threading.Event]:
        stop = threading.Event()
        stop.set()
        yield stop

    monkeypatch.setattr(running, "_interruptible", interrupted)
    query = SimpleNamespace(stop=lambda: None, exception=None, failing=failure("R501"))
    with pytest.raises(rt.Failure, match="R501"):
        running._await(query)
    running._await(SimpleNamespace(stop=lambda: None, exception=None, failing=None))
