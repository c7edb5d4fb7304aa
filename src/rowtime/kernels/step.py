"""The step limit: a row is early if it is too far above the row before it.

As in s-Server's example, with its faults: the row before counts whatever its verdict. So after an early row the next
one from the future is accepted, and a good row after a late one may be early. The guard (`kernels.guard`) has neither
fault.
"""

from __future__ import annotations

import numpy as np

from rowtime.core.time import BEGINNING
from rowtime.kernels.guard import EARLY, LATE, OK, Flags, Guarded, Limits, Times


def step_limit(times: Times, known: Flags, mark: int, previous: int, limits: Limits) -> tuple[Guarded, int]:
    """Judge the rows of one writer; times in µs, BEGINNING if there was none before.

    A row is early if and only if t > the time before it + ``early``; otherwise it is late if and only if t < mark -
    ``late``, the mark being the greatest time of rows that were not early. Rows without a time are skipped. Also
    returns the last time.
    """
    shown = times[known]
    before = np.concatenate(([previous], shown[:-1]))
    early = np.zeros(len(times), bool)
    early[known] = (before > BEGINNING) & (shown - limits.early > before)
    running = np.maximum.accumulate(np.concatenate(([mark], np.where(known & ~early, times, BEGINNING))))
    late = known & ~early & (times < running[:-1] - limits.late)
    result = np.select([early, late], [EARLY, LATE], OK).astype(np.int8)
    last = int(shown[-1]) if len(shown) else previous
    guarded = Guarded(result, running[:-1], running[1:], int(running[-1]), bool(running[-1] > BEGINNING))
    return guarded, last
