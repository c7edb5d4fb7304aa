"""Audits one of the three jobs: windows, payments or duplicates.

python -m examples.audit_spark windows [options of rowtime audit-spark]
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rowtime.cli.main import app

FOLDER: Final = Path(__file__).parent
INPUTS: Final = {"windows": ["readings"], "payments": ["orders", "payments"], "duplicates": ["clicks"]}


def arguments(name: str) -> list[str]:
    """The arguments of the command for a job; the files get the times of change that are their names."""
    for file in FOLDER.glob("*/*.csv"):
        hour, minute = map(int, file.stem.split("-"))
        at = datetime(2026, 1, 1, hour, minute, tzinfo=UTC).timestamp()
        os.utime(file, (at, at))
    inputs = [word for one in INPUTS[name] for word in ("--input", f"{one}={FOLDER / one}")]
    return ["audit-spark", str(FOLDER / f"{name}.py"), *inputs]


if __name__ == "__main__":
    app([*arguments(sys.argv[1]), *sys.argv[2:]])
