"""Values at the positions of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowtime.core.columns import POSITION

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


def with_value_at(rows: Frame, name: str, values: np.ndarray, positions: np.ndarray) -> Frame:
    """Return the rows with the value for the number of ascending positions before the row; NULL beyond the last one."""
    rows.share()  # computed once, so that its rows keep their order
    number = np.searchsorted(positions, rows.column(POSITION).to_numpy())
    beyond = number >= len(values)
    column = pa.array(values[np.where(beyond, 0, number)], pa.int64(), mask=beyond)
    return rows.with_column(name, "bigint", column)
