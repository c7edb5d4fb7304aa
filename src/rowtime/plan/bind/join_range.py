"""A JOIN with its inputs, and its range: how far apart rowtimes may be, by windows or a condition on rowtimes.

With d = right rowtime - left rowtime, every join of streams is bounded by low <= d <= high (semantics 5, 6); the rest
of the condition is arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.core.time import DAY, MINUTE, SECOND
from rowtime.expr.conditions import col
from rowtime.expr.grids import rounded
from rowtime.operators.joins.join import EVER
from rowtime.plan.bind.frames import UNBOUNDED, NoWindow, resolved
from rowtime.plan.bind.scope import From, Input
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import MICROS, Duration, duration_of, interval_text, months_of, span_of
from rowtime.sql.places import refuse_at
from rowtime.sql.script import parse_expression

_EXAMPLE = "For example OVER (RANGE INTERVAL '1' MINUTE PRECEDING)"


@dataclass(frozen=True)
class Range:
    """``low`` <= right - left rowtime <= ``high`` (µs), if known; ``rest``: the other conjuncts."""

    low: int | None = None
    high: int | None = None
    rest: tuple[exp.Expr, ...] = ()
    timed: tuple[exp.Expr, ...] = ()
    """The conjuncts that compare a rowtime of one side with one of the other side."""
    vague: tuple[exp.Expr, ...] = ()
    """Those of them whose limits are not known."""

    @property
    def known(self) -> bool:
        """Return True if conditions compare rowtimes, and all their limits are known."""
        return bool(self.timed) and not self.vague

    def at_least(self, low: int) -> Range:
        """Add a lower limit."""
        return replace(self, low=low if self.low is None else max(self.low, low))

    def at_most(self, high: int) -> Range:
        """Add an upper limit."""
        return replace(self, high=high if self.high is None else min(self.high, high))


@dataclass(frozen=True)
class Clause:
    """One JOIN with both of its inputs, whose names are unique.

    ``outer``: the sides whose rows are emitted without a match. ``same``: columns that equal the rowtime;
    ``optional``: those that may be NULL instead. ``alone``: only left rows are emitted, those with a match
    (``left_semi``) or without one (``left_anti``).
    """

    node: exp.Join
    sources: tuple[From, From]
    inputs: tuple[tuple[Input, ...], tuple[Input, ...]]
    columns: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    outer: tuple[bool, bool]
    same: Mapping[str, str]
    optional: frozenset[str] = frozenset()
    tabled: bool = False
    alone: str = ""

    @property
    def both(self) -> From:
        """Return what ON sees."""
        left, right = self.inputs
        return From(self.sources[0].node, (*left, *right), merged=self.sources[0].merged)

    @property
    def timed(self) -> tuple[list[Input], list[Input]]:
        """Return the inputs of each side that are streams."""
        left, right = self.inputs
        return [source for source in left if source.rowtime], [source for source in right if source.rowtime]

    def windowed(self, distance: Range) -> bool:
        """Return True if windows say which rows join; after an earlier join an interval in ON may say it instead."""
        left, [right] = self.timed
        open_end = distance.low is None or distance.high is None
        return right.window is not None or (
            any(source.window is not None for source in left) and (len(left) == 1 or open_end)
        )


def unique(wanted: str, taken: set[str]) -> str:
    """Return a name that is not taken, and mark it as taken."""
    new, number = wanted, 2
    while new.lower() in taken:
        new, number = f"{wanted}_{number}", number + 1
    taken.add(new.lower())
    return new


def comparisons(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts of a condition that must all hold; BETWEEN is two comparisons."""
    if condition is None:
        return []
    node = condition.unnest()
    if isinstance(node, exp.And):
        return [*comparisons(node.this), *comparisons(node.expression)]
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        lower = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        upper = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        lower.meta.update(node.meta)
        upper.meta.update(node.meta)
        return [lower, upper]
    return [node]


def windows(left: Sequence[Input], right: Input) -> Range:
    """Return the range of windows: at the later rowtime all rows are in their windows; else only at their own."""
    always = [source for source in left if not source.optional]
    ends = [source.window or 0 for source in always or left]
    distance = Range(-(right.window or 0), min(ends) if always else max(ends))
    if len(left) > 1:
        distance = replace(distance, rest=tuple(_inside(source, right) for source in left))
    return distance


