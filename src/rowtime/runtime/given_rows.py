"""Given rows: how many rows each operator gave in a tick, if that is known without another query or Spark job.

The console shows them on edges where no gate and no sink counts rows (`web.views.passed`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from rowtime.frames.local import is_local
from rowtime.operators.contract import Delta
from rowtime.operators.contract.state import rows_in
from rowtime.plan.stored import StoredOperator, StoredPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class GivenRows:
    """The rows of one tick whose number is known."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[DataFrame, int]] = {}  # by identity, which is theirs as long as they are here

    def whole(self, rows: DataFrame, count: int) -> DataFrame:
        """Note that ``rows`` are exactly so many; gives them back."""
        self._known[id(rows)] = rows, count
        return rows

    def by_operator(self, deltas: Mapping[str, Delta], operators: Collection[str]) -> dict[str, int]:
        """How many rows these operators gave; those of which that is not known are left out."""
        found = ((name, self.in_delta(deltas[name])) for name in operators)
        return {name: count for name, count in found if count is not None}

    def in_delta(self, delta: Delta) -> int | None:
        """The number of rows of an edge in this tick, once all operators have made their step.

        Rows on the driver have a number if anybody has asked for them. Others have one if they are whole files.
        """
        if delta.final:
            return None
        if delta.files is not None:
            return rows_in(delta.files)
        if delta.rows is None:
            return 0
        if is_local(delta.rows):
            return delta.rows.known
        return self._known.get(id(delta.rows), (None, None))[1]


def uncounted(plan: StoredPlan) -> Sequence[str]:
    """The operators whose rows do not follow from what gates and sinks count."""
    sinks = {*plan.of_kind("sink")}
    counted: set[str] = set()
    for one in reversed([*plan.operators.values()]):
        tells = one.answers.is_gate or one.name in sinks or (_passes(one) and one.name in counted)
        if tells and len(one.inputs) == 1:
            counted.add(one.inputs[0])
    found: list[str] = []
    for one in plan.operators.values():
        told = not one.inputs or one.name in sinks or one.name in counted
        if not told and (not _passes(one) or {*found} & {*one.inputs}):
            found.append(one.name)
    return found


def _passes(one: StoredOperator) -> bool:
    return one.answers.passes_each(one.fields)
