"""Sub-queries in what groups are made of: their answers are columns of each row, below the groups.

``SELECT SUM(IF(x IN (…), 1, 0)) FROM s GROUP BY k`` is ``SELECT SUM(IF(asked_0, 1, 0)) FROM (SELECT *, x IN (…) AS
asked_0 FROM s) AS s GROUP BY k``. So are keys with sub-queries, and the select list of DISTINCT.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rowtime.expr.many_rows import is_aggregate
from rowtime.plan.bind.correlation import placed
from rowtime.sql.numbers import whole_number
from rowtime.sql.places import refuse_at

_NAME = "asked_{}"


def has_subqueries_below(query: exp.Select) -> bool:
    """True if a query asks for another one in an aggregate, in a key of its groups or in the list of DISTINCT."""
    return next(_parts(query), None) is not None


def with_subqueries_below(query: exp.Select, text: str) -> exp.Select:
    """The query over its input with the answers.

    Raises ``Refused`` (R190) if there are several inputs, or if a query stands where it is not a value.
    """
    rewritten = query.copy()
    _spell_out_keys(rewritten)
    source = rewritten.args["from_"].this
    first = next(_parts(rewritten))
    if (
        rewritten.args.get("joins")
        or rewritten.args.get("laterals")
        or not source.alias_or_name
        or source.args.get("over")
    ):
        inner = first.find(exp.Query) or first
        hint = "Read the inputs in a sub-query with a name, and group that: FROM (SELECT STREAM … FROM a JOIN b …) AS j"
        what = "a sub-query in groups of a join is not supported"
        raise refuse_at(text, inner, "R190", what, hint)
    calls: list[exp.Expr] = []
    whole = [*rewritten.expressions, *(part for clause in ("group", "having") if (part := rewritten.args.get(clause)))]
    for part in [*_parts(rewritten)]:
        calls.extend(call.copy() for call in _subqueries(part) if call not in calls)
    for entry in whole:
        _replace(entry, calls)
    for left in _parts(rewritten):
        hint = "If the query gives one value, put it in parentheses, as in f((SELECT … FROM …))."
        raise refuse_at(text, left.find(exp.Query) or left, "R190", "a query without parentheses is not a value", hint)
    entries: list[exp.Expr] = [exp.Star()]
    for number, call in enumerate(calls):
        name = exp.to_identifier(_NAME.format(number))
        entries.append(
            exp.Alias(this=exp.paren(call.copy()) if isinstance(call, exp.Subquery) else call.copy(), alias=name)
        )
    inner_query = exp.Select(expressions=entries, from_=exp.From(this=source.copy()), stream=True)
    alias = exp.TableAlias(this=exp.to_identifier(source.alias_or_name, quoted=True))
    rewritten.set("from_", exp.From(this=exp.Subquery(this=inner_query, alias=alias)))
    return rewritten


def _parts(query: exp.Select) -> Iterator[exp.Expr]:
    """The expressions over single rows that ask for another query."""
    if query.args.get("from_") is None:
        return
    group, having = query.args.get("group"), query.args.get("having")
    rows = [
        *(_entry(query, key) or key for key in (group.expressions if group else ())),
        *(query.expressions if query.args.get("distinct") else ()),
    ]
    yield from (part for part in rows if part.find(exp.Query))
    for entry in (*query.expressions, *((having,) if having else ())):
        for call in entry.find_all(exp.Expr):
            outside = is_aggregate(call) and call.find_ancestor(exp.Query) in (None, query)
            if outside and call.find(exp.Query) and not isinstance(call.find_ancestor(exp.Window), exp.Window):
                yield call


def _entry(query: exp.Select, key: exp.Expr) -> exp.Expr | None:
    """The entry of the select list with a sub-query that a key of the groups means by its number or name."""
    place, listed = whole_number(key), query.expressions
    if place is not None and 1 <= place <= len(listed):
        named = [listed[place - 1]]
    else:
        plain = isinstance(key, exp.Column) and not key.table
        named = [entry for entry in listed if plain and entry.alias.lower() == key.name.lower()]
    return next((entry.unalias() for entry in named if entry.find(exp.Query)), None)


def _spell_out_keys(query: exp.Select) -> None:
    group = query.args.get("group")
    for key in list(group.expressions) if group else ():
        if (entry := _entry(query, key)) is not None:
            key.replace(entry.copy())


def _subqueries(part: exp.Expr) -> Iterator[exp.Expr]:
    """The tests and values that are sub-queries, from outside."""
    tests = (exp.In, exp.Exists, exp.Subquery)
    for node in part.find_all(exp.In, exp.Exists, exp.Subquery, exp.EQ, exp.NEQ):
        several = isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any | exp.All)
        of_query = isinstance(node, exp.Exists | exp.Subquery) or several or node.args.get("query") is not None
        if of_query and not _within(node, part, tests):
            yield node


def _within(node: exp.Expr, part: exp.Expr, kinds: tuple[type[exp.Expr], ...]) -> bool:
    """True if a node is inside another one of these, which is inside ``part``."""
    while node is not part and node.parent is not None:
        node = node.parent
        if isinstance(node, kinds) and (not isinstance(node, exp.In) or node.args.get("query") is not None):
            return True
        if isinstance(node, exp.Any | exp.All):
            return True
    return False


def _replace(node: exp.Expr, calls: list[exp.Expr]) -> None:
    """Put columns in place of what is asked for."""
    for part in list(node.iter_expressions()):
        if part in calls:
            column = exp.column(_NAME.format(calls.index(part)))
            part.replace(placed(column, part))
        else:
            _replace(part, calls)
