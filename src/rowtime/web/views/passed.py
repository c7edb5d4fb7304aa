"""Passed rows: how many went along each edge of a plan between two moments, as far as the journal tells.

Gates and sinks count rows, and each tick records what other operators gave, if known. Counts of neighbours that pass on
each row once follow from these: the output is the input minus the increase of held rows. So a count is exact, or
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.state.costs import given_in
from rowtime.web.moments import NOTHING, Moment


def since(moments: Sequence[Moment], ticks: int) -> Change | None:
    """Return the change in the last ``ticks`` ticks, or in as many as are known; ``None`` without any tick."""
    if not moments:
        return None
    recent = [moment for moment in moments if moment.tick >= moments[-1].tick - ticks]
    begins = recent[0].tick == 0 and recent[-1].tick < ticks
    return Change([NOTHING, *recent] if begins else recent)


def rows_out(plan: StoredPlan, change: Change) -> dict[str, int]:
    """Return the rows that came out of each operator meanwhile; unknown counts are omitted."""
    counts: dict[str, int] = {}
    above: dict[str, list[StoredOperator]] = {}
    for operator in plan.operators.values():
        for name in operator.inputs:
            above.setdefault(name, []).append(operator)
    before = -1
    while before < len(counts):  # counts above and below an operator may imply the next one
        before = len(counts)
        for name, operator in plan.operators.items():
            _note(counts, name, _by_itself(operator, change, counts))
        for name in reversed([*plan.operators]):
            for operator in above.get(name, ()):
                _note(counts, name, _by_consumer(operator, change, counts))
    return counts


def filtered_first(plan: StoredPlan) -> frozenset[str]:
    """Return the operators whose rows a filter reads, so that Spark may never compute all of them."""
    names: set[str] = set()
    for operator in reversed([*plan.operators.values()]):
        if operator.answers.drops_rows(operator.fields) or (
            operator.name in names and operator.answers.passes_each(operator.fields)
        ):
            names.update(operator.inputs)
    return frozenset(names)


class Change:
    """The change from the first of some moments to the last one; ``moments`` are in the order of their ticks."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._before, self._after = moments[0], moments[-1]
        self._given = [given_in(moment.stored) for moment in moments[1:]]

    @property
    def ticks(self) -> tuple[int, int]:
        """Return the tick of the first moment, and that of the last."""
        return self._before.tick, self._after.tick

    def counted(self, gate: str, what: str) -> int | None:
        """Return the rows that a gate got or accepted; ``None`` for an operator that does not count."""
        if gate not in self._after.totals:
            return None
        return self._after.count(gate, what) - self._before.count(gate, what)

    def written(self, sink: str) -> int:
        """Return the rows that a sink got."""
        return self._after.written.get(sink, 0) - self._before.written.get(sink, 0)

    def given(self, name: str) -> int | None:
        """Return the rows that an operator gave, if each tick has them."""
        counts = [given[name] for given in self._given if name in given]
        return sum(counts) if len(counts) == self.ticks[1] - self.ticks[0] else None

    def held(self, name: str) -> int:
        """Return the increase of an operator's held rows."""
        return self._after.held.get(name, 0) - self._before.held.get(name, 0)


def _note(counts: dict[str, int], name: str, rows: int | None) -> None:
    if rows is not None:
        counts.setdefault(name, max(0, rows))


def _by_itself(operator: StoredOperator, change: Change, counts: Mapping[str, int]) -> int | None:
    """Return the rows that come out of an operator, by its own count or by its input."""
    rows = None
    if operator.answers.passes_each(operator.fields):
        rows = change.counted(operator.name, "accepted")
        if rows is None and operator.inputs and all(name in counts for name in operator.inputs):
            rows = sum(counts[name] for name in operator.inputs)
    return change.given(operator.name) if rows is None else rows - change.held(operator.name)


def _by_consumer(operator: StoredOperator, change: Change, counts: Mapping[str, int]) -> int | None:
    """Return the rows that come out of an operator's one input, by its count or by its output."""
    if len(operator.inputs) != 1:
        return None
    rows = change.counted(operator.name, "in")
    if rows is None and operator.name in counts and operator.answers.passes_each(operator.fields):
        return counts[operator.name] + change.held(operator.name)
    return change.written(operator.name) if rows is None and operator.kind == "sink" else rows
