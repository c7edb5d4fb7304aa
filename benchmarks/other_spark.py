"""Another version of Spark, with jars, in an environment of its own below ``build``, made once."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

BUILD: Final = Path(__file__).parents[1] / "build"
DELTA: Final = ("4.2.0", ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"))
"""The last Spark for which there is a connector of Delta."""
SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Settings for that connector, and few tasks over its log, since the table is small."""
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def installed(version: str, jars: Sequence[str]) -> Path:
    """Return the folder of the environment of a version, with at least these jars, given as Maven coordinates.

    Processes that want one at the same time wait for each other. Raises ``OSError`` or ``CalledProcessError`` if it
    cannot be made.
    """
    BUILD.mkdir(exist_ok=True)
    place = BUILD / f"spark-{version}"
    with place.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            shutil.rmtree(place, ignore_errors=True)
            _run(sys.executable, "-m", "venv", place)
            _run(place / "bin/pip", "install", "-q", f"pyspark=={version}")
            (place / "done").touch()
        for jar in jars:
            if not _file(place, jar).exists():
                _run("mvn", "-q", _COPY, f"-Dartifact={jar}", f"-DoutputDirectory={place / 'jars'}")
    return place


def delta_jars() -> str:
    """Return the files of Delta's connector, as ``spark.jars`` lists them, for a Spark of that version."""
    for jar in DELTA[1]:
        if not _file(BUILD, jar).exists():
            _run("mvn", "-q", _COPY, f"-Dartifact={jar}", f"-DoutputDirectory={BUILD / 'jars'}")
    return jars_in(BUILD, DELTA[1])


def jars_in(place: Path, jars: Sequence[str]) -> str:
    """Return the files of these jars in an environment, as ``spark.jars`` lists them."""
    return ",".join(str(_file(place, jar)) for jar in jars)


def _file(place: Path, jar: str) -> Path:
    _, name, version = jar.split(":")
    return place / "jars" / f"{name}-{version}.jar"


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def streamed(**asked: Any) -> list[list[float]]:
    """Return the milliseconds of each batch of streams into a Delta table, a list per round (see `delta_query.py`)."""
    place = installed(*DELTA)
    ours = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    told = json.dumps({"conf": {"spark.jars": jars_in(place, DELTA[1]), **SETTINGS}, **asked})
    command = [str(place / "bin/python"), str(Path(__file__).parent / "delta_query.py"), told]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Spark {DELTA[0]} failed: {done.stderr[-2000:]}")
    found: list[list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
