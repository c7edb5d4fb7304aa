"""Binds GROUP BY, HAVING and DISTINCT: keys, aggregates, and the keys that close groups.

Semantics 6: a GROUP BY on a stream is accepted only if a grouping expression is monotonic and not constant, because
only then does each group become complete.
"""

from __future__ import annotations

from functools import cached_property

from sqlglot import exp

from rowtime.core.columns import AGGREGATE, JUDGED, KEY, PROMOTED_TIME, ROWTIME, SEEN, SESSION_END, SESSION_START
from rowtime.expr.aggregates import ambiguous_order, decompose
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import ROWTIME_FACT, Fact
from rowtime.expr.grids import filled, flat, on_grid
from rowtime.expr.group_end import fixed_end, group_end, moved, unshifted
from rowtime.expr.many_rows import generator, has_aggregates, is_aggregate
from rowtime.expr.monotonicity import is_constant, order_of, prove
from rowtime.expr.order import Order
from rowtime.expr.readable import readable
from rowtime.operators.contract import Column
from rowtime.operators.over.value_clocks import Closer
from rowtime.operators.rows.arguments import is_sorted_collection
from rowtime.operators.rows.select import Item
from rowtime.plan.bind import rewrites
from rowtime.plan.bind.group_distinct import bind_distinct
from rowtime.plan.bind.group_order import Grouped, bind_group_sort
from rowtime.plan.bind.group_plan import (
    GroupPlan,
    WithinGroup,
    former,
    of_the_group,
    refuse_local,
    time_in,
    within_window,
)
from rowtime.plan.bind.orders import is_rowtime, micros, over, refuse_untimed
from rowtime.plan.bind.scope import Scope, follows, marks_of, type_of
from rowtime.plan.bind.windows import earliest, origin_of
from rowtime.sql.generate import to_rowtime, to_spark
from rowtime.sql.nodes import Before, Within
from rowtime.sql.numbers import whole_number
from rowtime.sql.script import parse_expression


