"""Event time of a stream or view: which column it is, and which bound its items cause.

SPEC 8.1. The rows pass as they came, under their own rowtimes; what is added is the bound of
the event time, in the merged order of the items. Operators further down read it from this
node (`panes`), so filters and projections between them change nothing. The bound stands
beside the rows, as a `Timeline`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.clock import Clocks, least
from rowtime.core.time import BEGINNING, END
from rowtime.kernels.timeline import FIRST, LAST, Timeline, advances
from rowtime.operators.contract import Control, Delta, EventTime, Kept, Operator, P, Shape, T, Tick, W, quoted
from rowtime.operators.event_bounds import GIVEN
from rowtime.operators.gates import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REGION = "__g"  # INT: which of the regions that meet a row or bound is of
FORWARDED = "INPUT_WATERMARK"


@dataclass(frozen=True)
class EventTimed:
    """``EVENT TIME (column, …)``: the event time of the rows, and its bounds.

    ``unit``: what a column of whole numbers counts (SECOND, MILLISECOND, …); a timestamp has
    none. ``lag`` and ``gap`` in µs. ``mode``: OUTPUT_EVENT_TIME (the greatest time so far
    less the lag), MANUAL (what is set) or INPUT_WATERMARK (the least of the bounds that the
    ``regions`` below pass on). ``gate``: the stream whose bounds are about the event time.
    """

    name: str
    input: Operator
    column: str
    unit: str | None = None
    lag: int = 0
    gap: int = 0
    mode: str = "OUTPUT_EVENT_TIME"
    gate: Operator | None = None
    regions: int = 0

    kind: ClassVar[str] = "event time"
    promise: ClassVar[str] = ""
    reason: ClassVar[str] = ""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The one input."""
        return (self.input,)

    def requires(self) -> str:
        """The merged order, which decides which row a bound comes after."""
        return "stream order"

    def keeps(self) -> tuple[Kept, ...]:
        """The bound of the event time."""
        says = {"MANUAL": "the bound that was set", FORWARDED: "the bound of each input"}
        what = says.get(self.mode, f"the greatest {self.column} less the lag")
        return (Kept(f"{what}, and the bound last sent", "the stream ends", "one"),)

    def emits(self) -> Shape:
        """The input's columns; further down it is known which of them is the event time."""
        shape = self.input.emits()
        columns = tuple(column for column in shape.columns if column.name not in (GIVEN, REGION))
        return replace(shape, columns=columns, event=EventTime(self.name, self.column))

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """Those of the input: the rowtime is not touched."""
        return clocks[0]

    @property
    def micros(self) -> str:
        """The event time as Spark SQL, BIGINT µs."""
        column = quoted(self.column)
        if self.unit is None:
            return f"unix_micros({column})"
        if self.unit == "NANOSECOND":
            return f"(({column} - pmod({column}, 1000)) DIV 1000)"
        return f"({column} * {_MICROS[self.unit]})"

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Read the event times of the new rows, and find out which of them moved the bound."""
        delta, control = deltas[0], tick.control(self)
        items = self._items(tick, delta)
        line = self._timeline(tick, items, control, ended=least(delta.clocks.values()) >= END)
        if delta.rows is not None:
            line = replace(line, stamps=partial(_stamps, tick, self, delta.rows))
        rows = None if delta.rows is None else self._accepted(tick, delta.rows, items, line)
        peek = delta.peek if rows is delta.rows else None
        return Delta(rows, delta.clocks, delta.count, delta.lowest, delta.highest, peek, timeline=line)

    # -- the items --------------------------------------------------------------------

    def _items(self, tick: Tick, delta: Delta) -> pa.Table:
        """Position, event time and set bound (BIGINT µs or null) of each item, in the merged order."""
        if delta.rows is None:
            return pa.table({P: pa.array([], pa.int64()), "t": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
        peeked = delta.peek.times(self.column) if delta.peek is not None and self.unit is None else None
        if peeked is not None:
            items = pa.concat_tables(peeked).select([P, "t"])
            items = items.append_column("b", pa.nulls(items.num_rows, pa.int64()))
        else:
            tick.describe(self, "read event times")
            bound = GIVEN if GIVEN in delta.rows.columns else "CAST(NULL AS BIGINT)"
            region = [REGION] if self.regions else []
            items = delta.rows.selectExpr(P, f"{self.micros} AS t", f"{bound} AS b", *region).toArrow()
        positions = items[P].to_numpy()
        return items if (np.diff(positions) > 0).all() else items.take(pa.array(np.argsort(positions, kind="stable")))

    def _timeline(self, tick: Tick, items: pa.Table, control: Control, *, ended: bool) -> Timeline:
        before = control.get("bound", BEGINNING)
        wanted = self._wanted(items, control)
        # What was set by hand came after everything that earlier ticks have read.
        first = control.pop("set", [])
        last = [*self._given(tick), *([END] if ended else [])]
        positions = np.concatenate([np.full(len(first), FIRST), items[P].to_numpy(), np.full(len(last), LAST)])
        wanted = np.concatenate([np.array(first, np.int64), wanted, np.array(last, np.int64)])
        where, values, reached = advances(positions, wanted, control.get("reached", BEGINNING), before, self.gap)
        control["reached"] = reached
        is_row = pc.is_valid(items["t"]).to_numpy()
        times = pc.fill_null(items["t"], BEGINNING).to_numpy()
        line = Timeline(before, where, values, items[P].to_numpy()[is_row], times[is_row])
        control["bound"] = line.after
        return line

    def _wanted(self, items: pa.Table, control: Control) -> np.ndarray:
        """What each item would set the bound to."""
        column = items["t" if self.mode == "OUTPUT_EVENT_TIME" else "b"]
        wanted: np.ndarray = pc.fill_null(column, BEGINNING).to_numpy()
        if self.mode == "OUTPUT_EVENT_TIME":
            return np.where(wanted > BEGINNING, wanted - self.lag, BEGINNING)
        if not self.regions or REGION not in items.column_names:
            return wanted
        known, region = control.get("regions", [BEGINNING] * self.regions), items[REGION].to_numpy()
        reached = [_running(wanted, region == n, known[n]) for n in range(self.regions)]
        control["regions"] = [int(of[-1]) if len(of) else known[n] for n, of in enumerate(reached)]
        together: np.ndarray = np.minimum.reduce(reached)
        return together

    def _given(self, tick: Tick) -> list[int]:
        """A bound of the event time that was given to the stream as a whole, not in a writer's order."""
        if self.gate is None:
            return []
        found = tick.control(self.gate).get("given")
        return [] if found is None else [found]

    # -- the rows ---------------------------------------------------------------------

    def _accepted(self, tick: Tick, rows: DataFrame, items: pa.Table, line: Timeline) -> DataFrame:
        missing = pc.and_(pc.is_null(items["t"]), pc.is_null(items["b"]))
        lost = items.filter(missing)[P].to_numpy()
        accepted = len(line.rows)
        if GIVEN in rows.columns:
            rows = rows.where(f"{GIVEN} IS NULL").drop(GIVEN, REGION)
        if not len(lost):
            tick.count(self, accepted)
            return rows
        reason = "NULL_ROWTIME"
        counts = Counter({"in": accepted + len(lost), "accepted": accepted, reason: len(lost)})
        refused = refusals(rows, lost, [reason] * len(lost), line.at(lost))
        verdict = Verdict(refused, counts, {}, BEGINNING, END)
        return tick.account(self, rows, verdict, "CAST(NULL AS TIMESTAMP)")


