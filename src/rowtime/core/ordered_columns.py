"""Which columns of a stream can be given bounds: those of declared order (semantics 2.2, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowtime.core.errors import refuse


@dataclass(frozen=True)
class OrderedColumn:
    """A column of declared order, spelled as in its stream."""

    name: str
    type: str
    descending: bool


def ordered_column(definition: Mapping[str, Any], stream: str, column: str) -> OrderedColumn:
    """Return the column of a stream's definition that a bound names.

    Raises ``Refused``: R143 for a column without declared order, R190 for a stream that does not read such bounds.
    """
    orders = definition.get("orders", ())
    order_of_column = next((order for order in orders if order[0].lower() == column.lower()), None)
    if order_of_column is None:
        listed = ", ".join(order[0] for order in orders)
        hint = f"These columns have one: {listed}." if listed else f"Declare it: {column} BIGINT ASCENDING."
        raise refuse("R143", f"{stream} declares no order of {column}, so it has no bound", hint)
    if definition.get("event_time") or definition.get("shape"):
        what = "an event time" if definition.get("event_time") else "an event shape"
        raise refuse("R190", f"a bound of {column} in {stream}, which has {what}, is not supported yet")
    name, kind, text = order_of_column
    return OrderedColumn(name, kind, "DESCENDING" in text.upper().split()[:2])
