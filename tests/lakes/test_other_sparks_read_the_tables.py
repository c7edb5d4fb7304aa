"""A Spark with the format's own connector reads the rows that were written: an independent oracle."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from benchmarks.other_spark import DELTA, SETTINGS, installed, jars_in
from rowtime.runtime.iceberg_catalog import opened
from tests.kafka.missing_jars import without_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.xerial:sqlite-jdbc:3.50.3.0")
COLUMNS = """n BIGINT NOT NULL, d DATE, s STRING, x DECIMAL(30, 10), b BOOLEAN, f DOUBLE, t TIMESTAMP_NTZ,
  l ARRAY<INT>, st STRUCT<a: INT, b: STRING>"""
SQL = f"""CREATE STREAM a ({COLUMNS});
CREATE STREAM o ({COLUMNS}) USING {{using}};
CREATE PUMP p AS INSERT INTO o SELECT STREAM * FROM a;"""
READ = """
import json, sys
from pyspark.sql import SparkSession
told = json.loads(sys.argv[1])
made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name, value in told["conf"].items():
    made = made.config(name, value)
rows = eval(told["rows"], {"spark": made.getOrCreate()})
wheres = ("true", "s = 'k/\\u00e4 1%' AND d = DATE'2024-01-02'", "d IS NULL", "n BETWEEN 37 AND 52", "b", "x > 1",
          "rowtime > TIMESTAMP'1970-01-01 00:01:00Z'", "f > 100", "isnan(f)", "l[0] = 7", "st.a = 7 AND st.b IS NULL",
          "t = TIMESTAMP_NTZ'2024-01-01 10:00:00.123456'")
print("COUNTS", json.dumps([rows.where(where).count() for where in wheres]))
"""


def row(n: int) -> dict[str, Any]:
    return {
        "n": n,
        "d": f"2024-01-0{1 + n % 3}" if n % 7 else None,
        "s": f"k/ä {n % 4}%",
        "x": "12345678901234567890.1234567891",
        "b": n % 2 == 0,
        "f": float("nan") if n % 5 == 0 else n * 1.5,
        "t": "2024-01-01 10:00:00.123456",
        "l": [n, None],
        "st": {"a": n, "b": None},
        "rowtime": n * 1_001_001,
    }


EXPECTED = [120, 9, 18, 16, 60, 120, 60, 67, 24, 1, 1, 120]


def filled(spark: SparkSession, folder: Path, using: str, *more: dict[str, Any]) -> None:
    parts = [[row(n) for n in range(begun, begun + 40)] for begun in (0, 40, 80)]
    for part in ([], *parts, *([list(more)] if more else [])):
        if part:
            with rt.writer("a", home=folder / "home") as log:
                log.insert(part)
        rt.Pipeline(spark, home=folder / "home").sql(SQL.format(using=using)).run_available(folder / "check")


def said(text: str) -> str:
    """The end of what Spark said, without the places in its code, between which the message and its causes are lost."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("at ", "...")))[-6000:]


def counts(version: str, jars: tuple[str, ...], conf: dict[str, str], rows: str) -> list[int]:
    """The counts of a Spark version; it is installed below ``build`` once, with its jars."""
    try:
        place = installed(version, jars)
    except (OSError, subprocess.CalledProcessError) as error:
        without_jars(f"Spark {version} cannot be installed: {error}")
    told = json.dumps({"conf": {"spark.jars": jars_in(place, jars), **conf}, "rows": rows})
    found = subprocess.run([place / "bin/python", "-c", READ, told], check=False, capture_output=True, text=True)
    lines = [line.partition("COUNTS ")[2] for line in found.stdout.splitlines() if "COUNTS " in line]
    assert lines, said(found.stderr)
    counted: list[int] = json.loads(lines[0])
    return counted


@pytest.mark.parametrize("key", ["", ", key 'n'", ", optimize.files '9'"])
def test_spark_reads_a_delta_table(spark: SparkSession, tmp_path: Path, key: str) -> None:
    again = [{**row(n), "rowtime": 10**9 + n} for n in range(40)] if "key" in key else []
    filled(spark, tmp_path, f"delta PARTITIONED BY (d, s, b) OPTIONS (path '{tmp_path}/out'{key})", *again)
    found = counts(*DELTA, SETTINGS, f"spark.read.format('delta').load('{tmp_path}/out')")
    assert found == [*EXPECTED[:6], EXPECTED[6] + len(again), *EXPECTED[7:]]


@pytest.mark.parametrize("key", ["", ", key 'n'", ", optimize.files '9'"])
def test_spark_reads_an_iceberg_table(spark: SparkSession, tmp_path: Path, key: str) -> None:
    options = f"""catalog 'c', table 'db.o', catalog.type 'sql', catalog.uri 'sqlite:///{tmp_path}/catalog.db',
      catalog.warehouse 'file://{tmp_path}/lake'{key}"""
    again = (
        [{**row(n), "rowtime": 10**9 + n} for n in range(40)] if "key" in key else []
    )  # 40 of them are below the minute
    filled(spark, tmp_path, f"iceberg PARTITIONED BY (d, s) OPTIONS ({options})", *again)
    there = opened("c", {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}).load_table("db.o")
    done = [one.summary.operation.value for one in there.snapshots()]
    assert ("replace" in done) == ("optimize" in key), done
    conf = {
        "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.c.type": "jdbc",
        "spark.sql.catalog.c.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "spark.sql.catalog.c.jdbc.schema-version": "V1",
        "spark.sql.catalog.c.warehouse": f"file://{tmp_path}/lake",
    }
    found = counts("4.1.1", ICEBERG, conf, "spark.table('c.db.o')")
    assert found == [*EXPECTED[:6], EXPECTED[6] + len(again), *EXPECTED[7:]]
