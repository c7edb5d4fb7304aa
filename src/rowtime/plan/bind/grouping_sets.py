"""GROUPING SETS, ROLLUP and CUBE: a UNION ALL with a GROUP BY for each set, as the standard defines them.

A key that a set lacks is NULL in its rows, and GROUPING distinguishes that NULL from one of the data. Each set needs a
key that closes its groups (semantics 6), so such a key is beside the sets, or in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product

from sqlglot import exp

from rowtime.core.errors import Refused
from rowtime.expr.many_rows import is_aggregate
from rowtime.plan.bind.rewrites import Rewrite
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import Within
from rowtime.sql.numbers import whole_number
from rowtime.sql.places import refuse_at, unlocated
from rowtime.sql.script import parse_expression

MOST = 64  # sets; each is a query of its own
_KINDS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_AROUND = ("order", "limit", "with_", "emit", "emit_changes", "emit_final", "distinct")  # clauses of the whole
_BELOW = "Sort first, in a view: SELECT STREAM t AS ROWTIME, … ORDER BY t WITHIN interval."

Set = tuple[exp.Expr, ...]
NamesOf = Callable[[exp.Expr], Sequence[str]]


def has_sets(query: exp.Expr) -> bool:
    """Return True for a SELECT that groups by several sets."""
    group = query.args.get("group")
    return isinstance(group, exp.Group) and any(isinstance(node, _KINDS) for node in group.expressions)


def union_of_sets(query: exp.Select, text: str, names_of: NamesOf) -> exp.Query:
    """Return the UNION ALL that the sets mean; ``names_of`` binds a query and names its columns. Raises R127."""
    group = query.args["group"]
    for node in group.find_all(Within):
        raise refuse_at(text, node, "R127", "WITHIN would refuse a row once for each set of GROUP BY", _BELOW)
    resolved = _Keys(query, names_of)
    sets = [resolved.set_of(keys_of_set) for keys_of_set in _sets_of(group.expressions)]
    if len(sets) > MOST:
        what = f"GROUP BY has {len(sets)} sets, and each one is a separate query; at most {MOST} are allowed"
        raise refuse_at(text, group, "R127", what, "List only the sets that you need: GROUPING SETS ((a, b), (a)).")
    keys = list(dict.fromkeys(key for keys_of_set in sets for key in keys_of_set))
    parts: list[exp.Query] = [_part(query, keys_of_set, keys, resolved) for keys_of_set in sets]
    if len(parts) == 1:
        for clause in _AROUND:
            parts[0].set(clause, query.args.get(clause))
        return parts[0]
    union = reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=False), parts)
    union.set("distinct", bool(query.args.get("distinct")))
    union.set("order", resolved.order())
    union.set("unbounded_state", query.args.get("unbounded_state"))
    return union


def without_clock(query: exp.Select, text: str, binds: Callable[[exp.Expr], bool]) -> Refused:
    """Return the refusal (R127) of sets one of which has no key that closes its groups."""
    kind = next(node for node in query.args["group"].expressions if isinstance(node, _KINDS))
    words = "GROUPING SETS" if isinstance(kind, exp.GroupingSets) else type(kind).__name__.upper()
    hint = next((advice for advice, rewritten in _closed(query) if binds(rewritten)), "")
    otherwise = "Add an ascending expression next to the sets."
    return refuse_at(text, kind, "R127", f"GROUP BY {words} has groups without a monotonic key", hint or otherwise)


# -- sets ---------------------------------------------------------------------------------


def _sets_of(nodes: Sequence[exp.Expr]) -> list[Set]:
    """Return the sets; the parts between commas are combined, each with each."""
    sets: list[Set] = [()]
    for node in nodes:
        sets = [(*before, *more) for before in sets for more in _of(node)]
    return sets


def _of(node: exp.Expr) -> list[Set]:
    if isinstance(node, exp.GroupingSets):
        return [inner for part in node.expressions for inner in _of(part)]
    if not isinstance(node, exp.Cube | exp.Rollup):
        return [_elements(node)]
    parts = [_elements(part) for part in node.expressions]
    if isinstance(node, exp.Rollup):
        return [sum(parts[:number], ()) for number in range(len(parts), -1, -1)]
    chosen = product((True, False), repeat=min(len(parts), MOST.bit_length()))
    return [sum((part for part, flag in zip(parts, flags, strict=False) if flag), ()) for flags in chosen]


def _elements(node: exp.Expr) -> Set:
    node = node.unnest()
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


class _Keys:
    """Resolves the keys of a query: numbers and names mean items of its list, other names columns of its one input."""

    def __init__(self, query: exp.Select, names_of: NamesOf) -> None:
        self._query, self._names_of = query, names_of
        source = query.args.get("from_")
        self._alias = "" if query.args.get("joins") or source is None else source.this.alias_or_name.lower()
        self._known: set[str] | None = None

    def set_of(self, keys: Set) -> Set:
        return tuple(dict.fromkeys(self.key(key) for key in keys))

    def key(self, node: exp.Expr) -> exp.Expr:
        """Return the expression that a key means."""
        listed, place = self._query.expressions, whole_number(node)
        if place is not None and 1 <= place <= len(listed):
            return self.plain(listed[place - 1].unalias())
        if isinstance(node, exp.Column) and not node.table:
            named = [e for e in listed if isinstance(e, exp.Alias) and e.alias.lower() == node.name.lower()]
            if named and self.plain(named[0].this) != self.plain(node) and not self._is_column(node.name):
                return self.plain(named[0].this)
        return self.plain(node)

    def plain(self, node: exp.Expr) -> exp.Expr:
        """Return an expression with unqualified columns of the input."""
        copied = node.copy()
        for column in list(copied.find_all(exp.Column)):
            if self._alias and column.table.lower() == self._alias and not column.args.get("db"):
                column.set("table", None)
            column.this.set("this", column.name.lower())
        return copied

    def order(self) -> exp.Expr | None:
        """Return ORDER BY of the whole: items by their names."""
        order = self._query.args.get("order")
        if not isinstance(order, exp.Order):
            return None
        entries = {self.plain(e.unalias()): e.alias_or_name for e in self._query.expressions if e.alias_or_name}
        copied = order.copy()
        for key in copied.expressions:
            if (name := entries.get(self.plain(key.this))) is not None:
                column = exp.column(name, quoted=True)
                column.meta.update(next((part.meta for part in key.this.walk() if part.meta), {}))
                key.set("this", column)
        return copied

    def _is_column(self, name: str) -> bool:
        if self._known is None:
            everything = exp.Select(expressions=[exp.Star()], stream=True, from_=self._query.args["from_"].copy())
            everything.set("joins", [join.copy() for join in self._query.args.get("joins") or []])
            self._known = {name_of.lower() for name_of in self._names_of(everything)}
        return name.lower() in self._known


# -- the query of a set -------------------------------------------------------------------


def _part(query: exp.Select, keys: Set, every: Sequence[exp.Expr], resolved: _Keys) -> exp.Select:
    part = query.copy()
    for clause in _AROUND:
        part.set(clause, None)
    part.set("group", exp.Group(expressions=[key.copy() for key in keys] or [exp.true()]))
    part.set("expressions", [_entry(entry, keys, every, resolved) for entry in part.expressions])
    if having := part.args.get("having"):
        having.set("this", _in_set(having.this, keys, every, resolved))
    return part


def _entry(entry: exp.Expr, keys: Set, every: Sequence[exp.Expr], resolved: _Keys) -> exp.Expr:
    """Return an item of the list, with its present name."""
    if entry.is_star:
        return entry
    value = _in_set(entry.unalias().copy(), keys, every, resolved)
    name = entry.alias_or_name
    return exp.alias_(value, name, quoted=name.upper() != "ROWTIME") if name else value


def _in_set(node: exp.Expr, keys: Set, every: Sequence[exp.Expr], resolved: _Keys) -> exp.Expr:
    """Return an expression for one set: keys that it lacks are NULL, except inside aggregates."""
    if isinstance(node, exp.Anonymous) and node.name.upper() in ("GROUPING", "GROUPING_ID"):
        return _grouping_value(node, keys, every, resolved)
    key = resolved.plain(node)
    if key in every:
        return node if key in keys else _null(node)
    if is_aggregate(node):
        return node
    for part in list(node.iter_expressions()):
        changed = _in_set(part, keys, every, resolved)
        if changed is not part:
            part.replace(changed)
    return node


def _null(key: exp.Expr) -> exp.Expr:
    """Return NULL of the key's type, which only Spark may know."""
    null = unlocated(parse_expression("ANY_VALUE(x) FILTER (WHERE FALSE)"))
    null.find(exp.Column).replace(key.copy())  # type: ignore[union-attr]  # there is one
    return null


