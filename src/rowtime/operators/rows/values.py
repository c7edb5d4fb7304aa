"""Values of any ordered type as whole numbers, so that one kernel judges all of them.

Whole numbers, times and short decimals become numbers of the same order. Other types (text, floating point, long
decimals, booleans) are judged by their ranks among the values of the tick and the kept ones; their marks are kept as
values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import POSITION, WRITER
from rowtime.core.errors import refuse
from rowtime.core.time import BEGINNING
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

WHOLE = ("tinyint", "smallint", "int", "bigint")
TIMES = ("timestamp", "timestamp_ntz", "date")
FLOATS = ("float", "double")
_SHORT = 18  # digits that a BIGINT holds


def coded(value: str, kind: str) -> str | None:
    """Return Spark SQL for a BIGINT of the same order; ``None`` if only ranks have it.

    Raises ``Refused`` (R107) for a type whose order cannot be checked here.
    """
    if kind in WHOLE:
        return f"CAST({value} AS BIGINT)"
    if kind in TIMES:
        return f"unix_micros(CAST({value} AS TIMESTAMP))"
    if kind.startswith("decimal("):
        precision, scale = _digits(kind)
        return f"CAST(({value}) * {10**scale} AS BIGINT)" if precision <= _SHORT else None
    if kind in (*FLOATS, "string", "boolean"):
        return None
    raise refuse(
        "R107",
        f"a value of type {kind} has no order that could be checked",
        "Numbers, texts, times and booleans have one; cast it to one of these types.",
    )


def decoded(mark: Any, kind: str, within: int, descending: bool) -> str:  # noqa: FBT001 - the direction
    """Return a mark minus the tolerance, as Spark SQL of the value's own type."""
    if kind in ("string", "boolean"):
        return literal(mark) if kind == "string" else str(mark).lower()
    if kind in FLOATS:
        return f"CAST(CAST({literal(repr(mark))} AS DOUBLE) AS {kind})"
    if isinstance(mark, str):
        return f"CAST({literal(mark)} AS {kind})"
    value = ~(mark - within) if descending else mark - within
    if kind in TIMES:
        return f"CAST(timestamp_micros({value}L) AS {kind})"
    if kind in WHOLE:
        return f"CAST({value}L AS {kind})"
    return f"CAST({literal(str(Decimal(value).scaleb(-_digits(kind)[1])))} AS {kind})"


def numbered(value: Any, kind: str, descending: bool) -> Any:  # noqa: FBT001 - the direction
    """Return a value of a log's item (`client.column_bounds`) in the form of marks: `coded`, or as it is."""
    if kind.startswith("decimal(") and _digits(kind)[0] <= _SHORT:
        value = int(Decimal(value).scaleb(_digits(kind)[1]))
    elif kind not in (*WHOLE, *TIMES):
        return value
    return ~value if descending else value


def furthest(marks: Sequence[Any], kind: str, descending: bool) -> Any:  # noqa: FBT001 - the direction
    """Return the mark that is furthest in the order."""
    if all(isinstance(mark, int) for mark in marks) and kind != "boolean":
        return max(marks)
    key = Decimal if kind.startswith("decimal(") else None
    return min(marks, key=key) if descending else max(marks, key=key)


def remembered(value: pa.Scalar, kind: str) -> Any:
    """Return a value for the journal, to be `decoded`; ``None`` for NULL and for types without an order here."""
    if not value.is_valid or not (kind in (*WHOLE, *TIMES, *FLOATS, "string", "boolean") or kind.startswith("decimal")):
        return None
    if kind in TIMES:
        tz = getattr(value.type, "tz", None)
        return value.cast(pa.timestamp("us", tz)).cast(pa.int64()).as_py()
    plain = value.as_py()
    return str(plain) if isinstance(plain, Decimal) else plain


def _digits(kind: str) -> tuple[int, int]:
    precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


@dataclass(frozen=True)
class Ranks:
    """The values of a tick and the kept ones, least first, and their ranks.

    ``table`` has ``__w``, ``__p``, ``t`` (the rank; null for NULL and NaN). Ranks are even numbers, so that there is
    room below each; they fall if the order descends.
    """

    distinct: Sequence[Any]
    table: pa.Table
    marks: Mapping[str, int]
    recent: Mapping[str, list[int]]
    bounds: Sequence[int]
    descending: bool

    @classmethod
    def of(
        cls,
        rows: Frame,
        marks: Mapping[str, Any],
        recent: Mapping[str, Sequence[Any]],
        descending: bool,  # noqa: FBT001 - the direction
        bounds: Sequence[Any] = (),
    ) -> Ranks:
        """Rank the column ``v`` of the rows together with kept values, and with bounds."""
        items = rows.toArrow().combine_chunks()
        column = _plain(items["v"])
        remembered = [*marks.values(), *(value for many in recent.values() for value in many), *bounds]
        decimals = pa.types.is_decimal(column.type)
        if decimals:
            remembered = [None if value is None else Decimal(value) for value in remembered]
        earlier = pa.array(remembered, column.type)
        together = pa.chunked_array([column, earlier]).combine_chunks()
        distinct = pc.drop_null(pc.unique(together))
        distinct = distinct.take(pc.sort_indices(distinct))
        indices = pc.index_in(together, distinct)
        ranks = pc.fill_null(indices.cast(pa.int64()), -1).to_numpy()
        valid = ranks >= 0
        ranks = np.where(valid, 2 * (~ranks if descending else ranks), BEGINNING)
        table = pa.table(
            {
                WRITER: items[WRITER],
                POSITION: items[POSITION],
                "t": pa.array(ranks[: len(column)], mask=~valid[: len(column)]),
            }
        )
        rest = iter(ranks[len(column) :].tolist())
        new_marks = {writer: next(rest) for writer in marks}
        new_recent = {writer: [next(rest) for _ in many] for writer, many in recent.items()}
        values = [str(value) for value in distinct.to_pylist()] if decimals else distinct.to_pylist()
        return cls(values, table, new_marks, new_recent, list(rest), descending)

    def value(self, rank: int) -> Any:
        """Return the value of a rank, for the journal."""
        if rank == BEGINNING:
            return None
        return self.distinct[~(rank >> 1) if self.descending else rank >> 1]

    def values(self, ranks: Mapping[str, int]) -> dict[str, Any]:
        """Return the values of some ranks; nothing before the first row, nor if a bound is between two."""
        return {writer: self.value(rank) for writer, rank in ranks.items() if rank != BEGINNING and not rank % 2}

    def lists(self, ranks: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        """Return the same for lists."""
        return {writer: [self.value(rank) for rank in many] for writer, many in ranks.items()}


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Return one array in which NaN is null and both zeros are equal."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_floating(values.type):
        values = pc.add(
            pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values), pa.scalar(0.0, values.type)
        )
    return values
