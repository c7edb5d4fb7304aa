"""The guard: rows too far above what has been seen are early, too far below late; only others count.

SPEC 7.2. Whether a row counts depends on the rows before it, so a running maximum is not
enough: a row that is early must not raise the mark that judges the next. But where no row
of a block lies more than the limit above the running maximum, none is early, and the
maximum is the mark. Only other blocks are judged row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rowtime.core.time import BEGINNING

Times = NDArray[np.int64]
OK, EARLY, LATE = 0, 1, 2
BLOCK = 4096


@dataclass(frozen=True)
class Guarded:
    """``result`` of each row (OK, EARLY, LATE), the mark ``before`` and ``after`` it, and after all."""

    result: NDArray[np.int8]
    before: Times
    after: Times
    mark: int


def guard(times: Times, known: NDArray[np.bool_], mark: int, late: int, early: int) -> Guarded:
    """Judge the rows of one writer, in its order; times and limits in µs.

    A row is early iff t > mark + ``early``, late iff t < mark - ``late``; the first row is
    neither. Unknown times are OK here and move nothing. ``mark`` is BEGINNING before the first row.
    """
    result = np.zeros(len(times), np.int8)
    before, after = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    for start in range(0, len(times), BLOCK):
        part = slice(start, start + BLOCK)
        mark = _block(times[part], known[part], mark, (late, early), (result[part], before[part], after[part]))
    return Guarded(result, before, after, mark)


def _block(
    times: Times,
    known: NDArray[np.bool_],
    mark: int,
    limits: tuple[int, int],
    into: tuple[NDArray[np.int8], Times, Times],
) -> int:
    late, early = limits
    result, before, after = into
    running = np.maximum.accumulate(np.concatenate(([mark], np.where(known, times, BEGINNING))))
    before[:], after[:] = running[:-1], running[1:]
    judged = known & (before > BEGINNING)  # the first row is judged by nothing
    if (judged & (times - early > before)).any():
        return _row_by_row(times, known, mark, limits, into)
    result[judged & (times < before - late)] = LATE
    return int(running[-1])


def _row_by_row(
    times: Times,
    known: NDArray[np.bool_],
    mark: int,
    limits: tuple[int, int],
    into: tuple[NDArray[np.int8], Times, Times],
) -> int:
    late, early = limits
    results, befores, afters = [], [], []
    for time, there in zip(times.tolist(), known.tolist(), strict=True):
        befores.append(mark)
        verdict = OK
        if there and mark > BEGINNING and time > mark + early:
            verdict = EARLY
        elif there and mark > BEGINNING and time < mark - late:
            verdict = LATE
        elif there and time > mark:
            mark = time
        results.append(verdict)
        afters.append(mark)
    into[0][:], into[1][:], into[2][:] = results, befores, afters
    return mark
