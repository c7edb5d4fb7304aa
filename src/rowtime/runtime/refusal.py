"""The refused rows of a tick: found by their places (`Refusal`), or separated by a column of their own (`apart`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from rowtime.core.columns import DUE, MALFORMED, ORIGIN, POSITION, ROUTE, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem
from rowtime.core.time import BEGINNING, MAX_MICROS, MIN_MICROS
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import DECIMAL, PLAIN
from rowtime.operators.contract import Delta, quoted
from rowtime.operators.gates.rejected import shown_as
from rowtime.operators.rows.calendar import in_calendar, those_in_calendar

if TYPE_CHECKING:
    from rowtime.operators.sinks.sink import Sink
    from rowtime.runtime.tick import RunningTick

_BEHIND: Final = "OUT_OF_ORDER"
_SAME_PLACE = f"{WRITER} = __rw AND {POSITION} = __rp"
_KEYS = [(WRITER, "ascending"), (POSITION, "ascending")]
_KINDS = {
    "writer": StringType(), "position": LongType(),
    "reason": StringType(), "refused_by": TimestampType(), "raw_record": StringType(), DUE: LongType()
}  # fmt: skip


@dataclass(frozen=True)
class Rejection:
    """Refused rows as in ``name.rejected``, and their types; with ``__n`` (BIGINT µs)."""

    rows: Frame | pa.Table
    schema: StructType

    @property
    def by_values(self) -> pa.Table:
        """Return the rows in an order that follows from their values; those of an operator have no place."""
        rows = self.rows if isinstance(self.rows, pa.Table) else self.rows.toArrow()
        kinds = {field.name: field.dataType.simpleString() for field in self.schema.fields}
        plain = {name for name, kind in kinds.items() if kind in PLAIN or DECIMAL.fullmatch(kind)}
        names = sorted(kinds, key=lambda name: (name != ROWTIME, name not in plain))
        values = (rows[name] if name in plain else _texts(rows[name]) for name in names)
        keys = [key for column in values for key in (pc.is_valid(column), column)]  # NULL comes first
        ways = [(str(n), "ascending") for n in range(len(keys))]
        return rows.take(pc.sort_indices(pa.table(keys, [name for name, _ in ways]), ways))


def _texts(values: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else repr(value) for value in values.to_pylist()], pa.string())


class Refusal:
    """The refusals of a gate: ``__w``, ``__p``, ``reason`` and ``mark`` (µs) of each row."""

    def __init__(self, spark: SparkSession, refused: pa.Table) -> None:
        self._spark, self._refused = spark, refused

    def others(self, rows: Frame) -> Frame:
        """Return the rows that were not refused."""
        return rows.joined(self._listed, _SAME_PLACE, "left_anti")

    def of(self, rows: Frame, time: str, clock: str | None) -> Rejection:
        """Return the refused rows, with their reasons.

        ``time`` is the column that was refused, ``clock`` the column for their rowtime, by default the mark. Raises
        ``Failure`` (R901) if one of them is missing.
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
        refused = rows.joined(self._listed, _SAME_PLACE, "left_semi")
        refused = refused.selectExpr(*shown, *(f"{sql} AS {name}" for name, sql in made_so.items()))
        table = self._attached(refused.toArrow())
        kinds = {field.name: field.dataType for field in refused.schema} | _KINDS
        schema = StructType()
        for name in names:
            schema = schema.add(name, kinds["refused_by" if name == ROWTIME else name])
        return Rejection(table.select(names), schema)

    def _attached(self, rows: pa.Table) -> pa.Table:
        """Return refused rows with their reasons."""
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
    def _listed(self) -> Frame:
        """Return the places of refused rows."""
        places = self._refused.select([WRITER, POSITION]).rename_columns(["__rw", "__rp"])
        places = places.set_column(0, "__rw", places["__rw"].cast(pa.string()))
        return Frame.of(self._spark, places, [("__rw", "string"), ("__rp", "bigint")])

    @cached_property
    def _places(self) -> dict[str, np.ndarray]:
        """Return the positions of each writer in ascending order."""
        masks = ((w, pc.equal(self._refused[WRITER], w)) for w in pc.unique(self._refused[WRITER]).to_pylist())
        return {writer: np.sort(self._refused.filter(mask)[POSITION].to_numpy()) for writer, mask in masks}


