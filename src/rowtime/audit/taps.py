"""Taps: the data on each edge of a run, kept for a trace.

Rows on the driver stay there, and so do queries over them: a trace over few rows needs no Spark job, however many ticks
and operators there are. Each function accepts rows of either kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import LongType, StructField, StructType

from rowtime.audit.traced import MOST
from rowtime.core.clock import least
from rowtime.core.columns import ASKED_FROM, ASKED_UPTO, TRACE_ROW, TRACE_TICK
from rowtime.core.time import BEGINNING, shift
from rowtime.frames.as_dataframe import FEW
from rowtime.frames.kinds import holds, type_text
from rowtime.frames.local import LocalFrame, is_local, joined
from rowtime.frames.tables import put_together, with_chunks
from rowtime.kernels.timeline import LAST, Timeline
from rowtime.operators.contract import Delta, Operator, quoted
from rowtime.operators.rows.collected import collected
from rowtime.state.checkpoint import folder_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE = (TRACE_TICK, TRACE_ROW)


class Taps:
    """The data on each edge of a run; many rows as Parquet files below ``folder``.

    ``ticks``: the recorded numbers of its ticks; here they count from 0.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.ticks: list[int] = []
        self.bounds: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.fires = FireTimes()
        self._schemas: dict[str, StructType] = {}
        self._files: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self._tables: dict[str, list[tuple[int, pa.Table]]] = defaultdict(list)
        self._whole: dict[str, tuple[int, DataFrame | None]] = {}  # all rows of an operator, up to a tick

    def __call__(self, node: Operator, delta: Delta) -> None:
        """Keep the results of an operator in the current tick."""
        tick = len(self.ticks)
        bound = least(delta.clocks.values()) if delta.clocks else BEGINNING
        if bound > (self.bounds[node.name][-1][1] if self.bounds[node.name] else BEGINNING):
            self.bounds[node.name].append((tick, bound))
        if delta.timeline is not None:
            self.fires.add(node.name, tick, delta.timeline)
        if delta.rows is None or not node.in_traces:
            return
        if is_local(delta.rows) and self._put_here(node.name, tick, delta.rows):
            return
        columns = [
            f"CAST(NULL AS STRING) AS {quoted(f.name)}" if f.dataType.typeName() == "void" else quoted(f.name)
            for f in delta.rows.schema.fields
        ]
        marks = [f"{tick}L AS {TRACE_TICK}", f"monotonically_increasing_id() AS {TRACE_ROW}"]
        self._put(node.name, tick, delta.rows.selectExpr(*columns, *marks), small=(delta.count or MOST + 1) <= MOST)

    def forget(self) -> None:
        """Drop the data of the current tick, which is run again."""
        tick = len(self.ticks)
        self._whole.clear()
        everything: tuple[dict[str, Any], ...] = (self.bounds, self._files, self._tables)
        for kept in everything:
            kept.update({name: [tapped for tapped in tables if tapped[0] != tick] for name, tables in kept.items()})

    def _put_here(self, name: str, tick: int, rows: LocalFrame) -> bool:
        """Keep rows of the driver; return False if their types differ from those of earlier ticks."""
        places = [StructField(place, LongType()) for place in PLACE]
        schema = self._schemas.setdefault(name, StructType([*_fields(rows), *places]))
        if [f.dataType for f in schema.fields[: -len(places)]] != [f.dataType for f in rows.schema.fields]:
            return False
        table = rows.toArrow()
        ticks, numbers = np.full(table.num_rows, tick, np.int64), np.arange(table.num_rows, dtype=np.int64)
        for place, values in zip(PLACE, (ticks, numbers), strict=True):
            table = table.append_column(place, pa.array(values))
        self._tables[name].append((tick, table))
        return True

    def _put(self, name: str, tick: int, rows: DataFrame, *, small: bool) -> None:
        fields = self._schemas.setdefault(name, StructType(_fields(rows))).fields
        if [f.dataType for f in fields] != [f.dataType for f in rows.schema.fields]:  # a NULL may have no type yet
            rows = rows.select(*(rows[quoted(f.name)].cast(f.dataType).alias(f.name) for f in fields))
        if small:
            self._tables[name].append((tick, collected(rows)))
            return
        path = str(self.folder / folder_of(name) / f"{tick:06d}")
        rows.write.parquet(path)
        self._files[name].append((tick, path))

    def rows(self, name: str, since: int = 0) -> DataFrame | None:
        """Return the rows of an operator, in all ticks or from one on."""
        if since:
            return self._rows(name, since)
        upto, rows = self._whole.get(name, (-1, None))
        if upto != len(self.ticks):
            rows = self._rows(name, 0)
            self._whole[name] = len(self.ticks), rows
        return rows

    def _rows(self, name: str, since: int) -> DataFrame | None:
        paths = [path for at, path in self._files[name] if at >= since]
        tables = [table for at, table in self._tables[name] if at >= since and table.num_rows]
        parts = [self.spark.read.schema(self._schemas[name]).parquet(*paths)] if paths else []
        if tables and not parts:
            return self.frame_of(tables, self._schemas[name])
        if tables:
            parts.append(self.spark.createDataFrame(with_chunks(_one(tables)), self._schemas[name]))
        return reduce(lambda one, other: one.unionByName(other), parts) if parts else None

    def frame(self, name: str, table: pa.Table) -> DataFrame:
        """Return found rows of an operator, with the spans asked for."""
        spans = [StructField(span, LongType()) for span in (ASKED_FROM, ASKED_UPTO)]
        return self.frame_of([table], StructType([*self._schemas[name].fields, *spans]))

    def places(self, places: Sequence[tuple[int, int]]) -> DataFrame:
        """Return some places as rows."""
        table = pa.table([pa.array([place[n] for place in places], pa.int64()) for n in (0, 1)], names=[*PLACE])
        return self.frame_of([table], StructType([StructField(place, LongType()) for place in PLACE]))

    def frame_of(self, tables: Sequence[pa.Table], schema: StructType) -> DataFrame:
        """Return tables as rows: of the driver, if it can hold them and Spark could take them over."""
        fields = [(field.name, type_text(field.dataType)) for field in schema.fields]
        if sum(table.num_rows for table in tables) <= FEW and all(holds(kind) for _, kind in fields):
            frame = LocalFrame.of(self.spark, put_together(fields, tables), fields)
            if frame is not None:
                frame.share()
                return frame
        return self.spark.createDataFrame(with_chunks(_one(tables)), schema)


