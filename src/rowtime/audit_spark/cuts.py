"""The cuts of an input into batches, and a job that runs with one of them.

The next group of files comes while the sink takes the batch before, so no batch begins with a part of a group. At the
end the job gets a batch without rows, and with a watermark behind all times: Spark then emits what still waits.
Without it, results that wait would look like lost ones.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowtime.audit_spark.inputs import Inputs
from rowtime.audit_spark.jobs import Job
from rowtime.core.errors import Failure, Problem, headline
from rowtime.core.time import to_micros

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Row = tuple[Any, ...]
MODES: Final = ("append", "update", "complete")
CONF: Final = {
    # One partition for each file, so that rows of a file stay in order.
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.openCostInBytes": str(1 << 40),
    "spark.sql.streaming.minBatchesToRetain": "1000000",
    "spark.sql.streaming.numRecentProgressUpdates": "1000000",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}
"""Settings of the session of an audit, unless the user gives others."""
_END_OF_TIME: Final = 253_402_300_799_000  # ms: the last second of the year 9999
_DIGITS: Final = 12  # of a DOUBLE: sums in another order differ in the last ones


@dataclass(frozen=True)
class Cut:
    """A way to group files into batches, by their numbers; ``restarts``: the query stops after each batch."""

    name: str
    batches: tuple[tuple[int, ...], ...]
    restarts: bool = False


def cuts_of(files: int, randoms: int, seed: int) -> Iterator[Cut]:
    """Yield the cuts of so many files: all at once, one by one, and random groups."""
    yield Cut("all at once", (tuple(range(files)),))
    alone = tuple((number,) for number in range(files))
    yield Cut("one file a batch", alone)
    yield Cut("one file a batch, restarted", alone, restarts=True)
    for number in range(randoms):
        ends = [*random.Random(seed + number).sample(range(1, files), max(1, (files - 1) // 2)), files]  # noqa: S311 - no secret
        starts = [0, *sorted(ends)[:-1]]
        batches = tuple(tuple(range(start, end)) for start, end in zip(starts, sorted(ends), strict=True))
        restarts = number % 2 == 0
        yield Cut(f"random groups {seed + number}{', restarted' if restarts else ''}", batches, restarts=restarts)


def session_of(spark: SparkSession, given: Mapping[str, str]) -> SparkSession:
    """Return a session of its own for an audit, with the settings that it needs and those of the user."""
    session = spark.newSession()
    for key, value in {**CONF, **given}.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


@dataclass
class Ran:
    """What a job did with a cut: its rows, and what Spark reported of each batch.

    ``marks``: for each file, the watermark (µs) below which rows of its batch are late, which is that of the batch
    before. ``counters``: Spark's numbers of late rows, for each operator with state from the sink down.
    """

    cut: Cut
    rows: Counter[Row] = field(default_factory=Counter)
    columns: Sequence[str] = ()
    marks: dict[int, int] = field(default_factory=dict)
    counters: list[int] = field(default_factory=list)
    seconds: float = 0.0


def run(  # noqa: PLR0913 - one call
    spark: SparkSession, job: Job, inputs: Inputs, cut: Cut, mode: str, folder: Path
) -> Ran:
    """Run a job with a cut, in a folder of the audit; raises ``Failure`` (R634) if it fails."""
    running = _Running(spark, job, inputs, mode, folder, Ran(cut), deque(cut.batches))
    started = time.monotonic()
    try:
        running.run()
    except Exception as error:
        what = f"{job.name} failed with {cut.name}: {headline(error)}"
        hint = "Run it over the same files without the audit. If Spark does not know the output mode: --mode."
        raise Failure(Problem("R634", what, hint=hint)) from error
    running.ran.seconds = time.monotonic() - started
    return running.ran


@dataclass
class _Running:
    spark: SparkSession
    job: Job
    inputs: Inputs
    mode: str
    folder: Path
    ran: Ran
    left: deque[tuple[int, ...]]
    arrived: tuple[int, ...] = ()
    batch_of: dict[int, int] = field(default_factory=dict)
    reports: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def run(self) -> None:
        while self.left:
            self._query(ends=self.ran.cut.restarts)
        if self.mode != "complete" and any("watermark" in one["eventTime"] for one in self.reports.values()):
            reports = dict(self.reports)
            _flush(self.folder / "checkpoint")
            self._query(ends=True)
            self.reports = reports
        marks = {number: report["eventTime"].get("watermark") for number, report in self.reports.items()}
        for file, batch in self.batch_of.items():
            mark = marks.get(batch - 1)
            self.ran.marks[file] = 0 if mark is None else to_micros(datetime.fromisoformat(mark))
        for report in self.reports.values():
            late = [one["numRowsDroppedByWatermark"] for one in report["stateOperators"]]
            before = self.ran.counters or [0] * len(late)
            self.ran.counters = [a + b for a, b in zip(before, late, strict=True)]

    def _query(self, *, ends: bool) -> None:
        """Run a query until it has taken a group, or, if it does not end before, all groups."""
        frame = self.job.frame(self.spark, self.inputs.streaming(self.spark, self.folder / "input"))
        self.ran.columns = frame.columns
        self._bring()
        writer = frame.writeStream.outputMode(self.mode).foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start() if ends else writer.start()
        try:
            if ends:
                query.awaitTermination()
            else:
                query.processAllAvailable()
                _wait_until_idle(query)
        finally:
            query.stop()
        self.reports |= {one["batchId"]: one for one in query.recentProgress if "addBatch" in one["durationMs"]}

    def _bring(self) -> None:
        if self.left:
            self.arrived = self.left.popleft()
            self.inputs.bring(self.arrived, self.folder / "input")

    def _take(self, frame: DataFrame, number: int) -> None:
        """Take the rows of a batch, and let the next group come."""
        self.batch_of |= dict.fromkeys(self.arrived, number)
        self.arrived = ()
        rows = rows_of(frame.toArrow())
        self.ran.rows = rows if self.mode == "complete" else self.ran.rows + rows
        if not self.ran.cut.restarts:
            self._bring()


def _wait_until_idle(query: StreamingQuery) -> None:
    """Let a batch without rows end: stopping in the middle would print an error."""
    while query.isActive and query.status["isTriggerActive"] and not query.status["message"].startswith("Waiting"):
        time.sleep(0.01)


def _flush(checkpoint: Path) -> None:
    """Plan a batch without rows at the end of time: Spark runs a batch that is planned and not committed.

    Its offsets are those of the batch before.
    """
    offsets = checkpoint / "offsets"
    last = max(int(file.name) for file in offsets.iterdir() if file.name.isdigit())
    version, metadata, *places = (offsets / str(last)).read_text(encoding="utf-8").split("\n")
    metadata = json.dumps({**json.loads(metadata), "batchWatermarkMs": _END_OF_TIME})
    number = last + 1 if (checkpoint / "commits" / str(last)).exists() else last
    (offsets / f".{number}.crc").unlink(missing_ok=True)
    (offsets / str(number)).write_text("\n".join([version, metadata, *places]), encoding="utf-8")


def rows_of(table: pa.Table) -> Counter[Row]:
    """Return the rows of a table and how often each occurs, as values that can be compared."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})


def _plain(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.{_DIGITS}g}") if value == value else "NaN"  # noqa: PLR0124 - NaN differs from itself
        case datetime():
            return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat(" ")
        case dict():
            return tuple((key, _plain(part)) for key, part in value.items())
        case list() | tuple():
            return tuple(map(_plain, value))
        case _:
            return value
