"""Starts Java and creates a session of Spark, as quiet as Spark gets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rowtime.runtime import java
from rowtime.runtime.start_noise import StartNoise

# ruff: noqa: SLF001 - PySpark has no public way to the JVM of the process


class SparkStart:
    """A start with ``settings``, the name of the application and the master included."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings
        self._noise: StartNoise | None = None

    def session(self) -> SparkSession:
        """Create the session. Raises ``Failure`` (R510) without Java, and what Spark raises."""
        # By default Spark's workers run the `python3` of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        session = None
        try:
            with java.available():
                if SparkContext._gateway is None:
                    self._launch()
                builder = SparkSession.builder
                for key, value in self.settings.items():
                    builder = builder.config(key, value)
                session = builder.getOrCreate()
        finally:
            if self._noise is not None:
                self._noise.ended(started=session is not None)
        return session

    def _launch(self) -> None:
        conf = SparkConf(loadDefaults=False).setAll([*self.settings.items()])
        try:
            self._noise = StartNoise()
        except OSError:  # there is no standard error
            SparkContext._ensure_initialized(conf=conf)
            return
        try:
            gateway = launch_gateway(conf, {"stderr": self._noise.pipe})  # type: ignore[no-untyped-call]
        finally:
            self._noise.passed()
        SparkContext._ensure_initialized(gateway=gateway)
