"""A Spark session that can be passed on before Spark has started; whoever uses it first waits for it.

With small ticks on the driver, a run over little input may commit its results before Spark is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread, get_ident
from typing import Any, NoReturn, TypeVar

from pyspark.sql import SparkSession

from rowtime.core.errors import RowtimeError
from rowtime.frames.queries import Uncomputed

# ruff: noqa: SLF001 - PySpark has no public way to the JVM of the process

Result = TypeVar("Result")


class LateSession(SparkSession):
    """A session that ``start`` returns in a thread of its own.

    It has no attributes until Spark has started, and then those of that session. To use it raises what ``start`` has
    raised.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:  # not PySpark's own, which asks Java
        self._here, self._coming = False, Future[SparkSession]()
        self._inside: set[int] = set()
        Thread(target=self._start, args=[start], name="rowtime-spark", daemon=True).start()

    def is_here(self) -> bool:
        """Return True if Spark has started; False if it is starting, or has failed to."""
        if not self._here and self._coming.done() and self._coming.exception() is None:
            self.wait()
        return self._here

    def wait(self) -> None:
        """Wait until Spark has started."""
        session = self._coming.result()
        vars(self).update(vars(session))
        self._here = True
        if get_ident() in self._inside:
            _classes(session).setActiveSession(session._jsparkSession)

    @contextmanager
    def active_here(self) -> Iterator[None]:
        """Make it the active session of this thread for a while, from when it is there."""
        self._inside.add(get_ident())
        try:
            yield
        finally:
            self._inside.discard(get_ident())
            if self._here:
                _classes(self).clearActiveSession()

    def _start(self, start: Callable[[], SparkSession]) -> None:
        try:
            self._coming.set_result(start())
        except BaseException as error:  # noqa: BLE001 - it is raised to whoever uses the session
            self._coming.set_exception(error)

    def __getattr__(self, name: str) -> Any:
        if vars(self).get("_here", True) or name.startswith("__"):
            raise AttributeError(f"a session has no attribute {name}")
        self.wait()
        return getattr(self, name)


class NeedsSparkError(Uncomputed):
    """Only a Spark session can compute this, and there is none in a task."""


class NoSession:
    """Stands for the session in a task of Spark."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsSparkError(name)


def is_here(spark: SparkSession) -> bool:
    """Return True if using a session does not wait for Spark."""
    return not isinstance(spark, LateSession | NoSession) or (isinstance(spark, LateSession) and spark.is_here())


def describe_jobs(spark: SparkSession, text: str) -> None:
    """Name the next jobs of this thread in Spark's UI."""
    if is_here(spark):
        spark.sparkContext.setJobDescription(text)


def again_with_spark(spark: SparkSession, function: Callable[[], Result]) -> Result:
    """Return what a function returns. If it fails because Spark is not there yet, wait for Spark and call it again.

    Whoever uses the session waits anyway, but functions of PySpark look for a session of the process.
    """
    late = not is_here(spark)
    try:
        return function()
    except RowtimeError:
        raise
    except Exception:
        if not late:
            raise
    wait_for(spark)
    return function()


def wait_for(spark: SparkSession) -> None:
    """Wait until Spark has started; raises what the start has raised."""
    if isinstance(spark, LateSession) and not spark.is_here():
        spark.wait()


def _classes(spark: SparkSession) -> Any:
    return SparkSession._get_j_spark_session_class(spark._jvm)
