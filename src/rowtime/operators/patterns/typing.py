"""The Spark types of the inputs of conditions and measures; Spark is asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.core.errors import refuse
from rowtime.frames.local import typed as typed_rows
from rowtime.kernels.windowed import takes
from rowtime.operators.contract import Tick
from rowtime.operators.patterns.slots import Fold, MatchFunction, Slot
from rowtime.operators.rows.collations import has_collation
from rowtime.operators.rows.values import type_text
from rowtime.sql.generate import quoted, to_rowtime, to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rowtime.operators.patterns.match import Match


def type_slots(tick: Tick, node: Match, rows: DataFrame) -> None:
    """Store the types; a type that Spark refuses is refused here."""
    if tick.control(node).types:
        return
    rows = typed_rows(rows)
    tests = [slot for condition in node.conditions for slot in condition.slots]
    slots: list[Slot] = [*node.slots, *tests]
    read = [slot for slot in slots if not isinstance(slot, MatchFunction)]
    given = rows.selectExpr(*(f"{to_spark(slot.value)} AS {quoted(slot.column.name)}" for slot in read)).schema
    typed = rows.selectExpr(*(f"{to_spark(slot.typed)} AS {quoted(slot.column.name)}" for slot in read)).schema
    kinds = {field.name: field.dataType.simpleString() for field in given}
    for slot in read:
        if not isinstance(slot, Fold):
            continue
        kind = kinds[slot.column.name]
        if not takes(slot.function, kind):
            what = f"{node.name}: {to_rowtime(slot.typed)} over the rows of a match does not take {kind.upper()}"
            raise refuse("R107", what, "Cast the argument, for example to DOUBLE or DECIMAL(18, 2).")
    columns = [
        *rows.selectExpr(*(f"{to_spark(key.expression)} AS {key.column.name}" for key in node.keys)).schema,
        *given,
    ]
    if any(has_collation(column.dataType) for column in columns):
        what = f"{node.name}: MATCH_RECOGNIZE does not support text with a collation yet"
        raise refuse("R190", what, "Give the text the collation UTF8_BINARY.")
    types = {field.name: type_text(field.dataType) for field in typed}
    types |= {slot.column.name: slot.column.type for slot in slots if isinstance(slot, MatchFunction)}
    tick.remember(node, types=types or {"": ""})
