"""The guard as a table function: every row is emitted, with its verdict and the mark (semantics 7.2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import BEGINNING
from rowtime.expr.facts import Kind, kind_of
from rowtime.kernels.guard import EARLY, LATE, OK, Flags, Guarded, Items, Limits, Times, guard

MICROS = pa.timestamp("us", "UTC")
RESULT, MARK = "result", "hwm"
STEP = "PREVIOUS ROW"


class EarlyLateSplit:
    """``early_late_split(input, 'column', late [, early [, 'PREVIOUS ROW']])``: adds ``result`` and ``hwm``.

    ``result`` is OK, EARLY (above the mark by more than ``early``), LATE (below it by more than ``late``) or
    NULL_ROWTIME; ``hwm`` is the mark after the row; only OK rows move it. The first row is OK. Without ``early``, one
    limit applies to both. ``PREVIOUS ROW``: a row is early if it is above the previous row by more than the limit, not
    above the mark (the step limit).
    """

    def __init__(self, column: str, late: timedelta, early: timedelta | None = None, above: str = "MARK") -> None:
        if not isinstance(column, str) or not all(isinstance(limit, timedelta) for limit in (late, early or late)):
            raise TypeError("the arguments are the name of a column and one or two intervals")
        if str(above).upper() not in ("MARK", STEP):
            raise ValueError(f"early is measured above the MARK or above the {STEP}, not {above!r}")
        self.column, self.steps = column, above.upper() == STEP
        self.late, self.early = (limit // timedelta(microseconds=1) for limit in (late, early or late))

    def columns(self, given: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Return the input columns, the verdict and the mark."""
        kinds = {name.lower(): kind for name, kind in given}
        if self.column.lower() not in kinds:
            raise ValueError(f"there is no column {self.column}; there are {', '.join(name for name, _ in given)}")
        if kind_of(kinds[self.column.lower()]) not in (Kind.TIMESTAMP, Kind.OTHER):
            raise ValueError(f"{self.column} is not a timestamp")
        taken = [name for name in (RESULT, MARK) if name in kinds]
        if taken:
            raise ValueError(f"there is a column {taken[0]} already")
        return [*given, (RESULT, "STRING"), (MARK, "TIMESTAMP")]

    def process(self, rows: pa.Table, state: dict[str, Any]) -> pa.Table:
        """Judge some rows of one writer."""
        name = next(name for name in rows.column_names if name.lower() == self.column.lower())
        times = rows[name].cast(MICROS).cast(pa.int64())
        known = pc.is_valid(times).to_numpy()
        values = pc.fill_null(times, BEGINNING).to_numpy()
        mark, limits = state.get(MARK, BEGINNING), Limits(self.late, self.early)
        if self.steps:
            guarded, state[STEP] = step_limit(values, known, mark, state.get(STEP, BEGINNING), limits)
        else:
            guarded = guard(Items.of(values, known), mark, limits)
        if guarded.mark > BEGINNING:
            state[MARK] = guarded.mark
        result = np.select(
            [~known, guarded.result == EARLY, guarded.result == LATE], ["NULL_ROWTIME", "EARLY", "LATE"], "OK"
        )
        marks = pa.array(guarded.after, pa.int64(), mask=guarded.after == BEGINNING).cast(MICROS)
        return rows.append_column(RESULT, pa.array(result.tolist(), pa.string())).append_column(MARK, marks)


# The step limit: a row is early if it is too far above the row before it.
#
# As in s-Server's example, with its faults: the row before counts whatever its verdict. So after an early row the next
# one from the future is accepted, and a good row after a late one may be early. The guard (`kernels.guard`) has neither
# fault.


def step_limit(times: Times, known: Flags, mark: int, previous: int, limits: Limits) -> tuple[Guarded, int]:
    """Judge the rows of one writer; times in µs, BEGINNING if there was none before.

    A row is early if and only if t > the time before it + ``early``; otherwise it is late if and only if t < mark -
    ``late``, the mark being the greatest time of rows that were not early. Rows without a time are skipped. Also
    returns the last time.
    """
    shown = times[known]
    before = np.concatenate(([previous], shown[:-1]))
    early = np.zeros(len(times), bool)
    early[known] = (before > BEGINNING) & (shown - limits.early > before)
    running = np.maximum.accumulate(np.concatenate(([mark], np.where(known & ~early, times, BEGINNING))))
    late = known & ~early & (times < running[:-1] - limits.late)
    result = np.select([early, late], [EARLY, LATE], OK).astype(np.int8)
    last = int(shown[-1]) if len(shown) else previous
    guarded = Guarded(result, running[:-1], running[1:], int(running[-1]), bool(running[-1] > BEGINNING))
    return guarded, last