def _running(wanted: np.ndarray, mine: np.ndarray, known: int) -> np.ndarray:
    """The bound of one region after each item."""
    found: np.ndarray = np.maximum.accumulate(np.maximum(np.where(mine, wanted, BEGINNING), known))
    return found


def _stamps(tick: Tick, node: Operator, rows: DataFrame, positions: np.ndarray) -> np.ndarray:
    """The rowtimes of items, µs."""
    tick.describe(node, "read the rowtimes of what moved the bound")
    found = rows.selectExpr(P, f"unix_micros({T}) AS t").toArrow().sort_by(P)
    times: np.ndarray = found["t"].to_numpy()[np.searchsorted(found[P].to_numpy(), positions)]
    return times


def refusals(rows: DataFrame, positions: np.ndarray, reasons: Sequence[str], bounds: np.ndarray) -> pa.Table:
    """Refused rows of one sequence, as a verdict lists them."""
    writer = rows.select(W).first()[0]  # type: ignore[index]  # there is one: a row was refused
    columns = {W: pa.array([writer] * len(positions), pa.string()), P: pa.array(positions, pa.int64())}
    return pa.table({**columns, "reason": pa.array(reasons, pa.string()), "mark": pa.array(bounds, pa.int64())})


_MICROS = {"SECOND": 1_000_000, "MILLISECOND": 1000, "MICROSECOND": 1}
