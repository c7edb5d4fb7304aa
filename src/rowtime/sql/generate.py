"""Spark SQL text of bound expressions, for a session in ANSI mode and UTC.

FLOOR, CEIL and STEP are exact: time is microseconds, and a day has 24 hours because the session is in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from rowtime.core.errors import refuse
from rowtime.sql import nodes
from rowtime.sql.dialect import Rowtime, RowtimeGenerator
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.sizes import BEYOND, fails_for, limited, rounded_at

ONE_UNIT = {
    **{unit: f"INTERVAL '1' {unit}" for unit in nodes.TIME_UNITS},
    "WEEK": "INTERVAL '7' DAY",
    "QUARTER": "INTERVAL '3' MONTH",
}
_DIALECT = Rowtime()
_LEAST = "(-9223372036854775807L - 1L)"
BEYOND_BIGINT = "beyond BIGINT"
"""Why a rounded number fails."""
FLOATING = (exp.DType.FLOAT, exp.DType.DOUBLE)


def to_spark(expression: exp.Expr) -> str:
    """Return the Spark SQL text of a scalar or aggregate expression.

    Raises ``Refused`` (R102) for nodes that the binder has to replace first.
    """
    return SparkText(dialect=_DIALECT, unsupported_level=ErrorLevel.IGNORE, comments=False).generate(expression)


def to_stored(expression: exp.Expr) -> str:
    """Return the Spark SQL text that names an expression in a plan: without what differs from release to release."""
    return StoredText(dialect=_DIALECT, unsupported_level=ErrorLevel.IGNORE, comments=False).generate(expression)


def to_rowtime(node: exp.Expr) -> str:
    """Return the text of a tree in rowtime's own SQL, for messages and EXPLAIN."""
    return RowtimeGenerator(dialect=_DIALECT, unsupported_level=ErrorLevel.IGNORE, comments=False).generate(node)


def quoted(name: str) -> str:
    """Return a name, quoted for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a text, escaped for the inside of a Spark SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000") + "'"


def _untranslated(_self: SparkText, node: exp.Expr) -> str:
    raise refuse("R102", f"{to_rowtime(node)} is not allowed here")


class SparkText(RowtimeGenerator):
    """Writes Spark's SQL: only constructs that Spark does not have are written differently."""

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **RowtimeGenerator.TRANSFORMS,
        **dict.fromkeys(nodes.UNTRANSLATED, _untranslated),
        exp.Floor: lambda self, e: self.rounded_sql(e),
        exp.Ceil: lambda self, e: self.rounded_sql(e),
        exp.Round: lambda self, e: self.round_sql(e),
        exp.Bracket: lambda self, e: self.element_sql(e),
        nodes.Step: lambda self, e: self.step_text(e),
        nodes.Monotonic: lambda self, e: self.sql(e, "this"),  # an operator makes the check
    }

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        """Write a call that fails before it gives too large a value (`sql.sizes`)."""
        given = [self.sql(part) for part in expression.expressions]
        texts = self.limited(expression, [*given])
        if texts == given:
            call = super().anonymous_sql(expression)
        else:
            call = self.func(self.sql(expression, "this"), *map(exp.var, texts))
        if expression.name.upper() == "ELEMENT_AT" and len(given) > 1:
            return self.at_a_place(expression, expression.expressions[1], call)
        return call

    def element_sql(self, node: exp.Bracket) -> str:
        """Write an element of an array or a map."""
        return self.at_a_place(node, node.expressions[0], super().bracket_sql(node))

    def at_a_place(self, node: exp.Expr, place: exp.Expr, text: str) -> str:
        """Let an element at no place be NULL: Spark's compiled code has a value there if no element can be NULL."""
        literal_place = all(isinstance(part, exp.Literal | exp.Neg | exp.Paren) for part in place.walk())
        if literal_place or _is_tested(node, place):
            return text
        return f"CASE WHEN ({self.sql(place)}) IS NOT NULL THEN {text} END"

    def limited(self, call: exp.Anonymous, texts: list[str]) -> list[str]:
        """Return the texts of the arguments of a call."""
        return limited(call, texts)

    def round_sql(self, node: exp.Round) -> str:
        """Write ROUND to digits that a number can have."""
        digits = node.args.get("decimals")
        texts = [] if digits is None else [self.digits(digits)]
        return self.func("ROUND", exp.var(self.sql(node, "this")), *map(exp.var, texts))

    def digits(self, place: exp.Expr) -> str:
        """Write a number of digits that a number can have."""
        return rounded_at(place, self.sql(place))

    def rounded_sql(self, node: exp.Floor | exp.Ceil) -> str:
        """Write FLOOR and CEIL: Spark's own for numbers, ``date_trunc`` for times.

        The least edge that is not before x is the floor of x - 1 µs, one unit later. It equals x on an edge, and x is
        computed only once.
        """
        unit = node.text("to").upper()
        x = self.sql(node, "this")
        if not unit:
            given = [part for part in (node.args.get("decimals"),) if part is not None]
            decimals = [self.digits(part) for part in given]
            text = self.func("FLOOR" if isinstance(node, exp.Floor) else "CEIL", *map(exp.var, [x, *decimals]))
            return text if decimals or _is_rounded(node.this) else self.in_range(text, x)
        if isinstance(node, exp.Floor):
            return f"date_trunc('{unit}', {x})"
        return f"(date_trunc('{unit}', ({x}) - INTERVAL '1' MICROSECOND) + {ONE_UNIT[unit]})"

    def in_range(self, rounded: str, x: str) -> str:
        """Let a rounded DOUBLE fail beyond BIGINT: before 4.3, Spark returns the greatest or least one.

        A DECIMAL that is rounded to one of these is not beyond it.
        """
        above = f"{rounded} = 9223372036854775807L AND ({x}) >= 9223372036854775808"
        below = f"({x}) < -9223372036854775808 AND ({x}) <= -9223372036854775809"
        tests = f"({above}) OR ({rounded} = {_LEAST} AND {below})"
        return f"CASE WHEN {tests} THEN raise_error('{BEYOND_BIGINT}') ELSE {rounded} END"

    def step_text(self, node: nodes.Step) -> str:
        """Write ``STEP(x BY n)``, for each kind of step the greatest multiple of n that is <= x."""
        x, by = self.sql(node, "this"), node.expression
        if isinstance(by.unnest(), exp.Interval | exp.Add) and by.find(exp.Interval):
            return _time_step(x, by)
        n = self.sql(by)
        if _is_floating(node.this) or _is_floating(by):
            return _floating_step(x, n)
        return f"(({x}) - pmod({x}, {n}))"


