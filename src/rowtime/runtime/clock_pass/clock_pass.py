"""The clock pass: decides at a gate, exactly, which rows of a tick are refused.

If the source can read a single column, the times are judged piece by piece, before other columns are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.core.columns import WRITER
from rowtime.core.errors import Failure, Problem
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.runtime.clock_pass.gate_items import filled, items_of, runs, with_bounds
from rowtime.runtime.clock_pass.gate_verdicts import Judging

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


def judge(rows: Frame, gate: Gate, peeked: Iterable[pa.Table] | None = None) -> Verdict:
    """Return a gate's verdict on the rows of one tick.

    ``peeked``: the times, if they are known already: tables of ``__w``, ``__p``, ``t``, each writer's rows in its order
    from the first to the last.
    """
    if peeked is not None:
        tables = peeked if not gate.bounds else [pa.concat_tables(peeked, promote_options="permissive")]
        return _verdict(map(filled, tables), gate)
    return _verdict([items_of(rows, gate)], gate)


def _verdict(tables: Iterable[pa.Table], gate: Gate) -> Verdict:
    judging = Judging(gate)
    for items in tables:
        for (writer,), run in runs(with_bounds(items, gate), [WRITER]):
            judging.run(writer, run)
    return judging.verdict()


def check(gate: str, verdict: Verdict) -> None:
    """Raise ``Failure`` (R901) if the counts of a verdict do not add up."""
    counts = dict(verdict.counts)
    refused = sum(n for name, n in counts.items() if name not in ("in", "accepted"))
    listed = 0 if verdict.refused is None else verdict.refused.num_rows
    if verdict.counts["in"] != verdict.counts["accepted"] + refused or listed != refused:
        raise Failure(Problem("R901", f"the ledger of {gate} does not add up: {counts}"))
