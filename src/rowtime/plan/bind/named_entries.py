"""Names of the select list in the list itself and in HAVING, as in Spark: each stands for its entry.

``SELECT STREAM n * 2 AS d, d + 1 AS e`` is ``SELECT STREAM n * 2 AS d, n * 2 + 1 AS e``. In the list, a column of the
input takes precedence. In HAVING, a column does if the query groups by it, or if it is the argument of an aggregate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from sqlglot import exp

from rowtime.expr.many_rows import generator, is_aggregate

_WHOLE = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Null, exp.Boolean)  # stand in an expression without ( )


def with_entries(query: exp.Select, columns: Collection[str], inputs: Collection[str]) -> exp.Select:
    """Return the query with entries in place of their names; ``columns`` and ``inputs``: what FROM has, lower case."""
    names = Counter(entry.alias.lower() for entry in query.expressions if isinstance(entry, exp.Alias))
    once = {name for name, count in names.items() if count == 1} - {"rowtime"}
    if not once:
        return query
    query = query.copy()
    entries: dict[str, exp.Expr] = {}
    for entry in query.expressions:
        _put(entry, entries, lambda column: not _is_among(column, columns, inputs))
        if isinstance(entry, exp.Alias) and entry.alias.lower() in once and generator(entry) is None:
            entries[entry.alias.lower()] = entry.this
    having, group = query.args.get("having"), query.args.get("group")
    if having is not None:
        keys = {key.name.lower() for key in ([] if group is None else group.find_all(exp.Column))} & {*columns}
        _put(having, entries, lambda column: not (_is_among(column, keys, inputs) or _is_aggregated(column)))
    return query


def _put(clause: exp.Expr, entries: Mapping[str, exp.Expr], free: Callable[[exp.Column], bool]) -> None:
    for column in list(_columns(clause)):
        field = column.this if column.table else None
        entry = entries.get((column.table or column.name).lower())
        if entry is None or not free(column) or _is_parameter(column):
            continue
        value = entry.copy() if isinstance(entry, _WHOLE) else exp.Paren(this=entry.copy())
        value.meta.update(column.meta)
        column.replace(value if field is None else exp.Dot(this=value, expression=field.copy()))


def _columns(clause: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns of a clause, without those of its sub-queries."""
    for node in clause.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(node, exp.Column) and not node.is_star:
            yield node


def _is_among(column: exp.Column, names: Collection[str], inputs: Collection[str]) -> bool:
    """Return True for one of the columns ``names``, a field of one, or a column with the name of its input."""
    return column.table.lower() in inputs or (column.table or column.name).lower() in names


def _is_parameter(column: exp.Column) -> bool:
    """Return True for a name that is a parameter of a lambda around it."""
    function = column.find_ancestor(exp.Lambda)
    while function is not None:
        if column.name.lower() in {parameter.name.lower() for parameter in function.expressions}:
            return True
        function = function.find_ancestor(exp.Lambda)
    return False


def _is_aggregated(column: exp.Column) -> bool:
    above = column.parent
    while above is not None and not isinstance(above, exp.Having):
        if is_aggregate(above):
            return True
        above = above.parent
    return False
