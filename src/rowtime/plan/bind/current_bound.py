"""Binds ``CURRENT_BOUND()``: the bound of the event time, as a column of what a query reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from rowtime.core.errors import refuse
from rowtime.operators.panes.current_bound import CurrentBound
from rowtime.plan.bind.event_time import declared_by, lost_at, over_fires
from rowtime.plan.bind.scope import From, is_current_bound
from rowtime.sql.places import place_of, refuse_at


def with_bound(fresh: Callable[[str], str], query: exp.Select, text: str, source: From, name: str) -> From:
    """Return the query's input, with the bound if it is used. Raises ``Refused`` (R170) if there is none."""
    calls = [call for call in query.find_all(exp.Anonymous) if is_current_bound(call)]
    calls = [call for call in calls if call.find_ancestor(exp.Query) is query]
    if not calls:
        return source
    if calls[0].expressions:
        raise refuse_at(text, calls[0], "R170", "CURRENT_BOUND takes no argument", "Write CURRENT_BOUND().")
    source = replace(source, node=over_fires(fresh, source.node))
    event = declared_by(source.node)
    if event is None:
        why = lost_at(source.node)
        what = "CURRENT_BOUND() is the bound of an event time, and these rows have no event time"
        hint = (
            "Read a view that declares one: CREATE VIEW v EVENT TIME (t, LAG INTERVAL '10' SECOND) AS SELECT …. "
            "The bound of a stream before a row is the ROWTIME of the row."
        )
        raise refuse("R170", f"{what}; {why}" if why else what, hint, place_of(text, calls[0]))
    return replace(source, node=CurrentBound(fresh(f"{name}.current_bound"), source.node, event))
