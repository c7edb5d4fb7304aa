"""What Spark writes to standard error in a session that rowtime makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """import datetime as dt
import pyarrow as pa, pyarrow.parquet as pq
import rowtime as rt
from rowtime.runtime import session
from pyspark.sql import SparkSession
session._CONF = {**session._CONF, "spark.sql.execution.arrow.localRelationThreshold": "0"}
at = pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 3)
pq.write_table(pa.table({"n": pa.array([1, 0, 3], pa.int32()), "at": at}), "0.parquet")
pipeline = rt.Pipeline().sql(
    "CREATE STREAM a (n INT, at TIMESTAMP) USING parquet OPTIONS (path '0.parquet', rowtime.column 'at');"
    "SELECT STREAM soundex(CAST(10 / n AS STRING)) AS d FROM a"
)
pipeline.sink("result", lambda b: None)
print(pipeline.run_available(end=True).ledger["query"]["MALFORMED"])
spark = SparkSession.builder.getOrCreate()
spark._jvm.org.apache.logging.log4j.LogManager.getLogger("org.apache.spark.Some").error("The disk is broken.")
"""


@pytest.mark.slow  # it starts a Spark of its own
def test_no_stack_trace_is_shown_for_a_row_that_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr
    [line] = [line for line in ran.stderr.splitlines() if " ERROR " in line or line.startswith("\tat ")]
    assert line.endswith("ERROR Some: The disk is broken."), "other errors are shown"
