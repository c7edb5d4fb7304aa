"""The windows of GROUP BY: the meaning of TUMBLE, HOP and CUMULATE, and their clocks.

A window of a row is a function of its time: TUMBLE is STEP. Overlapping windows are columns of an operator
(`operators.windows.hop`). The plan knows a *clock* of their ends: a function of the rowtime such that no later row's
end is below it (``Earliest``), so their groups close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import HOP_END, ROWTIME, SESSION_END, SESSION_START, STAGGERED
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import ROWTIME_FACT, UNKNOWN, Fact
from rowtime.expr.grids import filled, flat, on_grid
from rowtime.expr.group_end import moved, unshifted
from rowtime.expr.monotonicity import prove
from rowtime.expr.readable import readable
from rowtime.operators.contract import AGGREGATION, Column, Operator
from rowtime.operators.over.value_clocks import MARK
from rowtime.operators.rows.select import Item
from rowtime.operators.windows.hop import Hop
from rowtime.operators.windows.stagger import Stagger
from rowtime.sql.generate import to_spark
from rowtime.sql.intervals import duration_of, months_of, of_micros, since_midnight
from rowtime.sql.nodes import Before, Earliest, Step, Windowed

if TYPE_CHECKING:
    from rowtime.plan.bind.scope import Scope

EDGES = ("", "_START", "_END", "_ROWTIME")
GROUP_FUNCTIONS = frozenset(f"{name}{edge}" for name in ("TUMBLE", "HOP", "SESSION") for edge in EDGES)
WINDOW, SESSION_WINDOW, WINDOW_TIME = "WINDOW", "SESSION_WINDOW", "WINDOW_TIME"  # Spark's spelling
LATER = frozenset({WINDOW, WINDOW_TIME, SESSION_WINDOW, *(f"STAGGER{edge}" for edge in EDGES)})
_ONLY_GROUPED = GROUP_FUNCTIONS - {"TUMBLE_START", "TUMBLE_END", "TUMBLE_ROWTIME"}
TICK = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MICROSECOND"))


@dataclass(frozen=True)
class Spans:
    """The windows of a time: ``size`` long, one every ``slide`` from ``offset`` on; ``grows``: CUMULATE.

    All in µs; a TUMBLE of months has ``months`` instead.
    """

    size: int
    slide: int
    offset: int = 0
    grows: bool = False
    months: exp.Expr | None = None

    @property
    def copies(self) -> int:
        """Return the greatest number of windows that contain one instant."""
        return 1 if self.months is not None else -(-self.size // self.slide)

    @property
    def one(self) -> bool:
        """Return True if each instant is in exactly one window."""
        return self.months is not None or self.slide == self.size

    def edges(self, time: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        """Return start and end of the window that contains ``time`` and ends first."""
        if self.months is not None:
            start: exp.Expr = stepped(time, self.months, self.offset)
            return start, exp.Add(this=start.copy(), expression=self.months.copy())
        if self.one:
            start = stepped(time, of_micros(self.size), self.offset)
            return start, exp.Add(this=start.copy(), expression=of_micros(self.size))
        ends = stepped(time, of_micros(self.slide), self.offset + self.size % self.slide, self.slide)
        if self.grows:
            return stepped(time, of_micros(self.size), self.offset), ends
        return moved(ends.copy(), -self.size), ends

    def clocks(self, time: exp.Expr) -> tuple[exp.Expr, ...]:
        """Return start and end over a time that follows the rowtime or a mark; none if unknown."""
        start, end = self.edges(time)
        if self.one:
            return start, end
        if not isinstance(unshifted(time)[0], exp.Column) and not time.find(Before):
            return ()
        return (end,) if self.grows else (start, end)

    def lineage(self, names: Sequence[str], time: exp.Expr) -> dict[str, exp.Expr]:
        """Return the clocks of the columns ``names`` of start and end."""
        clocks = self.clocks(time)
        if not self.one:
            clocks = tuple(Earliest(this=clock) if is_value(clock) else clock for clock in clocks)
        return dict(zip(names[-len(clocks) :], clocks, strict=True)) if clocks else {}

    def windowed(self, names: Sequence[str], time: exp.Expr) -> dict[str, exp.Expr]:
        """Return what is known of the columns ``names`` of start and end if ``time`` is in no order.

        The start of a window that grows (CUMULATE) does not tell when it ends: its clock is NULL.
        """
        known = {names[0]: exp.null(), **self.lineage(names, col(ROWTIME))}
        clocks = {name: Earliest(this=at) if is_value(at) else at for name, at in known.items()}
        return {name: Windowed(this=at, time=time.copy(), end=col(names[1])) for name, at in clocks.items()}


def stepped(time: exp.Expr, width: exp.Expr, offset: int, on: int = 0) -> exp.Expr:
    """Return the greatest multiple of ``width`` counted from ``offset`` that is <= time, plus ``on`` µs."""
    step = Step(this=moved(time.copy(), -offset) if offset else time.copy(), expression=width.copy())
    return moved(step, offset + on)


def earliest(at: exp.Expr) -> exp.Expr | None:
    """Return the clock of an inlined column that has no order but a clock over the rowtime alone."""
    node, by = unshifted(at)
    if not isinstance(node, Earliest) or any(c.name != ROWTIME for c in node.find_all(exp.Column)):
        return None
    return flat(moved(node.this.copy(), by))


def has_clock(scope: Scope, node: exp.Expr) -> bool:
    """Return True for a column, perhaps shifted, that has no order but a clock over the rowtime."""
    return earliest(scope.inlined(node)) is not None


def origin_of(node: Operator, column: str) -> object:
    """Return what identifies the window of which a column is an edge, or else the column it is made from."""
    below: list[object] = []
    for n, child in enumerate(node.inputs):
        source = node.made_from(n, column)
        if source is None:
            return node.name  # it adds both edges
        if source.how == AGGREGATION or len(source.columns) > 1:
            return node.name, column
        below.append(tuple(origin_of(child, name) for name in source.columns))
    return tuple(below) if below else (node.name, column)


def is_edge(node: exp.Expr) -> bool:
    """True for a call of TUMBLE, HOP or SESSION, or of their edges, which a query of groups has for each group."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in GROUP_FUNCTIONS


