"""Starts commands of rowtime for the console, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def run_rowtime(arguments: Sequence[str], patience: float) -> subprocess.CompletedProcess[str]:
    """Run ``rowtime`` with these arguments, for at most that many seconds; a longer run counts as failed."""
    try:
        return subprocess.run(  # noqa: S603 - our own arguments, and no shell
            [sys.executable, "-m", "rowtime", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(late.cmd, 1, "", f"The command did not end within {patience:.0f} seconds.")
