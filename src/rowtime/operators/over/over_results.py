"""The output of an OVER: the types that Spark gives its calls, and the rows with their values.

Rows go to Spark, which casts the values; or directly to the files of a sink that takes them over, if every value has
its type already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rowtime.core.columns import AT
from rowtime.core.errors import refuse
from rowtime.frames.kinds import type_text
from rowtime.frames.typed import schema_of
from rowtime.kernels.window_functions import Count, Distinct, Extreme, Nth
from rowtime.kernels.windowed import Answer, takes
from rowtime.operators.contract import Tick, quoted
from rowtime.operators.contract.state import Route
from rowtime.operators.rows.collations import has_collation
from rowtime.operators.rows.exact_sums import average
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    import pyarrow as pa

    from rowtime.frames.frame import Frame
    from rowtime.operators.contract.state import Segment
    from rowtime.operators.over.over import Over
    from rowtime.operators.over.over_calls import OverControl


def type_calls(tick: Tick, node: Over, rows: Frame) -> OverControl:
    """Let Spark type the calls once, and keep the types; a type that Spark refuses is refused here."""
    control = tick.control(node)
    if control.types:
        return control
    typed = schema_of(rows, {call.column.name: to_spark(call.typed) for call in node.calls})
    given = schema_of(rows, {call.column.name: to_spark(call.argument) for call in node.calls})
    kinds = [field.dataType.simpleString() for field in given]
    for call, kind in zip(node.calls, kinds, strict=True):
        if not takes(call.function, kind):
            what = f"{node.name}: {to_rowtime(call.typed)} over a window does not take {kind.upper()}"
            raise refuse("R107", what, "Cast the argument, for example to DOUBLE or DECIMAL(18, 2).")
    schema = schema_of(rows, {name: to_spark(value) for name, value in node.values.items()})
    collated = [field.name for field in schema if has_collation(field.dataType)]
    for name in collated:
        if schema[name].dataType.typeName() != "string":
            what = f"{node.name}: {to_rowtime(node.values[name])} holds text with a collation inside of another value"
            raise refuse("R107", what, "Use the text itself, or give it the collation UTF8_BINARY.")
    plain = (isinstance(call.function, Count | Distinct | Extreme | Nth) for call in node.calls)
    # The kernel gives the same type as Spark.
    straight = all(p or not kind.startswith(("decimal", "void")) for p, kind in zip(plain, kinds, strict=True))
    types = {field.name: type_text(field.dataType) for field in typed}
    return tick.remember(node, collated=collated, types=types, straight=straight)


def to_files(tick: Tick, node: Over, rows: pa.Table, answer: Answer, columns: Mapping[str, str]) -> Sequence[Segment]:
    """Write the rows to files of a sink, whose ``columns`` are columns of the result with other names."""
    for name, column in answer.values.items():
        rows = rows.append_column(name, column)
    return tick.write(node, rows, {"complete": Route(0, columns, AT)})["complete"]


def to_spark_rows(tick: Tick, node: Over, rows: pa.Table, answer: Answer, types: Mapping[str, str]) -> Frame:
    """Return the rows with their values as a Frame."""
    shape = node.emits()
    table = rows.select([*node.passed, *shape.internals])
    for name, column in answer.values.items():
        table = table.append_column(name, column)
    typed = [_typed(call.column.name, types, answer.values) for call in node.calls]
    return tick.frame(node, table).selectExpr(*map(quoted, node.passed), *typed, *shape.internals)


def _typed(name: str, types: Mapping[str, str], values: Mapping[str, Any]) -> str:
    value = quoted(name)
    if f"{name}:n" in values:
        value = average(value, quoted(f"{name}:n"), f"decimal(38,{values[name].type.scale})", types[name])
    return f"CAST({value} AS {types[name]}) AS {quoted(name)}"
