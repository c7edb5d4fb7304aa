"""A script that ends while its query runs ends well: the query is stopped first, wherever it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

pytestmark = pytest.mark.slow

SCRIPT: Final = """
import sys, time
import rowtime as rt
from rowtime.runtime.session import new_spark
spark = new_spark([], master="local[1]", conf={{"spark.ui.enabled": "false"}})
query = rt.Pipeline(spark, home="{folder}/home").sql('''
CREATE STREAM r (value BIGINT) USING rate OPTIONS (rowsPerSecond '1000');
CREATE STREAM o (value BIGINT) USING delta OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM value FROM r;''').start("{folder}/check", interval=0.0)
while len(query.recentProgress) < 3:
    time.sleep(0.01)
"""


def test_a_script_that_ends_beside_its_query_ends_well_and_loses_no_tick(tmp_path: Path) -> None:
    for _ in range(3):
        asked = [sys.executable, "-c", SCRIPT.format(folder=tmp_path)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    rows = DeltaTable(str(tmp_path / "out")).to_pyarrow_table()["value"].to_pylist()
    assert sorted(rows) == [*range(len(rows))]
    ticks = [one["rowtime.tick"] for one in DeltaTable(str(tmp_path / "out")).history() if "rowtime.tick" in one]
    assert len(ticks) == len({*ticks}) >= 6
