"""The clock pass: decides at a gate, exactly, which rows of a tick are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.core.columns import WRITER
from rowtime.core.errors import Failure, Problem
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.runtime.clock_pass.gate_items import items_of, runs, with_bounds
from rowtime.runtime.clock_pass.gate_verdicts import Judging

if TYPE_CHECKING:
    import pyarrow as pa

    from rowtime.frames.frame import Frame


def judge(rows: Frame, gate: Gate, times: pa.Table | None = None) -> Verdict:
    """Return a gate's verdict on the rows of one tick; ``times``: see `items_of`."""
    judging = Judging(gate)
    for (writer,), run in runs(with_bounds(items_of(rows, gate, times), gate), [WRITER]):
        judging.run(writer, run)
    return judging.verdict()


def check(gate: str, verdict: Verdict) -> None:
    """Raise ``Failure`` (R901) if the counts of a verdict do not add up."""
    counts = dict(verdict.counts)
    refused = sum(n for name, n in counts.items() if name not in ("in", "accepted"))
    listed = 0 if verdict.refused is None else verdict.refused.num_rows
    if verdict.counts["in"] != verdict.counts["accepted"] + refused or listed != refused:
        raise Failure(Problem("R901", f"the ledger of {gate} does not add up: {counts}"))
