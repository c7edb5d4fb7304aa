"""A watch over an engine: its current tick, what it reads, and which part of it is running.

Any thread may read it. The thread that runs the tick only records its state, so readers never make it wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Final, Self

from rowtime.core.time import wall_clock
from rowtime.frames.queries import COMPUTING
from rowtime.runtime.intake import Taken
from rowtime.runtime.meter import Meter
from rowtime.runtime.report import backlogs_of
from rowtime.runtime.sources.contract import Backlog
from rowtime.state.costs import DRIVER, JOBS, PLANNING
from rowtime.state.under_way import UnderWay

if TYPE_CHECKING:
    from rowtime.runtime.tick import RunningTick

LONG: Final = 1.0  # seconds


class Watch:
    """A context manager around each look for a tick.

    ``backlogs``: what the current tick leaves unread, by stream. ``more``: the last tick has left something unread, or
    has failed, so that the next one has to read the same.
    """

    def __init__(self) -> None:
        self._begun: tuple[int, Meter, int] | None = None
        self._reads: tuple[RunningTick, int | None, bool] | None = None
        self.backlogs: Mapping[str, Backlog] = {}
        self.more = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._reads is not None:
            self.more = error is not None or any(backlog.left for backlog in self.backlogs.values())
        elif error is None:
            self.more = False  # there was nothing to read
        self._begun, self._reads, self.backlogs = None, None, {}

    def begins(self, tick: int, meter: Meter) -> None:
        """Record that the driver looks for the input of a tick."""
        self._reads, self._begun = None, (tick, meter, get_ident())

    def reads(self, running: RunningTick, taken: Mapping[str, Taken]) -> None:
        """Record what the tick reads: it has something to do."""
        counts = [part.part.rows for part in taken.values()]
        counted = [count for count in counts if count is not None]
        at_most = any(part.source.decodes and part.part.rows for part in taken.values())
        self.backlogs = backlogs_of(taken)
        self._reads = (running, sum(counted) if len(counted) == len(counts) else None, at_most)

    @property
    def now(self) -> UnderWay | None:
        """Return the current tick; ``None`` between two looks for input. During a look, no rows are known."""
        begun, reads = self._begun, self._reads
        if begun is None:
            return None
        tick, meter, thread = begun
        began, part = meter.began // 1000, meter.now or _computing(meter, thread)
        if reads is None:
            return UnderWay(tick, began, part)
        running, rows, at_most = reads
        what = running.jobs[-1].partition(" · ")[2] if running.jobs else ""
        return UnderWay(tick, began, part, rows, at_most, what)

    @property
    def active(self) -> bool:
        """Return True while a tick runs that has something to do, or a look for input takes longer than a second."""
        return self._reads is not None or self.slow is not None

    @property
    def available(self) -> bool:
        """Return True while a tick is computed, or rows are known to wait for the next one."""
        return self._reads is not None or self.more

    @property
    def slow(self) -> UnderWay | None:
        """Return the current tick if it has run for a second: quicker ones end before anybody could read about them."""
        work = self.now
        return work if work is not None and work.seconds(wall_clock()) >= LONG else None

    @property
    def words(self) -> str:
        """Return what the driver does, in a line, if that takes longer than a second; else nothing."""
        work = self.slow
        return "" if work is None else work.words(wall_clock())


def _computing(meter: Meter, thread: int) -> str:
    """Return what happens outside of the measured parts of a tick."""
    if thread in COMPUTING:
        return DRIVER
    return JOBS if meter.jobs is not None and meter.jobs.running() else PLANNING
