"""The Java that Spark runs on: its place, and whether it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError

from rowtime.core.errors import Failure, Problem

LEAST: Final = 17
PLACES: Final = (
    "/usr/lib/jvm/*/bin/java",  # Debian, Ubuntu, Fedora
    "/usr/java/*/bin/java",
    f"{sys.prefix}/lib/jvm/bin/java",  # conda
    "~/.sdkman/candidates/java/*/bin/java",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
    "/opt/homebrew/opt/openjdk*/bin/java",
    "/usr/local/opt/openjdk*/bin/java",
)
"""Usual places of a java that is not on the PATH."""

_SECONDS: Final = 30
_VERSION: Final = re.compile(r"java\.specification\.version = (?:1\.)?(\d+)")
INSTALL: Final = (
    f"Install a JDK or JRE {LEAST} or newer: on Debian or Ubuntu `sudo apt-get install openjdk-{LEAST}-jre-headless`, "
    f"on macOS `brew install openjdk@{LEAST}`, with conda `conda install openjdk={LEAST}`. "
    "If it is installed already, set JAVA_HOME to its folder."
)


@contextmanager
def available() -> Iterator[None]:
    """Start Spark inside this: raises ``Failure`` (R510) if no Java is found, or if it is too old.

    If Java is neither in JAVA_HOME nor on the PATH, the usual places are searched.
    """
    command = named()
    if command is None:
        home = installed()
        if home is None:
            raise _failure(f"Spark needs Java {LEAST} or newer, and there is no java: {searched_places()}")
        os.environ["JAVA_HOME"] = str(home)
        command = str(home / "bin" / "java")
    try:
        yield
    except PySparkRuntimeError as error:
        version = version_of(command)
        if version is None:
            raise _failure(f"Spark did not start, and {command} prints no version: {error}") from error
        if version < LEAST:
            raise _failure(f"Spark needs Java {LEAST} or newer, and {command} is Java {version}") from error
        raise


def named() -> str | None:
    """Return the java that Spark's launcher runs: that of JAVA_HOME if it is set, else that of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(Path(home, "bin", "java")) if home else shutil.which("java")


def searched_places() -> str:
    """Return where the launcher looks, in words."""
    home = os.environ.get("JAVA_HOME")
    return f"JAVA_HOME is {home}, which has no bin/java" if home else "JAVA_HOME is not set, and PATH has none"


def installed() -> Path | None:
    """Return the home of the newest usable Java in the usual places; ``None`` without one.

    ``None`` if JAVA_HOME names another: the user wants that one.
    """
    if os.environ.get("JAVA_HOME"):
        return None
    places = [Path(place).expanduser() for place in PLACES]
    commands = {java.resolve() for place in places for java in Path("/").glob(str(place.relative_to("/")))}
    versions = {java: version_of(str(java)) or 0 for java in commands}
    newest = max(versions, key=lambda java: (versions[java], java), default=None)
    return newest.parents[1] if newest is not None and versions[newest] >= LEAST else None


def version_of(command: str) -> int | None:
    """Return the version that a java command prints, 8 for 1.8; ``None`` if it does not run."""
    arguments = [command, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(arguments, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - Spark runs the same
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr)
    return int(match[1]) if match else None


def _failure(what: str) -> Failure:
    return Failure(Problem("R510", what, hint=INSTALL))
