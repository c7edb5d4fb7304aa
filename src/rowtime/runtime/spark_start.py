"""Creates a session of Spark in a Java of its own, which may have been launched before the session is wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
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
_starting: Final[list[JavaProcess]] = []
"""The Java in which a session is being created."""
_turn: Final = Lock()
"""Held while a session is created: others then use the same Java."""


@contextmanager
def launched_early(settings: Mapping[str, str]) -> Iterator[None]:
    """Let Java start beside what is done inside, for a session with ``settings``; without that session, it ends.

    Nothing is launched if Spark runs already, or if its Java is to be searched for.
    """
    if SparkContext._gateway is None and java.named() is not None and not any(map(os.environ.get, _RUNS_ALREADY)):
        _use_this_python()
        _launched.append(JavaProcess(settings))
    try:
        yield
    finally:
        for processes in (_launched, _starting):
            while processes:
                processes.pop().end()


def is_launched(settings: Mapping[str, str]) -> bool:
    """Return True if a Java with these settings waits for its session."""
    return any(process.settings == settings for process in _launched)


def session_with(settings: Mapping[str, str]) -> SparkSession:
    """Return a session with ``settings``, the name of the application and the master included.

    Raises ``Failure`` (R510) without Java, and what Spark raises.
    """
    _use_this_python()
    with _turn, java.available():
        if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            return _created(settings)
        process = _java_with(settings)
        session = None
        try:
            process.connect()
            session = _created(settings)
        finally:
            process.started(spark=session is not None)
            if process in _starting:
                _starting.remove(process)
        return session


def _use_this_python() -> None:
    """Let Spark's workers run the Python of this process; by default they run the `python3` of the PATH."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _created(settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _java_with(settings: Mapping[str, str]) -> JavaProcess:
    early = _launched.pop() if _launched else None
    if early is not None and early.settings != settings:
        early.end()
        early = None
    process = early or JavaProcess(settings)
    _starting.append(process)
    return process