def stopped_by(gate: str, refused: Rejection, why: str) -> Failure:
    """Return the end of a run (R514) for the first of some rows that cannot be computed; ``why``: in Spark's words."""
    row = refused.by_values.slice(0, 1).to_pylist()[0]
    place = f", row {row['position']} of {row['writer']!r}" if row["writer"] else ""
    what = f"{gate}: {row['raw_record']} cannot be computed at {row['refused_time']}{place}{f': {why}' if why else ''}"
    hint = (
        "Let it give NULL instead, with NULLIF, TRY_CAST or try_divide. Or leave out ON ERROR STOP, and it is refused."
    )
    return Failure(Problem("R514", what, hint=hint))


@dataclass(frozen=True)
class Apart:
    """The accepted rows, and the refused ones as in ``name.rejected``; with their numbers."""

    accepted: Frame
    refused: Rejection | None
    counts: dict[str, int]


def apart(rows: Frame, broken: str, reason: str = "MALFORMED", clock: str = ROWTIME) -> Apart:
    """Refuse the rows in which the column ``broken`` is not NULL.

    ``clock``: SQL of the time that refuses a row, by default its own; the text of ``broken`` goes to ``raw_record``.
    """
    wrong = pc.is_valid(rows.toArrow()[broken])
    total, many = rows.count(), pc.sum(wrong).as_py() or 0
    fits, refused = rows.chosen(pc.invert(wrong)).drop(broken), rows.chosen(wrong) if many else None
    counts = {"in": total, "accepted": total - many}
    if refused is None:
        return Apart(fits, None, counts)
    return Apart(fits, _rejection(refused, broken, reason, clock), {**counts, reason: many})


def _rejection(rows: Frame, broken: str, reason: str, clock: str) -> Rejection:
    own = [f"{quoted(name)} AS {quoted(shown_as(name))}" for name in rows.columns if not name.startswith("__")]
    writer, position = ORIGIN if ORIGIN[0] in rows.columns else (WRITER, POSITION)
    rejected = rows.selectExpr(
        *own, f"'{reason}' AS reason", f"{ROWTIME} AS refused_time", f"{clock} AS refused_by", f"{writer} AS writer",
        f"{position} AS position", f"{broken} AS raw_record", f"{clock} AS {ROWTIME}", WRITER, POSITION,
        f"unix_micros({clock}) AS {DUE}",
        f"0 AS {ROUTE}",
    )  # fmt: skip
    return Rejection(rejected, rejected.schema)


def above(tick: RunningTick, node: Sink, delta: Delta, floor: int) -> Delta:
    """Return the rows of a pump after a log's takeover, at ``floor`` (µs UTC) or above; refuse others.

    Semantics 2.3. The writer's clock in the log is that of the former pump. A row below it is ``OUT_OF_ORDER``, in the
    ledger as ``<pump>.takeover``. The gate is there until the pump's own bound has reached that clock.
    """
    bound = tick.control(node).bound
    if delta.rows is None or max(delta.lowest, BEGINNING if bound is None else bound) >= floor:
        return delta
    gate = f"{node.name.removesuffix('.sink')}.takeover"
    broken = f"CASE WHEN unix_micros({ROWTIME}) < {floor}L THEN 'below what the target has' END AS {MALFORMED}"
    split = apart(delta.rows.selectExpr("*", broken), MALFORMED, _BEHIND, f"timestamp_micros({floor}L)")
    if split.refused is None:
        return delta
    refused = split.counts[_BEHIND]
    # Count only refused rows: how many rows pass while the gate is there depends on the cut into ticks.
    tick.turn_away(gate, split.refused, {"in": refused, "accepted": 0, _BEHIND: refused})
    return replace(delta, rows=split.accepted, files=None)
