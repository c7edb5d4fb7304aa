"""Window calls in the form of the kernels: functions over frames, and an expression over their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.kernels.lists import Listed
from rowtime.kernels.window_functions import Avg, Count, Decayed, Distinct, Extreme, Function, Levels, Nth, Spread, Sum
from rowtime.kernels.windowed import Frame
from rowtime.plan.bind.frames import NoWindow
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.numbers import whole_number


@dataclass(frozen=True)
class Want:
    """A function of an argument over a frame; Spark types it as ``typed``."""

    function: Function
    argument: exp.Expr
    frame: Frame
    typed: exp.Expr


@dataclass(frozen=True)
class Wants:
    """The functions that a call needs, and its value over their columns."""

    wants: tuple[Want, ...]
    value: Callable[..., exp.Expr] = lambda column: column


ONE = exp.Literal.number(1)
_SPREADS: dict[type[exp.Expr] | str, tuple[bool, bool]] = {
    exp.Stddev: (True, True), exp.StddevSamp: (True, True), exp.StddevPop: (False, True), "STD": (True, True),
    exp.Variance: (True, False), exp.VariancePop: (False, False),
}  # fmt: skip
_EDGES: dict[type[exp.Expr], bool] = {
    exp.First: False, exp.FirstValue: False, exp.AnyValue: False, exp.Last: True, exp.LastValue: True,
}  # fmt: skip


def wants_of(call: exp.Expr, frame: Frame, by: exp.Expr | None, *, lists: bool = False) -> Wants:
    """Return the functions of the call before OVER; ``by``: the function of the rowtime that its window orders by.

    ``lists``: COLLECT_LIST is one of them.
    """
    condition, call = (call.expression.this, call.this) if isinstance(call, exp.Filter) else (None, call)
    ignore = isinstance(call, exp.IgnoreNulls)
    call = call.this if isinstance(call, exp.IgnoreNulls | exp.RespectNulls) else call
    if isinstance(call.this, exp.Distinct):
        return _distinct(call, condition, frame)
    picked = _picked(call, frame, ignore=ignore)
    if picked is not None:
        if condition is not None:
            raise NoWindow("R163", "FILTER is allowed for aggregates only", "Filter in a sub-query with WHERE.")
        return picked
    if isinstance(call, exp.RowNumber):
        return _counted(ONE, Frame(None))
    if isinstance(call, exp.Rank | exp.DenseRank):
        return _rank(call, by)
    if lists and isinstance(call, exp.ArrayAgg) and not isinstance(call.this, exp.Order):
        argument = _if(condition, call.this)
        return Wants((Want(Listed(), argument, frame, exp.ArrayAgg(this=argument.copy())),))
    aggregate = _aggregate(call, condition, frame)
    if aggregate is None:
        raise _unknown(call)
    return aggregate


def _unknown(call: exp.Expr) -> NoWindow:
    text = to_rowtime(call)
    if isinstance(call, exp.Lead):
        return NoWindow("R162", f"{text} asks for a row that has not arrived yet", "Look back with LAG.")
    hint = (
        "Supported are COUNT, SUM, AVG, MIN, MAX, STDDEV, VARIANCE and their kinds, FIRST_VALUE, LAST_VALUE, "
        "NTH_VALUE, LAG, EXP_AVG, ROW_NUMBER, RANK and DENSE_RANK; an aggregate that needs all rows of a frame "
        "requires GROUP BY."
    )
    return NoWindow("R163", f"{text} is not supported over the frame of a stream", hint)


# -- aggregates -------------------------------------------------------------------------


def _aggregate(call: exp.Expr, condition: exp.Expr | None, frame: Frame) -> Wants | None:
    kind = call.name.upper() if isinstance(call, exp.Anonymous) else type(call)
    if isinstance(call, exp.Count):
        return _counted(_if(condition, _present(call)), frame)
    if isinstance(call, exp.CountIf):
        return _counted(_if(condition, _if(call.this, ONE)), frame)
    if kind == "EXP_AVG":
        return _decayed(call, condition, frame)
    function = _function(kind)
    if function is None or (isinstance(call, exp.Anonymous) and not call.expressions):
        return None
    argument = _if(condition, call.expressions[0] if isinstance(call, exp.Anonymous) else call.this)
    typed = call.copy()
    typed.set("expressions" if isinstance(call, exp.Anonymous) else "this",
              [argument.copy()] if isinstance(call, exp.Anonymous) else argument.copy())  # fmt: skip
    return Wants((Want(function, argument, frame, typed),))


def _function(kind: type[exp.Expr] | str) -> Function | None:
    if kind in _SPREADS:
        return Spread(*_SPREADS[kind])
    if kind in (exp.Min, exp.LogicalAnd, exp.Max, exp.LogicalOr):
        return Extreme(greatest=kind in (exp.Max, exp.LogicalOr))
    return Sum() if kind is exp.Sum else Avg() if kind in (exp.Avg, "MEAN") else None


def _counted(argument: exp.Expr, frame: Frame) -> Wants:
    return Wants((Want(Count(), argument, frame, exp.Count(this=argument.copy())),))


def _present(call: exp.Count) -> exp.Expr:
    """Return 1 where COUNT counts."""
    if isinstance(call.this, exp.Star):
        return ONE
    given = [part for part in (call.this, *call.expressions) if part is not None]
    not_null = [exp.Not(this=exp.Is(this=exp.paren(part.copy()), expression=exp.null())) for part in given]
    return given[0] if len(given) == 1 else _if(exp.and_(*not_null), ONE)


def _if(condition: exp.Expr | None, value: exp.Expr) -> exp.Expr:
    if condition is None:
        return value
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _decayed(call: exp.Expr, condition: exp.Expr | None, frame: Frame) -> Wants:
    try:
        value, length = call.expressions
        span = span_of(length)
    except ValueError:
        span = None
    if not isinstance(span, Duration) or span.micros <= 0:
        hint = "For example EXP_AVG(price, INTERVAL '10' SECOND)."
        raise NoWindow("R163", "EXP_AVG takes a value and its half-life, an interval above zero", hint)
    argument = _if(condition, value)
    return Wants((Want(Decayed(span.micros), argument, frame, exp.Avg(this=exp.cast(argument.copy(), "double"))),))


def _distinct(call: exp.Expr, condition: exp.Expr | None, frame: Frame) -> Wants:
    """Return COUNT(DISTINCT value); the least and greatest of distinct values are those of all."""
    values = call.this.expressions
    if isinstance(call, exp.Min | exp.Max) and len(values) == 1:
        plain = call.copy()
        plain.set("this", values[0].copy())
        aggregate = _aggregate(plain, condition, frame)
        assert aggregate is not None
        return aggregate
    if not isinstance(call, exp.Count) or len(values) != 1:
        hint = (
            "COUNT(DISTINCT value) is supported. Combine several values into one: COUNT(DISTINCT CONCAT_WS('|', a, b))."
        )
        raise NoWindow("R163", f"{to_rowtime(call)} is not supported over the frame of a stream", hint)
    if frame.lower is None:
        hint = (
            "Give the frame a beginning, RANGE INTERVAL '1' HOUR PRECEDING or ROWS 100 PRECEDING; or count in groups, "
            "with GROUP BY FLOOR(s.ROWTIME TO HOUR)."
        )
        raise NoWindow("R163", "DISTINCT in a frame from the beginning would keep every value", hint)
    argument = _if(condition, values[0])
    typed = exp.Count(this=exp.Distinct(expressions=[argument.copy()]))
    return Wants((Want(Distinct(), argument, frame, typed),))


def _rank(call: exp.Expr, by: exp.Expr | None) -> Wants:
    """Return one more than the number of rows, or of values, at an earlier value of the window's order."""
    if by is None:
        name = "DENSE_RANK" if isinstance(call, exp.DenseRank) else "RANK"
        hint = f"Write {name}() OVER (ORDER BY s.ROWTIME), or order by a rounded ROWTIME."
        raise NoWindow("R163", f"{name} on a stream can only rank by time", hint)
    if isinstance(call, exp.DenseRank):
        value = exp.func("unix_micros", exp.cast(by.copy(), "timestamp"))
        return Wants((Want(Levels(), value, Frame(None), exp.Count(this=value.copy())),))
    want = _counted(ONE, Frame(None, 1, by_range=True)).wants
    return Wants(want, lambda before: exp.paren(exp.Add(this=before, expression=ONE.copy())))


