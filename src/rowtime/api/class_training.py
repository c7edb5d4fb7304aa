"""Runs what most pipelines run, so that Java loads the classes for the archive (`runtime.class_archive`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext

from rowtime.api.pipeline import Pipeline
from rowtime.runtime.session import new_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1_000
SCRIPT = """
CREATE STREAM s (t TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{work}/rows', rowtime.column 't');
CREATE STREAM o (k BIGINT, n BIGINT) USING parquet OPTIONS (path '{work}/groups');
CREATE STREAM j (k BIGINT, v BIGINT) USING json OPTIONS (path '{work}/json');
CREATE PUMP p AS INSERT INTO o
  SELECT STREAM k, COUNT(*) AS n FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE), k;
CREATE PUMP q AS INSERT INTO j SELECT STREAM k, v FROM s WHERE v > 10;
"""


def main(archive: str) -> None:
    """Run a small pipeline, the same work in Spark, and end Java, which then writes the archive."""
    work = Path.cwd()
    (work / "rows").mkdir()
    times = pa.array(range(0, ROWS * 1_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    numbers = pa.array([n % 7 for n in range(ROWS)])
    pq.write_table(pa.table({"t": times, "k": numbers, "v": pa.array(range(ROWS))}), work / "rows" / "1.parquet")
    spark = new_spark(conf={"spark.driver.extraJavaOptions": f'-XX:ArchiveClassesAtExit="{archive}"'})
    pipeline = Pipeline(spark, home=work / "home").sql(SCRIPT.format(work=work))
    pipeline.run_available(work / "checkpoint")
    _in_spark(spark, work)
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public way to wait for Java's end
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _in_spark(spark: SparkSession, work: Path) -> None:
    """Let Spark itself read, group, join, sort and write, as ticks do that are too large for the driver."""
    rows = spark.read.parquet(str(work / "rows"))
    groups = rows.groupBy("k").agg({"v": "sum"}).withColumnRenamed("sum(v)", "total")
    joined = (
        rows.join(groups, "k")
        .orderBy("t")
        .mapInArrow(lambda batches: batches, "k BIGINT, t TIMESTAMP, v BIGINT, total BIGINT")
    )
    joined.write.parquet(str(work / "joined"))
    rows.write.json(str(work / "lines"))
    spark.read.schema("k BIGINT, v BIGINT").json(str(work / "lines")).toArrow()


if __name__ == "__main__":
    main(sys.argv[1])
