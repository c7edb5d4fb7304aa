"""Finished groups: the select list and HAVING over their keys and aggregates, and the routes of their rows.

In a tick that examines rows one by one (`Tick.trying`), a group with a value that cannot be computed is refused: its
row has the columns that can be computed, and its keys and aggregates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import BROKEN, DONE, LIFETIME_END, LIFETIME_START, POSITION, ROUTE, ROWTIME, WRITER
from rowtime.expr.conditions import conjuncts
from rowtime.operators.contract import Tick, quoted
from rowtime.operators.contract.state import Route, Segment
from rowtime.operators.groups.grouping import SHOWN, Groups, RowGroups
from rowtime.operators.rows.attempt import judged
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.rows.select import Item

KEPT, COMPLETE, FAILED = 0, 1, 2  # the routes of a group: to the state, out, or refused
ALL = "true"
"""The condition that all groups are complete."""
FAILING = "failed"
"""The route of groups that are refused."""


_LIFETIME = (LIFETIME_START, LIFETIME_END)
_WORDS = {
    ROWTIME: exp.column("ROWTIME"),
    **{name: exp.Anonymous(this=name.strip("_").upper(), expressions=[exp.var("…")]) for name in _LIFETIME},
}
"""Hidden columns, with the words that users know."""


@dataclass(frozen=True)
class Finished:
    """How the groups of an operator are emitted: when one is ``complete``, and its select list.

    The columns that `Accumulators.places` calls ``__f0``, … are computed only for complete groups, because they might
    fail for open ones. ``stamp``: the rowtime of a complete group. ``routes``: the columns for each route. ``kept``:
    columns to pass on if groups are examined one by one.
    """

    node: RowGroups
    complete: str
    items: Sequence[Item]
    stamp: str
    routes: Mapping[str, Route]
    kept: Sequence[str] = ()

    def write(self, tick: Tick, groups: Frame, wanted: str = "") -> Mapping[str, Sequence[Segment]]:
        """Write the ``wanted`` groups to their routes; count those that fail in the ledger."""
        rows = self._routed(tick, groups)
        written = tick.write(self.node, rows.where(wanted) if wanted else rows, self._needed)
        if failed := written.get(FAILING, ()):
            failing = tick.segments(self.node, FAILING).read(failed)
            tick.refuse_computed(self.node, failing, BROKEN)
        return written

    def _routed(self, tick: Tick, groups: Frame) -> Frame:
        """Return the columns of groups that some route takes, and the route of each group."""
        if tick.trying:
            return self._tried(groups)
        complete, having, texts = self.complete, self.node.having, self._select_list(self.complete)
        if having is not None:
            groups = groups.where(f"NOT ({complete}) OR ({to_spark(having)})")
        texts |= {ROWTIME: self.stamp, WRITER: "''", POSITION: "0L"}
        columns = [f"{texts[name]} AS {name}" if name in texts else name for name in self._taken]
        return groups.selectExpr(*columns, f"CASE WHEN {complete} THEN {COMPLETE} ELSE {KEPT} END AS {ROUTE}")

    @property
    def _needed(self) -> Mapping[str, Route]:
        """Return the routes that may have rows: if all groups are complete, none is kept."""
        return {name: route for name, route in self.routes.items() if route.key != KEPT or self.complete != ALL}

    @property
    def _taken(self) -> dict[str, None]:
        """Return the columns of the routes, each once."""
        routes = self._needed.values()
        return dict.fromkeys(name for route in routes for name in (*route.columns.values(), route.time))

    def _select_list(self, complete: str) -> dict[str, str]:
        """Return the select list, with the routes' column names."""
        items = enumerate(self.items)
        return {f"__f{n}": f"CASE WHEN {complete} THEN {item.text} END" for n, item in items}

    def _tried(self, groups: Frame) -> Frame:
        taken = self._taken | dict.fromkeys(self.kept)
        groups = groups.selectExpr("*", f"coalesce({self.complete}, false) AS {DONE}")
        texts = self._select_list(DONE)
        names = {f"__f{n}": query_text(self.node, item.expression) for n, item in enumerate(self.items)}
        tests = [
            (f"CASE WHEN {DONE} THEN {to_spark(part)} ELSE true END", query_text(self.node, part))
            for part in conjuncts(self.node.having)
        ]
        when = f"CASE WHEN {DONE} THEN {self.stamp} END"
        values = {name: text for name, text in texts.items() if name in taken}
        demands = [(text, names[name]) for name, text in values.items()] + [(when, "ROWTIME")]
        kept = [DONE, *(name for name in taken if name not in {*texts, ROWTIME, WRITER, POSITION, BROKEN})]
        beyond = self.node.accumulators.beyond(groups)
        broken = [(f"{DONE} AND {condition}", in_words(call)) for condition, call in beyond]
        time = next(iter(self._needed.values())).time
        attempts = judged(groups, [tests], {**values, ROWTIME: when}, demands, kept, broken)
        others = [name for name in taken if name not in (ROWTIME, WRITER, POSITION)]
        route = f"CASE WHEN NOT {DONE} THEN {KEPT} WHEN {BROKEN} IS NULL THEN {COMPLETE} ELSE {FAILED} END"
        at = f"coalesce({ROWTIME}, timestamp_micros(least({time}, 253402300799999999L)))"
        return attempts.selectExpr(
            *map(quoted, others), f"{at} AS {ROWTIME}", f"'' AS {WRITER}", f"0L AS {POSITION}", f"{route} AS {ROUTE}"
        )


def query_text(node: Groups, part: exp.Expr) -> str:
    """Return an expression over keys and aggregates as in the query."""
    computed = {item.column.name: item.expression for item in (*node.keys, *node.aggregates)}
    written = part.copy().transform(
        lambda one: computed[one.name].copy() if isinstance(one, exp.Column) and one.name in computed else one
    )
    return in_words(written)


def in_words(node: exp.Expr) -> str:
    """Return an expression in rowtime's SQL, with hidden columns by their names for users."""

    def worded(part: exp.Expr) -> exp.Expr:
        shown: exp.Expr | None = part.meta.get(SHOWN)
        if shown is not None:
            return shown.copy()
        return _WORDS[part.name].copy() if isinstance(part, exp.Column) and part.name in _WORDS else part

    return to_rowtime(node.copy().transform(worded))


def with_failing(tick: Tick, node: Groups, routes: Mapping[str, Route], places: Mapping[str, str]) -> dict[str, Route]:
    """Return the routes, with one for groups that fail if rows are examined one by one.

    ``places``: columns of the select list and where they are in a group row.
    """
    if not tick.trying:
        return dict(routes)
    shown = dict(places)
    for item in (*node.keys, *node.aggregates):
        name = in_words(item.expression)
        if item.column.name not in shown.values() and name.lower() not in {shown_name.lower() for shown_name in shown}:
            shown[name] = item.column.name
    time = next(iter(routes.values())).time
    columns = {**shown, ROWTIME: ROWTIME, WRITER: WRITER, POSITION: POSITION, BROKEN: BROKEN}
    return {**routes, FAILING: Route(FAILED, columns, time)}
