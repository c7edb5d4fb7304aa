"""The types of expressions and aggregates over rows, found without rows.

The driver knows the types of what it computes, and of some aggregates that operators compute from others (AVG, FIRST).
If it does not know a type, Spark's analyzer is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from rowtime.frames.answers import Part
from rowtime.frames.catalyst import any_kind_of, kind_of
from rowtime.frames.frame import Frame
from rowtime.frames.generators import generator_of
from rowtime.frames.kinds import MOST_DIGITS, WHOLE, array_text, decimal, holds, spark_type
from rowtime.frames.translated import parsed
from rowtime.frames.values import READS, Scope, only, size_of
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_MEAN_DIGITS: Final = 4  # that an average has in addition
_EDGES: Final = (exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.AnyValue)


def type_of(rows: Frame, text: str) -> str | None:
    """Return the type in Spark of an expression or aggregate over rows of frames; ``None`` if only Spark knows.

    An expression of which this is known is accepted by Spark.
    """
    try:
        kind = rows.scope.remembered(("type", text), lambda: _type_of(text, rows.scope))
    except Untranslated:
        return None
    return kind if holds(kind) else None


def schema_of(rows: Frame, items: Mapping[str, str]) -> StructType:
    """Return the types of expressions, or of aggregates, by their names."""
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - Spark

    return StructType([StructField(name, spark_type(_any_kind(rows, text))) for name, text in items.items()])


def _any_kind(rows: Frame, text: str) -> str:
    """Return a type, which frames may not have; raises Spark's refusal."""
    try:
        return type_of(rows, text) or any_kind_of(rows.sparkSession, _part(rows, text))
    except Untranslated as unknown:
        raise unknown.__cause__ or unknown from None


def kind_of_text(rows: Frame, text: str) -> str:
    """Return the type of an expression or aggregate over rows, as text."""
    return schema_of(rows, {"__type": text})[0].dataType.simpleString()


def beside(rows: Frame, items: Mapping[str, str], wide: Frame | None = None) -> Frame:
    """Return empty rows with the columns of ``wide`` (or ``rows``), and expressions or aggregates over ``rows``.

    Raises ``Untranslated`` if Spark refuses one of them, or if frames have no such type.
    """
    wide = rows if wide is None else wide
    return Frame.empty(wide.sparkSession, [*wide.fields, *_types(rows, items)])


def groups(rows: Frame, keys: Sequence[str], aggregates: Mapping[str, str]) -> Frame:
    """Return empty groups by columns, with aggregates by their names; raises ``Untranslated`` as `beside` does."""
    items = {**{name: quoted(name) for name in keys}, **aggregates}
    return Frame.empty(rows.sparkSession, _types(rows, items))


def _types(rows: Frame, items: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the names with their types; raises ``Untranslated``."""
    session = rows.sparkSession
    return [(name, type_of(rows, text) or kind_of(session, _part(rows, text))) for name, text in items.items()]


def _part(rows: Frame, text: str) -> Part:
    """Return an expression or aggregate over rows, of which only the type is asked for."""
    return Part(text, rows.fields)


def _type_of(text: str, scope: Scope) -> str:
    call = generator_of(f"{text} AS `x`")
    if call is None:
        return _type(parsed(text), scope)
    return call.over(scope.value(parsed(call.array))).type


def _type(node: exp.Expr, scope: Scope) -> str:
    """Return a type; raises ``Untranslated``, also for an aggregate that is only a part."""
    calls = [part for part in node.walk() if isinstance(part, exp.AggFunc | exp.Window)]
    if not calls:
        return scope.value(node).type
    call = node
    if isinstance(node, exp.Filter):
        scope.boolean(node.expression.this)
        call = node.this
    if isinstance(call, exp.IgnoreNulls) and isinstance(call.this, _EDGES):
        call = call.this
    if calls != [call]:
        raise Untranslated(node.sql())
    rule = _RULES.get(type(call))
    if rule is None:
        return scope.value(call).type
    only(call, READS.get(type(call), frozenset({"this"})))
    return rule(scope.value(call.this).type)


def _mean(kind: str) -> str:
    if kind in (*WHOLE, "float", "double"):
        return "double"
    digits, scale = (min(number + _MEAN_DIGITS, MOST_DIGITS) for number in size_of(kind))
    return decimal(digits, scale)


def _same(kind: str) -> str:
    return kind


def _list(kind: str) -> str:
    if not holds(kind):  # NULL
        raise Untranslated(kind)
    return array_text(kind)


_RULES: Final[Mapping[type, Callable[[str], str]]] = {
    exp.Avg: _mean,
    exp.ArrayAgg: _list,
    **dict.fromkeys(_EDGES, _same),
}
"""The type of an aggregate, by that of its argument; `frames.aggregates` knows the others."""
