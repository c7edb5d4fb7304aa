"""The mark of a writer behind a guard: rows too far above it are early and do not raise it (semantics 7.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rowtime.core.time import BEGINNING, UNREACHED
from rowtime.kernels.guard import OK, Items, Limits, guard

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass
class GuardedMark:
    """The ``mark`` after the rows so far; a row more than ``early`` µs above it is early. Late rows are not refused.

    Late rows do not move the mark, so the same rows are early whatever the tolerance.
    """

    early: int
    mark: int = BEGINNING

    def take(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Take rows in order; return the mark before each, and which are not early."""
        items = Items.of(times, np.ones(len(times), bool))
        judged = guard(items, self.mark, Limits(UNREACHED, self.early))
        self.mark = judged.mark
        return judged.before, judged.result == OK
