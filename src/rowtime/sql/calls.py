"""Function calls: each keeps its name and arguments as they were written.

Semantics 5: a function that is not rowtime's is Spark's, with Spark's meaning. So a call is ``exp.Anonymous``, unless
the planner has rules for the function. Such a call has a node (`KNOWN`) with its arguments in Spark's order; its text
is the call as it was written: ``node.meta["called"]`` is the name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlglot import exp
from sqlglot.generator import Generator

from rowtime.sql.foreign_calls import SAME

_SAME = (
    # Aggregates
    "ANY_VALUE", "ARRAY_AGG", "AVG", "BOOL_AND", "BOOL_OR", "COUNT", "COUNT_IF", "FIRST", "FIRST_VALUE", "LAST",
    "LAST_VALUE", "MAX", "MAX_BY", "MIN", "MIN_BY", "MODE", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "SUM",
    "VARIANCE", "VAR_POP", "VAR_SAMP",
    # Window functions
    "DENSE_RANK", "LAG", "LEAD", "NTH_VALUE", "RANK", "ROW_NUMBER",
    # Choices
    "COALESCE", "GREATEST", "IFNULL", "LEAST", "NVL", "NVL2",
    # Numbers
    "ABS", "ATAN", "CBRT", "DEGREES", "EXP", "LN", "PI", "POW", "POWER", "RADIANS", "RINT", "ROUND", "SIGN",
    "SIGNUM", "SINH", "SQRT", "TANH", "WIDTH_BUCKET",
    # Texts
    "LEFT", "SUBSTR", "SUBSTRING",
    # Times
    "ADD_MONTHS", "CURRENT_DATE", "CURRENT_TIMESTAMP", "DATEDIFF", "DATE_DIFF", "DATE_FROM_UNIX_DATE", "LAST_DAY",
    "LOCALTIMESTAMP", "NEXT_DAY", "UNIX_DATE", "UNIX_MICROS", "UNIX_MILLIS", "UNIX_SECONDS", "YEAR",
)  # fmt: skip
"""Functions that sqlglot has a node for under the same name."""

KNOWN: Mapping[str, type[Any]] = {name: exp.FUNCTION_BY_NAME[name] for name in _SAME} | {
    "BIT_AND": exp.BitwiseAndAgg,
    "BIT_OR": exp.BitwiseOrAgg,
    "BIT_XOR": exp.BitwiseXorAgg,
    "COLLECT_LIST": exp.ArrayAgg,
    "COLLECT_SET": exp.ArrayUniqueAgg,
    "LISTAGG": exp.GroupConcat,
    "STRING_AGG": exp.GroupConcat,
    "CURDATE": exp.CurrentDate,
    "DATE_ADD": exp.TsOrDsAdd,
    "NOW": exp.CurrentTimestamp,
    "TO_DATE": exp.TsOrDsToDate,
}
"""Functions that the planner has rules for, by each of their names."""

_MOST: Mapping[str, int] = {"DATE_ADD": 2, "DATE_DIFF": 2, "DATEDIFF": 2, "LAST_DAY": 1, "TO_DATE": 1, "MIN": 1,
                            "MAX": 1, "MAX_BY": 2, "MIN_BY": 2, "YEAR": 1, "ROUND": 2, "POW": 2, "POWER": 2,
                            "LISTAGG": 2, "STRING_AGG": 2, "ARRAY_AGG": 1, "COLLECT_LIST": 1, "CURRENT_DATE": 0,
                            "CURDATE": 0, "CURRENT_TIMESTAMP": 0, "NOW": 0, "LOCALTIMESTAMP": 0, "COUNT_IF": 1,
                            "UNIX_MILLIS": 1, "NEXT_DAY": 2, "PI": 0, "ABS": 1, "SUBSTR": 3, "SUBSTRING": 3,
                            "LEFT": 2, "ROW_NUMBER": 0, "RANK": 0, "DENSE_RANK": 0}  # fmt: skip
"""The greatest number of arguments, if sqlglot's node allows more than Spark."""