class StoredText(SparkText):
    """Writes the same, with Spark's own functions."""

    def limited(self, call: exp.Anonymous, texts: list[str]) -> list[str]:  # noqa: ARG002 - as above
        """Return them as they are."""
        return texts

    def in_range(self, rounded: str, x: str) -> str:  # noqa: ARG002 - as above
        """Return it as it is."""
        return rounded

    def digits(self, place: exp.Expr) -> str:
        """Write it as it is."""
        return self.sql(place)

    def at_a_place(self, node: exp.Expr, place: exp.Expr, text: str) -> str:  # noqa: ARG002 - as above
        """Return it as it is."""
        return text


def _is_tested(node: exp.Expr, place: exp.Expr) -> bool:
    """Return True if an element is the result of a CASE whose condition is that its place is not NULL."""
    case, whole = node.parent, place.unnest()
    test = case.this if isinstance(case, exp.If) and node.arg_key == "true" else None
    of = test.this.unnest() if isinstance(test, exp.Not) else None
    given = whole.args["default"].unnest() if fails_for(whole, BEYOND) else whole
    return isinstance(of, exp.Is) and isinstance(of.expression, exp.Null) and of.this.unnest() == given


def _time_step(x: str, by: exp.Expr) -> str:
    try:
        span: Any = span_of(by)
    except ValueError as wrong:
        raise refuse("R102", f"STEP BY {to_rowtime(by)}: {wrong}") from None
    if isinstance(span, Duration):
        micros = f"unix_micros(CAST({x} AS TIMESTAMP))"
        return f"timestamp_micros({micros} - pmod({micros}, {span.micros}L))"
    months = f"((year({x}) - 1970) * 12 + month({x}) - 1)"
    return f"(TIMESTAMP '1970-01-01 00:00:00' + make_ym_interval(0, {months} - pmod({months}, {span.count})))"


def _floating_step(x: str, n: str) -> str:
    """Return a product with floor(x / n): it never falls, however it rounds; x - pmod(x, n) may.

    Quotients that do not fit a BIGINT (NaN, the infinities, very large numbers) have no fraction, so the step is x
    itself.
    """
    quotient = f"(({x}) / ({n}))"
    step = f"CAST(floor({quotient}) AS DOUBLE) * ({n})"
    return f"if(abs({quotient}) < 9.2E18D, {step}, CAST({x} AS DOUBLE))"


def _is_rounded(node: exp.Expr) -> bool:
    """Return True for FLOOR and CEIL to a BIGINT: what rounds their value is within its range."""
    return isinstance(node.unnest(), exp.Floor | exp.Ceil) and not node.unnest().args.get("decimals")


def _is_floating(node: exp.Expr) -> bool:
    """Return True if the tree shows that a value is floating point; the binder may set the types of columns."""
    inner = node.unnest()
    if inner.type is not None and inner.type.this in FLOATING:
        return True
    if isinstance(inner, exp.Neg | exp.Binary):
        return any(_is_floating(operand) for operand in inner.iter_expressions())
    if isinstance(inner, exp.Literal):
        return not inner.is_string and "e" in inner.name.lower()
    return isinstance(inner, exp.Cast) and inner.to.this in FLOATING
