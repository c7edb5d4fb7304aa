"""OVER with a RANGE of a minute: against Spark's batch window function, from Parquet, and against PyFlink, from CSV.

A row comes every millisecond, so a frame has 60,000 rows of all keys.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks import flink
from benchmarks.measurement import Measurement, Result, against
from benchmarks.works import Ordered, Work, batch, beside_flink, in_turns, rowtime

if TYPE_CHECKING:
    from benchmarks.engines import Engines

QUERY = """SELECT {stream}{time} AS t, k, v, COUNT(*) OVER w AS c, SUM(v) OVER w AS s FROM {table}
WINDOW w AS (PARTITION BY k ORDER BY {time} RANGE BETWEEN INTERVAL '60' SECOND PRECEDING AND CURRENT ROW)"""


def work(rows: Ordered) -> Work:
    """The frames of each row of ``rows``."""
    spark = QUERY.format(stream="", time="ev", table="r")
    return Work(
        {"r": rows},
        rowtime=QUERY.format(stream="STREAM ", time="r.ROWTIME", table="r"),
        spark=spark,
        flink=QUERY.format(stream="", time="ev", table="{r}"),
        result=("k", "v", "c", "s"),
    )


def measure(engines: Engines, *, short: bool, rows: Ordered, required: float) -> Result:
    """Both once to warm up on the fewest rows, then in turns; all rows must be equal."""
    few = work(Ordered(10_000, 1, 100_000))
    found = in_turns(engines, work(rows), few, {"rowtime": rowtime, "batch": batch}, 1 if short else 3)
    ratio = found["median_ms"]["batch"] / found["median_ms"]["rowtime"]
    return {"keys": rows.keys, **found, "ratios": [against("batch", ratio, required)]}


def measure_flink(engines: Engines, *, short: bool, keys: int) -> Result:
    """The same query from one CSV file."""
    if not flink.is_there():
        return {"skipped": flink.MISSING, "ratios": []}
    few = work(Ordered(10_000, 1, 100_000, "csv"))
    many = work(Ordered(keys, 1, 200_000 if short else 1_000_000, "csv"))
    found = beside_flink(engines, many, few, 1 if short else 3)
    ratio = found["median_ms"]["pyflink"] / found["median_ms"]["rowtime"]
    return {"keys": keys, **found, "ratios": [against("PyFlink", ratio, 2.0)]}


def _measurement(name: str, rows: Ordered, required: float) -> Measurement:
    says = f"OVER RANGE of 60 s with {rows.keys} keys, from Parquet, against Spark's batch window function"
    return Measurement(name, says, partial(measure, rows=rows, required=required))


OVER = (
    _measurement("over_10", Ordered(10, 2, 100_000), 10.0),
    _measurement("over_100", Ordered(100, 4), 10.0),
    _measurement("over_10k", Ordered(10_000, 4), 2.0),
)
OVER_FLINK = tuple(
    Measurement(
        f"over_flink_{name}",
        f"OVER RANGE of 60 s with {keys} keys, from CSV, against PyFlink",
        partial(measure_flink, keys=keys),
    )
    for name, keys in (("10", 10), ("100", 100), ("10k", 10_000))
)
