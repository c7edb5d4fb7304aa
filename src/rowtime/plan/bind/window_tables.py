"""Binds the windows after FROM: ``TABLE(TUMBLE(TABLE s, DESCRIPTOR(t), INTERVAL '1' HOUR))``.

They add the columns ``window_start`` and ``window_end`` but do not group (semantics 12); the clocks of these columns
let a GROUP BY above them close.
"""

from __future__ import annotations

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.core.errors import Problem, Refused
from rowtime.expr.conditions import col
from rowtime.expr.group_end import moved
from rowtime.expr.monotonicity import order_of
from rowtime.operators.contract import Operator
from rowtime.operators.rows.select import Item, Select
from rowtime.operators.windows.session_rows import SessionRows
from rowtime.plan.bind.functions import input_of
from rowtime.plan.bind.scope import From, Scope, follows, marks_of
from rowtime.plan.bind.sources import Binder, BoundQuery
from rowtime.plan.bind.windows import SHAPES, gap_of, is_value, session_end, spans_of, windows_of
from rowtime.sql.nodes import TableArgument
from rowtime.sql.places import place_of, refuse_at

WINDOW_TABLES = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
NAMES = ("window_start", "window_end")
_PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "KEY", "GAP"),
}


class WindowTable:
    """The call of a window function after FROM; ``name`` is that of the query."""

    def __init__(self, binder: Binder, call: exp.Anonymous, name: str) -> None:
        self.binder, self.call, self.name = binder, call, name
        self.function = call.name.upper()

    def bind(self) -> BoundQuery:
        """Return the operator, and the clocks of the columns; raises ``Refused``."""
        arguments = self._arguments()
        if not arguments:
            raise Refused(self._unread())
        scope = self._scope(arguments[0])
        if self.function == "SESSION":
            return self._session(scope, arguments)
        time = self._time(scope, arguments[1] if len(arguments) > 1 else None)
        spans = spans_of(scope, self.call, arguments[2:], self.function)
        self._refuse_taken(scope)
        if scope.problems or time is None or spans is None:
            raise Refused(*scope.problems)
        at = scope.inlined(time)
        # The time follows the rowtime, or a mark that never goes back.
        ascends = follows(at) and order_of(at, scope.facts if is_value(at) else marks_of(scope.input)).direction > 0
        lineage = {**scope.source.lineage, **(spans.lineage(NAMES, at) if ascends else spans.windowed(NAMES, time))}
        value = scope.computed(time)
        gate = not (ascends and is_value(at)) and not _ordered(scope, time)
        source = scope.input
        name = self.binder.sources.fresh(self.name if gate else f"{self.name}.{self.function.lower()}")
        return BoundQuery(windows_of(name, source, spans, value, NAMES, gate=gate), lineage)

    def _arguments(self) -> list[exp.Expr]:
        """Return the arguments by position; named ones are put in theirs."""
        given = self.call.expressions
        if not any(isinstance(node, exp.Kwarg) for node in given):
            return list(given)
        names = _PARAMETERS[self.function]
        named = {node.this.name.upper(): node.expression for node in given if isinstance(node, exp.Kwarg)}
        strange = [name for name in named if name not in names]
        if strange or len(named) < len(given):
            what = f"{self.function} has no argument {strange[0]}" if strange else "name all arguments, or none"
            raise refuse_at(self.binder.text, self.call, "R113", what, f"The arguments are {', '.join(names)}.")
        return [named[name] for name in names if name in named]

    def _scope(self, data: exp.Expr) -> Scope:
        """Return the names of the input: a stream, a view or a query."""
        binder = self.binder
        given = input_of(data)
        if isinstance(given, exp.Table):
            node, lineage = binder.sources.table(binder, given)
            return Scope(binder.text, From.one(node, given.alias_or_name, lineage))
        if isinstance(given, exp.Query):
            bound = binder.bind(given, f"{self.name}.data")
            return Scope(binder.text, From.one(bound.node, "", bound.lineage))
        raise Refused(self._unread())

    def _unread(self) -> Problem:
        hint = f"Write TABLE({self.function}(TABLE s, DESCRIPTOR(ROWTIME), …)), of a stream or a view s."
        place = place_of(self.binder.text, self.call)
        return Problem("R141", f"{self.function} needs a query or a stream to read", place, hint)

    def _refuse_taken(self, scope: Scope) -> None:
        taken = [c.name for c in scope.columns if c.name.lower() in NAMES]
        if taken:
            scope.refuse(
                "R119", f"there is a column {taken[0]} already", self.call, "Give it another name in the input."
            )

    # -- sessions ---------------------------------------------------------------------

    def _session(self, scope: Scope, arguments: list[exp.Expr]) -> BoundQuery:
        """Bind SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ROWTIME), gap), or with DESCRIPTOR(k) before the gap."""
        self._refuse_taken(scope)
        time = self._time(scope, arguments[1] if len(arguments) > 1 else None)
        keys = [*arguments[0].expressions] if isinstance(arguments[0], TableArgument) else []
        if len(arguments) == len(_PARAMETERS["SESSION"]):
            named = arguments.pop(2)
            keys += named.expressions if isinstance(named, exp.Anonymous) else [named]
        bound = [scope.bind(key) for key in keys]
        wrong = [key for key in bound if not isinstance(key, exp.Column) or key.name == ROWTIME]
        if wrong:
            scope.refuse("R113", "the keys of SESSION are columns", self.call, "For example TABLE s PARTITION BY k.")
        gap, by = gap_of(scope, self.call, [time, *arguments[2:]]) if time is not None else (None, 0)
        if scope.problems or gap is None:
            raise Refused(*scope.problems)
        sources, source = self.binder.sources, scope.input
        name = sources.fresh(f"{self.name}.session")
        rows: Operator = SessionRows(name, source, tuple(key.name for key in bound), gap, NAMES)
        if by:  # the edges are those of the time that the query names
            columns = [(c, moved(col(c.name), by if c.name in NAMES else 0)) for c in rows.emits().of_users]
            rows = Select(sources.fresh(f"{self.name}.moved"), rows, tuple(Item(c, edge) for c, edge in columns))
        at = col(ROWTIME) if time is None else scope.inlined(time)
        return BoundQuery(rows, {NAMES[1]: session_end(at, gap)})

    def _time(self, scope: Scope, node: exp.Expr | None) -> exp.Expr | None:
        """Return the one column of DESCRIPTOR, or ROWTIME."""
        named = isinstance(node, exp.Anonymous) and node.name.upper() == "DESCRIPTOR" and len(node.expressions) == 1
        if node is None or not named:
            hint = "The time must be DESCRIPTOR(ROWTIME)."
            scope.refuse("R113", f"{self.function} takes {SHAPES[self.function]}", self.call, hint)
            return None
        return scope.bind(node.expressions[0])


def _ordered(scope: Scope, time: exp.Expr) -> bool:
    """Return True if the time is a column of a known order, which has no NULL."""
    return any(isinstance(time, exp.Column) and c.name == time.name and c.order.moves for c in scope.columns)
