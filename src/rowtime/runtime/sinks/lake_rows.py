"""What lake tables of any format have in common: a pump's name there, the rows of a key, the columns to compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rowtime.core.columns import ROW_NUMBER


def app_of(identity: str, pump: str) -> str:
    """Return the name of a checkpoint's pump in a table."""
    return f"rowtime/{identity}/{pump}"


def last_of_each(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last row of each key."""
    numbered = rows.append_column(ROW_NUMBER, pa.array(np.arange(rows.num_rows)))
    return rows.take(numbered.group_by(list(key)).aggregate([(ROW_NUMBER, "max")])[f"{ROW_NUMBER}_max"])


def compared(schema: pa.Schema) -> list[str]:
    """Return the columns for which a file that Spark did not write may have statistics.

    Floating-point columns are excluded: other writers omit NaN there, and Spark, for which NaN is the greatest, would
    skip the file.
    """
    return [field.name for field in schema if not (pa.types.is_floating(field.type) or pa.types.is_nested(field.type))]
