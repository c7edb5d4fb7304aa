"""How late the rows are that gates have refused, and which tolerance would have accepted nearly all of them.

It reads only the plan and a journal entry, like `waiting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from rowtime.core.counts import counted
from rowtime.kernels.blame import FEW
from rowtime.operators.contract.lateness import Lateness, in_words, interval
from rowtime.plan.poisoned import poisoned
from rowtime.plan.stored import StoredOperator, StoredPlan

ENOUGH: Final = 0.99  # the share of the late rows that the advised tolerance covers


@dataclass(frozen=True)
class LateRows:
    """The rows that a gate refused because they were below their writer's mark, or panes below the bound; in µs.

    ``of``: the rows that the gate has judged, in all. ``median``: at least half of the late rows were at most so far
    below it, ``greatest`` the last one; ``within``: a tolerance of so much would have accepted 99 % of them.
    ``advice``: the SQL to write; empty if a single row is to blame, about which `waiting` speaks.
    """

    gate: str
    rows: int
    of: int
    median: int
    greatest: int
    within: int
    advice: str

    def __str__(self) -> str:
        if self.rows == 1:
            advice = f"; {self.advice} would have accepted it" if self.advice else ""
            return f"{self.gate}: 1 of {counted(self.of, 'rows')} was {in_words(self.greatest)} late{advice}"
        late = f"{self.rows:,} of {self.of:,} rows ({100 * self.share:.3g} %) were late"
        how = f"half of them by at most {in_words(self.median)}, the latest by {in_words(self.greatest)}"
        advice = f"; {self.advice} would have accepted 99 % of them" if self.advice else ""
        return f"{self.gate}: {late}, {how}{advice}"

    @property
    def share(self) -> float:
        """The share of the late rows in all that the gate has judged, from 0 to 1."""
        return self.rows / max(self.of, self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain values, with its text."""
        return {**asdict(self), "share": self.share, "text": str(self)}


def late_rows(plan: StoredPlan, entry: Mapping[str, Any]) -> list[LateRows]:
    """Return how late the late rows of each gate are."""
    totals = entry.get("totals", {})
    findings, blamed = [], {row.operator for row in poisoned(plan, entry)}
    for name, control in entry.get("control", {}).items():
        late = Lateness.stored(control.get("lateness") or {})
        if late.rows and name in plan.operators:
            within = late.covering(ENOUGH)
            advice = "" if name in blamed else _advice(plan, name, interval(within))
            counts = late.rows, totals.get(name, {}).get("in", 0)
            median = min(late.covering(0.5), late.greatest)
            findings.append(LateRows(name, *counts, median, late.greatest, within, advice))
    return findings


def many_late(plan: StoredPlan, entry: Mapping[str, Any]) -> list[LateRows]:
    """Return the same for gates with at least three late rows, and one in a hundred: the end of a run names these."""
    return [late for late in late_rows(plan, entry) if late.rows >= FEW and late.rows * 100 >= late.of]


def _advice(plan: StoredPlan, name: str, within: str) -> str:
    operator = plan.operators[name]
    if "shape" in operator.fields:
        return _advice_for_events(operator, within)
    if not operator.inputs:
        return (
            f"a column with the time instead of ROWTIME, and SELECT STREAM … AS ROWTIME … ORDER BY … WITHIN {within},"
        )
    if operator.answers.awaits_event:
        return f"DISCARD AGE {within}"
    clause = "GROUP BY" if operator.fields.get("by_group") else "ORDER BY"
    return f"{clause} … WITHIN {within}"


def _advice_for_events(operator: StoredOperator, within: str) -> str:
    """Return the DELAY of the rows' own bounds, or of those of another stream; a writer chooses its own bounds."""
    shape = operator.fields["shape"]
    if shape.get("rows") or shape.get("every"):
        return f"BOUND EVERY … DELAY {within}"
    if shape.get("imports"):
        return f"BOUND FROM {shape['imports']} DELAY {within}"
    if operator.inputs:
        return f"BOUND EVERY 1 ROWS DELAY {within}"
    return f"bounds that its writers give {within} later"
