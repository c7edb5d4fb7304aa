"""Checks of what rowtime needs on a machine: the content of ``rowtime doctor``.

Each check examines one thing and reports its finding. Nothing is installed, fetched or changed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from time import strftime
from typing import Final, Literal

from rowtime.core.errors import Failure, headline
from rowtime.core.stores import Place
from rowtime.runtime import java

SOME_DISK: Final = 2**30  # bytes: state, segments and Spark's own files soon need this much
LEAST_DISK: Final = 2**27
LEAST_PYTHON: Final = (3, 11)
EXTRAS: Final = {
    "delta": ("deltalake", "Delta tables"),
    "iceberg": ("pyiceberg", "Iceberg tables"),
    "stores": ("obstore", "object stores"),
    "ui": ("starlette", "the console"),
    "metrics": ("prometheus-client", "metrics"),
    "openlineage": ("openlineage-python", "OpenLineage events"),
    "protobuf": ("grpcio-tools", "Protobuf in Kafka topics"),
}
"""By the name of an extra: its package, and its purpose."""

State = Literal["ok", "missing", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """The result of a check. ``missing``: something optional is not installed; ``todo``: what to do, if anything."""

    name: str
    state: State
    found: str
    todo: str = ""


def findings(home: Place, port: int, *, start: bool) -> Iterator[Finding]:
    """Run all checks in order; ``port``: that of the console; ``start``: also start Spark, for some seconds."""
    yield _python()
    yield from _workers()
    yield _java()
    yield from _class_archive()
    yield _spark(start=start)
    yield _kafka()
    yield from map(_extra, EXTRAS)
    yield _home(home)
    yield from _disks(home)
    yield _address()
    yield _port(port)
    yield _time_zone()


def _python() -> Finding:
    versions = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < LEAST_PYTHON:
        return Finding("Python", "failed", versions, "Install Python 3.11 or newer.")
    return Finding("Python", "ok", versions)


def _workers() -> Iterator[Finding]:
    """Check that Spark's workers run a PYSPARK_PYTHON of the driver's version, as they must."""
    command = os.environ.get("PYSPARK_PYTHON")
    if command is None or command == sys.executable:
        return
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        arguments = [command, "-c", "import sys; print(f'{sys.version_info.major}.{sys.version_info.minor}')"]
        version = subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=True).stdout.strip()  # noqa: S603 - as Spark runs it
    except (OSError, subprocess.SubprocessError) as error:
        yield Finding("PYSPARK_PYTHON", "failed", f"{command} does not run: {headline(error)}", "Unset PYSPARK_PYTHON.")
        return
    if version == mine:
        yield Finding("PYSPARK_PYTHON", "ok", f"Python {version}, {command}")
    else:
        what = f"{command} is Python {version}, and this is Python {mine}"
        yield Finding("PYSPARK_PYTHON", "failed", what, f"Set PYSPARK_PYTHON={sys.executable}, or unset it.")


def _java() -> Finding:
    command, place = java.named(), ""
    if command is None and (home := java.installed()) is not None:
        command, place = str(home / "bin" / "java"), ", not on the PATH"
    if command is None:
        return Finding("Java", "failed", f"no java: {java.searched_places()}", java.INSTALL)
    answer = java.answer_of(command)
    number = java.version_in(answer)
    if lacks := java.out_of_memory(answer):
        return Finding("Java", "failed", f"{command} has too little memory: {lacks}", java.GIVE)
    if number is None:
        return Finding("Java", "failed", f"{command} prints no version", java.INSTALL)
    return Finding(
        "Java",
        "ok" if number >= java.LEAST else "failed",
        f"{number}, {command}{place}",
        "" if number >= java.LEAST else java.INSTALL,
    )


def _class_archive() -> Iterator[Finding]:
    """Say whether starts are as fast as they can be; nothing if there is no Java."""
    from rowtime.runtime import class_archive  # noqa: PLC0415 - Spark

    path = class_archive.place()
    if path is None:
        return
    if path.exists():
        yield Finding("Java's classes", "ok", f"in the archive {path}")
    else:
        todo = "`rowtime warm` writes it (180 MB, one minute). Then Spark starts in about a third less time."
        yield Finding("Java's classes", "missing", "there is no archive for this Java and this Spark", todo)


def _spark(*, start: bool) -> Finding:
    number = version("pyspark")
    if not start:
        return Finding("Spark", "ok", f"{number}, not started")
    from rowtime.runtime.session import new_spark  # noqa: PLC0415 - Spark

    try:
        spark = new_spark()
        try:
            rows = spark.range(3).mapInArrow(lambda batches: batches, "id long").count()
        finally:
            spark.stop()
    except Failure as failure:
        problem = failure.problems[0]
        return Finding("Spark", "failed", f"{number} does not start: {problem.message}", problem.hint)
    except Exception as error:  # noqa: BLE001 - the user has to know any error
        what = "Read what Spark has printed. `rowtime doctor --no-spark` checks the rest."
        return Finding("Spark", "failed", f"{number} does not work: {headline(error)}", what)
    assert rows == 3  # noqa: PLR2004 - as above
    return Finding("Spark", "ok", f"{number}, ran a job with a Python worker")


def _kafka() -> Finding:
    from rowtime.runtime import jars  # noqa: PLC0415 - Spark

    coordinates = jars.connector()
    if jars.kept([coordinates]):
        return Finding("Kafka", "ok", f"{coordinates}, fetched before")
    if (newest := _newest_with_a_connector()) and _numbers(coordinates.rpartition(":")[2]) > _numbers(newest):
        what = "For Kafka: pip install 'rowtime[kafka]', which takes a Spark that has one."
        return Finding(
            "Kafka", "missing", f"{coordinates} may not be published yet, but that of Spark {newest} is", what
        )
    if shutil.which("mvn"):
        return Finding("Kafka", "ok", f"{coordinates}, which mvn fetches at the first use")
    what = "Install Maven (mvn), or give Spark the jars: spark.jars, or spark.jars.packages, with these coordinates."
    return Finding("Kafka", "missing", f"{coordinates} is not installed, and there is no mvn to download it", what)


def _newest_with_a_connector() -> str:
    """Return the newest Spark that the extra for Kafka takes; nothing if it takes any, or rowtime is not installed."""
    try:
        needs = requires("rowtime") or ()
    except PackageNotFoundError:
        return ""
    limits = (re.match(r"pyspark\b[^;]*<=([\d.]+).*extra == ['\"]kafka", one) for one in needs)
    return next((limit[1] for limit in limits if limit), "")


def _numbers(version_of_spark: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version_of_spark)[:3]]


def _extra(name: str) -> Finding:
    package, purpose = EXTRAS[name]
    try:
        return Finding(name, "ok", f"{package} {version(package)}, for {purpose}")
    except PackageNotFoundError:
        what = f"For {purpose}: pip install 'rowtime[{name}]'"
        return Finding(name, "missing", f"{package} is not installed", what)


def _home(home: Place) -> Finding:
    if not isinstance(home, Path):
        return Finding("home", "ok", str(home))
    if home.is_dir():
        return _writable("home", home)
    nearest = next(folder for folder in home.absolute().parents if folder.is_dir())
    finding = _writable("home", nearest)
    return finding if finding.state == "failed" else Finding("home", "ok", f"{home.absolute()}, made at the first use")


def _writable(name: str, folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding(name, "ok", str(folder.absolute()))
    except OSError as error:
        what = "Make it writable, or name another: --home DIR, or ROWTIME_HOME."
        return Finding(name, "failed", f"{folder.absolute()} cannot be written: {headline(error)}", what)


def _disks(home: Place) -> Iterator[Finding]:
    places = {"temporary folder": Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])}
    if isinstance(home, Path):
        places = {"home": home.absolute(), **places}
    for name, place in places.items():
        folder = next(parent for parent in (place, *place.parents) if parent.is_dir())
        free = shutil.disk_usage(folder).free
        space = f"{free / 2**30:.1f} GiB free at {folder}"
        state: State = "failed" if free < LEAST_DISK else "warning" if free < SOME_DISK else "ok"
        what = "Free some space: state and refused rows are kept on this disk." if name == "home" else ""
        what = what or "Free some space, or name another disk for Spark's own files: SPARK_LOCAL_DIRS."
        yield Finding(f"disk of the {name}", state, space, "" if state == "ok" else what)


def _address() -> Finding:
    """Check that driver and Java can connect by this machine's own address."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Finding("network", "ok", "127.0.0.1 has free ports")
    except OSError as error:
        what = "Java and Python communicate over 127.0.0.1. Allow processes to listen there."
        return Finding("network", "failed", f"no port of 127.0.0.1 is free: {headline(error)}", what)


def _port(port: int) -> Finding:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return Finding("port of the console", "ok", f"{port} is free")
    except OSError:
        what = "`rowtime ui --port 0` takes another one that is free."
        return Finding("port of the console", "warning", f"{port} is in use", what)


def _time_zone() -> Finding:
    return Finding("time zone", "ok", f"{strftime('%Z')} here; rowtime computes in UTC, and needs no setting")