_SKIPPING_NULLS = ("FIRST", "FIRST_VALUE", "LAST", "LAST_VALUE", "ANY_VALUE")
_WITH_UNIT: Mapping[str, type[Any]] = {
    **dict.fromkeys(("TIMESTAMPADD", "DATEADD", "DATE_ADD"), exp.TimestampAdd),
    **dict.fromkeys(("TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF", "TIMEDIFF"), exp.TimestampDiff),
}
_CASTS = ("BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INT", "STRING", "TIMESTAMP")
_DAYS = ("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK")
TRUNCATED = (*_DAYS, "DAY", "DD", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_UNITS_OF = {"DATE_TRUNC": TRUNCATED, "TRUNC": _DAYS}

Arguments = Sequence[exp.Expr]


def _call(name: str, arguments: Arguments) -> exp.Expr:
    """Return the node of a call that the planner knows, or the call as it is."""
    call = _special(name, arguments) or _known(name, arguments)
    if call is None:
        return exp.Anonymous(this=name, expressions=list(arguments))
    (call.this if isinstance(call, exp.IgnoreNulls) else call).meta["called"] = name
    return call


def _known(name: str, arguments: Arguments) -> exp.Expr | None:
    kind = KNOWN.get(name)
    if kind is None or any(isinstance(argument, exp.Kwarg | exp.Alias) for argument in arguments):
        return None
    if kind is exp.Count and not arguments:  # sqlglot takes it for COUNT(*), and Spark refuses it
        return None
    if name in _SKIPPING_NULLS and len(arguments) == 2 and isinstance(arguments[1], exp.Boolean):  # noqa: PLR2004
        first = _known(name, arguments[:1])
        return exp.IgnoreNulls(this=first) if first is not None and arguments[1].this else first
    keys, many = _keys(kind), "expressions" in kind.arg_types
    if len(arguments) > _MOST.get(name, len(arguments) if many else len(keys)):
        return None
    if any(kind.arg_types[key] and len(arguments) <= n for n, key in enumerate(keys)):
        return None
    call: exp.Expr = kind(**dict(zip(keys, arguments, strict=False)))
    if "ignore_nulls" in kind.arg_types:
        call.set("ignore_nulls", value=True)  # the default in Spark; sqlglot needs it set
    if many and len(arguments) > len(keys):
        call.set("expressions", list(arguments[len(keys) :]))
    return call


def _keys(kind: type[Any]) -> list[str]:
    """Return the arguments of a node in Spark's order, without the one that may repeat."""
    switches = ("ignore_nulls", "is_nvl", "is_null")  # arguments of other dialects
    return [key for key in kind.arg_types if key != "expressions" and key not in switches]


def _special(name: str, arguments: Arguments) -> exp.Expr | None:
    """Build calls whose arguments are not all values, or have another order in the node."""
    call: exp.Expr | None = None
    match name, arguments:
        case (_, [exp.Column() as unit, count, time]) if name in _WITH_UNIT and not unit.table:
            call = _WITH_UNIT[name](this=time, expression=count, unit=exp.var(unit.name.upper()))
        case ("DATE_TRUNC", [exp.Literal(is_string=True) as unit, time]) if unit.name.upper() in TRUNCATED:
            call = exp.TimestampTrunc(this=time, unit=exp.var(unit.name.upper()))
        case ("TRUNC", [time, exp.Literal(is_string=True) as unit]) if unit.name.upper() in _DAYS:
            call = exp.DateTrunc(this=time, unit=exp.Literal.string(unit.name.upper()))  # type: ignore[no-untyped-call]
        case (("ARRAY_SORT" | "SORT_ARRAY"), [exp.AggFunc() as gathered]):
            call = exp.ArraySort(this=gathered)
        case ("ARRAY", _):  # sqlglot would take the name alone for the constructor before ``[``
            call = exp.Array(expressions=list(arguments))
        case (_, [value]) if name in _CASTS and not isinstance(value, exp.Kwarg):
            call = exp.Cast(this=value, to=exp.DataType.build(name, dialect="spark"))
        case (("LISTAGG" | "STRING_AGG"), [exp.Distinct(expressions=[value, separator])]):
            call = exp.GroupConcat(this=exp.Distinct(expressions=[value]), separator=separator)
        case ("LOG", [base, value]) if not isinstance(base, exp.Kwarg):
            call = exp.Log(this=base, expression=value)
    return call


FUNCTIONS: Mapping[str, Callable[[Arguments], exp.Expr]] = {
    name: partial(_call, name)
    for name in (*KNOWN, *_WITH_UNIT, *_CASTS, *_UNITS_OF, "ARRAY", "ARRAY_SORT", "SORT_ARRAY", "LOG")
} | dict(SAME)
"""What the parser builds for a call; every other call stays as it is."""

_NAMES: Mapping[type[Any], str] = {kind: name for name, kind in reversed(list(KNOWN.items()))} | {
    exp.ArrayAgg: "COLLECT_LIST",
    exp.ArraySort: "SORT_ARRAY",
    exp.Log: "LOG",
    exp.Substring: "SUBSTRING",
    exp.Variance: "VARIANCE",
    exp.TimestampAdd: "TIMESTAMPADD",
    exp.TimestampDiff: "TIMESTAMPDIFF",
}
"""The names of the nodes that the planner builds itself."""


def text_of_call(generator: Generator, node: exp.Expr) -> str:
    """Return a call of `KNOWN` as it was written."""
    name = node.meta.get("called") or _NAMES[type(node)]
    if isinstance(node, exp.TimestampAdd | exp.TimestampDiff):
        return generator.func(name, node.args["unit"], node.expression, node.this)
    values = [node.args.get(key) for key in _keys(type(node))] + node.args.get("expressions", [])
    if isinstance(node, exp.TsOrDsToDate | exp.TsOrDsAdd):
        values = [node.this, node.args.get("expression")]
    return generator.func(name, *(value for value in values if isinstance(value, exp.Expr)))


TEXTS: Mapping[type[exp.Expr], Callable[[Generator, Any], str]] = {
    **dict.fromkeys(_NAMES, text_of_call),
    exp.Array: lambda self, e: self.func("ARRAY", *e.expressions),
    exp.TimestampTrunc: lambda self, e: self.func("DATE_TRUNC", exp.Literal.string(e.args["unit"].name), e.this),
    exp.DateTrunc: lambda self, e: self.func("TRUNC", e.this, exp.Literal.string(e.args["unit"].name)),
}
"""How the generator writes these nodes as SQL."""
