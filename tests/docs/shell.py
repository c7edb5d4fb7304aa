"""Runs the commands of a page, and compares their output with what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

INSTALLED = "ROWTIME_BIN"
"""The variable with the folder of commands of another environment, in which the wheel is installed."""


class Shell:
    """A shell that keeps its working directory between commands; commands of the given environment come first."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._left = folder, folder.with_name("left")
        bin_folder = os.environ.get(INSTALLED) or str(Path(sys.executable).parent)
        ours = ["ROWTIME_HOME", "PYTHONPATH"]
        if INSTALLED in os.environ:
            ours += ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"]
        kept = {key: value for key, value in os.environ.items() if key not in ours}
        self.environment = kept | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}

    def __call__(self, commands: str) -> list[str]:
        """Run commands, which must all succeed; return their lines of output."""
        ended = subprocess.run(
            ["bash", "-e", "-c", f"{commands}\npwd >{self._left}"], cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert ended.returncode == 0, f"{commands}{ended.stdout}"
        self.folder = Path(self._left.read_text(encoding="utf-8").strip())
        return ended.stdout.splitlines()


def met(shown: str, said: list[str]) -> None:
    """Check that each line of the page is printed, in this order; an ellipsis stands for anything."""
    left = iter(said)
    for line in shown.splitlines():
        pattern = ".*".join(re.escape(part) for part in line.split("…"))
        assert any(re.fullmatch(pattern, one) for one in left), f"{line}\nis not said in\n{said}"
