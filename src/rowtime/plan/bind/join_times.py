"""Joins whose condition names no rowtime: which columns are event times, and the join with these promoted.

Rows of streams join by their rowtimes (semantics 5), so a range over other columns is a range of rowtimes only if the
columns are promoted. A promoted column equals the rowtime and counts as it (`From.lineage`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.core.errors import Problem, Refused
from rowtime.expr.conditions import columns_in
from rowtime.expr.facts import Kind
from rowtime.expr.monotonicity import prove
from rowtime.operators.contract import Operator, walk
from rowtime.operators.over.over_calls import RunningMark
from rowtime.plan.bind.computed_times import (
    EventTime,
    compared_times,
    counted_times,
    may_compare_times,
    ranges_of_numbers,
)
from rowtime.plan.bind.join_range import Clause, Range, between, comparisons, missing_limit
from rowtime.plan.bind.scope import Input, Scope, mark_of
from rowtime.plan.bind.sources import Binder
from rowtime.plan.bind.struct_fields import kind_of_field
from rowtime.plan.bind.window_tables import NAMES
from rowtime.plan.file_times import timed_by_files
from rowtime.sql.generate import to_rowtime
from rowtime.sql.places import as_named, place_of, refuse_at, unlocated
from rowtime.sql.script import parse_script
from rowtime.sql.statements import Query

_OTHERWISE = (
    "Promote the event time of each input in a sub-query or a view: SELECT STREAM t AS ROWTIME, * FROM s ORDER BY t "
    "WITHIN INTERVAL '1' MINUTE. Then limit the time between the rowtimes in ON."
)
_OF_NUMBERS = "For a number t write timestamp_seconds(t), timestamp_millis(t) or timestamp_micros(t)."
TOLERANCE: Final = "INTERVAL '1' MINUTE"


class PromotedInputs(Exception):
    """Raised for a join that is the same as ``query``, in which declared orders are promoted."""

    def __init__(self, query: exp.Select) -> None:
        super().__init__()
        self.query = query


class NotPromoted(Refused):
    """Raised for a join of a rewrite, which ``way`` promotes too."""

    def __init__(self, refused: Refused, way: exp.Select | None) -> None:
        super().__init__(*refused.problems)
        self.way = way


def compares_windows(clause: Clause, rest: Sequence[exp.Expr]) -> bool:
    """Return True if a condition equates functions of the rowtimes of both sides: the windows of two groups, say."""
    timed = []
    for source, renamed in zip(clause.sources, clause.columns, strict=True):
        clock_names = {*(name for name, of in source.lineage.items() if ROWTIME in columns_in([of])), *NAMES}
        timed.append({new for old, new in renamed if old in clock_names})
    for part in rest:
        if isinstance(part, exp.EQ) and all(isinstance(side.unnest(), exp.Column) for side in (part.left, part.right)):
            names = (part.left.name, part.right.name)
            if any(a in timed[0] and b in timed[1] for a, b in (names, names[::-1])):
                return True
    return False


Times = tuple[EventTime, EventTime]
"""A time of each side of a join."""


def event_times(clause: Clause, rest: Sequence[exp.Expr]) -> tuple[Times, Range] | None:
    """Return the columns of both sides whose distance a condition limits, or equates, and the limits.

    Columns that are limited from both ends are preferred.
    """
    used = {name for part in rest for name in columns_in([part])}
    pairs = []
    for one in clause.timed[0]:
        [other] = clause.timed[1]
        for left, right in _pairs(one, other, used):
            distance = between(rest, [replace(one, rowtime=left)], replace(other, rowtime=right))
            ends = (distance.low is not None) + (distance.high is not None)
            if ends:
                pairs.append((-ends, (one, left), (other, right), distance))
    if not pairs:
        return None
    _, left_time, right_time, distance = min(pairs, key=lambda pair: pair[0])
    return (_event_time(clause, 0, *left_time), _event_time(clause, 1, *right_time)), distance


def only_times(clause: Clause) -> list[EventTime] | None:
    """Return the timestamp of each side that files time, if each has one and no more."""
    times = []
    for source in clause.sources:
        if timed_by_files(source.node):
            columns = [c.name for c in source.node.emits().of_users if c.type.upper() == "TIMESTAMP"]
            if len(columns) != 1 or len(source.inputs) > 1:
                return None
            times.append(EventTime(source.inputs[0].alias, columns[0]))
    return times


def _pairs(one: Input, other: Input, used: set[str]) -> Iterator[tuple[str, str]]:
    times = [
        [c.name for _, c in source.columns if c.type.upper() == "TIMESTAMP" and c.name in used]
        for source in (one, other)
    ]
    # ON already has the rowtime in place of columns that equal it.
    sides = ([*times[0], one.rowtime], [*times[1], other.rowtime])
    return ((a, b) for a in sides[0] for b in sides[1] if (a, b) != (one.rowtime, other.rowtime))


def _event_time(clause: Clause, side: int, source: Input, column: str) -> EventTime:
    if column == source.rowtime:
        return EventTime("", column)
    name = next(name for name, c in source.columns if c.name == column)
    below = next((old for old, new in clause.columns[side] if new == column), column)
    return EventTime(source.alias, name, *_declared(clause.sources[side].node, below, clause.sources[side].lineage))


def _declared(node: Operator, column: str, lineage: Mapping[str, exp.Expr]) -> tuple[str, int]:
    """Return the tolerance of an ascending order that is declared for a column, as SQL, or in rows."""
    mark, marks = lineage.get(column), {name: kept for one in walk(node) for name, (kept, _) in one.marks().items()}
    kept = next((kept for name, kept in marks.items() if mark == mark_of(name)), None)
    if kept is None or isinstance(kept, RunningMark) or kept.descending:
        return "", 0
    return ("", kept.rows) if kept.rows else (_interval(kept.within), 0)


def _interval(micros: int) -> str:
    minutes, rest = divmod(micros, 60_000_000)
    return f"INTERVAL '{micros / 1_000_000:f}' SECOND" if rest else f"INTERVAL '{minutes}' MINUTE"


def promoted(query: exp.Select, times: Sequence[EventTime]) -> exp.Select:
    """Return the query with inputs that promote these times; the conditions stay, over the rowtimes at most."""
    rewritten = query.copy()
    for time in times:
        items = [rewritten.args["from_"], *rewritten.args["joins"]]
        place = next(item for item in items if item.this.alias_or_name.lower() == time.alias.lower())
        item, column = place.this.copy(), time.promoted
        if isinstance(item, exp.Table):
            item.set("alias", None)
        within = time.within or TOLERANCE
        text = f"SELECT STREAM {column} AS ROWTIME, * FROM s ORDER BY {column} WITHIN {within}"  # noqa: S608 - rowtime's own SQL
        [statement] = parse_script(text).statements
        assert isinstance(statement, Query)
        statement.query.args["from_"].set("this", item)
        alias = exp.TableAlias(this=exp.to_identifier(time.alias))
        inner = exp.Subquery(this=unlocated(statement.query), alias=alias)
        inner.meta.update(next((part.meta for part in place.this.walk() if "start" in part.meta), {}))
        place.set("this", inner)
        for clause, name in [(rewritten.args.get("where"), "this"), *((join, "on") for join in items[1:])]:
            if time.value is not None and clause is not None and clause.args.get(name) is not None:
                clause.set(name, time.in_place(clause.args[name]))
    return rewritten


def with_range(query: exp.Select, original: exp.Select, clause: Clause, distance: Range) -> exp.Select:
    """Return the query with the limit that the ``distance`` of the rowtimes of a join of the ``original`` lacks."""
    rewritten = query.copy()
    number = next(n for n, node in enumerate(original.args["joins"]) if node is clause.node)
    left, right = clause.inputs[0][0].alias, clause.inputs[1][0].alias
    limit = missing_limit(distance, f"{left}.ROWTIME", f"{right}.ROWTIME")
    join = rewritten.args["joins"][number]
    by_name = join.args.get("using") or join.args.get("method")
    of = rewritten.args.get("where") if by_name else None
    on = join.args.get("on") if of is None else of.this
    both = limit if on is None else exp.And(this=on, expression=limit)
    if by_name:
        rewritten.set("where", exp.Where(this=both))
    else:
        join.set("on", both)
    rewritten.meta["limit"] = to_rowtime(limit)
    return rewritten


def _in_rows(times: Sequence[EventTime]) -> str:
    """Return the word Promote, after why declared tolerances in rows prove no range, and what to declare."""
    named = [time for time in times if time.rows]
    if not named:
        return "Promote"
    listed = " and ".join(f"{time} is declared WITHIN {time.rows} ROWS" for time in named)
    return f"{listed}, which does not say how much time a row may be late: declare WITHIN {TOLERANCE}, say. Or promote"


@dataclass(frozen=True)
class Untimed:
    """A join of streams whose condition compares no rowtimes; ``limited``: how to limit the time between them."""

    binder: Binder
    query: exp.Select
    name: str
    clause: Clause
    limited: Callable[[], str]

    def judge(self, rest: Sequence[exp.Expr]) -> Problem:
        """Return the warning that only equal rowtimes meet.

        Raises ``PromotedInputs`` as `times` does, and ``Refused`` (R225) if a rowtime is the time of change of a file:
        equal ones are a coincidence.
        """
        clause, times = self.clause, self.times(rest)
        left, right = clause.inputs[0][0].alias, clause.inputs[1][0].alias
        files = sorted({name for source in clause.sources for name in timed_by_files(source.node)})
        what = f"only rows of {left} and {right} with equal ROWTIMEs match: "
        if not files:
            ways = self._windows(left, right) if times is None else self.promotion(times)
            hint = f"{ways} If equal rowtimes are meant, say so: ON {left}.ROWTIME = {right}.ROWTIME AND …"
            what += "the condition does not mention time" if times is None else "the condition compares other times"
            return Problem("R158", what, place_of(self.binder.text, clause.node.this), hint, warns=True)
        what += f"the ROWTIME of {' and '.join(files)} is the time of change of a file, and ON does not compare it"
        raise self.refused("R225", what, times)

    def refused(self, code: str, what: str, times: tuple[Times, Range] | None) -> Refused:
        """Return the refusal whose hint is the promotion."""
        refused = refuse_at(self.binder.text, self.clause.node.this, code, what, self.promotion(times))
        return NotPromoted(refused, next(self._ways(times), None)) if self.binder.trying else refused

    def times(self, rest: Sequence[exp.Expr]) -> tuple[Times, Range] | None:
        """Return the event times whose distance the condition limits, and how.

        Raises ``PromotedInputs`` if both have a declared order.
        """
        limited = event_times(self.clause, rest)
        times = () if limited is None else limited[0]
        if times and all(time.within or not time.alias for time in times) and not self._names_rowtime():
            raise PromotedInputs(promoted(self.query, [time for time in times if time.alias]))
        return limited

    def _names_rowtime(self) -> bool:
        return any(column.name.lower() == "rowtime" for column in self.query.find_all(exp.Column))

    def _windows(self, left: str, right: str) -> str:
        return (
            f"{self.limited()} Or give {left} and {right} a window each, before AS: OVER (RANGE {TOLERANCE} PRECEDING)."
        )

    def promotion(self, limited: tuple[Times, Range] | None) -> str:
        """Return how to promote the event times."""
        for first in () if self.binder.trying else self._ways(limited):
            way: exp.Select | None = first
            ranged = ""
            for _ in self.query.args["joins"]:  # each may have one more input to promote
                if way is not None and (limit := way.meta.get("limit")):
                    ranged = f" and limit the time between them, for example by {limit}"
                refused = None if way is None else self.binder.refusal(way, self.name)
                if way is not None and refused is None:
                    promote = _in_rows(limited[0] if limited else ())
                    return f"{promote} the event times{ranged}, so that ON compares them: {to_rowtime(as_named(way))}."
                way = refused.way if isinstance(refused, NotPromoted) else None
        numbers = any(ranges_of_numbers(self.query, self.clause))
        return f"{_OTHERWISE} {_OF_NUMBERS}" if numbers else _OTHERWISE

    def _ways(self, limited: tuple[Times, Range] | None) -> Iterator[exp.Select]:
        """Yield the query with the event times of this join promoted, and with a limit of the rowtimes besides."""
        if limited is not None:
            times, distance = limited
            query = promoted(self.query, [time for time in times if time.alias])
            yield query
            yield with_range(query, self.query, self.clause, distance)
            return
        parts = comparisons(self.clause.node.args.get("on"))
        where = self.query.args.get("where")
        parts += comparisons(where.this if where is not None else None)
        for pair in compared_times(self.clause, parts, self._kind):
            query = promoted(self.query, [time for time in pair if time.alias])
            yield query
            yield with_range(query, self.query, self.clause, Range(vague=tuple(parts)))
        timed, of_numbers = counted_times(self.query, self.clause)
        if of_numbers:
            query = promoted(timed, of_numbers)
            if timed != self.query:
                yield query
            yield with_range(query, self.query, self.clause, Range(vague=tuple(parts)))
        unknown = any(may_compare_times(self.clause, part, self._kind) for part in parts)
        only = None if unknown else only_times(self.clause)
        if only is not None:
            yield with_range(promoted(self.query, only), self.query, self.clause, Range())

    def _kind(self, value: exp.Expr) -> Kind:
        """Return the kind of a part of ON."""
        columns = [column for side in self.clause.inputs for source in side for _, column in source.columns]
        bound = Scope(self.binder.text, self.clause.both).bind(value.copy())
        known = prove(bound, {column.name: column.known for column in columns}).fact.kind
        return known if known is not Kind.OTHER else kind_of_field(bound, columns)
