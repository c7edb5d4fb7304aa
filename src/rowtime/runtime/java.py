"""The Java that Spark runs on: its place, whether it is new enough, and why Spark does not start on it."""

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

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
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

_EXITED: Final = "JAVA_GATEWAY_EXITED"
_SECONDS: Final = 30
_VERSION: Final = re.compile(r"java\.specification\.version = (?:1\.)?(\d+)")
INSTALL: Final = (
    f"Install a JDK or JRE {LEAST} or newer: on Debian or Ubuntu `sudo apt-get install openjdk-{LEAST}-jre-headless`, "
    f"on macOS `brew install openjdk@{LEAST}`, with conda `conda install openjdk={LEAST}`. "
    "If it is installed already, set JAVA_HOME to its folder."
)
GIVE: Final = (
    "Give this process more memory (the limit of its container or service, or `ulimit -v`), or end other processes. "
    "Spark's driver asks for 1g: another size is `--conf spark.driver.memory=512m`."
)
_LESS: Final = "Give Spark's driver more: `--conf spark.driver.memory=1g`."
_NAMES: Final = (
    "Set SPARK_LOCAL_IP to an address of this machine, for example SPARK_LOCAL_IP=127.0.0.1, and check "
    "`spark.driver.host`, `spark.driver.bindAddress` and `spark.driver.port`; or add the host's name to /etc/hosts."
)
_SETTINGS: Final = (
    "Java's own messages are above. Check the settings that it was given (--conf, spark-defaults.conf, "
    "PYSPARK_SUBMIT_ARGS, JAVA_TOOL_OPTIONS), and try `rowtime doctor`."
)
_MEMORY: Final = re.compile(
    r"[^\n]*(?:insufficient memory|Could not reserve enough space|Could not allocate|Cannot allocate memory"
    r"|Not enough space|OutOfMemoryError|unable to create native thread|maximum heap size|exceeds the maximum)[^\n]*"
)
_TOO_SMALL: Final = re.compile(r"System memory \d+ must be at least \d+")
_ADDRESS: Final = re.compile(
    r"[^\n]*(?:BindException|UnknownHostException|Cannot assign requested address|Address already in use)[^\n]*"
)


@contextmanager
def available() -> Iterator[None]:
    """Start Spark inside this: raises ``Failure`` (R510) if it cannot start, with the cause.

    That is no Java, one that is too old, too little memory, or an address that cannot be used. If Java is neither in
    JAVA_HOME nor on the PATH, the usual places are searched.
    """
    command = named()
    if command is None:
        home = installed()
        if home is None:
            raise _failure(f"Spark needs Java {LEAST} or newer, and there is no java: {searched_places()}", INSTALL)
        os.environ["JAVA_HOME"] = str(home)
        command = str(home / "bin" / "java")
    try:
        yield
    except PySparkRuntimeError as error:
        if error.getCondition() != _EXITED:
            raise
        raise _without_answer(command, error) from error
    except Py4JError as error:
        if (failure := _of_spark(str(error))) is None:
            raise
        raise failure from error


def _without_answer(command: str, error: Exception) -> Failure:
    """Say why Java ended before it answered."""
    answer = answer_of(command)
    if lacks := out_of_memory(answer):
        return _failure(f"Spark did not start, because Java has too little memory: {lacks}", GIVE)
    version = version_in(answer)
    if version is None:
        return _failure(f"Spark did not start, and {command} prints no version: {error}", INSTALL)
    if version < LEAST:
        return _failure(f"Spark needs Java {LEAST} or newer, and {command} is Java {version}", INSTALL)
    if lacks := out_of_memory(answer_of(command, f"-Xmx{os.environ.get('SPARK_DRIVER_MEMORY', '1g')}")):
        return _failure(f"Spark did not start, because Java has too little memory: {lacks}", GIVE)
    return _failure(f"Spark did not start: {command} is Java {version}, and ended before it answered", _SETTINGS)


def _of_spark(text: str) -> Failure | None:
    """Return why Spark did not start in a Java that runs, if that is a matter of the machine."""
    if match := _TOO_SMALL.search(text):
        return _failure(f"Spark did not start, because its memory is too small: {match[0].strip()}", _LESS)
    if lacks := out_of_memory(text):
        return _failure(f"Spark did not start, because Java has too little memory: {lacks}", GIVE)
    if match := _ADDRESS.search(text):
        return _failure(f"Spark did not start, because it cannot use an address: {match[0].strip()}", _NAMES)
    return None


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
    return version_in(answer_of(command))


def answer_of(command: str, *options: str) -> str:
    """Return what a java command says about itself, or why it does not run."""
    arguments = [command, *options, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(arguments, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - Spark runs the same
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return f"{answer.stderr}\n{answer.stdout}"  # the reason why a JVM does not begin is on standard output


def out_of_memory(text: str) -> str:
    """Return the line in which Java says that memory is missing, or nothing."""
    match = _MEMORY.search(text)
    return match[0].strip("# \t") if match else ""


def version_in(text: str) -> int | None:
    """Return the version in what a java command says."""
    match = _VERSION.search(text)
    return int(match[1]) if match else None


def _failure(what: str, hint: str) -> Failure:
    return Failure(Problem("R510", what, hint=hint))
