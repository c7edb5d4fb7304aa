"""What the columns of a table that is there take: a value beyond it is found before the tick commits, not after.

What the stream declares is checked row by row at the gate of the pump. A table may take less than that: a VARCHAR(3)
for a STRING, NOT NULL for a column that may be NULL. Then the tick is refused with the row, and nothing of it is
committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

# The numbers of java.sql.Types.
_TEXTS: Final = (1, 12, -1, -9, -15)
_WHOLE: Final = {-6: 1, 5: 2, 4: 4, -5: 8}  # and the bytes of their values
_DECIMALS: Final = (2, 3)
_UNLIMITED: Final = 2**31 - 1
_NO_NULLS: Final = 0


@dataclass(frozen=True)
class Limit:
    """What one column takes: so many ``characters``, whole numbers of ``bytes``, ``digits`` before the point, NULL."""

    name: str
    type: str
    characters: int | None = None
    bytes: int | None = None
    digits: int | None = None
    required: bool = False

    def __str__(self) -> str:
        size = f"({self.characters})" if self.characters is not None else ""
        return f"{self.type}{size}{' NOT NULL' if self.required else ''}"

    @property
    def bounded(self) -> bool:
        """False if the column takes every value of its type."""
        return self.required or any(part is not None for part in (self.characters, self.bytes, self.digits))

    def beyond(self, values: pa.ChunkedArray) -> int | None:
        """The first value that the column does not take; ``None`` if it takes all."""
        bad = [pc.is_null(values)] if self.required and values.null_count else []
        kind = values.type
        if self.characters is not None and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            bad.append(pc.greater(pc.utf8_length(pc.utf8_rtrim(values, " ")), self.characters))
        if self.bytes is not None and pa.types.is_integer(kind) and kind.bit_width > 8 * self.bytes:
            least, most = -(2 ** (8 * self.bytes - 1)), 2 ** (8 * self.bytes - 1) - 1
            bad.append(pc.or_(pc.less(values, least), pc.greater(values, most)))
        if self.digits is not None and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
            bad.append(pc.greater_equal(pc.abs(pc.cast(values, pa.float64(), safe=False)), 10.0**self.digits))
        found = [at for one in bad if (at := pc.index(pc.fill_null(one, fill_value=False), value=True).as_py()) >= 0]
        return min(found, default=None)


def limits_of(metadata: Any) -> Iterator[Limit]:
    """The columns of a result set (``java.sql.ResultSetMetaData``) that do not take every value of their types."""
    for at in range(1, metadata.getColumnCount() + 1):
        kind, precision, scale = metadata.getColumnType(at), metadata.getPrecision(at), metadata.getScale(at)
        sized = 0 < precision < _UNLIMITED
        limit = Limit(
            str(metadata.getColumnName(at)),
            str(metadata.getColumnTypeName(at)),
            precision if kind in _TEXTS and sized else None,
            _WHOLE.get(kind),
            precision - scale if kind in _DECIMALS and sized else None,
            metadata.isNullable(at) == _NO_NULLS,
        )
        if limit.bounded:
            yield limit
