"""The list of the values of a frame, in the order of its rows (COLLECT_LIST); as in Spark, it leaves NULL out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.kernels.frames import Frames, Ints, ranges
from rowtime.kernels.window_functions import Table


@dataclass(frozen=True)
class Listed:
    """COLLECT_LIST(x), over frames that contain no head."""

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows."""
        return {"v": argument}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        indices = np.flatnonzero(np.asarray(pc.is_valid(parts["v"])))
        low, high = np.searchsorted(indices, frames.lo), np.searchsorted(indices, frames.hi)
        counts = np.maximum(high - low, 0)
        return {"l": listed(parts["v"], indices[ranges(low, counts)], counts)}

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        return {"": parts["l"]}


def listed(values: pa.Array, places: Ints, counts: Ints) -> pa.Array:
    """Return lists of values, the next ``counts`` of these places in each."""
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(places)))
