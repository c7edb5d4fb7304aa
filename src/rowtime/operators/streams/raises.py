"""Which row raised the mark of events so far that later rows are late: `waiting` names it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rowtime.core.time import BEGINNING, HOUR
from rowtime.kernels.blame import Raise

LONG = HOUR  # µs: a smaller jump makes no row late for long


def marks_of(before: int, positions: np.ndarray, marks: np.ndarray, after: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and the mark before each and after all, for `raised`; a rise before the first row has a place."""
    if len(marks) and marks[0] > before:
        positions, marks = np.concatenate([[positions[0] - 1], positions]), np.concatenate([[before], marks])
    return positions, np.append(marks, after)


def raised(
    stored: Sequence[int] | None, positions: np.ndarray, risen: np.ndarray, late: np.ndarray
) -> list[int] | None:
    """Return the last row that raised a mark by more than `LONG`, and what happened to later rows.

    ``stored``: the result for earlier rows. ``risen`` is the mark before each row and, at the end, after all; ``late``:
    the indexes of late rows. In plain numbers, as in `Raise`.
    """
    rises = risen[1:] > risen[:-1]
    at = len(rises) - 1 - int(rises[::-1].argmax()) if len(rises) else -1  # the last one
    if at < 0 or not rises[at]:
        return _no_rise(stored, len(positions), late)
    return _rise(positions, at, int(risen[at]), int(risen[at + 1]), late)


def raised_by_times(
    stored: Sequence[int] | None, positions: np.ndarray, before: int, times: np.ndarray, late: np.ndarray
) -> list[int] | None:
    """Return the same for a mark that is the greatest time so far, ``before`` the first row."""
    at = int(times.argmax()) if len(times) else -1
    if at < 0 or times[at] <= before:
        return _no_rise(stored, len(times), late)
    return _rise(positions, at, int(times[:at].max(initial=before)), int(times[at]), late)


def _no_rise(stored: Sequence[int] | None, count: int, late: np.ndarray) -> list[int] | None:
    if stored is None:
        return None
    before = Raise(*stored)
    return list(before._replace(rows=before.rows + count, late=before.late + len(late)))


def _rise(positions: np.ndarray, at: int, low: int, high: int, late: np.ndarray) -> list[int] | None:
    if low > BEGINNING and high - low <= LONG:
        return None
    return list(Raise(int(positions[at]), low, high, len(positions) - at - 1, int((late > at).sum())))
