"""Finds the refused rows of a tick by their positions, without a join.

Spark gets masks, one byte for each position from one refused row to another, and looks up there whether a row was
refused. A join would first have to ship and hash the positions, and then to look up those of all rows
(`docs/design/tick-cost.md`). Only positions that are too far apart for masks are joined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from rowtime.core.columns import DUE, MALFORMED, ORIGIN, POSITION, ROUTE, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem
from rowtime.core.time import MAX_MICROS, MIN_MICROS
from rowtime.frames.kinds import DECIMAL, PLAIN
from rowtime.frames.local import LocalFrame, is_local, joined
from rowtime.operators.contract import passed, quoted
from rowtime.operators.contract.peek import Peek
from rowtime.operators.gates.rejected import shown_as
from rowtime.operators.rows.calendar import in_calendar, those_in_calendar
from rowtime.operators.rows.collected import collected
from rowtime.runtime.segment_writer import fits_the_driver
from rowtime.sql.generate import literal

GAP = 1 << 20  # positions without a refused row after which another mask begins
MASKS, BYTES = 32, 1 << 24  # at most, for one tick
_SAME_PLACE = f"{WRITER} = __rw AND {POSITION} = __rp"
_KEYS = [(WRITER, "ascending"), (POSITION, "ascending")]
_KINDS = {
    "writer": StringType(), "position": LongType(),
    "reason": StringType(), "refused_by": TimestampType(), "raw_record": StringType(), DUE: LongType()
}  # fmt: skip


@dataclass(frozen=True)
class Rejection:
    """Refused rows as in ``name.rejected``, and their types; with ``__n`` (BIGINT µs)."""

    rows: DataFrame | pa.Table
    schema: StructType

    @property
    def by_values(self) -> DataFrame | pa.Table:
        """Return the rows in an order that follows from their values; those of an operator have no place."""
        kinds = {field.name: field.dataType.simpleString() for field in self.schema.fields}
        plain = {name for name, kind in kinds.items() if kind in PLAIN or DECIMAL.fullmatch(kind)}
        names = sorted(kinds, key=lambda name: (name != ROWTIME, name not in plain))
        if isinstance(self.rows, pa.Table):
            return _sorted(self.rows, names, plain)
        shown = (
            f"hex({quoted(name)})" if kinds[name] == "binary" else f"CAST({quoted(name)} AS STRING)" for name in names
        )
        terms = [quoted(name) if name in plain else text for name, text in zip(names, shown, strict=True)]
        if is_local(self.rows):
            ordered = self.rows.in_order(terms)
            return _sorted(self.rows.toArrow(), names, plain) if ordered is None else ordered
        return self.rows.coalesce(1).sortWithinPartitions(*map(F.expr, terms))


def _sorted(rows: pa.Table, names: Sequence[str], plain: Collection[str]) -> pa.Table:
    keys = {n: rows[name] if name in plain else _texts(rows[name]) for n, name in enumerate(names)}
    ways = [(str(n), "ascending") for n in keys]
    return rows.take(pc.sort_indices(pa.table([*keys.values()], [*map(str, keys)]), ways, null_placement="at_start"))


def _texts(values: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else repr(value) for value in values.to_pylist()], pa.string())


class Refusal:
    """The refusals of a gate: ``__w``, ``__p``, ``reason`` and ``mark`` (µs) of each row."""

    def __init__(self, spark: SparkSession, refused: pa.Table) -> None:
        self._spark, self._refused = spark, refused

    def others(self, rows: DataFrame) -> DataFrame:
        """Return the rows that were not refused."""
        if is_local(rows):
            return joined(rows, self._listed, _SAME_PLACE, "left_anti")
        if self._among is None:
            return rows.join(F.broadcast(self._key.select(WRITER, POSITION)), [WRITER, POSITION], "left_anti")
        return rows.where(~self._among)

    def of(self, rows: DataFrame, time: str, clock: str | None, peek: Peek | None) -> Rejection:
        """Return the refused rows, with their reasons.

        ``time`` is the column that was refused, ``clock`` the column for their rowtime, by default the mark. If
        ``peek`` can read them, no job searches for them among all rows. Raises ``Failure`` (R901) if one of them is
        missing.
        """
        own = {name: shown_as(name) for name in rows.columns if not name.startswith("__")}
        origin = ORIGIN if ORIGIN[0] in rows.columns else (WRITER, POSITION)
        given = {WRITER: WRITER, POSITION: POSITION, "refused_time": time, "writer": origin[0], "position": origin[1]}
        given |= {"refused_by": clock} if clock else {}
        given |= {"raw_record": MALFORMED} if MALFORMED in rows.columns else {}
        reason_columns = ("reason", "refused_time", "refused_by", "writer", "position", "raw_record")
        names = [*own.values(), *reason_columns, ROWTIME, WRITER, POSITION, DUE]
        shown = [f"{quoted(name)} AS {quoted(called)}" for name, called in own.items()]
        refused_time = f"timestamp_micros({in_calendar(f'unix_micros({time})')})"
        made_so = given | {"refused_time": refused_time}
        refused = self._chosen_of(rows).selectExpr(*shown, *(f"{sql} AS {name}" for name, sql in made_so.items()))
        if (is_local(rows) or self._among is not None) and fits_the_driver(refused, self._refused.num_rows):
            wanted = {called: name for name, called in own.items()} | given
            peeked = None if peek is None else peek.rows(wanted)
            table = self._attached(
                collected(refused) if peeked is None else pa.concat_tables(map(self._chosen, peeked))
            )
            kinds = {field.name: field.dataType for field in refused.schema} | _KINDS
            schema = StructType()
            for name in names:
                schema = schema.add(name, kinds["refused_by" if name == ROWTIME else name])
            return Rejection(table.select(names), schema)
        mark = f"timestamp_micros(greatest(least(mark, {MAX_MICROS}L), {MIN_MICROS}L))"
        mark = "refused_by" if clock else mark  # the column of the clock has that name now
        values = {"refused_by": mark, ROWTIME: mark, DUE: "mark", "raw_record": "CAST(NULL AS STRING)"}
        present = set(refused.columns)
        listed = [quoted(name) if name in present else f"{values.get(name, name)} AS {name}" for name in names]
        met = refused.join(F.broadcast(self._key), [WRITER, POSITION], "inner").selectExpr(*listed, f"0 AS {ROUTE}")
        return Rejection(met, met.schema)

    def _chosen_of(self, rows: DataFrame) -> DataFrame:
        """Return the refused rows among all; all rows, if they have to be joined."""
        if is_local(rows):
            return joined(rows, self._listed, _SAME_PLACE, "left_semi")
        return rows if self._among is None else rows.where(self._among)

    def _chosen(self, piece: pa.Table) -> pa.Table:
        """Return the refused rows of a piece of all rows."""
        places, wanted = piece[POSITION].to_numpy(), np.zeros(piece.num_rows, np.bool_)
        for writer, refused in self._places.items():
            nearest = refused[np.minimum(np.searchsorted(refused, places), len(refused) - 1)]
            wanted |= (nearest == places) & pc.equal(piece[WRITER], writer).to_numpy()
        return piece.filter(pa.array(wanted))

    def _attached(self, rows: pa.Table) -> pa.Table:
        """Return rows on the driver, with the reasons on the driver."""
        rows, refused = rows.sort_by(_KEYS), self._refused.sort_by(_KEYS)
        if not all(rows[name].equals(refused[name]) for name in (WRITER, POSITION)):
            raise Failure(
                Problem("R901", f"{refused.num_rows} rows were refused, but only {rows.num_rows} of them were found")
            )
        times = those_in_calendar(rows["refused_time"].cast(pa.int64())).cast(rows["refused_time"].type)
        rows = rows.set_column(rows.column_names.index("refused_time"), "refused_time", times)
        marks = refused["mark"].to_numpy()
        rows = rows.append_column("reason", refused["reason"]).append_column(DUE, refused["mark"])
        if "refused_by" not in rows.column_names:
            times = pa.array(np.clip(marks, MIN_MICROS, MAX_MICROS), pa.timestamp("us", "UTC"))
            rows = rows.append_column("refused_by", times)
        if "raw_record" not in rows.column_names:
            rows = rows.append_column("raw_record", pa.nulls(rows.num_rows, pa.string()))
        return rows.append_column(ROWTIME, rows["refused_by"])

    @cached_property
    def _listed(self) -> LocalFrame:
        """Return the places of refused rows, for rows on the driver."""
        places = self._refused.select([WRITER, POSITION]).rename_columns(["__rw", "__rp"])
        places = places.set_column(0, "__rw", places["__rw"].cast(pa.string()))
        frame = LocalFrame.of(self._spark, places, [("__rw", "string"), ("__rp", "bigint")])
        assert frame is not None
        return frame

    @cached_property
    def _key(self) -> DataFrame:
        return self._spark.createDataFrame(self._refused)

    @cached_property
    def _among(self) -> Column | None:
        """Return whether a row was refused; ``None`` if that needs too many masks."""
        masks: list[Column] = []
        size = 0
        for writer, part in self._stretches():
            size += int(part[-1] - part[0])
            if len(masks) == MASKS or size > BYTES:
                return None
            masks.append(_is_marked(part) & F.expr(f"{WRITER} = {literal(writer)}"))
        return reduce(or_, masks)

    @cached_property
    def _places(self) -> dict[str, np.ndarray]:
        """Return the positions of each writer in ascending order."""
        masks = ((w, pc.equal(self._refused[WRITER], w)) for w in pc.unique(self._refused[WRITER]).to_pylist())
        return {writer: np.sort(self._refused.filter(mask)[POSITION].to_numpy()) for writer, mask in masks}

    def _stretches(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the same, cut at gaps."""
        for writer, places in self._places.items():
            for part in np.split(places, np.flatnonzero(np.diff(places) > GAP) + 1):
                yield writer, part


def _is_marked(places: np.ndarray) -> Column:
    """Return whether a position is one of some; positions before or after them hit the zeros around the mask."""
    first, last = int(places[0]), int(places[-1])
    marks = np.zeros(last - first + 3, np.uint8)
    marks[places - first + 1] = 1
    before, behind = passed(first - 1, POSITION), passed(last + 1, POSITION)
    index = F.expr(f"CAST(greatest(least({POSITION}, {behind}), {before}) - {before} AS INT) + 1")
    return F.substring(F.lit(bytearray(marks.tobytes())), index, F.lit(1)) == F.lit(bytearray(b"\1"))
