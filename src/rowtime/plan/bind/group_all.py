"""GROUP BY ALL: the entries of the select list that have no aggregate."""

from __future__ import annotations

from sqlglot import exp

from rowtime.expr.many_rows import has_aggregates


def with_listed_groups(query: exp.Select) -> exp.Select:
    """Return the query with its entries in place of ALL; other queries as they are.

    A column with this name has to be quoted, or to have its input before it.
    """
    group = query.args.get("group")
    if group is None or len(group.expressions) != 1 or not _is_all(group.expressions[0]):
        return query
    query = query.copy()
    entries = [entry.unalias() for entry in query.expressions if not has_aggregates(entry)]
    query.set("group", exp.Group(expressions=[entry.copy() for entry in entries]) if entries else None)
    return query


def _is_all(key: exp.Expr) -> bool:
    plain = isinstance(key, exp.Column) and not key.table and not key.this.args.get("quoted")
    return plain and key.name.upper() == "ALL"
