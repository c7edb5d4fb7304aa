"""The Spark types of the inputs of conditions and measures; Spark is asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.core.errors import refuse
from rowtime.frames.kinds import type_text
from rowtime.frames.typed import schema_of
from rowtime.kernels.windowed import takes
from rowtime.operators.contract import Tick
from rowtime.operators.patterns.slots import Fold, MatchFunction, Slot
from rowtime.operators.rows.collations import has_collation
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.patterns.match import Match


def type_slots(tick: Tick, node: Match, rows: Frame) -> None:
    """Store the types; a type that Spark refuses is refused here."""
    if tick.control(node).types:
        return
    tests = [slot for condition in node.conditions for slot in condition.slots]
    slots: list[Slot] = [*node.slots, *tests]
    read = [slot for slot in slots if not isinstance(slot, MatchFunction)]
    given = schema_of(rows, {slot.column.name: to_spark(slot.value) for slot in read})
    typed = schema_of(rows, {slot.column.name: to_spark(slot.typed) for slot in read})
    kinds = {field.name: field.dataType.simpleString() for field in given}
    for slot in read:
        if not isinstance(slot, Fold):
            continue
        kind = kinds[slot.column.name]
        if not takes(slot.function, kind):
            what = f"{node.name}: {to_rowtime(slot.typed)} over the rows of a match does not take {kind.upper()}"
            raise refuse("R107", what, "Cast the argument, for example to DOUBLE or DECIMAL(18, 2).")
    columns = [*schema_of(rows, {key.column.name: to_spark(key.expression) for key in node.keys}), *given]
    if any(has_collation(column.dataType) for column in columns):
        what = f"{node.name}: MATCH_RECOGNIZE does not support text with a collation yet"
        raise refuse("R190", what, "Give the text the collation UTF8_BINARY.")
    types = {field.name: type_text(field.dataType) for field in typed}
    types |= {slot.column.name: slot.column.type for slot in slots if isinstance(slot, MatchFunction)}
    tick.remember(node, types=types or {"": ""})
