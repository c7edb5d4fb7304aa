"""Starts Java and creates a session of Spark, as quiet as Spark gets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rowtime.runtime import java
from rowtime.runtime.start_noise import StartNoise

# ruff: noqa: SLF001 - PySpark has no public way to the JVM of the process


def session_with(settings: Mapping[str, str]) -> SparkSession:
    """Return a session with ``settings``, the name of the application and the master included.

    Raises ``Failure`` (R510) without Java, and what Spark raises.
    """
    # By default Spark's workers run the `python3` of the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    session, noise = None, None
    try:
        with java.available():
            if SparkContext._gateway is None:
                with suppress(OSError):  # there is no standard error
                    noise = StartNoise()
                _launch(settings, noise)
            builder = SparkSession.builder
            for key, value in settings.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
    finally:
        if noise is not None:
            noise.ended(started=session is not None)
    return session


def _launch(settings: Mapping[str, str], noise: StartNoise | None) -> None:
    conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
    try:
        gateway = launch_gateway(conf, {} if noise is None else {"stderr": noise.pipe})  # type: ignore[no-untyped-call]
    finally:
        if noise is not None:
            noise.passed()
    SparkContext._ensure_initialized(gateway=gateway)
