"""Rows on their way from one level of a tick to the next (`level_ticks`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowtime.frames.frame import Frame
from rowtime.frames.tables import Column, put_together
from rowtime.kernels.identity import only_value
from rowtime.operators.contract import quoted
from rowtime.state.shards import shards_of, task_of

if TYPE_CHECKING:
    from rowtime.runtime.tick import RunningTick

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_ALIKE: Final = (pa.types.is_string, pa.types.is_timestamp, pa.types.is_integer, pa.types.is_date)


@dataclass(frozen=True)
class Exchanged:
    """What a task passes on of one operator.

    ``fields``: the columns with their types; ``rows``: those columns that differ; ``alike``: the others, which have one
    value, as those of the only writer. ``partial``: they are partial results.
    """

    fields: Sequence[Column]
    rows: pa.Table
    alike: Mapping[str, pa.Scalar]
    partial: bool = False

    @classmethod
    def of(cls, rows: Frame, columns: Collection[str] | None = None, *, partial: bool = False) -> Exchanged:
        """Return rows that are computed now, with these of their columns."""
        if columns is not None and len(columns) < len(rows.columns):
            rows = rows.selectExpr(*(quoted(name) for name in rows.columns if name in columns))
        table = rows.toArrow()
        _one, *others = table.column_names  # a table without columns has no rows
        alike = {name: value for name in others if (value := _alike(table.column(name))) is not None}
        return cls(rows.dtypes, table.drop_columns([*alike]), alike, partial)

    @property
    def table(self) -> pa.Table:
        """Return the rows with all columns."""
        columns = {name: self.rows.column(name) for name in self.rows.column_names}
        columns |= {name: pa.repeat(value, self.rows.num_rows) for name, value in self.alike.items()}
        return pa.table({name: columns[name] for name, _ in self.fields})

    def divided(self, keys: Sequence[str], many: int) -> list[Exchanged]:
        """Return the rows of each of so many tasks of keys."""
        kinds, table = dict(self.fields), self.table.select([*dict.fromkeys(keys)])
        numbers = task_of(shards_of(table, [kinds[key] for key in keys], keys), many)
        return [replace(self, rows=self.rows.filter(pa.array(numbers == n))) for n in range(many)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the rows of a slice."""
        body = pa.BufferOutputStream()
        with pa.ipc.new_stream(body, self.rows.schema, options=_OPTIONS) as stream:
            stream.write_table(self.rows)
        return _read, (self.fields, body.getvalue().to_pybytes(), self.alike, self.partial)


def united(tick: RunningTick, given: Sequence[Exchanged]) -> Frame:
    """Return the rows that several tasks have given, in this order."""
    fields = given[0].fields
    return Frame.of(tick.spark, put_together(fields, [one.table for one in given]), fields)


def _read(fields: Sequence[Column], body: bytes, alike: Mapping[str, pa.Scalar], partial: bool) -> Exchanged:  # noqa: FBT001
    return Exchanged(fields, pa.ipc.open_stream(body).read_all(), alike, partial)


def _alike(column: pa.ChunkedArray) -> pa.Scalar | None:
    """Return the value that all rows have, if they have one."""
    if not any(is_of(column.type) for is_of in _ALIKE) or only_value(column) is None:
        return None
    return column[0]