def _inside(source: Input, right: Input) -> exp.Expr:
    """Return the condition that an earlier left row is still in its window, if the right row is the later one."""
    window = exp.Interval(this=exp.Literal.string(str(source.window or 0)), unit=exp.var("MICROSECOND"))
    last = exp.Add(this=col(source.rowtime), expression=window)
    inside: exp.Expr = exp.LTE(this=col(right.rowtime), expression=last)
    if source.optional:
        inside = exp.paren(exp.or_(exp.Is(this=col(source.rowtime), expression=exp.null()), inside))
    return inside


def between(parts: Iterable[exp.Expr], left: Sequence[Input], right: Input) -> Range:
    """Return the range that conditions on rowtimes give."""
    by_rowtime = {source.rowtime: source for source in left}
    distance = Range()
    for part in parts:
        names = {column.name for column in part.find_all(exp.Column)}
        if right.rowtime not in names or not names & by_rowtime.keys():
            distance = replace(distance, rest=(*distance.rest, part))
            continue
        distance = replace(distance, timed=(*distance.timed, part))
        limits = _limits_of(part, by_rowtime, right.rowtime)
        if limits is None:
            distance = replace(distance, rest=(*distance.rest, part), vague=(*distance.vague, part))
            continue
        low, high, exact = limits
        distance = distance if low is None else distance.at_least(low)
        distance = distance if high is None else distance.at_most(high)
        distance = distance if exact else replace(distance, rest=(*distance.rest, part))
    return distance


def _limits_of(
    part: exp.Expr, by_rowtime: Mapping[str, Input], right: str
) -> tuple[int | None, int | None, bool] | None:
    """Return the limits that a comparison gives right - left, as `_limits` does, or a comparison of ABS with one."""
    absolute = _absolute(part)
    if absolute is None:
        return _limits(part, by_rowtime, right)
    one, other = (_limits(signed, by_rowtime, right) for signed in absolute)
    if one is None or other is None:
        return None
    low, high = (b if a is None else a for a, b in zip(one[:2], other[:2], strict=True))
    return low, high, False


def _limits(part: exp.Expr, by_rowtime: Mapping[str, Input], right: str) -> tuple[int | None, int | None, bool] | None:
    """Return the limits that a comparison gives right - left: low, high, and whether it says nothing else."""
    if not isinstance(part, exp.GTE | exp.GT | exp.LTE | exp.LT | exp.EQ):
        return None
    sums = [_linear(part.this), _linear(part.expression)]
    unit = 1
    if None in sums:
        sums = [_counted(part.this), _counted(part.expression)]
        unit = max((one.unit for one in sums if one is not None), default=0)
    if None in sums or not unit or any(one is not None and one.unit not in (0, unit) for one in sums):
        return None
    left_sum, right_sum = (one for one in sums if one is not None)
    whole = left_sum.plus(right_sum, -1)
    terms, by = {name: times for name, times in whole.terms.items() if times}, -whole.constant  # terms against by
    [left] = [name for name in terms if name != right] if len(terms) == 2 else [""]  # noqa: PLR2004
    sign = terms.get(right, 0)
    if left not in by_rowtime or abs(sign) != 1 or terms[left] != -sign:
        return None
    by, greater = by * sign, isinstance(part, exp.GTE | exp.GT) == (sign > 0)
    below, above = (whole.below, whole.above)[::sign]
    strict = 1 if isinstance(part, exp.GT | exp.LT) else 0
    lag, exact = by_rowtime[left].lag, not by_rowtime[left].lag and not by_rowtime[left].optional and unit == 1
    exact &= not (below or above)
    # A difference of so many units, rounded, is less than a unit away from it.
    low, high = (by + strict - 1) * unit + 1 - lag - above, (by - strict + 1) * unit - 1 + below
    if isinstance(part, exp.EQ):
        return low, high, exact
    return (low, None, exact) if greater else (None, high, exact)