# -- functions that pick a row ------------------------------------------------------------


def _picked(call: exp.Expr, frame: Frame, *, ignore: bool) -> Wants | None:
    if isinstance(call, exp.Lag):
        return _lag(call, frame, ignore=ignore)
    if isinstance(call, exp.NthValue):
        n = _literal(call.args.get("offset"), 1, "NTH_VALUE")
        return _nth(call.this, Nth(n, call.args.get("from_first") is False, ignore), frame)
    if type(call) in _EDGES:
        return _nth(call.this, Nth(1, _EDGES[type(call)], ignore), frame)
    return None


def _nth(value: exp.Expr, function: Nth, frame: Frame) -> Wants:
    if function.last and function.n > 1 and frame.lower is None:
        if function.ignore_nulls:
            what = "IGNORE NULLS may need any number of earlier rows"
            raise NoWindow("R163", what, "Give it a frame, for example ROWS 100 PRECEDING.")
        # The n-th from the end is among the last n rows.
        frame = replace(frame, lower=frame.upper + function.n - 1) if not frame.by_range else frame
        if frame.by_range:
            hint = "Give it one, RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND …."
            raise NoWindow("R163", "the frame has no beginning", hint)
    return Wants((Want(function, value, frame, exp.First(this=value.copy())),))


def _lag(call: exp.Lag, frame: Frame, *, ignore: bool) -> Wants:
    """Return the row k before the current one, if the frame reaches it; else the default."""
    k = _literal(call.args.get("offset"), 0, "LAG")
    if frame.upper:
        raise NoWindow("R161", "LAG counts from the current row", "End its frame with CURRENT ROW, or leave it out.")
    if ignore:
        frame = replace(frame, own=False) if frame.by_range else replace(frame, upper=1)
        frame = replace(frame, lower=max(frame.lower, 1)) if frame.lower is not None and not frame.by_range else frame
    enough = max(k, 1) if ignore else k + 1
    [want] = _nth(call.this, Nth(enough, last=True, ignore_nulls=ignore), frame).wants
    default = call.args.get("default")
    if default is None:
        return Wants((want,))
    [count] = _counted(call.this if ignore else ONE, want.frame).wants

    def value(earlier: exp.Expr, present: exp.Expr) -> exp.Expr:
        enough_came = exp.GTE(this=present, expression=exp.Literal.number(enough))
        return exp.paren(exp.Case(ifs=[exp.If(this=enough_came, true=earlier)], default=default.copy()))

    return Wants((want, count), value)


def _literal(node: exp.Expr | None, least: int, name: str) -> int:
    if node is None:
        return 1
    count = whole_number(node)
    if count is not None and count >= least:
        return count
    hint = f"{name} takes a whole number from {least} on, written out; LAG with a negative one would be LEAD."
    raise NoWindow("R163", f"{to_rowtime(node)} is not a number of rows", hint)