class Grouping:
    """Binds the grouped SELECT ``query`` in its scope."""

    def __init__(self, query: exp.Select, scope: Scope) -> None:
        self.query, self.scope = query, scope
        self.keys: list[Item] = []
        self._written: list[exp.Expr] = []  # the keys as written
        self._clocks: list[exp.Expr] = []  # the keys over the rowtime and marks, if they follow them
        self.closers: tuple[Item, ...] = ()
        self.aggregates: list[Item] = []
        self.within: WithinGroup | None = None
        self._moved = False  # whether WITHIN changes the rowtime of rows before they are grouped
        self.gap: int | None = None  # of the grouped sessions, in µs

    def bind(self) -> GroupPlan:
        """Bind the keys, then the select list and HAVING over keys and aggregates."""
        before = len(self.scope.problems)
        nodes = self._grouping()
        self._moved = any(isinstance(node, Within) for node in nodes)
        for node in nodes:
            self._key(node)
        self.closers = tuple(filter(None, map(_closer, self.keys, self._clocks)))
        stagger = self.query.args.get("windowed")
        if stagger is not None:
            self._stagger(stagger)
        understood = not any(problem.code in ("R190", "R113", "R128") for problem in self.scope.problems[before:])
        items, stamp = self._select_list()
        having = self.query.args.get("having")
        condition = self._over_groups(having.this) if having else None
        by_value = self._by_value() if self.gap is None and stagger is None else ()
        endless = not self.closers and not by_value and self.gap is None and understood
        if endless:
            self._endless()
        clocks = {f"{KEY}{n}": self._clocks[n] for n in (closer.key for closer in by_value)}
        clocks = clocks or {closer.column.name: closer.expression for closer in self.closers}
        clocks = {SESSION_END: col(ROWTIME)} if self.gap is not None else clocks
        stamp = self._checked_stamp(stamp, set(clocks), by_value=bool(by_value))
        if stagger is not None:
            stamp = col(self.keys[-1].column.name)
        sort = None
        both = self.query.args.get("distinct") and (self.query.args.get("group") or stagger is not None)
        if clocks or not understood or endless:
            groups = Grouped(self._key_facts(), clocks, stamp, self._over_groups, self._shown, self._loose)
            sort = bind_group_sort(self.query, self.scope, groups)
        gathered = None
        if clocks and both:  # identity: the columns in which no two groups are equal
            identity = {key.column.name for key in self.keys} | ({SESSION_END} if self.gap is not None else set())
            gathered = bind_distinct(self.query, self.scope, identity, items, groups)
        return GroupPlan(
            tuple(self.keys), tuple(self.aggregates), items, self.closers, condition, stamp, self.within, by_value,
            gathered or sort, self.gap, distinct=gathered is not None, endless=endless, loose=self._loose,
            alike=self._end_alike, session_time=self.scope.windows.session_time,
            clocks={k.column.name: at for k, at in zip(self.keys, self._clocks, strict=True)},
        )  # fmt: skip

    @property
    def _loose(self) -> frozenset[str]:
        """Return the keys whose closer is only a clock: the ends of overlapping windows."""
        names = {key.column.name for key in self.keys if columns_in([key.expression]) == {ROWTIME}}
        return frozenset(closer.column.name for closer in self.closers if closer.column.name not in names)

    @cached_property
    def _end_alike(self) -> bool:
        """Return True if all keys that close a group end together, so that its rowtime tells the value of each.

        Windows do if they are edges of one window. With others, the one that ends first closes the group.
        """
        cores = {fixed_end(closer.expression) for closer in self.closers}
        windows = {self._window(key) for key in self.keys if key.column.name in self._loose}
        same = None not in cores and len({core[0] for core in cores if core is not None}) == 1
        return same and (not windows or (len(windows) == 1 and len(self._loose) == len(self.closers)))

    def _window(self, key: Item) -> object:
        """Return what identifies the window of which a key is an edge."""
        [name] = columns_in([key.expression])
        return name if name in self.scope.windows.lineage else origin_of(self.scope.input, name)

    def _checked_stamp(self, stamp: exp.Expr | None, closers: set[str], *, by_value: bool) -> exp.Expr | None:
        facts = self._clock_facts()
        if stamp is not None and not (order_of(stamp, facts).direction > 0 and columns_in([stamp]) <= closers):
            rewritten = rewrites.promoted(self.query, self._listed)
            hint = rewrites.shown(rewritten, self.scope.binds, "Use a key that closes groups.")
            what = "AS ROWTIME of a grouped stream must ascend from group to group"
            self.scope.refuse("R126", what, self.query, hint)
            return None
        if stamp is not None:
            entry = next(entry for entry in self.query.expressions if self._names_rowtime(entry))
            refuse_untimed(self.scope, stamp, self._key_facts(), entry)
        if stamp is None and by_value and self.within is not None:
            self.scope.refuse(
                "R182",
                "WITHIN allows rows of a group below the bound, so the bound may already have passed the rowtime "
                "of the group's last row",
                self.query,
                "Give the groups a rowtime that ascends: select a closing expression AS ROWTIME.",
            )
        return stamp

    def _by_value(self) -> tuple[Closer, ...]:
        """Return all keys that close groups, if one of them follows an ordered value and not only the rowtime."""
        marks = marks_of(self.scope.input)
        closers = []
        for n, (key, at) in enumerate(zip(self.keys, self._clocks, strict=True)):
            order = key.column.order if key.column.order.moves else order_of(at, marks)
            if order.moves and follows(at):
                closers.append(Closer(n, at, descending=order.direction < 0))
        if all(columns_in([closer.at]) == {ROWTIME} for closer in closers):
            return ()
        return tuple(closers)

    # -- keys -------------------------------------------------------------------------

    def _grouping(self) -> list[exp.Expr]:
        group = self.query.args.get("group")
        if self.query.args.get("distinct") and group is None:
            return [e.unalias() for e in self.query.expressions if not self._names_rowtime(e)]
        windowed = self.query.args.get("windowed")
        if windowed is not None:
            if group is not None:
                hint = "Put its expressions after PARTITION BY."
                self.scope.refuse("R113", "WINDOWED BY replaces GROUP BY, so a query cannot have both", group, hint)
            return list(windowed.expressions)
        if group is None:
            return []
        return [self._ordinal(node) for node in group.expressions]

    def _names_rowtime(self, entry: exp.Expr) -> bool:
        return entry.alias_or_name.lower() == "rowtime"

    def _ordinal(self, node: exp.Expr) -> exp.Expr:
        """Resolve ``GROUP BY 1`` and aliases: they mean items of the select list, as in Spark."""
        listed = self.query.expressions
        place = whole_number(node)
        if place is not None and 1 <= place <= len(listed):
            entry: exp.Expr = listed[place - 1].unalias()
            return entry
        if isinstance(node, exp.Column) and not node.text("table"):
            names = self.scope.names | {"rowtime"}
            aliased = [e for e in listed if isinstance(e, exp.Alias) and e.alias.lower() == node.name.lower()]
            if node.name.lower() not in names and aliased:
                return aliased[0].unalias()
        return node

    def _key(self, node: exp.Expr) -> None:
        tolerance = None
        if isinstance(node, Within):
            tolerance, node = node.args["interval"], node.this
        raw = self.scope.bind(node)
        if unshifted(raw)[0] == col(SESSION_END):
            self.gap = self.scope.windows.gap
            if tolerance is not None and not self.scope.problems:
                hint = "Sort first, in a view: SELECT STREAM t AS ROWTIME, … ORDER BY t WITHIN interval."
                self.scope.refuse("R128", "WITHIN is not supported for a session, which uses ROWTIME", node, hint)
            return
        computed = self.scope.computed(raw)
        written = self._of_the_row(computed)
        bound, clock = written, self._of_the_row(self.scope.inlined(raw))
        if tolerance is not None:
            bound, clock = self._out_of_order(computed, self.scope.inlined(raw), tolerance, node)
        self._written.append(written)
        self._clocks.append(clock)
        proof = prove(bound, self.scope.facts)
        self.scope.refuse_unkept(node, [Item(Column(readable(node)), bound)])
        self.keys.append(Item(Column(f"{KEY}{len(self.keys)}", fact=proof.fact), bound))

    def _of_the_row(self, node: exp.Expr) -> exp.Expr:
        """Return an expression over the row's own ROWTIME, which WITHIN has replaced."""
        return former(node) if self._moved else node

    def _stagger(self, node: exp.Expr) -> None:
        """Add the window's end as the last key; it alone closes the groups and is their rowtime."""
        length = micros(self.scope, node.args["interval"], "RANGE")
        if not length:
            self.scope.refuse("R113", "the length of a STAGGER window must be above zero", node)
        end = self.scope.windows.staggered([key.expression for key in self.keys], length)
        key = Item(Column(f"{KEY}{len(self.keys)}"), end)
        self.keys.append(key)
        self._written.append(end)
        self._clocks.append(self.scope.inlined(end))
        self.closers = tuple(filter(None, [_closer(key, self._clocks[-1])]))

    def _out_of_order(
        self, bound: exp.Expr, clock: exp.Expr, tolerance: exp.Expr, node: exp.Expr
    ) -> tuple[exp.Expr, exp.Expr]:
        """Return the key over the promoted time, and its clock; rows are refused once their group has closed.

        ``clock``: that of the same key without WITHIN. If the rowtime is promoted again, which is the end of the groups
        below, it stays so: a group is stamped with the last one of these ends.
        """
        window = self.scope.windows.window_of(bound, self.scope.source.lineage)
        if window is not None:
            self.within = within_window(self.scope, window, micros(self.scope, tolerance), node)
            return bound, moved(window.this.copy(), unshifted(bound)[1])
        time = time_in(bound, self.scope.columns)
        if time is None:
            hint = "For example GROUP BY FLOOR(t TO MINUTE) WITHIN INTERVAL '30' SECOND."
            self.scope.refuse("R128", "WITHIN requires a time of the row, which may be rounded", node, hint)
            return bound, bound
        refuse_local(self.scope, time, tolerance, node)
        key = over(bound, time, ROWTIME)
        assert key is not None
        # A row is late if and only if mark - within has reached the end n of its group: n + within <= mark.
        raw: exp.Expr = parse_expression(f"timestamp_micros({group_end(key, to_spark(bound)).text} - 1)")
        hidden = (Item(Column(PROMOTED_TIME), time), Item(Column(JUDGED), filled({SEEN: time}, raw)))
        self.within = WithinGroup(hidden, micros(self.scope, tolerance))
        return key, clock if time == col(ROWTIME) else key

    # -- select list ------------------------------------------------------------------

    def _select_list(self) -> tuple[tuple[Item, ...], exp.Expr | None]:
        items: list[Item] = []
        stamp: exp.Expr | None = None
        for entry in self.query.expressions:
            if entry.is_star:
                self.scope.refuse("R129", "* is not allowed in a grouped select list", entry, "Name the columns.")
                continue
            if self._names_rowtime(entry) and self.query.args.get("distinct"):
                continue
            call = generator(entry)
            if call is not None:
                hint = "Put the groups into a sub-query, and make the rows in the query around it."
                self.scope.refuse("R102", f"{to_rowtime(call)} gives several rows, and a group is one row", call, hint)
                continue
            bound = self._over_groups(entry.unalias())
            name = entry.alias_or_name if entry.alias or isinstance(entry, exp.Column) else f"_c{len(items)}"
            if name.lower() == "rowtime":
                stamp = None if is_rowtime(bound) else bound  # reported already
            else:
                items.append(Item(Column(name, type_of((), bound), prove(bound, self._key_facts()).fact), bound))
        self.scope.refuse_twice(self.query, items)
        self.scope.refuse_unkept(self.query, items)
        return tuple(items), stamp

    def _key_facts(self) -> dict[str, Fact]:
        if self.gap is not None:
            return {SESSION_END: ROWTIME_FACT}  # sessions come in the order of their ends, and in no other
        facts = {key.column.name: key.column.fact for key in self.keys}
        if self._end_alike:
            # Groups come in the order of their ends, and so do keys that all end the same time later.
            others = (closer for closer in self.closers if closer.column.name in self._loose)
            facts |= {c.column.name: prove(c.expression, {ROWTIME: ROWTIME_FACT}).fact for c in others}
        return facts

    def _clock_facts(self) -> dict[str, Fact]:
        """Return the facts about the keys at their clocks: a key that may go back within a tolerance ascends there."""
        marks = marks_of(self.scope.input)
        at = {key.column.name: prove(at, marks).fact for key, at in zip(self.keys, self._clocks, strict=True)}
        return {name: fact if fact.order.moves else at[name] for name, fact in self._key_facts().items()}

    def _over_groups(self, node: exp.Expr) -> exp.Expr:
        """Return the expression over key and aggregate columns; other columns are refused."""
        bound = self._factored(self._of_the_row(self.scope.computed(self.scope.bind(node))))
        for column in bound.find_all(exp.Column):
            if column.table or (column.name not in self.scope.facts and not column.name.startswith("__")):
                continue  # there is no such column; reported already
            if not column.name.startswith((KEY, AGGREGATE)) or (
                column.name in (SESSION_START, SESSION_END) and self.gap is None
            ):
                shown = self.scope.shown(column)
                hint = f"Add {shown} to GROUP BY, or aggregate it, for example MAX({shown})."
                if is_rowtime(column):
                    hint = of_the_group(node, shown)
                self.scope.refuse("R106", f"{shown} is neither grouped nor aggregated", node, hint)
        return bound

    def _factored(self, node: exp.Expr) -> exp.Expr:
        for key, written in zip(self.keys, self._written, strict=True):
            if node in (key.expression, written):
                return col(key.column.name)
        if is_aggregate(node):
            return col(self._aggregate(node))
        for part in list(node.iter_expressions()):
            changed = self._factored(part)
            if changed is not part:
                part.replace(changed)
        return node

    def _aggregate(self, call: exp.Expr) -> str:
        for aggregate in self.aggregates:
            if aggregate.expression == call:
                return aggregate.column.name
        wraps = isinstance(call, exp.Filter | exp.IgnoreNulls | exp.WithinGroup) or is_sorted_collection(call)
        if not wraps and any(map(has_aggregates, call.iter_expressions())):
            self.scope.refuse("R130", "an aggregate of an aggregate needs a sub-query", call)
        if any(column.name in (SESSION_START, SESSION_END) for column in call.find_all(exp.Column)):
            self.scope.refuse("R130", "an aggregate of a session's edge needs a sub-query", call)
        order = ambiguous_order(call.this if isinstance(call, exp.Filter) else call)
        if order is not None:
            hint = "Order by the value itself, for example as the last key; or leave out the order to get stream order."
            self.scope.refuse("R190", "the order inside the aggregate leaves ties undecided", order, hint)
        name = f"{AGGREGATE}{len(self.aggregates)}"
        self.aggregates.append(Item(Column(name), call.copy()))
        return name

    # -- refusals ---------------------------------------------------------------------

    def _endless(self) -> None:
        if not self.query.args.get("unbounded_state"):
            self._refuse_endless()
        elif self.within is not None:
            self.scope.refuse("R182", "WITHIN requires groups that close before the stream ends", self.query)
        if not self.keys:
            self.keys.append(Item(Column(f"{KEY}0"), exp.Literal.number(0)))
            self._clocks.append(exp.Literal.number(0))

    def growth(self) -> str:
        """Return what grows with the stream if groups are endless."""
        kept = "one for each row" if any(decompose(item.expression) is None for item in self.aggregates) else ""
        names = ", ".join(readable(key.expression) for key in self.keys if not is_constant(key.expression))
        return kept or (f"one for each ({names})" if names else "one in all")

    def _refuse_endless(self) -> None:
        group = self.query.args.get("group")
        distinct = bool(self.query.args.get("distinct")) and group is None
        if group is None and not distinct:
            what = "an aggregate without GROUP BY is one endless group, which never completes"
        else:
            clause = "SELECT STREAM DISTINCT" if distinct else "GROUP BY"
            what = f"{clause} has no monotonic expression, so no group would ever be complete."
        reasons = "; ".join(self._reason(key) for key in self.keys)
        self.scope.refuse("R104", what, group or self.query, self._rewrite(distinct=distinct), reasons)

    def _reason(self, key: Item) -> str:
        text = readable(key.expression)
        if is_constant(key.expression) or key.column.order is Order.CONSTANT:
            return f"{text} is constant"
        if key.column.order.moves:
            return f"{text} is {key.column.order.value}, but the values that it is computed from have no clock"
        why, shown = prove(key.expression, self.scope.facts).failure(), self.scope.windows.shown(key.expression)
        return f"{shown}: {why.rule}" if why.text == text else f"{shown}: {why.text}: {why.rule}"

    def _shown(self, node: exp.Expr) -> str:
        """Return an expression over keys and aggregates as in the query."""
        named = {item.column.name: item.expression for item in (*self.keys, *self.aggregates)}
        shown = node.transform(lambda part: named.get(part.name, part) if isinstance(part, exp.Column) else part)
        return readable(shown)

    def _rewrite(self, *, distinct: bool) -> str:
        query, rowtime = self.query, self.scope.rowtime
        rewritten = rewrites.distinct(query, rowtime) if distinct else rewrites.grouped(query, self._listed, rowtime)
        otherwise = "Fix the other problems, then group by a function of ROWTIME as well."
        return rewrites.shown(rewritten, self.scope.binds, otherwise)

    @property
    def _listed(self) -> list[exp.Expr]:
        group = self.query.args.get("group")
        return [] if group is None else [self._ordinal(node) for node in group.expressions]


def _closer(key: Item, at: exp.Expr) -> Item | None:
    """Return what closes the groups of a key, over the rowtime alone: the key itself, or its clock.

    Of a key over columns of groups below, that is the function which knows the rowtimes that their groups can have.
    """
    if key.column.order.moves and columns_in([key.expression]) == {ROWTIME}:
        rounds = columns_in([at]) == {ROWTIME} and at.find(Before) and on_grid(at) is at
        return Item(key.column, flat(at)) if rounds else key
    clock = earliest(at)
    return None if clock is None else Item(key.column, clock)
