"""How many rows and heads the keys of windows have, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rowtime.kernels.frames import Ints


@dataclass(frozen=True)
class Stock:
    """How many rows, and heads, each of some keys has, and from which clock (µs) on it has none."""

    rows: Ints
    heads: Ints
    due: Ints

    def past(self, clock: int) -> tuple[int, int]:
        """Return how many rows, and heads, there are after a clock."""
        lives = self.due > clock
        return int(self.rows[lives].sum()), int(self.heads[lives].sum())

    @classmethod
    def of(cls, parts: Sequence[Stock]) -> Stock:
        """Return the stock of the keys of all parts."""
        columns = ([part.rows for part in parts], [part.heads for part in parts], [part.due for part in parts])
        return cls(*map(np.concatenate, columns))
