"""OVER with a RANGE of a minute, against Spark's batch window function over the same Parquet files."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from benchmarks.data import BEGINNING, CACHE, table, write
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.engines import Engines

FRAME = "PARTITION BY k ORDER BY {} RANGE BETWEEN INTERVAL '60' SECOND PRECEDING AND CURRENT ROW"
CALLS = "k, v, COUNT(*) OVER w AS c, SUM(v) OVER w AS s"
SQL = """
CREATE STREAM r (k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}', rowtime.column 'ev');
CREATE STREAM o (k BIGINT, v BIGINT, c BIGINT, s BIGINT) USING parquet OPTIONS (path '{output}', ordered 'false');
CREATE PUMP p AS INSERT INTO o SELECT STREAM {calls} FROM r WINDOW w AS ({frame});
"""


@dataclass(frozen=True)
class Ordered:
    """``files`` files of ``rows`` rows in order, one every millisecond, so a frame has 60,000 rows of all keys."""

    keys: int
    files: int
    rows: int = 500_000

    def folder(self) -> Path:
        folder = CACHE / f"ordered-{self.keys}-{self.files}x{self.rows}"
        done = folder.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for number in range(self.files):
                random = np.random.default_rng(number)
                times = BEGINNING + (np.arange(self.rows) + number * self.rows) * 1000
                write(folder, number, table(times, random.integers(0, self.keys, self.rows), random))
            done.touch()
        return folder


def measure(engines: Engines, *, short: bool, rows: Ordered, required: float) -> Result:
    """Both once to warm up on the fewest rows, then in turns; all rows must be equal."""
    rounds = 1 if short else 3
    warm = Ordered(10_000, 1, 100_000).folder()
    ours, theirs, same = [], [], []
    used: dict[str, list[float]] = {"rowtime": [], "batch": []}
    _rowtime(engines, warm)
    _batch(engines, warm)
    for _ in range(rounds):
        began = engines.processor()
        mine, output = _rowtime(engines, rows.folder())
        between = engines.processor()
        other, expected = _batch(engines, rows.folder())
        used["rowtime"].append(between - began)
        used["batch"].append(engines.processor() - between)
        ours.append(mine)
        theirs.append(other)
        same.append(_compared(output, expected))
    count = rows.files * rows.rows
    return {
        "keys": rows.keys,
        "rows": count,
        "rounds": rounds,
        "median_ms": {"rowtime": middle(ours), "batch": middle(theirs)},
        "rows_a_second": {"rowtime": int(count / middle(ours) * 1000), "batch": int(count / middle(theirs) * 1000)},
        "median_processor_s": {name: middle(seconds) for name, seconds in used.items()},
        "answers": {"batch": next((answer for answer in same if answer != "equal"), "equal")},
        "ratios": [against("batch", middle(theirs) / middle(ours), required)],
    }


def _rowtime(engines: Engines, source: Path) -> tuple[float, Path]:
    place = engines.fresh("over")
    text = SQL.format(source=source, output=place / "out", calls=CALLS, frame=FRAME.format("r.ROWTIME"))
    pipeline, began = rt.Pipeline(engines.spark, home=place / "home").sql(text), time.perf_counter()
    pipeline.run_available(place / "checkpoint", limits=rt.Limits(files=2))
    return (time.perf_counter() - began) * 1000, place / "out"


def _batch(engines: Engines, source: Path) -> tuple[float, Path]:
    place, began = engines.fresh("batch-over") / "out", time.perf_counter()
    spark = engines.spark.newSession()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.read.parquet(str(source)).createOrReplaceTempView("r")
    spark.sql(f"SELECT ev, {CALLS} FROM r WINDOW w AS ({FRAME.format('ev')})").write.parquet(str(place))
    return (time.perf_counter() - began) * 1000, place


def _compared(ours: Path, theirs: Path) -> str:
    mine, other = (_rows(folder, time) for folder, time in ((ours, "rowtime"), (theirs, "ev")))
    return "equal" if mine.equals(other) else f"{mine.num_rows} rows against {other.num_rows}, or values differ"


def _rows(folder: Path, time_: str) -> pa.Table:
    files = [path for path in folder.glob("*.parquet") if not path.name.startswith((".", "_"))]
    columns = [time_, "k", "v", "c", "s"]
    parts = [pq.read_table(path, columns=columns, partitioning=None) for path in files]
    rows = pa.concat_tables(parts, promote_options="permissive")
    times = rows[time_].cast(pa.timestamp("us", "UTC"), safe=False)
    made = {"t": times.cast(pa.int64()), **{name: rows[name].cast(pa.int64()) for name in columns[1:]}}
    return pa.table(made).sort_by("t").combine_chunks()


def _measurement(name: str, rows: Ordered, required: float) -> Measurement:
    says = f"OVER RANGE of 60 s with {rows.keys} keys, from Parquet, against Spark's batch window function"
    return Measurement(name, says, partial(measure, rows=rows, required=required))


OVER = (
    _measurement("over_10", Ordered(10, 2, 100_000), 10.0),
    _measurement("over_100", Ordered(100, 4), 10.0),
    _measurement("over_10k", Ordered(10_000, 4), 2.0),
)