def _absolute(part: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """Return x < limit and -x < limit for ABS(x) < limit; ``None`` for another comparison."""
    if isinstance(part, exp.GT | exp.GTE):
        kind = exp.LT if isinstance(part, exp.GT) else exp.LTE
        part = kind(this=part.expression.copy(), expression=part.this.copy())
    distance = part.this.unnest() if isinstance(part, exp.LT | exp.LTE) else None
    if not isinstance(distance, exp.Abs):
        return None
    limit = part.expression
    signed = (distance.this.copy(), exp.Neg(this=distance.this.copy()))
    return type(part)(this=signed[0], expression=limit.copy()), type(part)(this=signed[1], expression=limit.copy())


@dataclass(frozen=True)
class _Sum:
    """A sum of columns, each so many times, and a constant, in a unit of µs; 0 for a constant of any unit.

    ``below``, ``above``: the value may be so much (µs) less or more, because it is rounded.
    """

    terms: Mapping[str, int]
    constant: int = 0
    unit: int = 0
    below: int = 0
    above: int = 0

    def plus(self, other: _Sum, sign: int = 1) -> _Sum:
        """Add another sum, or subtract it."""
        names = dict.fromkeys([*self.terms, *other.terms])
        terms = {name: self.terms.get(name, 0) + sign * other.terms.get(name, 0) for name in names}
        less, more = (other.below, other.above)[::sign]
        constant, unit = self.constant + sign * other.constant, max(self.unit, other.unit)
        return _Sum(terms, constant, unit, self.below + less, self.above + more)


def _linear(node: exp.Expr) -> _Sum | None:
    """Return an expression of times as a sum, in µs; ``None`` if it is not one."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return _Sum({node.name: 1}, unit=1)
    if (days := _days_later(node)) is not None:
        date = _linear(days[0])
        return None if date is None else date.plus(_Sum({}, days[1] * DAY, 1))
    if (rounding := rounded(node)) is not None:
        argument, below, above = rounding
        time = _linear(argument)
        return None if time is None else time.plus(_Sum({}, 0, 1, below, above))
    if isinstance(node, exp.Interval):
        length = duration_of(node)
        return None if length is None else _Sum({}, length, 1)
    if isinstance(node, exp.TimestampAdd):
        time, count, unit = _linear(node.this), _counted(node.expression), _unit_of(node)
        known = time is not None and count is not None and not count.terms and unit
        return time.plus(_Sum({}, count.constant * unit)) if known and time and count else None
    return _combined(node, _linear)


def _counted(node: exp.Expr) -> _Sum | None:
    """Return a whole number as a sum of rounded times and numbers; ``None`` if it is not one."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and node.is_int:
        return _Sum({}, int(node.name))
    if isinstance(node, exp.UnixMicros | exp.UnixMillis | exp.UnixSeconds):
        column = node.this.unnest()
        return _Sum({column.name: 1}, unit=_COUNTED[type(node)]) if isinstance(column, exp.Column) else None
    if isinstance(node, exp.TimestampDiff | exp.DateDiff):
        end, start, unit = _of_day(node.this.unnest()), _of_day(node.expression.unnest()), _unit_of(node)
        columns = isinstance(end, exp.Column) and isinstance(start, exp.Column)
        return _Sum({start.name: -1}, unit=unit).plus(_Sum({end.name: 1})) if columns and unit else None
    return _combined(node, _counted)


def _of_day(node: exp.Expr) -> exp.Expr:
    """Return the time of a DATE, or the node itself."""
    return node.this.unnest() if _is_date(node) else node


def _is_date(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE


def _days_later(node: exp.Expr) -> tuple[exp.Expr, int] | None:
    """Return the date and the number of days of ``date + 1``, ``DATE_ADD(date, 1)`` and the like."""
    sign = -1 if isinstance(node, exp.Sub) else 1
    if isinstance(node, exp.Anonymous) and node.name.upper() == "DATE_SUB" and len(node.expressions) == 2:  # noqa: PLR2004
        (date, added), sign = node.expressions, -1
    elif isinstance(node, exp.TsOrDsAdd | exp.Add | exp.Sub):
        date, added = node.this, node.expression
    else:
        return None
    count = _counted(added) if _is_date(date.unnest()) else None
    return None if count is None or count.terms or count.unit else (date, sign * count.constant)


def _combined(node: exp.Expr, of: Callable[[exp.Expr], _Sum | None]) -> _Sum | None:
    """Return -x, x + y or x - y of sums of one unit."""
    if isinstance(node, exp.Neg):
        inner = of(node.this)
        return None if inner is None else _Sum({}).plus(inner, -1)
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    left, right = of(node.this), of(node.expression)
    if left is None or right is None or len({left.unit, right.unit} - {0}) > 1:
        return None
    return left.plus(right, 1 if isinstance(node, exp.Add) else -1)


_COUNTED = {exp.UnixMicros: 1, exp.UnixMillis: 1_000, exp.UnixSeconds: SECOND}


def _unit_of(node: exp.Expr) -> int:
    """Return the unit of TIMESTAMPADD, TIMESTAMPDIFF or DATEDIFF in µs; 0 if it has no fixed length."""
    unit = node.args.get("unit")
    return DAY if unit is None else MICROS.get(unit.name.upper().rstrip("S"), 0)


def window_of(text: str, query: exp.Select, item: exp.Expr) -> int | None:
    """Return how long (µs) rows of ``a OVER (RANGE INTERVAL '1' MINUTE PRECEDING)`` stay in their window, or ``None``.

    ``a OVER w`` uses the window w of the query.
    """
    over = item.args.get("over")
    if over is None:
        return None
    try:
        window = resolved(over, {one.name.lower(): one for one in query.args.get("windows") or []})
    except NoWindow as wrong:
        raise refuse_at(text, over, wrong.code, wrong.message, wrong.hint) from None
    spec = window.spec
    if window.keys or window.order:
        what = "a join window cannot have PARTITION BY or ORDER BY"
        raise refuse_at(text, over, "R153", what, "Leave it out; the condition in ON decides which rows match.")
    start = spec.args.get("start") if spec is not None else None
    if spec is None or spec.args.get("kind") != "RANGE" or spec.args.get("end") != "CURRENT ROW":
        what = f"a join window must be RANGE … PRECEDING, not {to_rowtime(over).removeprefix('ROWS OVER ')}"
        raise refuse_at(text, over, "R153", what, f"{_EXAMPLE}. To reach later rows, give the other side a window.")
    if start == "CURRENT ROW":
        return 0
    if isinstance(start, exp.Expr) and spec.args.get("start_side") == "PRECEDING":
        return _micros_of(text, start)
    if start != UNBOUNDED or not query.args.get("unbounded_state"):
        what = "a join window without a lower end would keep every row forever"
        raise refuse_at(text, over, "R153", what, f"{_EXAMPLE}.")
    return EVER


def _micros_of(text: str, node: exp.Expr) -> int:
    try:
        span = span_of(node)
    except ValueError as wrong:
        raise refuse_at(text, node, "R122", str(wrong)) from None
    if not isinstance(span, Duration) or span.micros < 0:
        what = "a join window takes a duration that is not negative"
        raise refuse_at(text, node, "R122", what, "For example INTERVAL '1' MINUTE.")
    return span.micros


def missing_limit(distance: Range, left: str, right: str) -> exp.Expr:
    """Return an example of the limit that a range of two times, as SQL, lacks.

    It is a minute beyond the present one; a day, or as many as the months, if conditions with unknown limits are there.
    """
    months = [abs(months_of(node) or 0) for part in distance.vague for node in part.find_all(exp.Interval)]
    wide = (31 * max(months, default=0) or 1) * DAY if distance.vague else MINUTE
    if distance.low is not None and distance.high is None:
        text = f"{right} <= {_moved(left, max(distance.low // SECOND * SECOND, 0) + wide)}"
    elif distance.high is not None and distance.low is None:
        text = f"{right} >= {_moved(left, min(-(-distance.high // SECOND) * SECOND, 0) - wide)}"
    elif distance.vague:
        text = f"{right} BETWEEN {_moved(left, -wide)} AND {_moved(left, wide)}"
    else:
        text = f"{right} BETWEEN {left} AND {_moved(left, MINUTE)}"
    return parse_expression(text)


def _moved(time: str, by: int) -> str:
    return f"{time} {'-' if by < 0 else '+'} {interval_text(abs(by))}" if by else time