def _grouping_value(call: exp.Anonymous, keys: Set, every: Sequence[exp.Expr], resolved: _Keys) -> exp.Expr:
    """Return GROUPING(k), 1 if the set lacks the key; or GROUPING_ID(k, l, …), these as bits of a number."""
    keys_of_call = [resolved.key(part) for part in call.expressions] or list(every)
    bits = "".join("0" if key in keys else "1" for key in keys_of_call)
    kind = "TINYINT" if call.name.upper() == "GROUPING" else "BIGINT"
    return exp.cast(exp.Literal.number(int(bits, 2)), kind)


# -- rewrites -----------------------------------------------------------------------------


def _closed(query: exp.Select) -> Iterator[Rewrite]:
    """Yield the sets beside a key that closes groups: one of theirs, or the hour."""
    nodes = query.args["group"].expressions
    source = query.args["from_"].this.alias_or_name
    hour = parse_expression(f"FLOOR({source}.ROWTIME TO HOUR)" if source else "FLOOR(ROWTIME TO HOUR)")
    keys = list(dict.fromkeys(key for keys_of_set in _sets_of(nodes) for key in keys_of_set))
    for lead in [*keys, hour]:
        group = [lead.copy(), *(left for node in nodes if (left := _lacking(node, lead)) not in (None, exp.Tuple()))]
        rewritten = query.copy()
        rewritten.set("group", exp.Group(expressions=group))
        yield f"Add it to each set: GROUP BY {', '.join(map(to_rowtime, group))}.", rewritten


def _lacking(node: exp.Expr, key: exp.Expr) -> exp.Expr | None:
    """Return a part of GROUP BY without a key; ``None`` if nothing is left."""
    if not isinstance(node, _KINDS):
        left = [element.copy() for element in _elements(node) if element != key]
        return left[0] if len(left) == 1 else exp.Tuple(expressions=left)
    parts = [part for element in node.expressions if (part := _lacking(element, key)) is not None]
    rest: exp.Expr = node.copy()
    listed = [part for part in parts if isinstance(node, exp.GroupingSets) or part != exp.Tuple(expressions=[])]
    rest.set("expressions", list(dict.fromkeys(listed)))
    return rest if listed else None
