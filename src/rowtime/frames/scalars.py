"""Translates scalar expressions from Spark SQL to DuckDB, if both give the same values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from rowtime.frames.computed_parts import after, all_hold, together_computed
from rowtime.frames.decimals import as_decimals, of_decimals, quotient
from rowtime.frames.kinds import (
    DECIMAL,
    TIMES,
    WHOLE,
    decimal,
    fields_of,
    is_collated,
    struct_text,
)
from rowtime.frames.prepared import PASSED
from rowtime.frames.text_casts import CASTS
from rowtime.frames.times import micros, truncated
from rowtime.frames.values import (
    NUMBER,
    Rule,
    Scope,
    Value,
    cast,
    comparable,
    constant,
    number,
    once,
    plain,
    signed,
    size_of,
    together,
    wider,
)  # fmt: skip
from rowtime.frames.words import Untranslated, in_text, quoted
from rowtime.sql.generate import BEYOND_BIGINT

_WHOLE_CONSTANT: Final = re.compile(r"(?:CAST\()+\d+(?: AS \w+\))+")
_POINT: Final = re.compile(r"-?\d+\.\d+")


def _column(node: exp.Expr, scope: Scope) -> Value:
    whole = node.args.get("table") or node.this
    if whole.name.lower() not in scope.columns:
        raise Untranslated(node.sql())
    column = scope.columns[whole.name.lower()]
    if is_collated(column.type):
        raise Untranslated(column.type)  # DuckDB would compare its bytes
    return _field(column, node.name) if node.args.get("table") else column


def _dot(node: exp.Expr, scope: Scope) -> Value:
    return _field(scope.value(node.this), node.expression.name)


def _field(of: Value, name: str) -> Value:
    fields = fields_of(of.type)
    if name not in fields:
        raise Untranslated(f"{name} of {of.type}")
    return Value(f"struct_extract({of.sql}, {in_text(name)})", fields[name])


def _struct(node: exp.Expr, scope: Scope) -> Value:
    parts = {}
    for n, part in enumerate(node.expressions, 1):
        name, of = (part.this.name, part.expression) if isinstance(part, exp.PropertyEQ) else (f"col{n}", part)
        parts[name] = scope.value(of)
    if len({name.lower() for name in parts}) < len(node.expressions) or any(v.type == "void" for v in parts.values()):
        raise Untranslated(node.sql())
    sql = ", ".join(f"{quoted(name)} := {of.sql}" for name, of in parts.items())
    return Value(f"struct_pack({sql})", struct_text({name: of.type for name, of in parts.items()}))


def _literal(node: exp.Expr, scope: Scope) -> Value:  # noqa: ARG001 - a rule
    if node.is_string:
        if "\0" in node.name:
            raise Untranslated("a text with a NUL")
        return Value("'" + node.name.replace("'", "''") + "'", "string")
    if _POINT.fullmatch(node.name):
        digits = node.name.lstrip("-").replace(".", "").lstrip("0")
        scale = len(node.name.rpartition(".")[2])
        kind = decimal(max(len(digits), scale), scale)
        return Value(f"CAST({in_text(node.name)} AS {kind})", kind)
    if not NUMBER.fullmatch(node.name):
        raise Untranslated(node.name)
    return number(int(node.name))


def _compared(sign: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        left, right = comparable([scope.value(node.this), scope.value(node.expression)])
        return Value(f"({left.sql} {sign} {right.sql})", "boolean")

    return rule


def _alike(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``<=>``, of nested values of one type too."""
    left, right = scope.value(node.this), scope.value(node.expression)
    if left.type != right.type or left.type == "void" or "map<" in left.type.lower():
        left, right = comparable([left, right])
    return Value(f"({left.sql} IS NOT DISTINCT FROM {right.sql})", "boolean")


