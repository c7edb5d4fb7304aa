"""Which row raised the mark of events so far that those behind it are late: `waiting` names it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rowtime.core.time import BEGINNING, HOUR
from rowtime.operators.contract.gates import Raise

LONG = HOUR  # µs: what raises a mark by less makes nobody late for long


def marks_of(before: int, positions: np.ndarray, marks: np.ndarray, after: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and the mark before each and after all, as `raised` takes them; a rise before the first row has a place."""
    if len(marks) and marks[0] > before:
        positions, marks = np.concatenate([[positions[0] - 1], positions]), np.concatenate([[before], marks])
    return positions, np.append(marks, after)


def raised(known: Sequence[int] | None, positions: np.ndarray, risen: np.ndarray, late: np.ndarray) -> list[int] | None:
    """The last row that raised a mark, if it did so by more than `LONG`, and what became of the rows behind it.

    ``known``: that of the rows before. ``risen`` is the mark before each row and, at the end, after all; ``late``
    whether a row was. In plain numbers, as `Raise` has them.
    """
    rises = np.flatnonzero(risen[1:] > risen[:-1])
    if not len(rises):
        if known is None:
            return None
        before = Raise(*known)
        return list(before._replace(rows=before.rows + len(late), late=before.late + int(late.sum())))
    at = int(rises[-1])
    low, high = int(risen[at]), int(risen[at + 1])
    if low > BEGINNING and high - low <= LONG:
        return None
    return list(Raise(int(positions[at]), low, high, len(late) - at - 1, int(late[at + 1 :].sum())))
