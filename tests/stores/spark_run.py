"""Runs `rowtime` with the given arguments, so that Spark reads and writes instead of the driver.

The environment may say at which point of a migration the process dies (``DIES``).
"""

from __future__ import annotations

import os
import sys

import pytest

from rowtime.cli.main import app
from rowtime.runtime import local_rows, segment_writer
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.state.memory import Memory
from tests.upgrades.migrating import die_at

DEAD = 9  # the exit status of a process that died

if __name__ == "__main__":
    segment_writer.fits_the_driver = lambda *_: False  # type: ignore[assignment]
    local_rows.MOST = 0  # type: ignore[misc]
    Memory.put = lambda *_: None  # type: ignore[method-assign, assignment]
    if os.environ.get("DIES"):
        die_at(os.environ["DIES"], (DeltaLog, "commit"), pytest.MonkeyPatch(), die=lambda: os._exit(DEAD))
    app(sys.argv[1:])
