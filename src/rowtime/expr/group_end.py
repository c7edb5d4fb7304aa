"""The end of a group: the instant from which no row can belong to it any more.

For a grouping expression f of the rowtime and a group with value g, ``group_end`` gives the first instant n at which
f(n) is past g, as Spark SQL over the key column. The group is complete as soon as the bound has reached n. The rowtime
of the group's row is the least upper bound of its rowtimes (semantics 5): n itself if f is continuous from the right
(FLOOR: the hour from 3:00 ends at 4:00), n - 1 µs if it is not (CEIL: the group 4:00 includes 4:00).

Rounding functions have an inverse that is written down here. Every other monotonic function of the rowtime is inverted
by bisection, also in Spark SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.core.java_zones import midnight_after_fall
from rowtime.core.time import DAY, END
from rowtime.expr.facts import ROWTIME_FACT
from rowtime.expr.monotonicity import order_of
from rowtime.expr.order import Order
from rowtime.sql.generate import to_spark
from rowtime.sql.intervals import MICROS, MONTHS, duration_of, months_of, of_micros
from rowtime.sql.nodes import Before, Step
from rowtime.sql.script import parse_expression

MONTHS_OF = {**MONTHS, "DECADE": 120, "CENTURY": 1200}
"""The months of the units that are no duration."""
MONDAY = 4 * DAY  # 1970-01-05, the first Monday
SPAN = 2**51  # how far (µs, 71 years) bisection looks for the end of a group


@dataclass(frozen=True)
class GroupEnd:
    """``text``: the first instant past the group, BIGINT µs; ``closed``: the group includes n - 1 µs.

    ``seen``: the text needs ``__x``, some rowtime of the group.
    """

    text: str
    closed: bool
    seen: bool = False


def group_end(node: exp.Expr, key: str) -> GroupEnd:
    """Return the end of the group for a grouping expression whose value is in column ``key``."""
    node, by = unshifted(node)
    if by:
        key = f"({key} - INTERVAL '{by}' MICROSECOND)"
    if isinstance(node, exp.Column):
        return GroupEnd(f"unix_micros({key}) + 1", closed=True)
    zone = _zone(node)
    if zone is not None:
        return _local_end(node, key, zone)
    late, before = _late(node)
    end_of_column = None if late is None else _known(node, key)
    if end_of_column is None:
        return _bisected(node, key)
    # f(t - d) moves to its next value d later than f(t).
    text = f"{end_of_column.text} - {late}L" if late else end_of_column.text
    return GroupEnd(text, end_of_column.closed or before)


def is_restamped(node: exp.Expr) -> bool:
    """Return True if release 0.1 gave groups by this function another rowtime, mostly a microsecond less."""
    node, _ = unshifted(node)
    if isinstance(node, exp.TimestampAdd | exp.TimestampDiff):
        return True
    end, steps = group_end(node, ""), [part for part in node.walk() if isinstance(part, _JUMPED)]
    return end.seen and not node.find(Before) and end.closed != (not steps or isinstance(steps[-1], exp.Ceil))


_JUMPED = (
    exp.Floor, exp.Ceil, Step, exp.TimestampTrunc, exp.DateTrunc, exp.Cast, exp.TryCast, exp.Extract,
    exp.Year, exp.TsOrDsToDate, exp.UnixSeconds, exp.UnixMillis, exp.IntDiv, exp.LastDay,
)  # fmt: skip
"""The functions whose groups release 0.1 stamped with their end, or with the last instant in it for CEIL."""


def fixed_end(node: exp.Expr) -> tuple[str, int] | None:
    """Return the unshifted part of an expression, and the µs from its key to the rowtime of a group; else ``None``.

    Two expressions with the same first part have groups that end together.
    """
    inner, by = unshifted(node)
    late, before = _late(inner)
    width = duration_of(inner.expression) if isinstance(inner, Step) else None
    if isinstance(inner, exp.Floor | exp.TimestampTrunc):
        width = MICROS.get(unit_of(inner) or "")
    if width is None or late is None:
        return None
    return to_spark(inner), width - late - by - before


def _late(node: exp.Expr) -> tuple[int | None, bool]:
    """Return the µs that a function adds to the rowtime before it rounds; ``None`` if its argument is another.

    And whether it takes the last instant before the rowtime, so that its groups include their ends.
    """
    if not isinstance(node.this, exp.Expr):
        return None, False
    time, late = unshifted(argument_of(node))
    before = isinstance(time, Before)
    return (late - before if isinstance(time.this if before else time, exp.Column) else None), before


def unshifted(node: exp.Expr) -> tuple[exp.Expr, int]:
    """Return a time without the intervals added to it, and their sum in µs."""
    node = node.unnest()
    if isinstance(node, exp.Add | exp.Sub):
        micros = duration_of(node.expression)
        if micros is not None:
            inner, by = unshifted(node.this)
            return inner, by + (micros if isinstance(node, exp.Add) else -micros)
    return node, 0


def moved(node: exp.Expr, by: int) -> exp.Expr:
    """Return a time plus so many µs, as one interval."""
    inner, before = unshifted(node)
    total = before + by
    if not total:
        return inner
    kind = exp.Add if total > 0 else exp.Sub
    return kind(this=inner, expression=of_micros(abs(total)))


def argument_of(node: exp.Expr) -> exp.Expr:
    """Return the time that a function rounds."""
    inner: exp.Expr = node.expression if isinstance(node, exp.Extract) else node.this
    return inner


def _known(node: exp.Expr, key: str) -> GroupEnd | None:
    unit = unit_of(node)
    if isinstance(node, exp.Ceil):
        return GroupEnd(f"unix_micros({key}) + 1", closed=True) if unit else None
    if isinstance(node, exp.Extract | exp.Year):
        wanted = isinstance(node, exp.Year) or node.name.upper() == "YEAR"
        text = f"unix_micros(make_timestamp(CAST({key} + 1 AS INT), 1, 1, 0, 0, 0))"
        return GroupEnd(text, closed=False) if wanted else None
    if isinstance(node, exp.Cast | exp.TryCast) and node.to.this == exp.DType.DATE:
        return GroupEnd(f"unix_micros(CAST({key} AS TIMESTAMP)) + {DAY}", closed=False)
    if isinstance(node, Step):
        return _after(key, duration_of(node.expression), months_of(node.expression))
    if unit is not None:
        return _after(key, MICROS.get(unit), MONTHS_OF.get(unit))
    return None


def _zone(node: exp.Expr) -> exp.Expr | None:
    """Return the zone of a function of the local time of a column."""
    local = argument_of(node) if isinstance(node.this, exp.Expr) else node
    name = local.name.upper() if isinstance(local, exp.Anonymous) else ""
    if name == "FROM_UTC_TIMESTAMP":
        time, zone = local.expressions
    elif name == "CONVERT_TIMEZONE" and all(source.name.upper() == "UTC" for source in local.expressions[:-2]):
        zone, time = local.expressions[-2:]
    else:
        return None
    return zone if isinstance(time.unnest(), exp.Column) else None


def _local_end(node: exp.Expr, key: str, zone: exp.Expr) -> GroupEnd:
    """Return the end of a group of local days: the first instant of a later one (a midnight may not exist)."""
    local = _known(node, key)
    if local is None or local.closed:
        return _bisected(node, key)
    end = f"unix_micros(to_utc_timestamp(timestamp_micros({local.text}), {to_spark(zone)}))"
    fall = midnight_after_fall(zone.name)
    return GroupEnd(f"IF({end} < {fall[0]}L, {fall[1]}L, {end})" if fall else end, closed=False)


def _after(key: str, micros: int | None, months: int | None) -> GroupEnd | None:
    if micros is not None:
        return GroupEnd(f"unix_micros({key}) + {micros}L", closed=False)
    if months is not None:
        return GroupEnd(f"unix_micros({key} + INTERVAL '{months}' MONTH)", closed=False)
    return None


def _bisected(node: exp.Expr, key: str) -> GroupEnd:
    middle = "shiftright(a[0] + a[1], 1)"
    at = parse_expression(f"timestamp_micros({middle})")
    value = to_spark(node.transform(lambda p: at.copy() if isinstance(p, exp.Column) and p.name == ROWTIME else p))
    inside = f"({value}) <=> {key}"
    if node.find(Before) and order_of(node, {ROWTIME: ROWTIME_FACT}).direction > 0:
        # Over a column of groups, the clock of overlapping windows steps over the ends that no earliest window has.
        inside = f"({inside} OR ({value}) < {key})"
    halve = f"CASE WHEN {inside} THEN array({middle}, a[1]) ELSE array(a[0], {middle}) END"
    bounds = f"array(unix_micros(__x), unix_micros(__x) + {SPAN}L)"
    end = f"aggregate(sequence(1, 52), {bounds}, (a, i) -> {halve})[1]"
    far = f"CASE WHEN {end} >= unix_micros(__x) + {SPAN}L THEN {END}L ELSE {end} END"
    return GroupEnd(far, closed=_left_continuous(node), seen=True)


def _left_continuous(node: exp.Expr) -> bool:
    # The innermost function that gives several instants one value decides: below it nothing jumps.
    if node.find(Before):
        return True
    part: exp.Expr = next(part for part in node.find_all(exp.Column) if part.name == ROWTIME)
    while part is not node and part.parent is not None and _distinguishes(part):
        part = part.parent
    return isinstance(part, exp.Ceil) or _distinguishes(part)


def _distinguishes(node: exp.Expr) -> bool:
    """Return True for a function of the rowtime that has another value at every instant."""
    return order_of(node, {ROWTIME: replace(ROWTIME_FACT, order=Order.STRICTLY_ASCENDING)}).strict


def unit_of(node: exp.Expr) -> str | None:
    """Return the unit of ``FLOOR/CEIL(x TO unit)`` and ``date_trunc``, upper case and singular."""
    unit = node.args.get("to" if isinstance(node, exp.Floor | exp.Ceil) else "unit")
    if not isinstance(unit, exp.Expr) or not isinstance(
        node, exp.Floor | exp.Ceil | exp.TimestampTrunc | exp.DateTrunc
    ):
        return None
    name = unit.name.upper()
    return name if name in MICROS or name in MONTHS_OF else name.rstrip("S")


def first_after(node: exp.Expr, at: int) -> int | None:
    """Return the end of the group that contains the instant ``at`` (µs); ``None`` if only Spark can compute it."""
    node, _ = unshifted(node)
    if isinstance(node, exp.Column):
        return at + 1
    late, _ = _late(node)
    if late is None:
        return None
    end = _first_after_known(node, at + late)
    return None if end is None else end - late


def _first_after_known(node: exp.Expr, at: int) -> int | None:
    if isinstance(node, exp.Cast | exp.TryCast):
        return _next(at, DAY, 0) if node.to.this == exp.DType.DATE else None
    if isinstance(node, Step):
        width = duration_of(node.expression)
        return None if width is None else _next(at, width, 0)
    return _first_after_unit(node, at)


def _first_after_unit(node: exp.Expr, at: int) -> int | None:
    unit = unit_of(node) or ""
    width = MICROS.get(unit)
    if width is None:
        return None
    origin = MONDAY if unit == "WEEK" else 0
    if isinstance(node, exp.Ceil):
        return _next(at - 1, width, origin) + 1
    return _next(at, width, origin) if isinstance(node, exp.Floor | exp.TimestampTrunc) else None


def _next(at: int, width: int, origin: int) -> int:
    return (at - origin) // width * width + width + origin
