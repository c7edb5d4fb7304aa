"""From the start of Python to the first committed tick of ``rowtime run`` of a script of three statements.

The long form measures it also after ``rowtime warm``, of a script with ``GROUP BY``, and of a script with a function
that only Spark computes, so that it waits for Spark; the others do not. The start of Spark is measured separately: a
process that imports PySpark and creates a session with the same master. All run in turns, a new process each time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from benchmarks.engines import Engines

SECONDS = 8.0
ROWS = Rows(100, 1, files=1, rows=1000)
SCRIPT = """CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}');
CREATE STREAM o (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{output}');
CREATE PUMP p AS INSERT INTO o SELECT STREAM ev, k, v FROM s WHERE v >= 500;
"""
GROUPED = """CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}');
CREATE STREAM o (k BIGINT, n BIGINT) USING parquet OPTIONS (path '{output}');
CREATE PUMP p AS INSERT INTO o SELECT STREAM k, COUNT(*) FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE), k;
"""
WAITING = SCRIPT.replace("v >= 500", "v >= 500 AND conv(CAST(v AS STRING), 10, 2) <> ''")
SPARK = """from pyspark.sql import SparkSession
SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
print("batchId", flush=True)
"""


def measure(engines: Engines, *, short: bool) -> Result:
    processes = 2 if short else 5
    plain, warm = (str(engines.fresh(name)) for name in ("plain", "warm"))
    if not short:
        warmed = {**os.environ, "XDG_CACHE_HOME": warm}
        subprocess.run([sys.executable, "-m", "rowtime", "warm"], env=warmed, stdout=subprocess.DEVNULL, check=True)
    caches = {"rowtime": plain}
    if not short:
        caches |= {"rowtime_warm": warm, "grouped": plain, "waiting": plain}
    texts = {"grouped": GROUPED, "waiting": WAITING}
    spent: dict[str, list[float]] = {name: [] for name in (*caches, "spark")}
    for _ in range(processes):
        for name, cache in caches.items():
            place = engines.fresh(f"cold-{name}")
            script = place / "script.sql"
            script.write_text(texts.get(name, SCRIPT).format(source=ROWS.folder(), output=place / "out"))
            places = ["--home", str(place / "home"), "--checkpoint", str(place / "checkpoint")]
            spent[name].append(_seconds(["-m", "rowtime", "run", str(script), "--end", "--json", *places], cache))
        spent["spark"].append(_seconds(["-c", SPARK], plain))
    medians = {name: round(middle([1000 * one for one in seconds]) / 1000, 2) for name, seconds in spent.items()}
    labels = {
        "rowtime": f"{SECONDS:g} seconds",
        "rowtime_warm": f"{SECONDS:g} seconds, after rowtime warm",
        "grouped": f"{SECONDS:g} seconds, GROUP BY",
        "waiting": f"{SECONDS:g} seconds, waiting for Spark",
    }
    return {
        "processes": processes,
        "median_s": medians,
        "answers": {name: _compared(engines.folder / f"cold-{name}" / "out", name) for name in caches},
        "ratios": [against(labels[name], medians[name] / SECONDS, 1.0, most=True) for name in caches],
    }


def _seconds(command: list[str], cache: str) -> float:
    """Return the seconds until a process prints the first word of the progress of a tick."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    with tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            seconds = [time.perf_counter() - began for line in process.stdout if "batchId" in line]
        errors.seek(0)
        if process.returncode or not seconds:
            raise RuntimeError(f"{command} ended with {process.returncode}: {errors.read()[-2000:]}")
    return seconds[0]


def _compared(output: Path, name: str) -> str:
    rows = pq.read_table(ROWS.folder())
    if name == "grouped":
        counts = pq.read_table(output, columns=["k", "n"]).group_by("k").aggregate([("n", "sum")]).sort_by("k")
        known = rows.group_by("k").aggregate([("k", "count")]).sort_by("k")
        return "equal" if [*counts.to_pydict().values()] == [*known.to_pydict().values()] else "other counts"
    expected = rows.filter(pc.greater_equal(rows["v"], 500)).select(["k", "v"])
    found = pq.read_table(output, columns=["k", "v"])
    return "equal" if found.equals(expected) else f"{found.num_rows} rows against {expected.num_rows}"


COLD_START = Measurement("cold_start", "Python's start to the first committed tick of rowtime run", measure)
