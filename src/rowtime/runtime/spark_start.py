"""Creates a session of Spark in a Java of its own, which may have been launched before the session is wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from rowtime.runtime import java
from rowtime.runtime.java_process import JavaProcess

# ruff: noqa: SLF001 - PySpark has no public way to the JVM of the process

_RUNS_ALREADY: Final = ("MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
"""Variables that say that Spark runs already, or somewhere else."""
_launched: Final[list[JavaProcess]] = []
"""The Java that waits for a session; at most one."""


@contextmanager
def launched_early(settings: Mapping[str, str]) -> Iterator[None]:
    """Let Java start beside what is done inside, for a session with ``settings``; without that session, it ends.

    Nothing is launched if Spark runs already, or if its Java is to be searched for.
    """
    if SparkContext._gateway is None and java.named() is not None and not any(map(os.environ.get, _RUNS_ALREADY)):
        _launched.append(JavaProcess(settings))
    try:
        yield
    finally:
        while _launched:
            _launched.pop().end()


def session_with(settings: Mapping[str, str]) -> SparkSession:
    """Return a session with ``settings``, the name of the application and the master included.

    Raises ``Failure`` (R510) without Java, and what Spark raises.
    """
    session, process = None, None
    try:
        with java.available():
            if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
                process = _java_with(settings)
                process.connect()
            builder = SparkSession.builder
            for key, value in settings.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
    finally:
        if process is not None:
            process.started(spark=session is not None)
    return session


def _java_with(settings: Mapping[str, str]) -> JavaProcess:
    while _launched:
        early = _launched.pop()
        if early.settings == settings:
            return early
        early.end()
    return JavaProcess(settings)
