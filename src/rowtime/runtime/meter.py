"""A meter: measures the parts of one tick, and counts the files that it writes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types

from rowtime.core.time import BEGINNING, END
from rowtime.frames.queries import spans_since
from rowtime.runtime.late_session import is_here
from rowtime.state.costs import DRIVER, JOBS, PLANNING, Spread, TickCost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.contract.state import Segment

MS: Final = 1_000_000  # nanoseconds
LATE: Final = 0.02  # seconds in which Spark may still record a job that has ended

Span = tuple[int, int]  # from and to, ns


@dataclass(frozen=True)
class Measured:
    """New files, their bytes, and the event times that each gate has accepted (µs UTC)."""

    files: int
    size: int
    times: Mapping[str, list[int]]


@dataclass
class Meter:
    """Measures one tick, from now on. ``jobs``: Spark's times of its jobs; without them they count as planning."""

    jobs: JobTimes | None = None
    files: int = 0
    size: int = 0
    times: dict[str, list[int]] = field(default_factory=dict)
    spread: Spread = field(default_factory=Spread)
    _spans: list[tuple[str, Span]] = field(default_factory=list)
    now: str = ""
    """The current part; empty while operators plan and compute."""

    def __post_init__(self) -> None:
        self.began, self._began = time.time_ns(), time.perf_counter_ns()
        self._first_job = None if self.jobs is None else self.jobs.next()
        self._ran: list[Span] = []
        self._jobs = 0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time inside this as that part; a part inside another one is a piece of it."""
        if self.now:
            yield
            return
        self.now, began = name, time.perf_counter_ns()
        try:
            yield
        finally:
            self.now = ""
            self._spans.append((name, (began, time.perf_counter_ns())))

    def measured(self) -> Measured:
        """Return the counts, for a meter in another process."""
        return Measured(self.files, self.size, self.times)

    def take(self, measured: Measured) -> None:
        """Add the counts of a meter in another process."""
        self.files, self.size, self.times = self.files + measured.files, self.size + measured.size, {**measured.times}

    def add(self, measured: Measured) -> None:
        """Add the new files of another process, but not the times of its gates: they are judged here."""
        self.files, self.size = self.files + measured.files, self.size + measured.size

    def wrote(self, segments: Iterable[Segment]) -> None:
        """Count new files."""
        for segment in segments:
            self.files += 1
            self.size += segment.size

    def saw(self, gate: str, lowest: int, highest: int, mean: float | None = None) -> None:
        """Note the event times that a gate has accepted (µs UTC); nothing without rows."""
        if BEGINNING < lowest <= highest < END:
            self.times[gate] = [lowest, highest, *([] if mean is None else [round(mean)])]

    def stepped(self) -> None:
        """Ask Spark for the jobs so far: all operators have finished their steps."""
        if self.jobs is not None and self._first_job is not None:
            shift = self._began - self.began
            self._jobs, ran = self.jobs.since(self._first_job)
            self._ran = [(a + shift, b + shift) for a, b in ran]

    def cost(
        self, tick: int, rows_in: Mapping[str, int], rows_out: Mapping[str, int], refused: int, *, complete: bool
    ) -> TickCost:
        """Return the cost of the tick up to now."""
        now = time.perf_counter_ns()
        spent: Counter[str] = Counter()
        for name, (a, b) in self._spans:
            spent[name] += b - a
        others = [span for _, span in self._spans]
        spent[JOBS] = covered(self._ran, others, self._began, now)
        spent[DRIVER] = covered(spans_since(self._began), [*others, *self._ran], self._began, now)
        spent[PLANNING] = max(0, now - self._began - spent.total())
        milliseconds = {name: ns / MS for name, ns in spent.items()}
        what = (rows_in, rows_out, refused, self.files, self.size, self._jobs, self.times)
        began, ended = self.began // 1000, (self.began + now - self._began) // 1000
        return TickCost(tick, began, ended, milliseconds, *what, complete=complete, spread=self.spread)


def covered(spans: Iterable[Span], without: Iterable[Span], low: int, high: int) -> int:
    """Return how much of ``low`` to ``high`` the spans cover, without the others; overlaps count once."""
    edges = sorted({low, high, *(at for span in (*spans, *without) for at in span if low < at < high)})
    inside, outside = tuple(spans), tuple(without)

    def holds(spans: Sequence[Span], a: int, b: int) -> bool:
        return any(start <= a and b <= end for start, end in spans)

    pieces = zip(edges, edges[1:], strict=False)
    return sum(b - a for a, b in pieces if holds(inside, a, b) and not holds(outside, a, b))


class JobTimes:
    """When the jobs of a Spark application ran, from the data of Spark's own pages.

    PySpark has no public way to this: a Spark version without it gives no times of jobs.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.next()  # the first question takes 10 ms, which the first tick need not wait for

    @cached_property
    def _context(self) -> Any:
        return self._spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark has no public way

    @cached_property
    def _scheduler(self) -> Any:
        return self._context.dagScheduler()

    def next(self) -> int | None:
        """Return the number of the next job; ``None`` if Spark does not tell."""
        if not is_here(self._spark):
            return 0
        with suppress(Py4JError, TypeError):
            return int(self._scheduler.numTotalJobs())
        return None

    def running(self) -> bool:
        """Return True if a job runs now; False if Spark does not tell."""
        with suppress(Py4JError, TypeError):
            return is_here(self._spark) and len(self._context.statusTracker().getActiveJobIds()) > 0
        return False

    def since(self, first: int) -> tuple[int, list[Span]]:
        """Return how many jobs there are from that number on, and when they began and ended, ns UTC.

        Jobs of others in the same session are among them. Spark records times a little later than a job ends: those
        that it does not know in time are left out.
        """
        following = self.next()
        if following is None:
            return 0, []
        limit = time.monotonic() + LATE
        return following - first, [*self._times(range(first, following), limit)]

    def _times(self, numbers: Iterable[int], limit: float) -> Iterator[Span]:
        for number in numbers:
            span = self._time(number)
            while span is None and time.monotonic() < limit:
                time.sleep(LATE / 10)
                span = self._time(number)
            if span is not None:
                yield span

    def _time(self, number: int) -> Span | None:
        with suppress(Py4JError):  # it is not recorded yet, or not any more
            job = self._context.statusStore().job(number)
            began, ended = job.submissionTime(), job.completionTime()
            if began.isDefined() and ended.isDefined():
                return began.get().getTime() * MS, ended.get().getTime() * MS
        return None
