"""Binds ORDER BY: a T-sort (WITHIN), or further keys within each value of an ascending expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rowtime.core.columns import KEY, ROWTIME, SORT_VALUE
from rowtime.core.errors import Refused
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import ROWTIME_FACT, Fact, Kind
from rowtime.expr.grids import at_end, flat, on_grid
from rowtime.expr.group_end import fixed_end, group_end, unshifted
from rowtime.expr.monotonicity import order_of, prove
from rowtime.expr.proof import Proof
from rowtime.expr.readable import readable
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.over.over_calls import RunningMark
from rowtime.operators.over.value_clocks import MARK, Closer
from rowtime.operators.rows.select import Item
from rowtime.plan.bind import rewrites
from rowtime.plan.bind.scope import Scope, follows, type_of
from rowtime.plan.bind.stream_defs import rows_of
from rowtime.plan.bind.windows import has_clock, is_value
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.numbers import whole_number
from rowtime.sql.places import place_of

Keys = tuple[tuple[Item, str], ...]


class Keyed:
    """An ORDER BY with further keys."""

    keys: Keys

    @property
    def items(self) -> tuple[Item, ...]:
        """Return the further keys."""
        return tuple(item for item, _ in self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        """Return their columns."""
        return tuple(item.column.name for item in self.items)

    @property
    def ways(self) -> tuple[str, ...]:
        """Return their directions."""
        return tuple(way for _, way in self.keys)


@dataclass(frozen=True)
class Sort(Keyed):
    """A bound ORDER BY: the tolerance in µs, and the further keys with their directions."""

    within: int
    keys: Keys
    value: Item | None = None
    """The first expression of an ORDER BY without WITHIN."""
    early: int | None = None
    """How far above the mark a row may be, in µs."""
    stamp: exp.Expr | None = None
    """The AS ROWTIME of sorted rows, over the value."""
    closer: Closer | None = None
    """The clock of the value, if it is not a function of the rowtime alone."""
    resync: int = 0
    """How many rows near a jump make it count."""
    ahead: int | None = None
    """How far above its arrival time a row may be, in µs."""


def clocks_after(sort: Sort, scope: Scope, items: Sequence[Item]) -> dict[str, exp.Expr]:
    """Return the columns that are functions of the rowtime that sorting gives the rows.

    If all rows of one value of m have one rowtime, they keep it, and so do functions of it. Else they get the end of
    the value; what is equal in all rows of a value, is that end less a width.
    """
    if sort.value is None or sort.closer is not None or sort.stamp is not None:
        return {}
    clocks = {item.column.name: scope.inlined(item.expression) for item in items}
    if isinstance(unshifted(sort.value.expression)[0], exp.Column):
        return {name: at for name, at in clocks.items() if columns_in([at]) == {ROWTIME}}
    end, closed = fixed_end(sort.value.expression), group_end(sort.value.expression, SORT_VALUE).closed
    ends = {name: fixed_end(flat(at)) for name, at in clocks.items()}
    alike = [name for name, of in ends.items() if end is not None and of is not None and of[0] == end[0]]
    return {name: at_end(flat(clocks[name]), closed=closed) for name in alike}


def bind_sort(query: exp.Expr, scope: Scope, promoted: exp.Expr | None) -> Sort | None:
    """Return the ORDER BY of a query; ``None`` if there is none, or if the stream has this order anyway."""
    order = query.args.get("order")
    if order is None:
        return None
    first, *others = order.expressions
    led = scope.bind(meant(query, scope, first.this))
    if first.args.get("within") is None:
        if is_rowtime(led) and not first.args.get("desc") and not others:
            return None  # the stream has this order anyway
        return _by_value(query, scope, led, promoted)
    if first.args.get("desc"):
        scope.refuse("R120", "a T-sort cannot be descending", first, "Leave out DESC.")
    if promoted is None or led != promoted:
        what = "a T-sort must give its sort expression the name ROWTIME in the select list"
        hint = f"Select {to_rowtime(first.this)} AS ROWTIME."
        scope.refuse("R121", what, first, rewrites.shown(rewrites.promoted(query, [first.this]), scope.binds, hint))
    early = first.args.get("early")
    limit = micros(scope, early, "EARLY BEYOND") if early is not None else None
    resync, ahead = _resync(scope, first.args.get("resync")), _ahead(scope, first.args.get("ahead"))
    keys = keys_of(query, scope, others, scope.bind)
    return Sort(micros(scope, first.args["within"]), keys, early=limit, resync=resync, ahead=ahead)


def _ahead(scope: Scope, limit: exp.Expr | None) -> int | None:
    if limit is None:
        return None
    if not scope.input.emits().arrival:
        what = "AFTER ARRIVAL: these rows have no arrival time, because a query computed them"
        scope.refuse("R112", what, limit, "Sort earlier, in a query that reads the stream itself.")
    return micros(scope, limit, "EARLY BEYOND")


def _resync(scope: Scope, rows: exp.Expr | None) -> int:
    if rows is None:
        return 0
    count = 0
    try:
        count = rows_of(rows.name, place_of(scope.text, rows))
    except Refused as refused:
        scope.problems += refused.problems
    if scope.input.emits().batched:
        scope.refuse("R190", "RESYNC over sets without an order is not supported yet", rows, "Name a position column.")
    return count


def meant(query: exp.Expr, scope: Scope, node: exp.Expr) -> exp.Expr:
    """Return an ORDER BY expression; numbers and names of the select list mean its items, as in Spark."""
    place = whole_number(node)
    if place is not None:
        return _entry(query, scope, node, place)
    aliases = {entry.alias.lower(): entry.unalias() for entry in query.expressions if isinstance(entry, exp.Alias)}

    def entry_of(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.text("table") and part.name.lower() in aliases:
            entry = aliases[part.name.lower()].copy()
            return entry if part is copied else exp.paren(entry)
        return part

    copied = node.copy()
    copied.parent = node.parent  # used to find its place
    return copied.transform(entry_of, copy=False)


def _entry(query: exp.Expr, scope: Scope, node: exp.Expr, place: int) -> exp.Expr:
    listed: list[exp.Expr] = []
    for entry in query.expressions:
        table = entry.text("table") if isinstance(entry, exp.Column) else ""
        names = [name for name, _ in scope.starred(table)] if entry.is_star else []
        listed.extend([col(n) for n in names] or [entry.unalias()])
    if not 1 <= place <= len(listed):
        what = f"ORDER BY {place}: the select list has {len(listed)} entries"
        scope.refuse("R183", what, node, "Count from 1, or write the expression.")
        return node
    return listed[place - 1]


def way_of(key: exp.Expr) -> str:
    """Return the direction of a sort key in Spark SQL; NULLs come first unless the query says otherwise."""
    down, first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
    nulls = "" if first != down else f" NULLS {'FIRST' if first else 'LAST'}"
    return ("DESC" if down else "ASC") + nulls


def keys_of(
    query: exp.Expr, scope: Scope, keys: list[exp.Expr], bind: Callable[[exp.Expr], exp.Expr], name: str = KEY
) -> Keys:
    """Return the further keys, in columns of a name with a number."""
    bound = ((bind(meant(query, scope, key.this)), way_of(key)) for key in keys)
    return tuple((Item(Column(f"{name}{number}"), key), way) for number, (key, way) in enumerate(bound))


def _by_value(query: exp.Expr, scope: Scope, led: exp.Expr, promoted: exp.Expr | None) -> Sort | None:
    """Bind ORDER BY of a stream: its first expression must ascend from row to row."""
    first, *others = query.args["order"].expressions
    value = flat(on_grid(scope.inlined(led)))
    if promoted is not None and led == promoted and not follows(value):
        if first.args.get("desc"):
            scope.refuse("R120", "a T-sort cannot be descending", first, "Leave out DESC.")
        return Sort(0, keys_of(query, scope, others, scope.bind))  # a promotion; the keys order equal times
    if not leads(query, scope, prove(led if columns_in([value]) != {ROWTIME} else value, scope.facts), led):
        return None
    if not follows(value):
        what = f"{to_rowtime(first.this)} ascends, but the values that it is computed from have no clock"
        hint = "Promise it in a view with MONOTONIC, which is checked row by row."
        scope.refuse("R180", what, first, rewrites.shown(rewrites.checked(query), scope.binds, hint))
        return None
    stamp = _stamp_over(query, scope, promoted, led)
    keys = keys_of(query, scope, others, scope.bind)
    if columns_in([value]) != {ROWTIME}:
        return Sort(
            0, keys, Item(Column(SORT_VALUE), led), stamp=stamp, closer=Closer(0, value, bool(first.args.get("desc")))
        )
    if stamp is not None:  # several values may have one rowtime
        keys = ((Item(Column("__v"), value), way_of(first)), *keys)
    return Sort(0, keys, Item(Column(SORT_VALUE), value), stamp=stamp)


def leads(
    query: exp.Expr, scope: Scope, proof: Proof, led: exp.Expr, shown: Callable[[exp.Expr], str] = readable
) -> bool:
    """Return True if a stream can be sorted by ``led``, its first ORDER BY expression; else note a problem."""
    first = query.args["order"].expressions[0]
    down = bool(first.args.get("desc"))
    if proof.order.direction == (-1 if down else 1):
        return True
    if any(problem.code == "R183" for problem in scope.problems):
        return False
    why = proof.failure()
    rewritten = rewrites.ordered(query, scope.rowtime, time=type_of(scope.columns, led).startswith("TIMESTAMP"))
    otherwise = "Fix the other problems, then start with a function of ROWTIME that ascends."
    hint = rewrites.shown(rewritten, scope.binds, otherwise)
    note = f"{shown(why.expression)}: {why.rule}"
    if proof.order.moves:
        note = "DESC makes it decrease" if down else "it decreases"
    scope.refuse("R138", "ORDER BY of a stream must start with an increasing expression", first, hint, note)
    return False


def unfit(query: exp.Expr, scope: Scope) -> None:
    """Note a problem: AS ROWTIME does not ascend with the first expression of ORDER BY."""
    first = query.args["order"].expressions[0]
    hint = rewrites.shown(rewrites.promoted(query, [first.this]), scope.binds, "Promote it in a sub-query.")
    scope.refuse("R126", "AS ROWTIME must ascend with the first expression of ORDER BY", first, hint)


def _stamp_over(query: exp.Expr, scope: Scope, promoted: exp.Expr | None, led: exp.Expr) -> exp.Expr | None:
    """Return AS ROWTIME as a function of the first ORDER BY expression; note a problem unless it ascends."""
    if promoted is None:
        return None
    stamp = over(promoted, led, SORT_VALUE)
    if stamp is None or order_of(stamp, {SORT_VALUE: prove(led, scope.facts).fact}).direction <= 0:
        unfit(query, scope)
        return None
    return stamp


def over(node: exp.Expr, part: exp.Expr, name: str) -> exp.Expr | None:
    """Return an expression as a function of one of its parts, under a name; ``None`` if it needs more."""
    expression = node.copy().transform(lambda p: col(name) if p == part else p)
    return expression if columns_in([expression]) == {name} else None


def gates_of(source: Operator, closer: Closer) -> tuple[Ordered | RunningMark, ...]:
    """Return the order checks and window calls whose marks a clock needs."""
    wanted = {column.name.removeprefix(MARK) for column in closer.at.find_all(exp.Column)}
    gates = (gate for node in walk(source) for name, (gate, _) in node.marks().items() if name in wanted)
    return tuple(sorted(gates, key=lambda gate: isinstance(gate, RunningMark)))


def micros(scope: Scope, node: exp.Expr, word: str = "WITHIN") -> int:
    """Return a duration in µs; note a problem if it is not one."""
    try:
        span = span_of(node)
    except ValueError as wrong:
        scope.refuse("R122", str(wrong), node)
        return 0
    if not isinstance(span, Duration) or span.micros < 0:
        scope.refuse("R122", f"{word} takes a duration that is not negative", node, "For example INTERVAL '1' MINUTE.")
        return 0
    return span.micros


def is_rowtime(node: exp.Expr) -> bool:
    """Return True for the rowtime itself, bound."""
    return isinstance(node.unnest(), exp.Column) and node.unnest().name == ROWTIME


def refuse_untimed(scope: Scope, promoted: exp.Expr, facts: Mapping[str, Fact], node: exp.Expr) -> None:
    """Refuse (R188) to promote a value that is known not to be a timestamp; others are checked with the first rows."""
    kind = prove(promoted, facts).fact.kind
    if kind in (Kind.TIMESTAMP, Kind.OTHER) or isinstance(promoted.unnest(), exp.Null):
        return
    text = to_rowtime(node.unalias())
    whole = f"Say what it counts: timestamp_seconds({text}), timestamp_millis({text}) or timestamp_micros({text})."
    hint = whole if kind is Kind.INTEGER else f"Make a timestamp of it, for example CAST({text} AS TIMESTAMP)."
    scope.refuse("R188", f"only a timestamp can be ROWTIME, and {text} is of kind {kind.value}", node, hint)


def equal_to_rowtime(
    promoted: exp.Expr | None, items: Sequence[Item], columns: Sequence[Column]
) -> dict[str, exp.Expr]:
    """Return the entries of a select list that equal the new rowtime: the promoted column, if no cast changes it."""
    if not isinstance(promoted, exp.Column) or type_of(columns, promoted).upper() != "TIMESTAMP":
        return {}
    return {item.column.name: col(ROWTIME) for item in items if item.expression == promoted}


def is_clock(scope: Scope, item: Item, at: exp.Expr) -> bool:
    """Return True if an inlined item tells when its values end: it has an order, by itself or over the rowtime."""
    moves = item.column.order.moves or has_clock(scope, item.expression)
    return follows(at) and (moves or (is_value(at) and order_of(at, {ROWTIME: ROWTIME_FACT}).moves))


def ascending(scope: Scope, promoted: exp.Expr) -> exp.Expr | None:
    """Return the promoted time over the rowtime, if it ascends with it."""
    inlined = on_grid(scope.inlined(promoted))
    return inlined if columns_in([inlined]) == {ROWTIME} and prove(inlined, scope.facts).order.direction > 0 else None
