"""Counts the rows that each operator gave in a tick.

The console shows them on edges where no gate and no sink counts rows (`web.views.graph`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from rowtime.frames.frame import Frame
from rowtime.frames.queries import FEW_ROWS, Uncomputed
from rowtime.operators.contract import Delta, Operator
from rowtime.operators.contract.state import rows_in
from rowtime.plan.stored import StoredOperator, StoredPlan


class GivenRows:
    """The rows of one tick with known numbers.

    ``few``: the tick reads so few rows that filters may wait until the rows before them are counted.
    """

    few = False

    def __init__(self) -> None:
        self._counted: dict[str, Frame] = {}  # by operator, the rows to count after the last step

    def reads(self, counts: Collection[int | None]) -> None:
        """Note how many rows the tick reads of each stream; ``None`` if unknown."""
        self.few = sum(FEW_ROWS + 1 if count is None else count for count in counts) <= FEW_ROWS

    def watched(self, node: Operator, delta: Delta, operators: Mapping[str, bool]) -> Delta:
        """Return the same rows, which are counted when computed, if the operator is one of these (`to_watch`).

        The input of a filter is left alone if the tick reads many rows: the filter is applied before all these rows are
        computed, and counting would prevent that. Rows that may be many more are also left alone, and counted
        afterwards.
        """
        rows, filtered = delta.rows, operators.get(node.name)
        if filtered is None or rows is None or self.in_delta(delta) is not None:
            return delta
        if rows.sized <= FEW_ROWS or (node.projection() is not None and not filtered):
            rows.share()
        elif not filtered:
            self._counted[node.name] = rows
        return delta

    def by_operator(self, deltas: Mapping[str, Delta], operators: Collection[str]) -> dict[str, int]:
        """Return how many rows these operators gave; unknown numbers are omitted."""
        counts = {name: self.in_delta(deltas[name]) for name in operators}
        for name, rows in self._counted.items():
            with suppress(Uncomputed):  # a column that nobody above needs may fail
                counts[name] = rows.number
        return {name: count for name in operators if (count := counts[name]) is not None}

    def in_delta(self, delta: Delta) -> int | None:
        """Return the number of rows on an edge in this tick, after all steps.

        They have one if somebody has read them.
        """
        if delta.final:
            return None
        if delta.files is not None:
            return rows_in(delta.files)
        if delta.rows is None:
            return 0
        return delta.rows.known


def to_watch(plan: StoredPlan, names: Collection[str]) -> dict[str, bool]:
    """Return the operators whose rows have to be counted, and whether a filter reads them.

    If an operator passes each row of one of them on, the number of the latter follows from its own.
    """
    watched, filtered = {*names}, set[str]()
    for operator in reversed([*plan.operators.values()]):
        if operator.answers.drops_rows(operator.fields) or (_passes(operator) and operator.name in filtered):
            filtered.update(operator.inputs)
        if operator.name in names and _passes(operator) and len(operator.inputs) == 1:
            watched -= {*operator.inputs}
    return {name: name in filtered for name in names if name in watched}


def uncounted(plan: StoredPlan) -> Sequence[str]:
    """Return the operators whose row numbers do not follow from the counts of gates and sinks."""
    sinks = {*plan.of_kind("sink")}
    counted: set[str] = set()
    for operator in reversed([*plan.operators.values()]):
        tells = operator.answers.is_gate or operator.name in sinks or (_passes(operator) and operator.name in counted)
        if tells and len(operator.inputs) == 1:
            counted.add(operator.inputs[0])
    names: list[str] = []
    for operator in plan.operators.values():
        is_visible = not operator.inputs or operator.name in sinks or operator.name in counted
        if not is_visible and (not _passes(operator) or {*names} & {*operator.inputs}):
            names.append(operator.name)
    return names


def _passes(operator: StoredOperator) -> bool:
    return operator.answers.passes_each(operator.fields)
