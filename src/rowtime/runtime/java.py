"""The Java that Spark runs on: where it is, and whether it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError

from rowtime.core.errors import Failure, Problem

LEAST: Final = 17
_SECONDS: Final = 30
_VERSION: Final = re.compile(r"java\.specification\.version = (?:1\.)?(\d+)")
_INSTALL: Final = (
    f"Install a JDK or JRE {LEAST} or newer: on Debian or Ubuntu `sudo apt-get install openjdk-{LEAST}-jre-headless`, "
    f"on macOS `brew install openjdk@{LEAST}`, with conda `conda install openjdk={LEAST}`. "
    "If it is installed already, set JAVA_HOME to its folder."
)


@contextmanager
def found() -> Iterator[None]:
    """Start Spark inside this: ``Failure`` (R510) says where no Java is found, or which one is too old."""
    home = os.environ.get("JAVA_HOME")  # where Spark's launcher looks first
    command = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None:
        looked = f"JAVA_HOME is {home}, which has no bin/java" if home else "JAVA_HOME is not set, and PATH has none"
        raise _failure(f"Spark needs Java {LEAST} or newer, and there is no java: {looked}")
    try:
        yield
    except PySparkRuntimeError as error:
        version = _version(command)
        if version is None:
            raise _failure(f"Spark did not start, and {command} says no version: {error}") from error
        if version < LEAST:
            raise _failure(f"Spark needs Java {LEAST} or newer, and {command} is Java {version}") from error
        raise


def _version(command: str) -> int | None:
    """The version that a java command tells, 8 for 1.8; ``None`` if it does not run."""
    asked = [command, "-XshowSettings:properties", "-version"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - Spark runs the same
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(told.stderr)
    return int(match[1]) if match else None


def _failure(what: str) -> Failure:
    return Failure(Problem("R510", what, hint=_INSTALL))
