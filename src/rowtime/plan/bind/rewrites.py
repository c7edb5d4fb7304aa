"""Rewrites of refused queries, for hints. Each is bound before it is shown (semantics 6).

A rewrite is a description, and the whole rewritten query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot import exp

from rowtime.core.java_zones import last_fall
from rowtime.core.time import END, MIN_MICROS, to_text
from rowtime.plan.bind.join_range import comparisons
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import Monotonic, Within
from rowtime.sql.script import parse_expression

Rewrite = tuple[str, exp.Expr]


def shown(rewrites: Iterable[Rewrite], binds: Callable[[exp.Expr], bool], otherwise: str) -> str:
    """Return the description of the first rewrite that binds."""
    return next((words for words, query in rewrites if binds(query)), otherwise)


def grouped(query: exp.Expr, keys: Sequence[exp.Expr], rowtime: str) -> Iterator[Rewrite]:
    """Yield GROUP BY ``keys`` with an expression that closes groups.

    Rows leave a join in the order of the later rowtime, so a tolerance on the time of one side would lose rows.
    """
    for time, fall in _falls(keys):
        later = f"{to_rowtime(time)} >= TIMESTAMP '{to_text(fall)}'"
        rewritten = query.copy()
        rewritten.set("where", exp.Where(this=_and(query.args.get("where"), parse_expression(later))))
        yield f"Say that the time is not earlier: WHERE {later}.", rewritten
    for n, key in enumerate(keys if not query.args.get("joins") else ()):
        rounded = key.find(exp.Column) if _is_rounded(key) else None
        if rounded is not None:
            late = Within(this=key.copy(), interval=_minute())
            words, rewritten = _group_by(query, [*keys[:n], late, *keys[n + 1 :]])
            whose = "the time of the windows" if key is rounded else to_rowtime(rounded)
            yield f"Say how far {whose} may go back: {words}.", rewritten
    words, rewritten = _group_by(query, [_hour(rowtime), *keys])
    yield f"Group by time as well: {words}.", rewritten


def _falls(keys: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, int]]:
    """Yield each time whose local date falls in its zone, and from when on (µs UTC) it does not."""
    for key in keys:
        for call in key.find_all(exp.Anonymous):
            if call.name.upper() in ("FROM_UTC_TIMESTAMP", "CONVERT_TIMEZONE") and call.expressions[1:]:
                time, zone = call.expressions[-2:][:: 1 if call.name.upper()[0] == "F" else -1]
                fall = last_fall(zone.name) if isinstance(zone, exp.Literal) else None
                if fall is not None and MIN_MICROS < fall < END:
                    yield time, fall


def _and(where: exp.Expr | None, condition: exp.Expr) -> exp.Expr:
    return condition if where is None else exp.And(this=exp.Paren(this=where.this.copy()), expression=condition)


def _group_by(query: exp.Expr, keys: Sequence[exp.Expr]) -> Rewrite:
    rewritten = query.copy()
    rewritten.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return f"GROUP BY {_listed(keys)}", rewritten


def distinct(query: exp.Expr, rowtime: str) -> Iterator[Rewrite]:
    """Yield DISTINCT with an ascending expression in its list."""
    named = [exp.alias_(entry.copy(), "at") if _is_rowtime(entry) else entry.copy() for entry in query.expressions]
    if any(map(_is_rowtime, query.expressions)):
        compared = query.copy()
        compared.set("expressions", named)
        yield (
            f"DISTINCT compares ROWTIME only if it has a name: SELECT STREAM DISTINCT {_listed(named)}",
            compared,
        )
    hour = _hour(rowtime)
    rewritten = query.copy()
    rewritten.set("expressions", [hour, *rewritten.expressions])
    words = f"SELECT STREAM DISTINCT {to_rowtime(hour)} AS hour, …"
    yield f"Select a function of ROWTIME as well, for example {words}", rewritten


def ordered(query: exp.Expr, rowtime: str, *, time: bool = False) -> Iterator[Rewrite]:
    """Yield ORDER BY with an ascending first expression; ``time``: the present one is a TIMESTAMP, as T-sorts need."""
    first, *others = query.args["order"].expressions
    if first.args.get("desc"):
        yield _order_by("Leave out DESC", query, [_ascending(first.this), *others])
    if time:
        words, rewritten = _order_by("", query, [_ascending(first.this, within=_minute()), *others])
        rewritten.set("expressions", _promoting(rewritten, first.this))
        yield f"Sort it within a tolerance: SELECT STREAM {to_rowtime(first.this)} AS ROWTIME, …{words}", rewritten
    group, windowed = query.args.get("group"), query.args.get("windowed")
    # STAGGER windows have nothing to name but their rowtime.
    hour = parse_expression("ROWTIME") if windowed is not None else _hour(rowtime)
    for lead in group.expressions if group is not None else [hour]:
        rest = [key for key in (first, *others) if key.this != lead]
        yield _order_by("Start with the ascending expression", query, [_ascending(lead), *rest])


def _order_by(words: str, query: exp.Expr, keys: Sequence[exp.Expr]) -> Rewrite:
    rewritten = query.copy()
    rewritten.set("order", exp.Order(expressions=[key.copy() for key in keys]))
    return f"{words}{':' if words else ''} ORDER BY {_listed(keys)}.", rewritten


def checked(query: exp.Expr) -> Iterator[Rewrite]:
    """Yield ORDER BY of a MONOTONIC promise, which has a clock of its own."""
    first, *others = query.args["order"].expressions
    promise = first.copy()
    promise.set("this", Monotonic(this=promise.this))
    words, rewritten = _order_by("Give it a clock", query, [promise, *others])
    yield f"{words[:-1]}, which is checked row by row.", rewritten


def promoted(query: exp.Expr, times: Iterable[exp.Expr]) -> Iterator[Rewrite]:
    """Yield another ROWTIME in the select list, or none."""
    for time in times:
        rewritten = query.copy()
        rewritten.set("expressions", _promoting(query, time))
        yield f"Select {to_rowtime(time)} AS ROWTIME.", rewritten
    rewritten = query.copy()
    rewritten.set("expressions", _promoting(query, None))
    yield "Leave AS ROWTIME out.", rewritten


def _promoting(query: exp.Expr, time: exp.Expr | None) -> list[exp.Expr]:
    others = [entry.copy() for entry in query.expressions if entry.alias.lower() != "rowtime"]
    return others if time is None else [exp.alias_(time.copy(), "ROWTIME"), *others]


def listing(query: exp.Expr, keys: Iterable[exp.Expr]) -> Iterator[Rewrite]:
    """Yield a select list with a grouping expression added."""
    for key in keys:
        rewritten = query.copy()
        rewritten.set("expressions", [key.copy(), *rewritten.expressions])
        yield f"Also select the expression that closes the groups: {to_rowtime(key)}.", rewritten


def windowed(query: exp.Expr, rowtime: str) -> Iterator[Rewrite]:
    """Yield windows ordered by time, or in the order of the rows."""
    by = exp.Order(expressions=[_ascending(parse_expression(rowtime))])
    for words, order in ((f"Write ORDER BY {rowtime}.", by), ("Leave ORDER BY out.", None)):
        rewritten = query.copy()
        for window in rewritten.find_all(exp.Window):
            if window.args.get("order") is not None:
                window.set("order", order and order.copy())
        yield words, rewritten


def joined(query: exp.Expr, number: int, limit: exp.Expr, *, instead: bool) -> Iterator[Rewrite]:
    """Yield the join ``number`` with a limit on the distance of two times; ``instead`` of its conditions on these."""
    rewritten = query.copy()
    join = rewritten.args["joins"][number]
    times = {column.name.lower() for column in limit.find_all(exp.Column)}
    named = [(part, {c.name.lower() for c in part.find_all(exp.Column)}) for part in comparisons(join.args.get("on"))]
    others = [part for part, names in named if not (instead and times <= names)]
    join.set("on", exp.and_(*others, limit))
    yield f"Limit the time between them: ON {to_rowtime(join.args['on'])}.", rewritten


def _ascending(key: exp.Expr, within: exp.Expr | None = None) -> exp.Expr:
    return exp.Ordered(this=key.copy(), nulls_first=True, within=within)


def _hour(rowtime: str) -> exp.Expr:
    return parse_expression(f"FLOOR({rowtime} TO HOUR)")


def _minute() -> exp.Expr:
    return parse_expression("INTERVAL '1' MINUTE")


def _is_rounded(key: exp.Expr) -> bool:
    """Return True for a key that may have a tolerance: a rounded time, a window, or the end of one after FROM."""
    windowed = isinstance(key, exp.Anonymous) and key.name.upper() in ("TUMBLE", "HOP")
    ends = isinstance(key, exp.Column) and key.name.lower() == "window_end"
    return windowed or ends or isinstance(key, exp.Floor | exp.Ceil | exp.TimestampTrunc)


def _is_rowtime(entry: exp.Expr) -> bool:
    return isinstance(entry, exp.Column) and entry.name.lower() == "rowtime"


def _listed(nodes: Sequence[exp.Expr]) -> str:
    return ", ".join(map(to_rowtime, nodes))
