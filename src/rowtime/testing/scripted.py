"""A scripted source: gives the items of a transcript to a stream, up to where the test allows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowtime.client.arrow_types import arrow_schema
from rowtime.client.rows import batch
from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME, WRITER
from rowtime.core.time import END
from rowtime.expr.store_assignment import as_read
from rowtime.frames.kinds import holds, named
from rowtime.frames.tables import has
from rowtime.operators.contract import functions
from rowtime.runtime.sources.contract import BoundItem, Division, Limits, Offsets, Slice, Source, in_shares
from rowtime.sql.generate import quoted
from rowtime.testing.transcripts import ScriptItem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLLATION = re.compile(r"\bCOLLATE\b", re.IGNORECASE)


class ScriptedSource(Source):
    """The items of one stream; positions are item numbers. ``upto`` is moved by the test."""

    in_band = False
    decodes = False
    gives_rowtime = True
    steady = True

    def __init__(self, items: Sequence[ScriptItem], columns: Sequence[tuple[str, str]], writers: Sequence[str]) -> None:
        self._items, self._columns = list(items), list(columns)
        named = {*writers, *(item.writer for item in items)}
        # Several writers are known from the start; a single one comes with its first item, like a client.
        self.writers = sorted(named) if writers or len(named) > 1 else []
        self.upto = 0

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:  # noqa: ARG002
        """Return the items that the test has released and that were not taken yet."""
        taken = [i for i in self._items if start.get(i.writer, 1) <= i.number <= self.upto]
        end = {**dict.fromkeys(self.writers, 1), **start}
        end.update({item.writer: item.number + 1 for item in taken})
        begin = {writer: start.get(writer, 1) for writer in end}
        bounds = tuple(bound for item in taken if item.at is not None for bound in _bounds(item, end))
        rows = sum(item.values is not None for item in taken)
        last = {item.writer: item for item in taken}
        left = tuple(writer for writer, item in last.items() if item.leaves)
        return Slice(begin, end, bounds, left=left, rows=rows, detail={"upto": self.upto}), state

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the rows of the range; text compares by the collation that its column declares."""
        return with_collations(spark.createDataFrame(self._table(part)), self._columns)

    def given(
        self, part: Slice, columns: Collection[str] | None = None
    ) -> tuple[list[tuple[str, str]], list[pa.Table]] | None:
        """Return the rows of `read` with the types of their columns; ``None`` if frames do not support one of them."""
        hidden = [(ROWTIME, "timestamp"), (WRITER, "string"), (POSITION, "bigint"), (ARRIVAL, "timestamp")]
        read = [(name, kind) for name, kind in self._columns if columns is None or name in columns]
        fields = [*((name, named(as_read(kind))) for name, kind in read), *hidden]
        if not all(holds(kind) for _, kind in fields):
            return None
        table = self._table(part)
        return (fields, [table.select([name for name, _ in fields])]) if has(table, fields) else None

    def divided(self, part: Slice, many: int) -> Division | None:
        """Return the range in parts of consecutive items."""
        given, rows = self.given(part), self._rows(part)
        if given is None:
            return None
        shares = in_shares(rows, [1] * len(rows), many)
        return Division(
            given[0], [(_Share(share, self._columns, ()), replace(part, rows=len(share))) for share in shares]
        )

    def _rows(self, part: Slice) -> list[ScriptItem]:
        return [
            item for item in self._items
            if item.values is not None and part.start.get(item.writer, 1) <= item.number < part.end.get(item.writer, 1)
        ]  # fmt: skip

    def _table(self, part: Slice) -> pa.Table:
        rows = self._rows(part)
        definition = {"columns": [{"name": n, "type": t, "nullable": True} for n, t in self._columns]}
        names = {name.lower() for name, _ in self._columns} | {"rowtime"}
        values = [{k: v for k, v in (item.values or {}).items() if k in names} for item in rows]
        ready = batch(values, arrow_schema(definition), None)
        table = ready.columns.append_column(ROWTIME, ready.rowtimes.cast(pa.timestamp("us", "UTC")))
        table = table.append_column(WRITER, pa.array([item.writer for item in rows], pa.string()))
        table = table.append_column(POSITION, pa.array([item.number for item in rows], pa.int64()))
        arrival = pa.array([item.number for item in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
        return table.append_column(ARRIVAL, arrival)

    def finished(self, at: Offsets) -> bool:  # noqa: ARG002
        """Return False: an end is an item of the transcript."""
        return False


class _Share(ScriptedSource):
    """A part of the items; like a file, it can be asked for the rowtimes alone."""

    def column(self, part: Slice, name: str) -> list[pa.Table] | None:
        """Return a timestamp column with writers and positions; ``None`` if it is none, or for a missing rowtime."""
        table = self._table(part)
        if name not in table.column_names or not pa.types.is_timestamp(table[name].type):
            return None
        if name == ROWTIME and table[name].null_count:
            return None
        return [table.select([WRITER, POSITION]).append_column("t", table[name].cast(pa.int64()))]


def with_collations(rows: DataFrame, columns: Iterable[tuple[str, str]]) -> DataFrame:
    """Return rows whose texts compare by the collations in the declared types of ``columns``; values have none."""
    kinds = {name: as_read(kind) for name, kind in columns if _COLLATION.search(kind)}
    return rows.withColumns({name: functions.expr(f"CAST({quoted(name)} AS {kind})") for name, kind in kinds.items()})


def _bounds(item: ScriptItem, end: Mapping[str, int]) -> list[BoundItem]:
    """Return a bound of its writer; an end is that of every writer."""
    assert item.at is not None
    writers = sorted({*end, item.writer}) if item.at >= END else [item.writer]
    return [BoundItem(writer, item.number, item.at, item.number) for writer in writers]
