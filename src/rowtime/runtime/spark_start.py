"""Starts Java and creates a session of Spark, as quiet as Spark gets."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rowtime.runtime import java
from rowtime.runtime.start_noise import StartNoise

# ruff: noqa: SLF001 - PySpark has no public way to the JVM of the process


class SparkStart:
    """A start with ``settings``, the name of the application and the master included.

    ``early``: nobody waits for the session yet, so what Java writes is held back.
    """

    def __init__(self, settings: Mapping[str, str], *, early: bool = False) -> None:
        self.settings, self._early = settings, early
        self._noise: StartNoise | None = None
        self._session: SparkSession | None = None
        self._launching: dict[str, Any] = {}  # as Popen gets it

    def session(self) -> SparkSession:
        """Create the session. Raises ``Failure`` (R510) without Java, and what Spark raises."""
        # By default Spark's workers run the `python3` of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        try:
            with java.available():
                if SparkContext._gateway is None:
                    self._launch()
                builder = SparkSession.builder
                for key, value in self.settings.items():
                    builder = builder.config(key, value)
                self._session = builder.getOrCreate()
        finally:
            if self._session is not None or not self._early:
                self._ended()
        return self._session

    def awaited(self) -> None:
        """Say that somebody waits for the session: what Java writes is shown from now on."""
        self._early = False
        if self._noise is not None:
            self._noise.awaited()

    def failed(self) -> None:
        """Show everything that Java has written."""
        self._ended()

    def undo(self) -> None:
        """End the session, if there is one, and the JVM, so that another can start."""
        if self._session is not None:
            self._session.stop()
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()  # with this, the JVM ends

    def _ended(self) -> None:
        if self._noise is not None:
            self._noise.ended(started=self._session is not None)

    def _launch(self) -> None:
        try:
            self._noise = StartNoise(early=self._early)
        except OSError:  # there is no standard error
            SparkContext._ensure_initialized(conf=self._conf())
            return
        if not self._early:  # `awaited` may have been called in between
            self._noise.awaited()
        self._launching["stderr"] = self._noise.pipe
        if self._early:
            atexit.register(self._tidy)
        try:
            gateway = launch_gateway(self._conf(), self._launching)  # type: ignore[no-untyped-call]
        finally:
            self._noise.passed()
        SparkContext._ensure_initialized(gateway=gateway)

    def _tidy(self) -> None:
        """Remove the folder in which Java was to leave its port, if the process ends before."""
        if (path := self._launching.get("env", {}).get("_PYSPARK_DRIVER_CONN_INFO_PATH")) is not None:
            shutil.rmtree(Path(path).parent, ignore_errors=True)

    def _conf(self) -> SparkConf:
        return SparkConf(loadDefaults=False).setAll([*self.settings.items()])
