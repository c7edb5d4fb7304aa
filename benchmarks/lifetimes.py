"""Events with lifetimes in ten ticks: a snapshot count and an interval join, against Spark's batch SQL.

The events come in the order of their starts, a little out of it, with their ends. Batch SQL counts
as one would by hand: a start adds one, an end takes one away, and a running sum says how many there
are until the next change of the key.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from benchmarks.data import BEGINNING, CACHE, write
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.engines import Engines

TICKS = 10
LATE, LONGEST = 10_000_000, 60_000_000  # µs: how far a start may go back, and how long an event lasts at most
SHAPES = {
    "intervals": "SHAPE INTERVAL (start, stop) BOUND EVERY INTERVAL '1' SECOND DELAY INTERVAL '10' SECOND",
    "edges": "SHAPE EDGE (start, stop) BOUND EVERY INTERVAL '1' SECOND DELAY INTERVAL '70' SECOND",
}
STREAM = """
CREATE STREAM {name} (k BIGINT, v BIGINT, start TIMESTAMP, stop TIMESTAMP) EVENT {shape}
  USING parquet OPTIONS (path '{folder}');
"""
PUMP = """
CREATE STREAM o ({columns}, start TIMESTAMP, stop TIMESTAMP) USING parquet OPTIONS (path '{output}', ordered 'false');
CREATE VIEW e AS {query} EMIT INTERVALS (start, stop);
CREATE PUMP p AS INSERT INTO o ({names}, start, stop) SELECT STREAM {names}, start, stop FROM e;
"""


@dataclass(frozen=True)
class Query:
    """A query in both dialects, its columns, and the streams it reads with the random seed of each."""

    sql: str
    batch: str
    columns: str
    streams: tuple[str, ...]
    keys: int

    @property
    def names(self) -> str:
        return ", ".join(column.split()[0] for column in self.columns.split(", "))


COUNT = Query(
    "SELECT STREAM k, COUNT(*) AS n FROM a GROUP BY SNAPSHOT(), k",
    """SELECT k, n, start, stop FROM (
      SELECT k, at AS start, SUM(d) OVER (PARTITION BY k ORDER BY at) AS n,
        LEAD(at) OVER (PARTITION BY k ORDER BY at) AS stop
      FROM (SELECT k, x.at, SUM(x.d) AS d FROM (SELECT k, EXPLODE(ARRAY(
        NAMED_STRUCT('at', start, 'd', 1), NAMED_STRUCT('at', stop, 'd', -1))) AS x FROM a) GROUP BY k, x.at)
    ) WHERE n > 0""",
    "k BIGINT, n BIGINT",
    ("a",),
    1_000,
)
PAIRS = Query(
    "SELECT STREAM a.k AS k, a.v AS v, b.v AS w FROM a JOIN b ON a.k = b.k",
    """SELECT a.k, a.v, b.v AS w, GREATEST(a.start, b.start) AS start, LEAST(a.stop, b.stop) AS stop
    FROM a JOIN b ON a.k = b.k AND a.start < b.stop AND b.start < a.stop""",
    "k BIGINT, v BIGINT, w BIGINT",
    ("a", "b"),
    100_000,
)


@dataclass(frozen=True)
class Intervals:
    """``files`` files of ``rows`` events each, of all streams one every millisecond; or of both edges of these."""

    stream: str
    of: int
    keys: int
    rows: int
    edges: bool = False
    files: int = TICKS

    def folder(self) -> Path:
        kind = "edges" if self.edges else "intervals"
        folder = CACHE / f"{kind}-{self.stream}-{self.of}-{self.keys}-{self.files}x{self.rows}"
        done = folder.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            rows = pa.concat_tables([self._table(number) for number in range(self.files)])
            rows = _both(rows) if self.edges else rows
            size = -(-rows.num_rows // self.files)
            for number in range(self.files):
                write(folder, number, rows.slice(number * size, size))
            done.touch()
        return folder

    def _table(self, number: int) -> pa.Table:
        random = np.random.default_rng([ord(self.stream), number])
        at = BEGINNING + (np.arange(self.rows) + number * self.rows) * 1000 * self.of
        starts = at + random.integers(0, LATE, self.rows)
        stops = starts + random.integers(1, LONGEST, self.rows)
        return pa.table(
            {
                "k": pa.array(random.integers(0, self.keys, self.rows), pa.int64()),
                "v": pa.array(random.integers(0, 1000, self.rows), pa.int64()),
                "start": pa.array(starts, pa.timestamp("us", "UTC")),
                "stop": pa.array(stops, pa.timestamp("us", "UTC")),
            }
        )


def _both(rows: pa.Table) -> pa.Table:
    """Each event as two records, a start without an end and an end, in the order of their times."""
    starts = rows.set_column(3, "stop", pa.nulls(rows.num_rows, rows["stop"].type)).append_column("at", rows["start"])
    return pa.concat_tables([starts, rows.append_column("at", rows["stop"])]).sort_by("at").drop_columns("at")


def measure(engines: Engines, *, short: bool, query: Query, shape: str = "intervals") -> Result:
    """Both once to warm up on the fewest rows, then in turns; all rows must be equal."""
    rounds = 1 if short else 3
    total = 500_000 if short else 5_000_000
    of = len(query.streams)
    warm, many = (
        {name: Intervals(name, of, query.keys, rows // TICKS // of) for name in query.streams}
        for rows in (100_000, total)
    )
    used: dict[str, list[float]] = {"rowtime": [], "batch": []}
    took: dict[str, list[float]] = {"rowtime": [], "batch": []}
    answers, ticks = [], []
    for number, given in enumerate([warm, *[many] * rounds]):
        began = engines.processor()
        mine, each, output = run_rowtime(engines, query, given, shape)
        between = engines.processor()
        other, expected = _batch(engines, query, given)
        if not number:
            continue
        used["rowtime"].append(between - began)
        used["batch"].append(engines.processor() - between)
        took["rowtime"].append(mine)
        took["batch"].append(other)
        ticks.append(each)
        answers.append(same(rows_of(output, query), rows_of(expected, query)))
    medians = {name: middle(times) for name, times in took.items()}
    return {
        "keys": query.keys,
        "events": total,
        "rounds": rounds,
        "ticks_ms": [round(tick) for tick in ticks[-1]],
        "median_ms": medians,
        "events_a_second": {name: int(total / value * 1000) for name, value in medians.items()},
        "median_processor_s": {name: middle(seconds) for name, seconds in used.items()},
        "answers": {"batch": next((answer for answer in answers if answer != "equal"), "equal")},
        "speed_of_the_batch": round(medians["batch"] / medians["rowtime"], 2),
        # The batch has whole events: it need not match edges, and nothing is required of those.
        "ratios": [] if shape == "edges" else [against("batch", medians["batch"] / medians["rowtime"], 0.7)],
    }


def run_rowtime(
    engines: Engines, query: Query, given: dict[str, Intervals], shape: str
) -> tuple[float, list[float], Path]:
    place = engines.fresh(f"lifetimes-{shape}")
    sources = {name: _shaped(one, shape).folder() for name, one in given.items()}
    text = "".join(STREAM.format(name=name, shape=SHAPES[shape], folder=at) for name, at in sources.items())
    text += PUMP.format(columns=query.columns, names=query.names, query=query.sql, output=place / "out")
    ticks: list[float] = []
    pipeline, began = rt.Pipeline(engines.spark, home=place / "home").sql(text), time.perf_counter()
    pipeline.run_available(
        place / "checkpoint",
        end=True,
        limits=rt.Limits(files=1),
        listener=lambda progress: ticks.append(progress["durationMs"]["triggerExecution"]),
    )
    return (time.perf_counter() - began) * 1000, ticks, place / "out"


def _shaped(one: Intervals, shape: str) -> Intervals:
    return replace(one, edges=shape == "edges")


def _batch(engines: Engines, query: Query, given: dict[str, Intervals]) -> tuple[float, Path]:
    place, began = engines.fresh("batch-lifetimes") / "out", time.perf_counter()
    spark = engines.derived({})
    for name, one in given.items():
        spark.read.parquet(str(one.folder())).createOrReplaceTempView(name)
    spark.sql(query.batch).write.parquet(str(place))
    return (time.perf_counter() - began) * 1000, place


def rows_of(folder: Path, query: Query) -> pa.Table:
    """The answer in one order; Spark writes its timestamps as INT96, which are read as nanoseconds."""
    names = [*query.names.split(", "), "start", "stop"]
    files = [path for path in folder.glob("*.parquet") if not path.name.startswith((".", "_"))]
    rows = pa.concat_tables([pq.read_table(path, columns=names, partitioning=None) for path in files])
    for n, name in enumerate(names[-2:], len(names) - 2):
        rows = rows.set_column(n, name, rows[name].cast(pa.timestamp("us", "UTC"), safe=False))
    return rows.sort_by([(name, "ascending") for name in names]).combine_chunks()


def same(mine: pa.Table, other: pa.Table) -> str:
    return "equal" if mine.equals(other) else f"{mine.num_rows} rows against {other.num_rows}, or values differ"


LIFETIMES = (
    Measurement(
        "lifetimes_snapshot",
        "snapshot count of 1,000 keys over intervals in 10 ticks, against Spark's batch SQL",
        partial(measure, query=COUNT),
    ),
    Measurement(
        "lifetimes_join",
        "join of overlapping intervals with 100 thousand keys in 10 ticks, against Spark's batch SQL",
        partial(measure, query=PAIRS),
    ),
    Measurement(
        "lifetimes_snapshot_edges",
        "the snapshot count over edges, two records an event",
        partial(measure, query=COUNT, shape="edges"),
    ),
    Measurement(
        "lifetimes_join_edges",
        "the join over edges, two records an event",
        partial(measure, query=PAIRS, shape="edges"),
    ),
)
