"""Pipelines that judge rows by their arrival times; an item's arrival time is its number, in µs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from rowtime.core.time import END
from rowtime.testing.transcripts import ScriptItem
from tests.laws.deeper_pipelines import close_items
from tests.laws.pipelines import HALF, ORIGIN, Feeds, Law, _streams
from tests.oracle import feed as f
from tests.oracle.merge import merge
from tests.oracle.select import select
from tests.oracle.tsort import tsort

LIMIT = ORIGIN + 3  # so the event time 3 µs after the origin is early in the first item, but not in the second
_SORT = "SELECT STREAM ev AS ROWTIME, n FROM a ORDER BY ev WITHIN INTERVAL '0.000002' SECOND"
BEYOND_ARRIVAL = f"EARLY BEYOND INTERVAL '{LIMIT // 1_000_000}.{LIMIT % 1_000_000:06}' SECOND AFTER ARRIVAL"


def _judged(early: int | None = None) -> Callable[[Feeds], tuple[f.Feed, list[f.Refusal]]]:
    def oracle(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
        (a,), refused = _streams(feeds, "a")
        judged = tsort("query", a, lambda v: v["ev"], 2, early=early, ahead=LIMIT)
        return merge(select(judged.feed, project=lambda v: {"n": v["n"]})), [*refused, *judged.refused]

    return oracle


BY_ARRIVAL = (
    Law("a t-sort that looks at arrival", ("t-sort",), f"{_SORT} {BEYOND_ARRIVAL}", _judged()),
    Law("a guard that looks at arrival", ("t-sort",),
        f"{_SORT} {BEYOND_ARRIVAL} EARLY BEYOND INTERVAL '0.000003' SECOND", _judged(3)),
)  # fmt: skip


@st.composite
def items_by_arrival(draw: Callable[..., Any]) -> list[ScriptItem]:
    """Items whose times are µs apart, like their arrival times."""
    return [_close(item) for item in draw(close_items())]


def _close(item: ScriptItem) -> ScriptItem:
    values = item.values and {k: _micro(v) if k in ("ev", "rowtime") else v for k, v in item.values.items()}
    return replace(item, values=values, at=_micro(item.at))


def _micro(at: int | None) -> int | None:
    return at if at is None or at >= END else ORIGIN + (at - ORIGIN) // HALF
