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


def query(**asked: Any) -> dict[str, list[float]]:
    """The ``seconds`` and ``processor`` seconds of each round of a query (see `flink_query.py`)."""
    ours = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    command = [str(PYTHON), str(Path(__file__).parent / "flink_query.py"), json.dumps(asked)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"PyFlink failed: {done.stderr[-2000:]}")
    found: dict[str, list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
