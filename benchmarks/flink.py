"""PyFlink beside us: an environment of its own, made by ``make flink``, whose Python runs a script of ours."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "build" / "flink-venv" / "bin" / "python"
MISSING = "not measured: there is no PyFlink; make flink"


def is_there() -> bool:
    return PYTHON.exists()


def run(script: str, *arguments: str) -> dict[str, Any]:
    """The last line of what a script of this folder prints, which is JSON."""
    ours = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    command = [str(PYTHON), str(Path(__file__).parent / script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
