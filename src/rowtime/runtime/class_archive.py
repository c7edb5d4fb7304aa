"""An archive of the classes of Spark that Java has loaded (class data sharing), with which it starts in less time.

Java maps the archive into memory instead of reading, checking and linking thousands of classes. An archive belongs to
one Java and one set of Spark's jars, so its name has checksums of both; Java itself ignores one that does not fit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Final

from rowtime.core.errors import Failure, Problem
from rowtime.runtime import java
from rowtime.runtime.jars import caches, spark_jars

_SECONDS: Final = 300
_QUIET: Final = "-Xlog:cds=off,cds+dynamic=off,class+path=off"
"""Java would say in the output of the program that an archive does not fit."""


def place() -> Path | None:
    """Return the path of the archive for this Java and this Spark; ``None`` if one of them, or the home, is missing."""
    command = java.named()
    if command is None and (home := java.installed()) is not None:
        command = str(home / "bin" / "java")
    if command is None:
        return None
    try:
        program = Path(command).resolve()
        files = [program, *sorted(spark_jars().glob("*.jar"))]
        facts = [(path.name, about.st_size, about.st_mtime_ns) for path in files for about in (path.stat(),)]
        where, what = (zlib.crc32(repr(of).encode()) for of in ((str(program), str(spark_jars())), facts))
        return caches() / f"classes-{where:08x}-{what:08x}.jsa"
    except (OSError, RuntimeError):  # `Path.home` raises the latter
        return None


def options() -> list[str]:
    """Return the options with which Java uses the archive; none if there is no archive."""
    path = place()
    return [] if path is None or not path.exists() else [f'-XX:SharedArchiveFile="{path}"', _QUIET]


def write() -> Path:
    """Write the archive, in about a minute, in place of earlier ones. Raises ``Failure`` (R501, R510)."""
    with java.available():
        path = place()
    if path is None:
        what = "an archive of Java's classes has no place: there is no home folder, or Spark's jars cannot be read"
        raise Failure(Problem("R501", what, hint="Set HOME or XDG_CACHE_HOME."))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as work:
            fresh = Path(work, path.name)
            command = [sys.executable, "-m", "rowtime.api.class_training", str(fresh)]
            alone = {**os.environ, "XDG_CACHE_HOME": work}  # Java does not add to an archive
            done = subprocess.run(  # noqa: S603 - a module of ours
                command, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=work, env=alone
            )
            if done.returncode or not fresh.exists():
                lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
                reason = lines[-1] if lines else "it gave no reason"
                raise Failure(Problem("R501", f"Java wrote no archive of its classes: {reason}"))
            fresh.replace(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(Problem("R501", f"the archive {path} cannot be written: {error}")) from error
    for old in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*.jsa"):  # of the same Java and folder of jars
        if old != path:
            old.unlink(missing_ok=True)
    return path
