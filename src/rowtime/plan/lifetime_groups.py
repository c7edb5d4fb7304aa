"""Binds GROUP BY over events: SNAPSHOT(), TUMBLE(size), HOP(hop, size) or COUNT_WINDOW(n), and further keys."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rowtime.core.errors import Problem, Refused
from rowtime.operators.contract import Operator
from rowtime.operators.count_windows import CountWindows
from rowtime.operators.lifetime_windows import LifetimeWindows
from rowtime.operators.select import Item
from rowtime.operators.snapshot import Snapshot, summed
from rowtime.plan.aggregates import is_sorted_collection, needs_places
from rowtime.plan.group_plan import reference
from rowtime.plan.groups import Grouping
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.places import place_of

_HINT = (
    "Group by SNAPSHOT(), TUMBLE(INTERVAL '1' HOUR), HOP(INTERVAL '1' MINUTE, INTERVAL '1' HOUR) or COUNT_WINDOW(10)."
)
_WINDOWS = {"SNAPSHOT": (0, 0), "TUMBLE": (1, 1), "HOP": (2, 2), "COUNT_WINDOW": (1, 1)}
_POINT = "POINT AT END"
MOST_STARTS = 10_000  # of a window, for as many are kept a key


class LifetimeGrouping(Grouping):
    """Binds the grouped SELECT over events."""

    def plan(self) -> Callable[[str, Operator], Operator]:
        """What makes the operator of a name on its input."""
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
            what = f"{'a' if not windows else 'one'} group of events needs a window of time"
            raise Refused(Problem("R196", what, place_of(self.scope.text, where), _HINT))
        items, stamp = self._select_list()
        having = self.query.args.get("having")
        condition = self._over_groups(having.this) if having else None
        if stamp is not None:
            self.scope.refuse("R193", "AS ROWTIME does not go with events, whose start is their rowtime", self.query)
        keys, aggregates = tuple(self.keys), tuple(self.aggregates)
        if needs_places(aggregates):
            what = "an aggregate that depends on the order of rows: events have none"
            self.scope.refuse(
                "R193", what, self.query, "Take MIN, MAX, MIN_BY, ARRAY_SORT(COLLECT_SET(x)) or their like."
            )
        if windows[0].name.upper() == "SNAPSHOT":
            self._refuse_unsummed(aggregates)
            return lambda name, source: Snapshot(name, source, keys, aggregates, items, condition)
        if windows[0].name.upper() == "COUNT_WINDOW":
            count = self._count(windows[0])
            return lambda name, source: CountWindows(name, source, keys, aggregates, items, count, condition)
        size, hop, offset, point = self._sizes(windows[0])
        return lambda name, source: LifetimeWindows(
            name, source, keys, aggregates, items, size, hop, offset, point, condition
        )

    def _factored(self, node: exp.Expr) -> exp.Expr:
        """Events have no order, so what is collected counts with the sort around it."""
        return reference(self._aggregate(node)) if is_sorted_collection(node) else super()._factored(node)

    def _refuse_unsummed(self, aggregates: tuple[Item, ...]) -> None:
        for item in aggregates:
            if not summed(item.expression):
                what = f"{to_rowtime(item.expression)} of a snapshot is not supported yet"
                self.scope.refuse(
                    "R190", what, self.query, "A snapshot has COUNT, SUM and AVG; TUMBLE and HOP have all."
                )

    def _count(self, call: exp.Anonymous) -> int:
        number = call.expressions[0] if len(call.expressions) == 1 else None
        if not isinstance(number, exp.Literal) or not number.name.isdigit() or not 0 < int(number.name) <= MOST_STARTS:
            what = f"COUNT_WINDOW takes a number of start times, from 1 to {MOST_STARTS}"
            raise Refused(Problem("R196", what, place_of(self.scope.text, call), "For example COUNT_WINDOW(10)."))
        return int(number.name)

    def _sizes(self, call: exp.Anonymous) -> tuple[int, int, int, bool]:
        arguments = list(call.expressions)
        point = bool(arguments) and isinstance(arguments[-1], exp.Literal) and arguments[-1].name.upper() == _POINT
        if point:
            arguments.pop()
        if arguments and isinstance(arguments[0], exp.Column) and arguments[0].name.upper() == "ROWTIME":
            arguments.pop(0)
        wanted = _WINDOWS[call.name.upper()][1]
        numbers = [self._micros(argument) for argument in arguments]
        if not wanted <= len(numbers) <= wanted + 1 or any(n is None for n in numbers) or (numbers[0] or 0) <= 0:
            sizes = "a hop and a size" if wanted > 1 else "a size"
            what = f"{call.name.upper()} over events takes {sizes}, perhaps an offset"
            hint = f"{_HINT} A last argument '{_POINT.lower()}' makes each result a point at the end of its window."
            raise Refused(Problem("R196", what, place_of(self.scope.text, call), hint))
        hop, size = numbers[0] or 0, numbers[wanted - 1] or 0
        if size <= 0:
            raise Refused(Problem("R196", "a window has a size above zero", place_of(self.scope.text, call), _HINT))
        return size, hop, (numbers[wanted] or 0) if len(numbers) > wanted else 0, point

    def _micros(self, argument: exp.Expr) -> int | None:
        try:
            span = span_of(argument)
        except ValueError:
            return None
        return span.micros if isinstance(span, Duration) else None