def is_value(at: exp.Expr) -> bool:
    """Return True if an inlined expression is the value itself, not only its clock."""
    return not any(
        isinstance(part, Earliest) or (isinstance(part, exp.Column) and part.name.startswith(MARK))
        for part in at.walk()
    )


@dataclass
class Windows:
    """The overlapping windows in one SELECT, as columns ``__h0``, … of their ends."""

    hops: dict[tuple[str, Spans], tuple[str, exp.Expr]] = field(default_factory=dict)
    lineage: dict[str, exp.Expr] = field(default_factory=dict)
    gap: int | None = None
    """The gap of the sessions, in µs."""
    session_time: exp.Expr | None = None
    """The time of the sessions, over the rowtime."""
    stagger: tuple[tuple[exp.Expr, ...], int] | None = None
    """The keys of WINDOWED BY STAGGER, and its length in µs."""

    def bind(self, scope: Scope, call: exp.Anonymous) -> exp.Expr:
        """Bind a call whose arguments are bound, over columns."""
        name, _, edge = call.name.upper().partition("_")
        if name == "SESSION":
            return self._session(scope, call, edge)
        spans = spans_of(scope, call, call.expressions[1:], name)
        if spans is None or not call.expressions:
            return call
        time: exp.Expr = call.expressions[0]
        start, end = spans.edges(time) if name == "TUMBLE" else self._hop(scope, spans, time)
        if edge in ("", "START"):
            return end if name == "HOP" and not edge else start
        return end if edge == "END" else exp.Sub(this=end, expression=TICK.copy())

    def staggered(self, keys: Sequence[exp.Expr], length: int) -> exp.Expr:
        """Return the end of the window that opened with the first row of the bound ``keys``, as a column."""
        self.stagger = (tuple(keys), length)
        time = col(ROWTIME)
        self.lineage[STAGGERED] = Earliest(this=moved(time, 1))  # a window that may still get rows ends later
        return col(STAGGERED)

    def _session(self, scope: Scope, call: exp.Anonymous, edge: str) -> exp.Expr:
        """Return an edge of the session, as a column of the grouping."""
        gap, by = gap_of(scope, call, call.expressions)
        if gap is not None and self.gap not in (None, gap):
            scope.refuse("R106", f"{readable(call)} has a different gap from the one in GROUP BY", call)
        self.gap, self.session_time = self.gap or gap, scope.inlined(call.expressions[0]) if call.expressions else None
        return moved(col(SESSION_START if edge == "START" else SESSION_END), by - (edge == "ROWTIME"))

    def _hop(self, scope: Scope, spans: Spans, time: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        column, _ = self.hops.setdefault((to_spark(time), spans), (f"{HOP_END}{len(self.hops)}", time.copy()))
        self.lineage |= spans.lineage((f"{column}_", column), scope.inlined(time))
        end: exp.Expr = col(column)
        return exp.Sub(this=end, expression=of_micros(spans.size)), end.copy()

    def window_of(self, key: exp.Expr, below: Mapping[str, exp.Expr]) -> Windowed | None:
        """Return what is known of the window of which a key is an edge; ``below``: the columns of the input."""
        name = unshifted(key)[0].name
        hops = {column: (spans, time) for (_, spans), (column, time) in self.hops.items()}
        spans, time = hops.get(name, (None, None))
        known = below.get(name) if spans is None or time is None else spans.windowed((f"{name}_", name), time)[name]
        return known if isinstance(known, Windowed) else None

    def above(self, source: Operator, keys: Sequence[Item], fresh: str, *, gate: bool = False) -> Operator:
        """Return the input with the windows that ``keys`` group by; ``gate``: rows may lack their time."""
        if self.stagger is not None:
            parts, length = self.stagger
            named = tuple(Item(Column(f"__g{n}"), part) for n, part in enumerate(parts))
            return Stagger(f"{fresh}.stagger", source, named, length, STAGGERED)
        wanted = {column.name for key in keys for column in key.expression.find_all(exp.Column)}
        for (_, spans), (column, time) in self.hops.items():
            if column in wanted:
                names = (f"{column}_", column)
                source = windows_of(f"{fresh}.{column[2:]}", source, spans, time, names, gate=gate)
        return source

    def shown(self, key: exp.Expr) -> str:
        """Return a key, windows included, as a user would write it."""
        if key.name in (SESSION_START, SESSION_END):
            return "SESSION(ROWTIME, …)"
        hop_time = next((time for name, time in self.hops.values() if name == key.name), None)
        return readable(key) if hop_time is None else f"HOP({readable(hop_time)}, …)"


def renamed_window(window: Windowed, names: Mapping[str, str]) -> Windowed:
    """Return what is known of a window in rows with new names of columns."""
    renamed = window.copy()
    if columns_in([window.args["time"], window.args["end"]]) <= names.keys():
        columns = {old: col(new) for old, new in names.items()}
        renamed.set("time", filled(columns, window.args["time"]))
        renamed.set("end", filled(columns, window.args["end"]))
    else:
        renamed.set("lost", True)  # noqa: FBT003 - the value of a flag
    return renamed


def windows_of(  # noqa: PLR0913 - the window of a row, and its place
    name: str, source: Operator, spans: Spans, time: exp.Expr, names: tuple[str, str], *, gate: bool = False
) -> Hop:
    """Return the operator that adds the windows of ``time`` to its input."""
    facts = {ROWTIME: ROWTIME_FACT, **{column.name: column.known for column in source.emits().columns}}
    start, end = spans.edges(time)

    def item(column: str, edge: exp.Expr) -> Item:
        fact: Fact = prove(edge, facts).fact if spans.one else UNKNOWN
        return Item(Column(column, "TIMESTAMP", fact), edge)

    return Hop(
        name, source, time, item(names[0], start), item(names[1], end), spans.copies, spans.slide, spans.size,
        spans.grows, gate,
    )  # fmt: skip


# -- arguments ----------------------------------------------------------------------------

SHAPES = {
    "TUMBLE": "a time, a size and an optional offset, for example TUMBLE(t, INTERVAL '1' HOUR)",
    "HOP": "a time, a slide, a size and an optional offset, for example HOP(t, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)",
    "SESSION": "a time and a gap, for example SESSION(t, INTERVAL '20' MINUTE)",
    "CUMULATE": "a time, a step, a size and an optional offset, for example "
    "CUMULATE(t, INTERVAL '1' HOUR, INTERVAL '1' DAY)",
}


def spans_of(scope: Scope, call: exp.Expr, arguments: Sequence[exp.Expr], name: str) -> Spans | None:
    """Return the windows that the arguments after the time describe; ``None`` with a problem (R113) if invalid."""
    intervals = 1 if name == "TUMBLE" else 2
    problem = SHAPES[name]
    if intervals <= len(arguments) <= intervals + 1:
        months = months_of(arguments[0]) if name == "TUMBLE" else None
        lengths = [duration_of(node) for node in arguments[:intervals]]
        offset = _offset(arguments[intervals]) if len(arguments) > intervals else 0
        if months and offset is not None:
            return Spans(0, 0, offset, months=arguments[0].copy())
        if offset is not None and all(lengths) and min(filter(None, lengths)) > 0:
            slide, size = lengths[0] or 0, lengths[-1] or 0
            if name != "CUMULATE" or size % slide == 0:
                return Spans(size, slide, offset % slide if name != "CUMULATE" else offset % size, name == "CUMULATE")
            problem = "a size that is a multiple of the step"
    scope.refuse("R113", f"{name} takes {problem}", call, "Intervals must be literals of days or less, above zero.")
    return None


def gap_of(scope: Scope, call: exp.Anonymous, arguments: Sequence[exp.Expr]) -> tuple[int | None, int]:
    """Return the gap of a SESSION (bound arguments: a time and the gap), and the time minus the rowtime, in µs.

    The gap is ``None`` with a problem (R104, R113) if it is invalid, or the time is not the rowtime and an interval.
    """
    gap = duration_of(arguments[1]) if len(arguments) == 2 else None  # noqa: PLR2004
    if not gap or gap < 0:
        scope.refuse("R113", f"{call.name} takes {SHAPES['SESSION']}", call)
        return None, 0
    time, by = unshifted(on_grid(scope.inlined(arguments[0])))
    if not (isinstance(time, exp.Column) and time.name == ROWTIME):
        shown = readable(arguments[0])
        hint = f"Promote it in a view: SELECT STREAM {shown} AS ROWTIME, … ORDER BY {shown} WITHIN INTERVAL '1' MINUTE."
        scope.refuse("R104", f"sessions use ROWTIME, and {shown} is another time", call, hint)
    return gap, by


def _offset(node: exp.Expr) -> int | None:
    """Return an offset in µs: of an interval, or of a TIME since midnight."""
    if isinstance(node, exp.Cast):
        return since_midnight(node)
    if isinstance(node, exp.Neg):
        inner = duration_of(node.this)
        return None if inner is None else -inner
    return duration_of(node)


def session_end(time: exp.Expr, gap: int) -> exp.Expr:
    """Return the end of a session of ``time``, over the session's rowtime: that of its last row, and the gap."""
    if unshifted(time) == (col(ROWTIME), 0):
        return col(ROWTIME)
    last = {ROWTIME: moved(col(ROWTIME), -gap)}
    return moved(filled(last, time), gap)


def refuse_outside(scope: Scope, node: exp.Expr) -> None:
    """Refuse (R139) the windows of GROUP BY outside of GROUP BY."""
    for part in node.walk():
        if isinstance(part, exp.Anonymous) and part.name.upper() in _ONLY_GROUPED:
            name = part.name.upper()
            hint = "Group by it, or write STEP(s.ROWTIME BY interval)."
            if not name.startswith("TUMBLE"):
                hint = f"Group by it, or read FROM TABLE({name.partition('_')[0]}(TABLE s, DESCRIPTOR(ROWTIME), …))."
            scope.refuse("R139", f"{name} is allowed only in GROUP BY", part, hint)
