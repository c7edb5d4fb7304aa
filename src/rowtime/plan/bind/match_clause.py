"""Binds MATCH_RECOGNIZE: its clauses, and whether a match, or its absence, becomes certain (semantics 13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from rowtime.core.columns import KEY, ROWTIME
from rowtime.core.errors import Problem, Refused, refuse
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import ROWTIME_FACT
from rowtime.expr.monotonicity import order_of
from rowtime.kernels.matching.automaton import MOST_STATES, Automaton, TooLarge, automaton
from rowtime.kernels.matching.pattern import (
    Anchor,
    InTurn,
    LeftOut,
    Part,
    PatternFault,
    Repeated,
    Variable,
    parse,
    variables,
)
from rowtime.operators.contract import Column
from rowtime.operators.patterns.match import Match
from rowtime.operators.patterns.slots import LAST, Condition, Pick, Slot
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, Select
from rowtime.plan.bind.match_values import MatchValues, Names
from rowtime.plan.bind.orders import micros
from rowtime.plan.bind.scope import From, Scope
from rowtime.plan.bind.sources import Binder, BoundQuery
from rowtime.plan.bind.suggestions import suggestion
from rowtime.plan.bind.windows import is_value
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import ONE_ROW, WITH_UNMATCHED, MatchRecognize
from rowtime.sql.places import place_at, place_of

_ROWTIME_FIRST = "Write ORDER BY ROWTIME, or ORDER BY ROWTIME and further keys."
_WITHIN = "WITHIN INTERVAL '1' HOUR after the pattern"
_EXPIRE = "KEYS EXPIRE AFTER INTERVAL '1' HOUR at the end of the query"


@dataclass
class MatchClause:
    """One MATCH_RECOGNIZE over ``source``; ``query`` is the SELECT around it, which has KEYS EXPIRE AFTER."""

    binder: Binder
    node: MatchRecognize
    source: From
    query: exp.Select
    name: str
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scope = Scope(self.binder.text, self.source, self.problems)
        self.pattern = self._parsed()
        self.machine = self._compiled()
        self.mode = str(self.node.args.get("rows") or ONE_ROW)

    # -- the pattern ------------------------------------------------------------------------

    def _parsed(self) -> Part:
        text = self.node.args["pattern"]
        try:
            return parse(text.name)
        except PatternFault as fault:
            begin = int(text.meta.get("begins", 0))
            place = place_at(self.binder.text, begin + fault.start, begin + max(fault.start, fault.end - 1))
            raise refuse("R172", fault.message, fault.hint, place) from None

    def _compiled(self) -> Automaton:
        try:
            return automaton(self.pattern)
        except TooLarge:
            what = f"the pattern expands to more than {MOST_STATES:,} variables"
            hint = "Use smaller numbers in quantifiers, and fewer parts in PERMUTE."
            raise refuse("R172", what, hint, place_of(self.binder.text, self.node.args["pattern"])) from None

    def _names(self) -> Names:
        by_name = variables(self.pattern)
        subsets: dict[str, tuple[str, ...]] = {}
        for subset in self.node.args.get("subsets") or []:
            parts = [part.name.upper() for part in subset.expressions]
            strange = next((part for part in subset.expressions if part.name.upper() not in by_name), None)
            if strange is not None:
                self._unknown(strange, strange.name, list(by_name.values()))
                subsets[subset.name.upper()] = tuple(by_name)  # so that its name is no further problem
            elif subset.name.upper() in (*by_name, *subsets):
                what = f"SUBSET {subset.name}: there is a variable or a subset of that name"
                self.scope.refuse("R173", what, subset, "Choose another name.")
            else:
                subsets[subset.name.upper()] = tuple(dict.fromkeys(parts))
        return Names(by_name, subsets)

    def _unknown(self, node: exp.Expr, name: str, names: Sequence[str]) -> None:
        self.scope.refuse("R173", f"there is no variable {name} in the pattern", node, suggestion(name, names))

    # -- the operators ------------------------------------------------------------------------

    def bind(self) -> BoundQuery:
        """Return the operators; raises ``Refused``."""
        names = self._names()
        self._check_order()
        keys = self._keys()
        within, expires = self._within(), self._expires()
        numbers = count()
        conditions = tuple(self._conditions(names, numbers))
        values = MatchValues(self.scope, names, whole=self.mode == ONE_ROW, numbers=numbers)
        measures = [
            Item(Column(measure.alias, fact=Column("").fact), values.measure(measure.this))
            for measure in self.node.args.get("measures") or []
        ]
        skip, to = self._skip(names)
        if self.mode == WITH_UNMATCHED and any(isinstance(part, LeftOut) for part in self.pattern.walk()):
            what = "WITH UNMATCHED ROWS cannot be combined with rows that {- -} leaves out"
            self.scope.refuse("R177", what, self.node, "Leave {- -} out, or WITH UNMATCHED ROWS.")
        passed = () if self.mode == ONE_ROW else tuple(column.name for column in self.source.node.emits().columns)
        clocks = self._clocks(keys, measures, values.slots, passed)
        items = self._items(keys, measures)
        if not items:
            what = "MATCH_RECOGNIZE returns no column"
            self.scope.refuse("R177", what, self.node, "Write MEASURES MATCH_NUMBER() AS number, for example.")
        if not self.problems:
            self._bounded(within, expires, [*(s for c in conditions for s in c.slots), *values.slots])
        if self.problems:
            raise Refused(*self.problems)
        sources = self.binder.sources
        node = Match(
            sources.fresh(f"{self.name}.match"), self.source.node, keys, self.node.args["pattern"].name.strip(),
            conditions, tuple(values.slots), passed, self.mode, skip, to, within, expires,
        )  # fmt: skip
        return BoundQuery(Select(sources.fresh(f"{self.name}.measures"), node, items), clocks)

    def _clocks(
        self, keys: Sequence[Item], measures: Sequence[Item], slots: Sequence[Slot], passed: Sequence[str]
    ) -> dict[str, exp.Expr]:
        """Return the columns that are functions of the rowtime: those of the row, and measures of the last row."""
        picks = [slot for slot in slots if isinstance(slot, Pick)] if self.mode == ONE_ROW else []
        last = {pick.column.name: pick.value for pick in picks if self._is_of_last_row(pick)}
        values: dict[str, exp.Expr] = {name: col(name) for name in (*(key.expression.name for key in keys), *passed)}
        values |= {m.column.name: last[m.expression.name] for m in measures if m.expression.name in last}
        inlined = {name: self.scope.inlined(value) for name, value in values.items()}
        return {
            name: at
            for name, at in inlined.items()
            if columns_in([at]) == {ROWTIME} and is_value(at) and order_of(at, {ROWTIME: ROWTIME_FACT}).moves
        }

    def _is_of_last_row(self, slot: Pick) -> bool:
        names = {*slot.variables}
        ends = self.machine.ends_with(
            frozenset(n for n, name in enumerate(self.machine.variables) if name.upper() in names)
        )
        return slot.final and (slot.which, slot.offset, slot.move) == (LAST, 0, 0) and ends

    def _conditions(self, names: Names, numbers: Iterator[int]) -> Iterator[Condition]:
        seen: set[str] = set()
        for definition in self.node.args.get("define") or []:
            variable = definition.alias.upper()
            if variable in names.subsets:
                what = f"{definition.alias} is a SUBSET, which has no condition of its own"
                self.scope.refuse("R173", what, definition, "Define its variables.")
            elif variable not in names.variables:
                self._unknown(definition, definition.alias, list(names.variables.values()))
            elif variable in seen:
                self.scope.refuse(
                    "R173", f"DEFINE has two conditions for {definition.alias}", definition, "Join them by AND."
                )
            else:
                seen.add(variable)
                values = MatchValues(self.scope, names, whole=False, numbers=numbers)
                yield from values.conditions(variable, definition.this)

    def _keys(self) -> tuple[Item, ...]:
        keys = []
        for number, key in enumerate(self.node.args.get("partition_by") or []):
            bound = self.scope.bind(key).unnest()
            if not isinstance(bound, exp.Column) or bound.name == ROWTIME:
                what = f"PARTITION BY {to_rowtime(key)}: the keys of MATCH_RECOGNIZE are columns"
                self.scope.refuse("R177", what, key, "Compute it in a sub-query, and name its column here.")
                continue
            kind = next((column.type for column in self.scope.columns if column.name == bound.name), "")
            keys.append(Item(Column(f"{KEY}{number}", kind), bound))
        return tuple(keys)

    def _check_order(self) -> None:
        order = self.node.args.get("order")
        first = order.expressions[0] if order is not None else None
        if first is None:
            what = "MATCH_RECOGNIZE needs ORDER BY ROWTIME"
            self.scope.refuse("R177", what, self.node, _ROWTIME_FIRST)
            return
        led = self.scope.computed(self.scope.bind(first.this)).unnest()
        if not isinstance(led, exp.Column) or led.name != ROWTIME or first.args.get("desc"):
            what = "ORDER BY of MATCH_RECOGNIZE begins with ROWTIME, in ascending order"
            self.scope.refuse("R177", what, first, _ROWTIME_FIRST)

    def _within(self) -> int | None:
        node = self.node.args.get("within")
        if node is None:
            return None
        duration = micros(self.scope, node)
        if not duration and not self.problems:
            what = "WITHIN of MATCH_RECOGNIZE takes a duration above zero"
            self.scope.refuse("R122", what, node, "For example WITHIN INTERVAL '1' MINUTE.")
        return duration

    def _expires(self) -> int | None:
        node = self.query.args.get("keys_expire")
        return None if node is None else micros(self.scope, node, "KEYS EXPIRE AFTER")

    def _items(self, keys: Sequence[Item], measures: Sequence[Item]) -> tuple[Item, ...]:
        """Return the columns: keys and measures; with all rows also the order columns and the others."""
        listed = [Item(Column(key.expression.name, key.column.type), col(key.column.name)) for key in keys]
        if self.mode == ONE_ROW:
            items = [*listed, *measures]
        else:
            columns = {column.name: column for column in self.source.node.emits().columns}
            order = self.node.args.get("order")
            further = [self.scope.bind(part.this).unnest() for part in (order.expressions[1:] if order else [])]
            names = [part.name for part in further if isinstance(part, exp.Column) and part.name in columns]
            first = [*(item.column.name for item in listed), *names]
            ordered = [n for n in dict.fromkeys(names) if n not in [item.column.name for item in listed]]
            rest = [name for name in columns if name not in first]
            passed = {n: Item(Column(n, columns[n].type), col(n)) for n in (*ordered, *rest)}
            items = [*listed, *(passed[n] for n in ordered), *measures, *(passed[n] for n in rest)]
        seen: set[str] = set()
        for item in items:
            if item.column.name.lower() in seen:
                what = f"MATCH_RECOGNIZE returns two columns {item.column.name}"
                self.scope.refuse("R119", what, self.node, "Give the measure another name.")
            seen.add(item.column.name.lower())
        return tuple(items)

    # -- after a match ------------------------------------------------------------------------

    def _skip(self, names: Names) -> tuple[str, tuple[str, ...]]:
        node = self.node.args.get("skip")
        if node is None or node.name in ("past", "next"):
            return ("past" if node is None else node.name), ()
        name = node.args["to"].name
        members = names.of(name)
        if members is None:
            self._unknown(node.args["to"], name, names.shown)
            return "past", ()
        wanted = frozenset(n for n, variable in enumerate(names.variables) if variable in members)
        hint = "Write AFTER MATCH SKIP PAST LAST ROW, or AFTER MATCH SKIP TO NEXT ROW."
        if self.machine.lacks(wanted):
            self.scope.refuse("R176", f"SKIP TO {name}: a match may have no row of {name}", node, hint)
        elif self.machine.leads(wanted, last=node.name == "last"):
            what = f"SKIP TO {name}: that may be the first row of the match, which would be found again and again"
            self.scope.refuse("R176", what, node, hint)
        return node.name, members

    # -- bounds ---------------------------------------------------------------------------------

    def _bounded(self, within: int | None, expires: int | None, slots: Sequence[object]) -> None:
        """Refuse (R175) a pattern that may never become certain, or that keeps more and more."""
        if self.query.args.get("unbounded_state"):
            return
        ahead = any(isinstance(slot, Pick) and slot.move > 0 for slot in slots)
        last = any(isinstance(part, Anchor) and not part.first for part in self.pattern.walk())
        endless, second = self.machine.endless(), self.machine.second()
        if expires is None and (ahead or last):
            what = f"{'NEXT' if ahead else '$'} waits for a further row of the partition, which may never come"
            self._forever("", what, f"Write {_EXPIRE}, or WITH UNBOUNDED STATE.")
        elif within is None and endless is not None:
            what = f"the variable {endless} may match rows forever, so a match may never become certain"
            hint = f"Write {_WITHIN}; or {self._limited(endless)} with {_EXPIRE}; or WITH UNBOUNDED STATE at the end."
            self._forever(endless, what, hint)
        elif within is None and second is not None and expires is None:
            what = f"the variable {second} may wait forever for its row"
            self._forever(second, what, f"Write {_WITHIN}; or {_EXPIRE}; or WITH UNBOUNDED STATE at the end.")

    def _limited(self, name: str) -> str:
        """Return how to make a variable take fewer rows: reluctantly if it ends the pattern, else up to a limit."""
        last = self.pattern.of[-1] if isinstance(self.pattern, InTurn) else self.pattern
        ends = isinstance(last, Repeated) and isinstance(last.part, Variable) and last.part.name == name
        return f"{name}{'+?' if ends else '{1,10}'}"

    def _forever(self, name: str, message: str, hint: str) -> None:
        """Add a problem at a variable of the pattern, or at all of it."""
        node = self.node.args["pattern"]
        at = [part.at for part in self.pattern.walk() if isinstance(part, Variable) and part.name == name]
        place = place_of(self.binder.text, node)
        if at:
            begin = int(node.meta.get("begins", 0))
            place = place_at(self.binder.text, begin + at[0][0], begin + at[0][1] - 1)
        self.problems.append(Problem("R175", message, place, hint))


def ordered_input(binder: Binder, node: MatchRecognize, name: str) -> From | None:
    """Return the input sorted by the further keys of ORDER BY; ``None`` if there are none."""
    order = node.args.get("order")
    if order is None or len(order.expressions) < 2 or any(o.args.get("within") for o in order.expressions):  # noqa: PLR2004
        return None
    first = order.expressions[0].this
    if not isinstance(first, exp.Column) or first.name.upper() != "ROWTIME" or order.expressions[0].args.get("desc"):
        return None
    source = exp.From(this=node.this.copy())
    query = exp.Select(expressions=[exp.Star()], from_=source, order=order.copy(), stream=True)
    bound = binder.bind(query, f"{name}.ordered")
    return From.one(bound.node, node.this.alias_or_name, bound.lineage)


def refuse_events(binder: Binder, node: MatchRecognize, source: From) -> None:
    """Refuse (R193) events, which have lifetimes. Raises ``Refused``."""
    if is_lifetimes(source.node):
        what = "MATCH_RECOGNIZE is for rows, and these are events with lifetimes"
        raise refuse("R193", what, "Use a view that EMITs the events as rows.", place_of(binder.text, node))
