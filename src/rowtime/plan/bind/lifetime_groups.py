"""Binds GROUP BY over events: SNAPSHOT(), TUMBLE(size), HOP(hop, size), SESSION(gap), COUNT_WINDOW(n), and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import LIFETIME_END, LIFETIME_START, ROWTIME
from rowtime.core.errors import Refused
from rowtime.expr.conditions import col, columns_in
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.count_windows import CountWindows
from rowtime.operators.events.lifetime_sessions import LifetimeSessions
from rowtime.operators.events.lifetime_windows import LifetimeWindows
from rowtime.operators.events.snapshot import Snapshot, summed
from rowtime.operators.events.snapshot_sets import SnapshotSets
from rowtime.operators.groups.grouping import needs_places
from rowtime.operators.rows.arguments import is_sorted_collection
from rowtime.operators.rows.select import Item, extended
from rowtime.plan.bind.groups import Grouping
from rowtime.sql.intervals import duration_of
from rowtime.sql.places import refuse_at

_HINT = (
    "Add a window to GROUP BY: SNAPSHOT(), TUMBLE(INTERVAL '1' HOUR), HOP(INTERVAL '1' MINUTE, INTERVAL '1' HOUR), "
    "SESSION(INTERVAL '5' MINUTE) or COUNT_WINDOW(10)."
)
_WINDOWS = {"SNAPSHOT": (0, 0), "TUMBLE": (1, 1), "HOP": (2, 2), "SESSION": (1, 1), "COUNT_WINDOW": (1, 1)}
_OUTPUT = {"window": False, "point at end": True}
"""The result of a window: an event of its extent, or a point at its last instant."""
_INPUT = {"clip": "both", "clip end": "end"}
"""How lifetimes are cut to the window for aggregates that use them."""
_OPTIONS = ", ".join(f"'{name}'" for name in (*_OUTPUT, *_INPUT))
_START = "start of the event"  # the column of a group's ROWTIME, which the kept events lack
MOST_STARTS = 10_000  # of a window: so many are kept per key


class LifetimeGrouping(Grouping):
    """Binds the grouped SELECT over events."""

    def plan(self) -> Callable[[str, Operator], Operator]:
        """Return a function that makes the operator from a name and its input."""
        if self.scope.problems:
            raise Refused(*self.scope.problems)
        windows: list[exp.Anonymous] = []
        for node in self._grouping():
            if isinstance(node, exp.Anonymous) and node.name.upper() in _WINDOWS:
                windows.append(node)
            else:
                self._key(node)
        if len(windows) != 1:
            where = self.query.args.get("group") or self.query
            what = f"{'a' if not windows else 'one'} group of events needs a time window"
            raise refuse_at(self.scope.text, where, "R196", what, _HINT)
        self.scope.clipped = windows[0].name.upper() in ("TUMBLE", "HOP", "SESSION")
        items, stamp = self._select_list()
        having = self.query.args.get("having")
        condition = self._over_groups(having.this) if having else None
        if stamp is not None:
            what = "AS ROWTIME is not supported for events: the start of an event is its rowtime"
            self.scope.refuse("R193", what, self.query)
        keys, aggregates = tuple(map(_of_start, self.keys)), tuple(map(_of_start, self.aggregates))
        asks = any(column.name == _START for i in (*keys, *aggregates) for column in i.expression.find_all(exp.Column))
        windowed = self._windows(windows[0], keys, aggregates, items, condition)
        start = Item(Column(_START, "TIMESTAMP"), col(ROWTIME))
        return (lambda name, source: windowed(name, extended(f"{name}.starts", source, start))) if asks else windowed

    def _windows(
        self,
        window: exp.Anonymous,
        keys: tuple[Item, ...],
        aggregates: tuple[Item, ...],
        items: tuple[Item, ...],
        condition: exp.Expr | None,
    ) -> Callable[[str, Operator], Operator]:
        """Return a function that makes the operator of a window."""
        if needs_places(aggregates):
            what = "this aggregate depends on the order of rows, and events have no order"
            hint = "Use MIN, MAX, ARRAY_SORT(COLLECT_SET(x)), or MIN(STRUCT(y, x)).x for MIN_BY(x, y)."
            self.scope.refuse("R193", what, self.query, hint)
        if window.name.upper() == "SNAPSHOT":
            kind = Snapshot if all(summed(item.expression) for item in aggregates) else SnapshotSets
            return lambda name, source: kind(name, source, keys, aggregates, items, having=condition)
        if window.name.upper() == "COUNT_WINDOW":
            count = self._count(window)
            return lambda name, source: CountWindows(name, source, keys, aggregates, items, count, having=condition)
        options = self._options(window)
        point = any(_OUTPUT.get(name, False) for name in options)
        sees_lifetimes = columns_in(item.expression for item in aggregates) & {LIFETIME_START, LIFETIME_END}
        clips = next((_INPUT[name] for name in options if name in _INPUT), "both") if sees_lifetimes else ""
        if window.name.upper() == "SESSION":
            gap, longest = self._lengths(window, len(options))
            return lambda name, source: LifetimeSessions(
                name, source, keys, aggregates, items, gap, longest, point, clips, having=condition
            )
        size, hop, offset = self._sizes(window, len(options))
        return lambda name, source: LifetimeWindows(
            name, source, keys, aggregates, items, size, hop, offset, point, clips, having=condition
        )

    def _options(self, call: exp.Anonymous) -> list[str]:
        """Return the options after the sizes of a window, in lower case."""
        options = [node.name.lower() for node in call.expressions if isinstance(node, exp.Literal) and node.is_string]
        unknown = [name for name in options if name not in (*_OUTPUT, *_INPUT)]
        if unknown:
            hint = f"There are {_OPTIONS}. When a window goes out, it is not known yet where an event ends beyond it."
            raise refuse_at(self.scope.text, call, "R196", f"{call.name.upper()} has no option '{unknown[0]}'", hint)
        if any(len([name for name in options if name in kind]) > 1 for kind in (_OUTPUT, _INPUT)):
            what = f"{call.name.upper()} has two options that exclude each other"
            raise refuse_at(self.scope.text, call, "R196", what, f"There are {_OPTIONS}.")
        return options

    def _factored(self, node: exp.Expr) -> exp.Expr:
        """Return an aggregate with its sort included: events have no order."""
        return col(self._aggregate(node)) if is_sorted_collection(node) else super()._factored(node)

    def _count(self, call: exp.Anonymous) -> int:
        number = call.expressions[0] if len(call.expressions) == 1 else None
        if not isinstance(number, exp.Literal) or not number.name.isdigit() or not 0 < int(number.name) <= MOST_STARTS:
            what = f"COUNT_WINDOW takes a number of start times, from 1 to {MOST_STARTS}"
            raise refuse_at(self.scope.text, call, "R196", what, "For example COUNT_WINDOW(10).")
        return int(number.name)

    def _sizes(self, call: exp.Anonymous, options: int) -> tuple[int, int, int]:
        arguments = call.expressions[: len(call.expressions) - options]
        if arguments and isinstance(arguments[0], exp.Column) and arguments[0].name.upper() == "ROWTIME":
            arguments.pop(0)
        wanted = _WINDOWS[call.name.upper()][1]
        numbers = [duration_of(argument) for argument in arguments]
        if not wanted <= len(numbers) <= wanted + 1 or any(n is None for n in numbers) or (numbers[0] or 0) <= 0:
            sizes = "a hop and a size" if wanted > 1 else "a size"
            what = f"{call.name.upper()} over events takes {sizes} and optionally an offset"
            raise refuse_at(self.scope.text, call, "R196", what, f"{_HINT} After these you can write {_OPTIONS}.")
        hop, size = numbers[0] or 0, numbers[wanted - 1] or 0
        if size <= 0:
            raise refuse_at(self.scope.text, call, "R196", "the size of a window must be above zero", _HINT)
        return size, hop, (numbers[wanted] or 0) if len(numbers) > wanted else 0

    def _lengths(self, call: exp.Anonymous, options: int) -> tuple[int, int]:
        """Return the gap of SESSION and the longest duration, or 0; a session of open events needs one."""
        arguments = call.expressions[: len(call.expressions) - options]
        if arguments and isinstance(arguments[0], exp.Column) and arguments[0].name.upper() == "ROWTIME":
            arguments.pop(0)
        numbers = [duration_of(argument) or 0 for argument in arguments]
        if not 1 <= len(numbers) <= 2 or min(numbers) <= 0:  # noqa: PLR2004 - the gap and the longest duration
            what = "SESSION over events takes a gap and optionally a longest duration, both above zero"
            hint = f"For example SESSION(INTERVAL '5' MINUTE, INTERVAL '1' DAY). After these you can write {_OPTIONS}."
            raise refuse_at(self.scope.text, call, "R196", what, hint)
        gap, longest = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not longest and self.scope.input.opens_events() and not self.query.args.get("unbounded_state"):
            what = "events come here before their end is known, so a session of them may never end"
            hint = (
                "Give it a longest duration: SESSION(INTERVAL '5' MINUTE, INTERVAL '1' DAY). Or limit the events: "
                "FROM CLIP(s, AT MOST INTERVAL '1' DAY). Or write WITH UNBOUNDED STATE."
            )
            raise refuse_at(self.scope.text, call, "R195", what, hint)
        return gap, longest


def _of_start(item: Item) -> Item:
    """Return an item over ROWTIME as one over the column with the starts."""

    def moved(node: exp.Expr) -> exp.Expr:
        return col(_START) if isinstance(node, exp.Column) and node.name == ROWTIME else node

    return replace(item, expression=item.expression.copy().transform(moved))
