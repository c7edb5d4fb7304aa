"""Starts Spark while Python imports modules and compiles the script: both take seconds, and neither needs the other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from threading import Lock, Thread
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark import SparkContext

from rowtime.runtime.spark_start import SparkStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS_ALREADY: Final = ("MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
"""Variables that say that Spark runs already, or somewhere else."""


class EarlyStart:
    """A session that a thread creates before anybody asks for it; a process has at most one."""

    _one: ClassVar[EarlyStart | None] = None
    _turn: ClassVar[Lock] = Lock()

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._start = SparkStart(settings, early=True)
        self._session: SparkSession | None = None
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="rowtime-spark", daemon=True)
        self._thread.start()

    @classmethod
    def begin(cls, settings: Mapping[str, str]) -> None:
        """Create a session with these settings, unless Spark runs already."""
        if SparkContext._gateway is None and not any(map(os.environ.get, _RUNS_ALREADY)):  # noqa: SLF001 - PySpark has no public way
            with cls._turn:
                cls._one = cls._one or cls(settings)

    @classmethod
    def taken(cls, settings: Mapping[str, str]) -> SparkSession | None:
        """Return the session, once; ``None`` if there is none, or if it has other settings: then it ends.

        Raises what the start has raised.
        """
        with cls._turn:
            one, cls._one = cls._one, None
        return None if one is None else one.session_with(settings)

    def session_with(self, settings: Mapping[str, str]) -> SparkSession | None:
        """Return the session if it has these settings; otherwise end it."""
        fits = settings == self._start.settings
        if fits:
            self._start.awaited()
        self._thread.join()
        if not fits:
            self._start.undo()
            return None
        if self._error is not None:
            self._start.failed()
            raise self._error
        return self._session

    def _run(self) -> None:
        try:
            self._session = self._start.session()
        except BaseException as error:  # noqa: BLE001 - it is raised to whoever takes the session
            self._error = error
