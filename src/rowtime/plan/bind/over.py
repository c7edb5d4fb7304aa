"""Binds OVER: the window calls of one SELECT become columns, and the operators that compute them.

A frame on a stream holds the row and rows before it, so ORDER BY in a window can only name an order that the stream
has. Calls over the same keys whose rows are kept in the same way share an operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from rowtime.core.columns import KEY, ROWTIME, WINDOW_VALUE
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import UNKNOWN, Fact
from rowtime.expr.monotonicity import prove
from rowtime.expr.readable import readable
from rowtime.operators.contract import Column, Operator
from rowtime.operators.over.over import Over
from rowtime.operators.over.over_calls import Call
from rowtime.operators.rows.select import Item
from rowtime.plan.bind import rewrites
from rowtime.plan.bind.frames import NoWindow, Window, frame_of, resolved
from rowtime.plan.bind.kept_months import MONTHS, MONTHS_HINT, of_months
from rowtime.plan.bind.numbering import HINT, OF_A_JOIN
from rowtime.plan.bind.orders import micros
from rowtime.plan.bind.scope import Scope, mark_of
from rowtime.plan.bind.sources import Sources
from rowtime.plan.bind.window_calls import Want, wants_of
from rowtime.sql.generate import to_spark
from rowtime.sql.nodes import Monotonic, recognizes

_OF_WHOLE_WINDOWS = ("NTILE", "PERCENT_RANK", "CUME_DIST")


@dataclass
class _Shared:
    """The calls that one operator computes."""

    keys: tuple[Item, ...]
    order: exp.Expr | None
    calls: list[Call] = field(default_factory=list)


class Windowing:
    """The window calls of the SELECT ``query``, as its scope finds them."""

    def __init__(self, query: exp.Select, scope: Scope, fresh: Callable[[str], str]) -> None:
        self._query, self.scope, self._fresh = query, scope, fresh
        self._named = {window.name.lower(): window for window in query.args.get("windows") or []}
        self._shared: dict[tuple[object, ...], _Shared] = {}
        self._columns: dict[tuple[object, ...], Column] = {}
        for window in self._named.values():  # unused windows are checked too
            try:
                frame_of(resolved(window, self._named))
            except NoWindow as wrong:
                scope.refuse(wrong.code, wrong.message, window, wrong.hint)
        expires = query.args.get("keys_expire")
        self._expires = None if expires is None else micros(scope, expires, "KEYS EXPIRE AFTER")
        scope.over = self.value

    def check(self, query: exp.Select) -> None:
        """Check that KEYS EXPIRE AFTER has window calls; MONOTONIC is checked below the windows."""
        for node in query.find_all(Monotonic):
            if node.find(exp.Window) is not None and node.find_ancestor(exp.Query) is query:
                what = "MONOTONIC cannot contain a window function"
                hint = "Compute it below: SELECT STREAM MONOTONIC(x) AS x FROM (SELECT STREAM … OVER (…) AS x FROM s)."
                self.scope.refuse("R102", what, node, hint)
        keyed = recognizes(query) or any(shared.keys for shared in self._shared.values())
        if self._expires is not None and not keyed:
            what = "KEYS EXPIRE AFTER is supported for the keys of windows only"
            self.scope.refuse("R190", what, query.args["keys_expire"], "Give the window PARTITION BY, or leave it out.")

    @property
    def has_windows(self) -> bool:
        """Return True if the query has window calls."""
        return bool(self._shared)

    def value(self, node: exp.Window) -> exp.Expr:
        """Return the replacement of a call whose parts are bound: a column, or an expression over some."""
        before = len(self.scope.problems)
        try:
            value = self._value(node)
        except NoWindow as wrong:
            self.scope.refuse(wrong.code, wrong.message, node, wrong.hint)
            return node
        return value if len(self.scope.problems) == before else node

    def _value(self, node: exp.Window) -> exp.Expr:
        window = resolved(node, self._named)
        keys = self._keys([self._bound(part, node) for part in window.keys])
        order, ranked = self._order(window, node)
        frame = frame_of(window)
        if frame.by_range and order is None and window.order and not ranked:
            hint = f"Write ORDER BY {self.scope.rowtime}."
            raise NoWindow("R164", "RANGE is measured on ROWTIME, or on a function of it", hint)
        by = order or col(ROWTIME) if ranked else None
        wants = wants_of(node.this, frame, by)
        if any(of_months(want.argument, self.scope.facts) for want in wants.wants):
            raise NoWindow("R189", f"{readable(node.this)} keeps {MONTHS}", MONTHS_HINT)
        fact = prove(_as_node(node.this, window), self.scope.facts).fact
        columns = [self._column(want, keys, order, fact if len(wants.wants) == 1 else UNKNOWN) for want in wants.wants]
        value = wants.value(*(col(column.name) for column in columns))
        if isinstance(value, exp.Column):
            self.scope.row_facts[value.name] = fact
        return value

    def _bound(self, part: exp.Expr, node: exp.Window) -> exp.Expr:
        """Return a part of a window, bound; the parts that the call itself has are bound already."""
        own = any(part is inner for inner in node.walk())
        return part if own else self.scope.bind(part)

    def _keys(self, nodes: list[exp.Expr]) -> tuple[Item, ...]:
        keys = []
        for number, node in enumerate(nodes):
            followed = self.scope.computed(node)
            bound = followed if columns_in([followed]) == {ROWTIME} else node
            keys.append(Item(Column(f"{KEY}{number}", fact=prove(bound, self.scope.facts).fact), bound))
        return tuple(keys)

    def _order(self, window: Window, node: exp.Window) -> tuple[exp.Expr | None, bool]:
        """Return what RANGE measures if it is not ROWTIME; and whether the window orders by a function of it."""
        if not window.order:
            return None, False
        first, *others = window.order
        value = self.scope.computed(self._bound(first.this, node))
        proof = prove(value, self.scope.facts)
        if first.args.get("desc") or others or proof.order.direction <= 0:
            why = proof.failure()
            reason = "DESC" if first.args.get("desc") else "a second key" if others else f"{why.text}: {why.rule}"
            what = f"the rows of a stream come in stream order, not by {readable(first.this)}"
            what += f" ({reason})" if proof.order.direction <= 0 else ""
            if isinstance(node.this, exp.RowNumber | exp.Rank | exp.DenseRank):
                raise NoWindow("R164", what, OF_A_JOIN if self._query.args.get("joins") else HINT)
            if isinstance(node.this, exp.Anonymous) and node.this.name.upper() in _OF_WHOLE_WINDOWS:
                hint = "Use RANK() or ROW_NUMBER() with PARTITION BY FLOOR(s.ROWTIME TO HOUR)."
                raise NoWindow("R162", f"{readable(node.this)} depends on rows that have not arrived yet", hint)
            rewritten = rewrites.windowed(self._query, self.scope.rowtime)
            raise NoWindow("R164", what, rewrites.shown(rewritten, self.scope.binds, "Leave ORDER BY out."))
        ranked = columns_in([value]) == {ROWTIME}
        return (None if not ranked or value == col(ROWTIME) else value), ranked

    def _column(self, want: Want, keys: tuple[Item, ...], order: exp.Expr | None, fact: Fact) -> Column:
        """Return the column of a call; equal calls share one."""
        frame = want.frame
        measured = order if frame.by_range else None
        place = (
            tuple(to_spark(key.expression) for key in keys),
            frame.by_range and frame.lower is not None,
            "" if measured is None else to_spark(measured),
        )
        identity = (place, frame, want.function, to_spark(want.argument))
        if identity not in self._columns:
            name = f"{WINDOW_VALUE}{len(self._columns)}"
            self._columns[identity] = Column(name, fact=fact)
            mark = ""
            if fact.order.direction > 0:
                mark = self._fresh(name.removeprefix("__"))
                self.scope.windows.lineage[name] = mark_of(mark)
            shared = self._shared.setdefault(place, _Shared(keys, measured))
            shared.calls.append(Call(self._columns[identity], want.function, want.argument, frame, want.typed, mark))
        return self._columns[identity]

    def build(self, sources: Sources, source: Operator, name: str, used: set[str]) -> Operator:
        """Return the operators on their input, which pass through its columns in ``used``."""
        rest = list(self._shared.values())
        while rest:
            shared = rest.pop(0)
            later = {c for more in rest for c in columns_in([*(k.expression for k in more.keys), *_trees(more)])}
            names = [column.name for column in source.emits().columns]
            passed = tuple(n for n in names if n in used | later or n.startswith(WINDOW_VALUE))
            closers = tuple(n for n, key in enumerate(shared.keys) if _closes(key))
            own, expires = sources.fresh(f"{name}.over"), self._expires if shared.keys else None
            source = Over(own, source, shared.keys, tuple(shared.calls), passed, shared.order, closers, expires)
        return source


def _closes(key: Item) -> bool:
    return key.column.order.moves and columns_in([key.expression]) == {ROWTIME}


def _trees(shared: _Shared) -> list[exp.Expr]:
    return [*(call.argument for call in shared.calls), *([shared.order] if shared.order else [])]


def _as_node(call: exp.Expr, window: Window) -> exp.Window:
    """Return the call with its whole window, as the rules of monotonicity read it."""
    order = exp.Order(expressions=[part.copy() for part in window.order]) if window.order else None
    spec = window.spec.copy() if window.spec is not None else None
    return exp.Window(this=call.copy(), partition_by=[key.copy() for key in window.keys], order=order, spec=spec)
