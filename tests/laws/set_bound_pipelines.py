"""Pipelines whose event time gets a bound by hand, between two items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from rowtime.testing.transcripts import ScriptItem
from tests.laws.deeper_pipelines import DEEPER, close_items
from tests.laws.pipelines import HALF, LAWS, ORIGIN, SET
from tests.oracle import feed as f

_LAW = {law.name: law for law in (*LAWS, *DEEPER)}

BY_HAND = tuple(
    replace(_LAW[name], name=new)
    for name, new in (
        ("t-sort", "a t-sort whose bound is set"),
        ("t-sort with a further key", "a keyed t-sort whose bound is set"),
        ("promotion of what follows the rowtime", "a promotion whose bound is set"),
        ("a t-sort with a guard", "a guard whose bound is set"),
        ("group by within", "groups within, whose bound is set"),
    )
)


@st.composite
def items_with_a_bound(draw: Callable[..., Any]) -> list[ScriptItem]:
    """Items of the streams, and before one of them a bound of the query's event time; optionally the end."""
    made = draw(close_items())
    time = draw(st.one_of(st.integers(0, 14), st.just(f.END)))
    at = time if time == f.END else ORIGIN + time * HALF
    place = draw(st.integers(0, len(made) - 1))
    put = [*made[:place], ScriptItem(0, SET, "", None, at), *made[place:]]
    return [ScriptItem(n, item.stream, item.writer, item.values, item.at) for n, item in enumerate(put, 1)]
