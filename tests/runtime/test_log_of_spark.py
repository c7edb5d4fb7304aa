"""What Spark writes to standard error in a session that rowtime makes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """import datetime as dt, os
import pyarrow as pa, pyarrow.parquet as pq
import rowtime as rt
from rowtime.runtime import session
from pyspark.sql import SparkSession
session._CONF = {**session._CONF, "spark.sql.execution.arrow.localRelationThreshold": "0"}
at = pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 3)
pq.write_table(pa.table({"n": pa.array([1, 0, 3], pa.int32()), "at": at}), "0.parquet")
QUERIES = (
    "SELECT STREAM soundex(CAST(10 / n AS STRING)) AS d FROM a",
    "SELECT STREAM SIZE(SEQUENCE(1, n, IF(n = 0, 1, n))) AS d FROM a",
    "SELECT STREAM 'a' RLIKE IF(n = 0, '(', 'a') AS d FROM a",
    "SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS h, CORR(IF(n = 0, NULL, 1), IF(n = 0, NULL, 1)) AS d FROM a "
    "GROUP BY FLOOR(a.ROWTIME TO HOUR)",
)
for query in QUERIES:
    pipeline = rt.Pipeline().sql(
        "CREATE STREAM a (n INT, at TIMESTAMP) USING parquet OPTIONS (path '0.parquet', rowtime.column 'at');" + query
    )
    pipeline.sink("result", lambda b: None)
    print(pipeline.run_available(end=True).ledger["query"]["MALFORMED"])
called = rt.Pipeline().sql(
    "CREATE STREAM a (n INT, at TIMESTAMP) USING parquet OPTIONS (path '0.parquet', rowtime.column 'at');"
    "CREATE FUNCTION f(x INT) RETURNS INT AS 'raising:f'; SELECT STREAM f(n) AS d FROM a"
)
called.sink("result", lambda b: None)
try:
    called.run_available(end=True)
except rt.RowtimeError as failed:
    print(failed.problems[0].code)
spark = SparkSession.builder.getOrCreate()
spark._jvm.org.apache.logging.log4j.LogManager.getLogger("org.apache.spark.Some").error("The disk is broken.")
pq.write_table(pa.table({"n": [1]}), "1.parquet")
rows = spark.read.parquet("1.parquet")
os.remove("1.parquet")
try:
    rows.collect()
except Exception:
    print("failed")
"""


@pytest.mark.slow  # it starts a Spark of its own
@pytest.mark.parametrize("small_ticks", ["driver", "spark"])
def test_no_stack_trace_is_shown_for_a_row_that_is_refused(tmp_path: Path, small_ticks: str) -> None:
    command = [sys.executable, "-c", CODE]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
    env |= {"ROWTIME_SMALL_TICKS": small_ticks, "PYTHONPATH": str(tmp_path)}
    (tmp_path / "raising.py").write_text("def f(x):\n    return 10 // x\n")
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "1\n1\n1\n1\nR512\nfailed\n"), ran.stderr
    own, *others = [line for line in ran.stderr.splitlines() if " ERROR " in line]
    assert own.endswith("ERROR Some: The disk is broken."), "other errors are shown"
    assert [line.split()[2] for line in others] == ["Executor:"], ran.stderr
    assert re.search("FILE_NOT_EXIST|FileNotFound", ran.stderr.partition(own)[2])
    before = ran.stderr.partition(own)[0]
    assert not re.search(r"\tat |\\tat |Warning", before), before
