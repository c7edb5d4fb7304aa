"""Reads the limits of an existing table's columns, for the gate of the pump that writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rowtime.operators.gates.column_limits import Limit

# Constants of java.sql.Types.
_TEXTS: Final = (1, 12, -1, -9, -15)
_WHOLE: Final = {-6: 1, 5: 2, 4: 4, -5: 8}  # and the bytes of their values
_DECIMALS: Final = (2, 3)
_UNLIMITED: Final = 2**31 - 1
_NO_NULLS: Final = 0


def limits_of(metadata: Any) -> Iterator[Limit]:
    """Yield the columns of a result set (``java.sql.ResultSetMetaData``)."""
    for at in range(1, metadata.getColumnCount() + 1):
        kind, precision, scale = metadata.getColumnType(at), metadata.getPrecision(at), metadata.getScale(at)
        sized = 0 < precision < _UNLIMITED
        decimal = kind in _DECIMALS and sized
        yield Limit(
            str(metadata.getColumnName(at)),
            str(metadata.getColumnTypeName(at)),
            characters=precision if kind in _TEXTS and sized else None,
            bytes=_WHOLE.get(kind),
            signed=bool(metadata.isSigned(at)) or kind not in _WHOLE,
            digits=precision - scale if decimal else None,
            scale=scale if decimal else 0,
            required=metadata.isNullable(at) == _NO_NULLS,
        )
