"""The rows of lake tables as another Spark reads them, by the connector of their format, without rowtime."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any, Final, Self

import pyarrow as pa

from benchmarks.other_spark import DELTA, SETTINGS, installed, jars_in
from reliability.crash.inside import Tally, Undisturbed, reads_every_version
from reliability.crash.lakes import THEIRS, Iceberg
from reliability.crash.stores import MIRROR

SPARKS: Final = {
    "delta": (*DELTA, SETTINGS),
    "iceberg": ("4.1.1", ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",), {}),
}
"""The version of Spark, the jars of the connector and their settings, by format."""
SMALL: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_OURS: Final = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"}
_READ: Final = """
import json, sys
from pyspark.sql import SparkSession, functions as F
made = SparkSession.builder.master("local[1]")
for name, value in json.loads(sys.argv[1]).items():
    made = made.config(name, value)
spark = made.getOrCreate()
for line in sys.stdin:
    kind, path = json.loads(line)
    if kind == "delta":  # which keeps in mind what a path held before
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    found = spark.read.format(kind).load(path)
    plain = [F.unix_micros(name).alias(name) if of == "timestamp" else F.col(name) for name, of in found.dtypes]
    print("ROWS", json.dumps([row.asDict() for row in found.select(*plain).collect()]), flush=True)
"""


class OtherSparks:
    """One process for each format, which begins with the first request and ends with this object."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def witness(self, run: Undisturbed, tally: Tally, where: str) -> None:
        """Check that they read what the library of the format reads, in whole ticks."""
        reads_every_version(run, tally, where)
        run.case.pull()
        for name, table in run.case.tables().items():
            known = table.content()
            if known is None:
                continue
            kind = "iceberg" if isinstance(table, Iceberg) else "delta"
            mirror = run.case.folder / MIRROR / name
            path = table.metadata if isinstance(table, Iceberg) else str(mirror)
            if path.startswith("s3:"):  # Iceberg names all files by their URLs, which that Spark cannot read
                continue
            tally.add("tables that another Spark read")
            if (found := self.read(kind, path)) != (wanted := _plain(known)):
                tally.losses.append(f"{where}: another Spark reads {found} in {name}, not {wanted}"[:1500])

    def read(self, kind: str, path: str) -> list[str]:
        """Return the rows of a Delta table by its path, or of an Iceberg table by its metadata, as texts."""
        process = self._processes.get(kind) or self._begin(kind)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([kind, path]) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("ROWS "):
                return _shown(json.loads(line.removeprefix("ROWS ")))
        raise RuntimeError(f"the other Spark ended with status {process.wait()} when it read {path}")

    def _begin(self, kind: str) -> subprocess.Popen[str]:
        version, jars, settings = SPARKS[kind]
        place = installed(version, jars)
        told = json.dumps({"spark.jars": jars_in(place, jars), **SMALL, **settings})
        self._processes[kind] = subprocess.Popen(
            [str(place / "bin/python"), "-c", _READ, told],
            env={name: value for name, value in os.environ.items() if name not in _OURS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self._processes[kind]


def _plain(table: pa.Table) -> list[str]:
    times = (n for n, column in enumerate(table.schema) if pa.types.is_timestamp(column.type))
    for at in times:
        table = table.set_column(at, table.schema.names[at], table.column(at).cast(pa.timestamp("us")).cast(pa.int64()))
    return _shown(table.to_pylist())


def _shown(rows: list[Mapping[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows if row["k"] != THEIRS)
