"""A headless Chromium, Debian's package driven by Playwright, and a console beside the tests."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parents[2] / "scripts"
FLAGS: Final = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


@functools.cache
def chromium() -> str:
    """Return the path of Chromium, installed now if possible; empty if it is not available."""
    if not (found := _found()):
        subprocess.run([str(SCRIPTS / "apt_install.sh"), "chromium"], check=False, timeout=900)
        found = _found()
    return found


def _found() -> str:
    named = os.environ.get("CHROMIUM", "")
    return named or next((path for name in NAMES if (path := shutil.which(name))), "")
