"""Runs `rowtime` with the given arguments, so that tasks of Spark read and write instead of the driver.

The environment may say at which point of a migration the process dies (``DIES``).
"""

from __future__ import annotations

import os
import sys

import pytest

from rowtime.cli.main import app
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.state.memory import Memory
from tests.upgrades.migrating import die_at

DEAD = 9  # the exit status of a process that died

if __name__ == "__main__":
    os.environ["ROWTIME_SMALL_TICKS"] = "spark"
    Memory.put = lambda *_: None  # type: ignore[method-assign, assignment]
    if os.environ.get("DIES"):
        die_at(os.environ["DIES"], (DeltaLog, "commit"), pytest.MonkeyPatch(), die=lambda: os._exit(DEAD))
    app(sys.argv[1:])
