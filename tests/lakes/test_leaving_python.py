"""If a script ends while its query runs, the query is stopped first, in whatever state it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

pytestmark = pytest.mark.slow

SCRIPT: Final = """
import threading, time
import pyarrow as pa
import rowtime as rt
from deltalake import write_deltalake
from rowtime.api import query as queries
from rowtime.runtime.session import new_spark
from rowtime.runtime.sinks.delta_log import DeltaLog

inside, real = threading.Event(), DeltaLog.commit
def commit(self, ready):
    if ready.mark.tick > 1:
        inside.set()
        for _ in range(50):  # it takes its time, in deltalake
            write_deltalake("{folder}/other", pa.table({{"n": [*range(1000)]}}), mode="append")
    real(self, ready)

DeltaLog.commit = commit
{fault}
spark = new_spark([], master="local[1]", conf={{"spark.ui.enabled": "false"}})
query = rt.Pipeline(spark, home="{folder}/home").sql('''
CREATE STREAM r (value BIGINT) USING rate OPTIONS (rowsPerSecond '1000');
CREATE STREAM o (value BIGINT) USING delta OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM value FROM r;''').start("{folder}/check", interval=0.0)
inside.wait()
"""


def status(folder: Path, fault: str = "") -> int:
    asked = [sys.executable, "-c", SCRIPT.format(folder=folder, fault=fault)]
    return subprocess.run(asked, capture_output=True, check=False, timeout=300).returncode


def test_a_script_that_ends_beside_its_query_ends_well_and_loses_no_tick(tmp_path: Path) -> None:
    assert [status(tmp_path), status(tmp_path)] == [0, 0]
    rows = DeltaTable(str(tmp_path / "out")).to_pyarrow_table()["value"].to_pylist()
    assert sorted(rows) == [*range(len(rows))]
    ticks = [one["rowtime.tick"] for one in DeltaTable(str(tmp_path / "out")).history() if "rowtime.tick" in one]
    assert len(ticks) == len({*ticks}) >= 3


def test_without_that_python_ends_by_a_signal(tmp_path: Path) -> None:
    assert status(tmp_path, "queries.stopped_at_exit = lambda _query: None") < 0
