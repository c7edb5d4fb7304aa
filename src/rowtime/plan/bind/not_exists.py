"""NOT EXISTS in a WHERE over events: another way to write LEFT ANTI JOIN."""

from __future__ import annotations

from sqlglot import exp

from rowtime.sql.places import refuse_at


def split_off(query: exp.Select, text: str) -> list[exp.Join]:
    """The joins that each NOT EXISTS of the WHERE stands for; it is taken out of the query.

    The sub-query reads one stream, view or query, and its WHERE says which events meet.
    """
    where = query.args.get("where")
    conditions = (
        list(where.this.flatten()) if where and isinstance(where.this, exp.And) else [where.this] if where else []
    )
    found = [c for c in conditions if isinstance(c, exp.Not) and isinstance(c.this.unnest(), exp.Exists)]
    if not found:
        return []
    joins = [_anti_join(condition.this.unnest(), text) for condition in found]
    others = [condition for condition in conditions if condition not in found]
    query.set("where", exp.Where(this=exp.and_(*others, copy=False)) if others else None)
    return joins


def _anti_join(exists: exp.Expr, text: str) -> exp.Join:
    inner = exists.this
    clauses = {name for name, value in inner.args.items() if value} - {
        "expressions",
        "from_",
        "where",
        "stream",
        "kind",
    }
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is None or clauses:
        hint = "Write NOT EXISTS (SELECT STREAM * FROM t WHERE t.k = s.k), with a view for anything more."
        raise refuse_at(text, exists, "R190", "NOT EXISTS of such a query is not supported", hint)
    where = inner.args.get("where")
    join = exp.Join(this=inner.args["from_"].this, side="LEFT", kind="ANTI", on=where.this if where else None)
    join.meta.update(exists.meta)
    return join