def _fields(rows: DataFrame) -> list[StructField]:
    return [StructField(field.name, field.dataType) for field in rows.schema.fields]


def _one(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default")


def beside(rows: DataFrame, few: DataFrame, test: str) -> DataFrame:
    """Return pairs of rows with a few others that satisfy a condition; with the columns of both."""
    return joined(rows, few if is_local(few) and is_local(rows) else F.broadcast(few), test, "inner")


def at_places(rows: DataFrame, places: DataFrame, how: str = "left_semi") -> DataFrame:
    """Return the rows at some places, or with ``left_anti`` all others."""
    if not (is_local(rows) and is_local(places)):
        return rows.join(F.broadcast(places), [*PLACE], how)
    wanted = places.selectExpr(*(f"{place} AS __at_{place}" for place in PLACE))
    return joined(rows, wanted, " AND ".join(f"{place} = __at_{place}" for place in PLACE), how)


def with_spans(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Return the rows at some places, each with the span that is asked for there."""
    spans = [f"min({ASKED_FROM}) AS {ASKED_FROM}", f"max({ASKED_UPTO}) AS {ASKED_UPTO}"]
    columns = [*map(quoted, rows.columns), ASKED_FROM, ASKED_UPTO]
    grouped = places.grouped([*PLACE], spans) if is_local(rows) and is_local(places) else None
    if grouped is None:
        wanted = places.groupBy(*PLACE).agg(*map(F.expr, spans))
        return rows.join(wanted, [*PLACE]).select(*columns)
    wanted = grouped.toDF(*(f"__at_{place}" for place in PLACE), ASKED_FROM, ASKED_UPTO)
    return joined(rows, wanted, " AND ".join(f"{place} = __at_{place}" for place in PLACE), "inner").selectExpr(
        *columns
    )


def in_order(rows: DataFrame, terms: Sequence[str], number: str, first: int) -> DataFrame:
    """Return the rows with their ``number`` in an order, from ``first`` on."""
    ordered = rows.in_order(terms) if is_local(rows) else None
    if ordered is None:
        return rows.selectExpr("*", f"row_number() OVER (ORDER BY {', '.join(terms)}) - 1L + {first}L AS {number}")
    return ordered.with_column(number, "bigint", pa.array(np.arange(first, first + ordered.count(), dtype=np.int64)))


def first_in_order(rows: DataFrame, terms: Sequence[str], most: int = 1) -> DataFrame:
    """Return the first rows in an order."""
    ordered = rows.in_order(terms) if is_local(rows) else None
    return rows.orderBy(*terms).limit(most) if ordered is None else ordered.limit(most)


class FireTimes:
    """The bounds of each event time, by the tick and the position of the items that caused them.

    A row contributed to a fire if it came up to the item that caused the bound of the fire, and was not behind the
    discard age when it came (semantics 8.3).
    """

    def __init__(self) -> None:
        self._lines: dict[str, list[tuple[int, Timeline]]] = defaultdict(list)

    def add(self, event: str, tick: int, line: Timeline) -> None:
        """Record what the bound of an event time did in a tick."""
        self._lines[event].append((tick, line))

    def cut(self, event: str, fire: int) -> tuple[int, int]:
        """Return tick and position of the item that first caused a bound of ``fire`` (µs) or more."""
        for tick, line in self._lines[event]:
            at = int(np.searchsorted(line.values, fire))
            if at < len(line.values):
                return tick, int(line.positions[at])
        return self._lines[event][-1][0] if self._lines[event] else 0, LAST

    def refused(self, event: str, age: int, places: Sequence[tuple[int, int]], times: Sequence[int]) -> list[bool]:
        """Return whether rows at some places (tick, position) with these event times (µs) were too late for panes."""
        lines = dict(self._lines[event])
        verdicts = []
        for (tick, position), time in zip(places, times, strict=True):
            bound = int(lines[tick].at(np.array([position]))[0]) if tick in lines else BEGINNING
            verdicts.append(time < shift(bound, -age))
        return verdicts
