"""A soak: one query runs while rows come at a steady rate; then its output is compared with the answer."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import rowtime as rt
from reliability.crash.campaign import SMALL
from reliability.soak.answer import Found, answer
from reliability.soak.gauges import TICK, TOLERANCES, measured
from reliability.soak.growth import FIFTHS, Sample, Trend, growing, trends
from reliability.soak.processors import Processors
from reliability.soak.written import differences, written
from rowtime.core.time import END, to_text
from rowtime.runtime.session import new_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = 60  # at most: no more than one a tick
FEWEST = 2 * FIFTHS
PATIENCE = 900.0  # seconds for the first tick, for enough samples, and for the last row
SCRIPT = """
CREATE STREAM orders (number BIGINT, item STRING, amount BIGINT, at TIMESTAMP);
CREATE STREAM payments (number BIGINT, paid BIGINT);
CREATE VIEW sorted_orders AS
  SELECT STREAM at AS ROWTIME, number, item, amount FROM orders ORDER BY at WITHIN INTERVAL '2' SECOND;
CREATE STREAM groups (item STRING, c BIGINT, total BIGINT) USING parquet OPTIONS (path '${out}/groups');
CREATE STREAM pairs (number BIGINT, item STRING, paid BIGINT);
CREATE STREAM late (number BIGINT, at TIMESTAMP) USING parquet OPTIONS (path '${out}/late');
CREATE PUMP p1 AS INSERT INTO groups SELECT STREAM item, COUNT(*) AS c, SUM(amount) AS total
  FROM sorted_orders AS o GROUP BY STEP(o.ROWTIME BY INTERVAL '10' SECOND), item;
CREATE PUMP p2 AS INSERT INTO pairs SELECT STREAM o.number, o.item, p.paid
  FROM sorted_orders OVER (RANGE INTERVAL '5' SECOND PRECEDING) AS o
  JOIN payments OVER (RANGE INTERVAL '5' SECOND PRECEDING) AS p ON o.number = p.number;
CREATE PUMP p3 AS INSERT INTO late SELECT STREAM number, refused_time AS at FROM sorted_orders.rejected;
"""
Progress = dict[str, Any]


def main() -> int:
    """Return 0 if nothing grew and the answer is right; otherwise print what is wrong and return 1."""
    parser = argparse.ArgumentParser(prog="python -m reliability.soak")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long rows are sent")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rowtime-soak-") as name:
        local = Path(name) / "spark"
        spark = new_spark(master="local[2]", conf={**SMALL, "spark.local.dir": str(local)})
        try:
            return report(Soak(Path(name), spark, local).run(asked.minutes))
        finally:
            spark.stop()


def report(found: tuple[str, list[str]]) -> int:
    line, wrong = found
    print(*wrong, line, sep="\n", flush=True)
    return 1 if wrong else 0


class Soak:
    """One run in a folder; ``disturb`` is called with the progress of every tick: tests add leaks with it."""

    def __init__(
        self, folder: Path, spark: SparkSession, local: Path, disturb: Callable[[Progress], object] | None = None
    ) -> None:
        self._folder, self._spark, self._local = folder, spark, local
        self._disturb = disturb or (lambda _progress: None)
        self._processors = Processors()
        self._ticks: list[float] = []
        self._samples: list[Sample] = []
        self._failures: list[str] = []
        self._count, self._every, self._next = 0, 0.0, 0.0

    def run(self, minutes: float) -> tuple[str, list[str]]:
        """Run. Return the last line, and what is wrong."""
        variables = {"out": str(self._folder / "out")}
        pipeline = rt.Pipeline(self._spark, home=self._folder / "home").sql(SCRIPT, variables)
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json())
        with _feeding(self._folder / "home") as feed:
            assert feed.stdout is not None
            feed.stdout.readline()
            query = pipeline.start(self._folder / "checkpoint", listener=self._heard)
            try:
                _until(lambda: self._count > 0, query)
                self._every, self._next = minutes * 60 / SAMPLES, time.monotonic()
                query.awaitTermination(minutes * 60)
                _until(lambda: len(self._samples) >= FEWEST, query)  # where ticks take long, a run does too
                self._every = 0.0
                batches = int(feed.communicate()[0])
                _until(lambda: set(_outputs(query)) == {to_text(END)}, query)
            finally:
                query.stop()
        grown = trends(self._samples, TOLERANCES)
        wrong = self._failures + [f"grows: {trend}" for trend in growing(grown, TICK)]
        found = written(self._folder, query)
        wrong += differences(answer(batches), found)
        return self._line(minutes, found, grown, wrong), wrong

    def _heard(self, progress: Progress) -> None:
        if "failure" in progress:
            self._failures.append(f"a tick failed: {progress['failure']}")
            return
        self._count += 1
        self._ticks.append(progress["durationMs"]["triggerExecution"])
        self._disturb(progress)
        if self._every and time.monotonic() >= self._next:
            self._sample(self._folder / "checkpoint")

    def _sample(self, checkpoint: Path) -> None:
        """Measure between two ticks; their time is the median of those since the last sample."""
        self._next = max(self._next + self._every, time.monotonic())
        tick = median(self._ticks)
        times = dict(zip(TICK, (tick, tick * self._processors.left()), strict=True))
        self._samples.append({**times, **measured(self._spark, checkpoint, self._local)})
        self._ticks = []
        if len(self._samples) % 3 == 0:
            print(f"tick {self._count}: {_told(self._samples[-1])}", flush=True)

    def _line(self, minutes: float, found: Found, grown: list[Trend], wrong: list[str]) -> str:
        came = sum(found.gates[stream]["in"] for stream in ("orders", "payments"))
        refused = sum(gate["in"] - gate["accepted"] for gate in found.gates.values())
        return (
            f"{minutes:g} minutes, {self._count:,} ticks, {came:,} rows, {refused:,} refused, "
            f"{found.groups.total():,} groups, {found.pairs.total():,} pairs, "
            f"second fifth → last: {', '.join(map(str, grown))}; {len(wrong)} wrong"
        )


def _told(sample: Sample) -> str:
    return ", ".join(f"{name} {value:,.0f}{TOLERANCES[name].unit}" for name, value in sample.items())


def _outputs(query: rt.Query) -> list[str]:
    return [query.bounds.get(node.name, "") for node in query.engine.program.sinks]


def _until(holds: Callable[[], bool], query: rt.Query) -> None:
    """Wait, but not forever; raises what ends the query."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if query.awaitTermination(0.1) or time.monotonic() > deadline:
            raise TimeoutError(f"the query does not get there: {query.bounds}, {query.waiting()}")


@contextmanager
def _feeding(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield the process that sends; it ends with its standard input, at the latest with this process."""
    command = [sys.executable, "-m", "reliability.soak.feed", str(home)]
    feed = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    patience = threading.Timer(10 * 3600, feed.kill)
    patience.start()
    try:
        yield feed
    finally:
        patience.cancel()
        feed.kill()
        feed.wait()
