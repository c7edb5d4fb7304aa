"""Text with a collation: each value with the key by which it is compared; Spark computes both.

Equal keys are equal texts, and the order of the keys is that of the texts. Of texts that are equal and differ in their
bytes the least is the lesser, so that MIN and MAX have one answer whatever the order of the rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import COLLATED_KEY, COLLATED_VALUE
from rowtime.kernels.frames import Ints


def is_collated(column: pa.Array) -> bool:
    """Return True for pairs of a key and a value."""
    return pa.types.is_struct(column.type) and [field.name for field in column.type] == [COLLATED_KEY, COLLATED_VALUE]


def keys(column: pa.Array) -> pa.Array:
    """Return the keys by which the values are compared."""
    return pc.struct_field(column, COLLATED_KEY) if is_collated(column) else column


def values(column: pa.Array) -> pa.Array:
    """Return the values themselves."""
    return pc.struct_field(column, COLLATED_VALUE) if is_collated(column) else column


def ranked(column: pa.Array) -> tuple[Ints, pa.Array]:
    """Return a number for each pair, in the order of the keys; and the pairs by their numbers."""
    rows = pa.table({COLLATED_KEY: keys(column), COLLATED_VALUE: values(column)})
    order = pc.sort_indices(rows, sort_keys=[(COLLATED_KEY, "ascending"), (COLLATED_VALUE, "ascending")])
    codes = np.empty(len(column), np.int64)
    codes[np.asarray(order)] = np.arange(len(column))
    return codes, column.take(order)
