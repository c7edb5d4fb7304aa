"""EMIT: how events with lifetimes are turned into rows."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rowtime.core.errors import refuse
from rowtime.operators.contract import Operator
from rowtime.operators.events.emit_lifetimes import NAMES, EmitLifetimes
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.sql.places import place_of


def as_rows(
    fresh: Callable[[str], str], node: Operator, name: str, clause: exp.Expr | None = None, text: str = ""
) -> Operator:
    """Return events as rows, by default intervals by their end; rows stay as they are. ``fresh`` names an operator."""
    if not is_lifetimes(node):
        return node
    form = clause.name if clause is not None else "INTERVALS"
    names = tuple(part.name for part in clause.expressions) if clause is not None else ()
    wanted = NAMES[form] or ("start",)
    place = place_of(text, clause) if clause is not None else None
    if names and len(names) != len(wanted) and not (form == "POINTS" and not names):
        what = f"EMIT {form} names {len(wanted)} columns"
        raise refuse("R192", what, f"Write EMIT {form} ({', '.join(wanted)}), with names of your own.", place)
    if form == "EDGES" and clause is not None and (clause.args.get("fully") or clause.args.get("chain")):
        what = "EMIT EDGES can only order edges by their times: a start goes out before its end is known"
        hint = "Leave the order out; or EMIT INTERVALS … FULLY ORDERED, for whole events in the order of their starts."
        raise refuse("R192", what, hint, place)
    names = names or NAMES[form]
    taken = {column.lower() for column in node.emits().names}
    twice = [one for one in names if one.lower() in taken]
    if twice:
        hint = f"Name them: EMIT {form} ({', '.join('my_' + one for one in names)}); or rename {twice[0]} in the query."
        raise refuse("R119", f"the result has two columns {twice[0]}", hint, place)
    fully = bool(clause is not None and clause.args.get("fully"))
    return EmitLifetimes(fresh(f"{name}.emit"), node, form, names, fully)  # type: ignore[arg-type]
