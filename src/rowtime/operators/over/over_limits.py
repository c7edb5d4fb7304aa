"""Sums and averages of an OVER that overflow their type: such a row is refused, and the others continue without it.

A refused row is in no frame of a later one, as if it had not come. So no kept sum overflows, and which rows are refused
follows from the order of the rows, one key at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowtime.core.columns import BROKEN, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem
from rowtime.kernels.exact import Overflow
from rowtime.kernels.windowed import Answer
from rowtime.operators.contract import Tick
from rowtime.operators.over.slices import compute, slices_of
from rowtime.sql.generate import to_rowtime

if TYPE_CHECKING:
    from rowtime.operators.over.over import Over

ReadState = Callable[[str], pa.Table | None]


def answered(tick: Tick, node: Over, fresh: pa.Table, read: ReadState) -> tuple[pa.Table, Answer | None]:
    """Return the new rows to emit, and their values; ``None`` if all are refused."""
    heads, kept, refused = read("heads"), read("rows"), list[pa.Table]()
    answer = None
    while fresh.num_rows:
        try:
            slices = 1 if tick.trying else slices_of(fresh.num_rows)
            answer = compute(node.windows, heads, kept, fresh, slices)
            break
        except Overflow as wrong:
            if not tick.trying or tick.stops:
                hint = "Cast the argument to a wider type, for example DECIMAL(38, 0)."
                raise Failure(Problem("R507", f"{node.name}: {wrong}", hint=hint)) from wrong
            refused.append(_refused_rows(node, fresh.filter(pa.array(wrong.beyond)), wrong.name))
            fresh = fresh.filter(pa.array(~np.asarray(wrong.beyond)))
    if refused:
        gone = tick.frame(node, pa.concat_tables(refused))
        tick.refuse_computed(node, gone, BROKEN)
    return fresh, answer


def _refused_rows(node: Over, rows: pa.Table, name: str) -> pa.Table:
    call = next(call for call in node.calls if call.column.name == name)
    names = pa.array([f"{to_rowtime(call.typed)} OVER (…)"] * rows.num_rows, pa.string())
    return rows.select([*node.passed, ROWTIME, WRITER, POSITION]).append_column(BROKEN, names)
