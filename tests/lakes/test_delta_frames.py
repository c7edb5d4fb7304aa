"""A streaming DataFrame of a Delta table has no order that Spark tells: the hint reads the same rows by SQL."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import rowtime as rt
from benchmarks.other_spark import DELTA, SETTINGS, installed, jars_in
from tests.kafka.missing_jars import without_jars

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# Delta's extensions are those of a session's start, so that is another process.
REFUSED = """
import json, sys
from pyspark.sql import SparkSession
import rowtime as rt
from rowtime.core.errors import Refused
path, conf = sys.argv[1], json.loads(sys.argv[2])
made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name, value in conf.items():
    made = made.config(name, value)
spark = made.getOrCreate()
frame = spark.readStream.format("delta").load(path)
frame.createOrReplaceTempView("seen")
spark.sql(f"CREATE TABLE named USING delta LOCATION '{path}'")
hints = []
for given in (frame, frame.where("n > 0"), spark.table("seen"), spark.readStream.table("named")):
    try:
        rt.Pipeline(spark).source("s", given).sql("SELECT STREAM n FROM s").compile()
    except Refused as refused:
        hints.append([refused.problems[0].code, refused.problems[0].hint])
print("HINTS", json.dumps(hints))
"""
PUMP = "CREATE PUMP p AS INSERT INTO rows SELECT STREAM n FROM s"


@pytest.mark.slow
def test_the_hint_for_a_delta_frame_a_view_and_a_table_reads_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for first in (1, 3):
        write_deltalake(table, pa.table({"n": pa.array([first, first + 1], pa.int64())}), mode="append")
    try:
        conf = {"spark.jars": jars_in(installed(*DELTA), DELTA[1]), **SETTINGS}
    except (OSError, subprocess.CalledProcessError) as error:
        without_jars(f"Delta's connector cannot be installed: {error}")
    conf["spark.sql.warehouse.dir"] = str(tmp_path / "warehouse")
    command = [sys.executable, "-c", REFUSED, str(table), json.dumps(conf)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "HINTS " in ran.stdout, ran.stderr[-3000:]
    hints = json.loads(ran.stdout.partition("HINTS ")[2])
    assert [code for code, _ in hints] == ["R224"] * 4
    for number, (_, hint) in enumerate(hints):
        create = hint.split("what the DataFrame does: ")[1].split(". Name columns")[0]
        place = tmp_path / str(number)
        sql = f"{create}; CREATE STREAM rows (n BIGINT) USING memory; {PUMP}"
        query = rt.Pipeline(spark, home=place / "home").sql(sql).run_available(place / "check", end=True)
        assert query.table("rows")["n"].to_pylist() == [1, 2, 3, 4], create
