"""Which rows open staggered windows (semantics 5): each is of one key, and as long as the others."""

from __future__ import annotations

import numpy as np

from rowtime.kernels.frames import Ints


def opening(code: Ints, at: Ints, kept: int, length: int) -> Ints:
    """Return the places of the rows that open a window of their key ``code``, in no order.

    The first ``kept`` elements are windows that are open, each at the time of its first row; the others are rows. A row
    opens one if no open window of its key contains it: ``[first, first + length)``. ``at`` and ``length`` are in µs.
    """
    order = np.lexsort((at, code))
    code, at, is_row = code[order], at[order], order >= kept
    times = np.unique(at)
    place = code * (len(times) + 1) + np.searchsorted(times, at)  # ascends; one more for times beyond all others
    after = np.searchsorted(place, code * (len(times) + 1) + np.searchsorted(times, at + length))
    following = np.where((after < len(code)) & (code[np.minimum(after, len(code) - 1)] == code), after, len(code))
    first = np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1]))) if len(code) else np.zeros(0, np.int64)
    opens = np.zeros(len(code) + 1, bool)
    reached = first
    while len(reached):  # one round for each window of the key with the most of them
        opens[reached] = True
        reached = following[reached]
        reached = reached[reached < len(code)]
    return order[opens[:-1] & is_row]