def _arithmetic(sign: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        left = scope.value(node.this)
        if isinstance(node.expression, exp.Interval) and left.type in TIMES and sign in "+-":
            return _moved(left, (1 if sign == "+" else -1) * micros(node.expression))
        right = scope.value(node.expression)
        decimals = any(DECIMAL.fullmatch(side.type) for side in (left, right))
        if decimals and "double" not in (left.type, right.type):
            return of_decimals(sign, node, left, right)
        (left, right), kind = together([left, right])
        if kind not in WHOLE and kind != "double":
            raise Untranslated(kind)
        return Value(f"({left.sql} {sign} {right.sql})", kind)

    return rule


def _moved(of: Value, by: int) -> Value:
    return Value(f"make_timestamp(epoch_us({of.sql}) + CAST({by} AS BIGINT))", of.type)


def _divided(node: exp.Expr, scope: Scope) -> Value:
    parts = [scope.value(part) for part in (node.this, node.expression)]
    if not all(one.whole for one in parts) and "double" not in (one.type for one in parts):
        left, right = as_decimals(node, *parts)
        exact = quotient(left, right)
        return Value(after(node.expression, right.sql, exact.sql), exact.type)
    above, below = (cast(one, "double").sql for one in parts)
    fails = f"(1 // CAST({below} <> 0 AS INTEGER))"  # for a zero divisor; DuckDB would divide floats by it
    return Value(after(node.expression, below, f"({above} / {below} * {fails})"), "double")


def _whole_division(sign: str, kind: str | None) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        (left, right), common = together([scope.value(node.this), scope.value(node.expression)])
        if common not in WHOLE:
            raise Untranslated(common)
        if kind is not None:
            left, right = cast(left, kind), cast(right, kind)
        by = _other_than_minus_one(right) if sign == "%" else right.sql
        return Value(after(node.expression, right.sql, f"({left.sql} {sign} {by})"), kind or common)

    return rule


def _other_than_minus_one(divisor: Value) -> str:
    """Return a divisor with the same remainders that is not -1, by which DuckDB fails to divide the least number."""
    if _WHOLE_CONSTANT.fullmatch(divisor.sql):
        return divisor.sql
    one = f"CAST(1 AS {WHOLE[divisor.type]})"
    return once(divisor.sql, lambda by: f"CASE {by} WHEN -1 THEN {one} ELSE {by} END")


def _negated(node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _literal(exp.Literal(this=f"-{node.this.name}", is_string=False), scope)
    if isinstance(node.this, exp.Cast) and isinstance(node.this.this, exp.Literal):
        return number(-constant(node.this), scope.value(node.this).type)
    of = signed(scope.value(node.this))
    zero = f"CAST(0 AS {WHOLE[of.type]}) " if of.whole else ""  # DuckDB gives the negative of a constant a wider type
    return Value(f"({zero}- {of.sql})", of.type)


def _positive(node: exp.Expr, scope: Scope) -> Value:
    [of] = (scope.value(argument) for argument in node.expressions)
    if of.type not in ("float", "double"):
        size_of(of.type)  # no text
    return of


def _and(node: exp.Expr, scope: Scope) -> Value:
    parts = [*node.flatten()]
    return all_hold([scope.boolean(part) for part in parts], parts)


def _is(node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node.expression, exp.Null):
        return Value(f"({scope.carried(node.this).sql} IS NULL)", "boolean")
    of = scope.value(node.this)
    if isinstance(node.expression, exp.Boolean) and of.type == "boolean":
        return Value(f"({of.sql} IS {str(node.expression.this).upper()})", "boolean")
    raise Untranslated(node.sql())


def _in(node: exp.Expr, scope: Scope) -> Value:
    if not node.expressions:
        raise Untranslated(node.sql())
    of, *others = comparable([scope.value(part) for part in (node.this, *node.expressions)])
    return Value(f"({of.sql} IN ({', '.join(candidate.sql for candidate in others)}))", "boolean")


def _between(node: exp.Expr, scope: Scope) -> Value:
    parts = [scope.value(part) for part in (node.this, node.args["low"], node.args["high"])]
    low_of, low = comparable(parts[:2])
    high_of, high = comparable([parts[0], parts[2]])
    texts = [f"({low_of.sql} >= {low.sql})", f"({high_of.sql} <= {high.sql})"]
    return all_hold(texts, [node.args["low"], node.args["high"]])


def _case(node: exp.Expr, scope: Scope) -> Value:
    first = node.args["ifs"][0].args["true"]
    if isinstance(first, exp.Anonymous) and [part.name for part in first.expressions] == [BEYOND_BIGINT]:
        return scope.value(node.args["default"])  # which fails here
    of = node.this
    conditions = (b.this if of is None else exp.EQ(this=of, expression=b.this) for b in node.args["ifs"])
    tests = [scope.boolean(condition) for condition in conditions]
    return _branches(tests, [branch.args["true"] for branch in node.args["ifs"]], node.args.get("default"), scope)


def _if(node: exp.Expr, scope: Scope) -> Value:
    return _branches([scope.boolean(node.this)], [node.args["true"]], node.args.get("false"), scope)


def _branches(tests: Sequence[str], results: Sequence[exp.Expr], last: exp.Expr | None, scope: Scope) -> Value:
    values, kind = together([scope.value(result) for result in (*results, last or exp.Null())])
    whens = " ".join(f"WHEN {test} THEN {of.sql}" for test, of in zip(tests, values, strict=False))
    return Value(f"CASE {whens} ELSE {values[-1].sql} END", kind)


def _listed(name: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        values, kind = together([scope.value(part) for part in (node.this, *node.expressions)])
        if name != "coalesce" and plain(Value("", kind)).type == "float":
            raise Untranslated(node.sql())  # DuckDB's has one zero
        return Value(f"{name}({', '.join(of.sql for of in values)})", kind)

    return rule


def _unix_micros(node: exp.Expr, scope: Scope) -> Value:
    of = scope.value(node.this)
    if of.type != "timestamp":
        raise Untranslated(of.type)
    return Value(f"epoch_us({of.sql})", "bigint")


def _concatenated(node: exp.Expr, scope: Scope) -> Value:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    values = [scope.value(part) for part in parts]
    values = [Value(f"CAST({of.sql} AS VARCHAR)", "string") if of.whole else of for of in values]
    if any(of.type != "string" for of in values):
        raise Untranslated(node.sql())
    return Value(together_computed(parts, [of.sql for of in values], " || "), "string")


def _passed(node: exp.Expr, scope: Scope) -> Value:
    """Translate `operators.contract.passed`: a number that is not in Spark's compiled code."""
    of, index = node.expressions
    inner = index.this if isinstance(index, exp.Cast) else index
    if not isinstance(of, exp.Array) or len(of.expressions) != 1 or not isinstance(inner, exp.Anonymous):
        raise Untranslated("get")
    if inner.name.lower() != "pmod" or constant(inner.expressions[1]) != 1:
        raise Untranslated("get")
    number, column = scope.value(of.expressions[0]), scope.value(inner.expressions[0])
    if not column.whole:
        raise Untranslated(column.type)
    return Value(f"CASE WHEN {column.sql} IS NOT NULL THEN {PASSED.format(number.sql)} END", number.type)


def _timestamp_micros(node: exp.Expr, scope: Scope) -> Value:
    [of] = (scope.value(argument) for argument in node.expressions)
    if not of.whole:
        raise Untranslated(of.type)
    return Value(f"make_timestamp({cast(of, 'bigint').sql})", "timestamp")


def _positive_remainder(node: exp.Expr, scope: Scope) -> Value:
    of, by = (scope.value(argument) for argument in node.expressions)
    n = constant(node.expressions[1])
    if not of.whole or n <= 0:
        raise Untranslated("pmod")
    kind = wider(of.type, by.type)
    dividend, divisor = cast(of, kind).sql, cast(by, kind).sql
    return Value(f"((({dividend} % {divisor}) + {divisor}) % {divisor})", kind)


SCALARS: Final[Mapping[type | str, Rule]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, _: Value("TRUE" if node.this else "FALSE", "boolean"),
    exp.Null: lambda _node, _scope: Value("NULL", "void"),
    exp.Paren: lambda node, scope: scope.value(node.this),
    **CASTS,
    exp.EQ: _compared("="),
    exp.NEQ: _compared("<>"),
    exp.LT: _compared("<"),
    exp.LTE: _compared("<="),
    exp.GT: _compared(">"),
    exp.GTE: _compared(">="),
    exp.NullSafeEQ: _alike,
    exp.And: _and,
    exp.Or: lambda node, scope: Value(f"({scope.boolean(node.this)} OR {scope.boolean(node.expression)})", "boolean"),
    exp.Not: lambda node, scope: Value(f"(NOT {scope.boolean(node.this)})", "boolean"),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _listed("coalesce"),
    exp.Greatest: _listed("greatest"),
    exp.Least: _listed("least"),
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _divided,
    exp.IntDiv: _whole_division("//", "bigint"),
    exp.Mod: _whole_division("%", None),
    exp.Neg: _negated,
    exp.UnixMicros: _unix_micros,
    exp.TimestampTrunc: truncated,
    exp.DPipe: _concatenated,
    exp.Concat: _concatenated,
    exp.Dot: _dot,
    exp.Struct: _struct,
    "get": _passed,
    "timestamp_micros": _timestamp_micros,
    "pmod": _positive_remainder,
    "positive": _positive,
}
