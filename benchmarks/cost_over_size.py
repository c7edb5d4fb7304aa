"""Whether a row costs more in a longer stream: rows a second at four sizes, in ticks of the same size.

Four queries of Nexmark, and a T-sort of rows up to ten seconds out of order. The first tick and the last are left
out, so that the start of a run and the end of a stream do not count for the short streams. At the first size the
rows are compared with those of Spark's batch; those of the T-sort have to be all, in order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import rowtime as rt
from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle, settled
from benchmarks.nexmark import events
from examples.nexmark.queries import batched, difference, pipeline, streamed

if TYPE_CHECKING:
    from benchmarks.engines import Engines

QUERIES = ("q4", "q5", "q8", "q20")
LEAST = 0.9  # of the rows a second of the first size
TICK, FILES = 200_000, 2  # events of a tick, in so many files
SIZES = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
QUICK, QUICK_TICK = (100_000, 400_000), 20_000
TSORT = """CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}');
SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
"""


class InOrder:
    """A sink that counts rows, and checks their order."""

    def __init__(self) -> None:
        self.count, self.latest, self.ordered = 0, -1, True

    def __call__(self, batch: rt.Batch) -> None:
        if batch.count:
            times = batch.table()["rowtime"].cast(pa.int64())
            steps = pc.pairwise_diff(pa.concat_arrays([pa.array([self.latest]), *times.chunks]))
            self.ordered &= pc.min(steps).as_py() >= 0
            self.count, self.latest = self.count + batch.count, times[-1].as_py()


def measure(engines: Engines, *, short: bool) -> Result:
    sizes, tick, rounds = (QUICK, QUICK_TICK, 1) if short else (SIZES, TICK, 3)
    lines, answers, ratios = {}, {}, []
    for name in (*QUERIES, "tsort"):
        answers[name] = (
            _sorted(engines, sizes[0], tick) if name == "tsort" else _compared(engines, name, sizes[0], tick)
        )
        spent: dict[int, list[float]] = {size: [] for size in sizes}
        for _ in range(rounds):
            for size, speeds in spent.items():
                speeds.append(_speed(engines, name, size, tick))
        lines[name] = {f"{size:,}": int(middle(speeds)) for size, speeds in spent.items()}
        first, *_, last = lines[name].values()
        ratios.append(against(f"{sizes[0]:,} events, {name}", last / first, LEAST))
    return {"events_a_tick": tick, "rounds": rounds, "rows_a_second": lines, "answers": answers, "ratios": ratios}


def _speed(engines: Engines, name: str, size: int, tick: int) -> float:
    """Return the rows per second of the ticks between the first and the last."""
    place, ticks = engines.fresh("size"), []

    def listener(progress: dict[str, Any]) -> None:
        ticks.append(progress["durationMs"]["triggerExecution"])

    made = _made(engines, name, _source(name, size, tick), place / "home").sink("result", lambda _batch: None)
    made.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=FILES), listener=listener)
    measured = settled(ticks[: size // tick])
    return len(measured) * tick / sum(measured) * 1000


def _made(engines: Engines, name: str, source: Path, home: Path) -> rt.Pipeline:
    if name == "tsort":
        return rt.Pipeline(engines.spark, home=home).sql(TSORT.format(source=source))
    return pipeline(name, source, home, engines.spark)


def _source(name: str, size: int, tick: int) -> Path:
    if name == "tsort":
        return Rows(100, size // tick, FILES, tick // FILES).folder()
    return events(size, size // tick * FILES)


def _compared(engines: Engines, name: str, size: int, tick: int) -> str:
    source = _source(name, size, tick)
    ours = streamed(name, source, engines.fresh("size"), engines.spark, FILES)
    return difference(ours, batched(name, source, engines.spark)) or "equal"


def _sorted(engines: Engines, size: int, tick: int) -> str:
    place, sink = engines.fresh("size"), InOrder()
    made = _made(engines, "tsort", _source("tsort", size, tick), place / "home").sink("result", sink)
    made.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=FILES))
    if sink.count != size:
        return f"{sink.count} rows of {size}"
    return "equal" if sink.ordered else "rows are out of order"


COST_OVER_SIZE = Measurement(
    "cost_over_size", "rows a second of q4, q5, q8, q20 and a T-sort as the stream gets longer", measure
)  # fmt: skip
