"""Pipelines with buffering operators, and their oracles."""

from __future__ import annotations

from tests.laws.panes_pipelines import _FACTS, _NONE, TUMBLING, Result, _fires
from tests.laws.pipelines import HALF, SECOND, Feeds, Law, _streams
from tests.oracle import feed as f
from tests.oracle.buffers import delay, gate
from tests.oracle.merge import merge
from tests.oracle.panes import event_time, panes
from tests.oracle.select import select
from tests.oracle.union_all import union_all


def _delayed(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    return merge(select(union_all(delay(a, SECOND), b), project=lambda v: {"n": v["n"]})), refused


def _gated(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    made, lost = gate("query", merge(a)[""], merge(b)[""], lambda v: v["v"])
    return select(made, project=lambda v: {"n": v["n"]}), [*refused, *lost]


def _sent(feeds: Feeds) -> Result:
    """After a delay, the event time has the bounds of the rows that were sent."""
    (a,), refused = _streams(feeds, "a")
    items = merge(a)[""]
    known = [item for item in items if not isinstance(item, f.Row) or item.values["ev"] is not None]
    lost = [
        f.Refusal("x.event_time", i.values, "NULL_ROWTIME", None, 0)
        for i in items
        if i not in known and isinstance(i, f.Row)
    ]
    timed, _ = event_time(merge(delay({"": known}, HALF))[""], lambda v: v["ev"], "query.event_time")
    made, late = panes("query", timed, TUMBLING, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *late]


SAMPLED = frozenset({0, 2})
"""The rows of 0, 1 and 2 whose xxhash64 modulo a million is below 700,000: it is 510,707, 761,001 and 656,230."""


def _sampled(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    return merge(select(a, lambda v: v["v"] in SAMPLED, lambda v: {"n": v["n"], "v": v["v"]})), refused


BUFFERS = (
    Law("a sample of keys", ("sample",),
        "SELECT STREAM n, v FROM STREAM(SAMPLE(TABLE a PARTITION BY v, 70)) AS s", _sampled),
    Law("a delay beside another stream", ("delay",),
        "SELECT STREAM n FROM STREAM(DELAY(TABLE a, INTERVAL '1' SECOND)) AS d UNION ALL SELECT STREAM n FROM b",
        _delayed),
    Law("a gate with permits", ("permit gate",),
        "SELECT STREAM n FROM STREAM(GATE(TABLE a, TABLE b, v)) AS g WITH UNBOUNDED STATE", _gated),
    Law("panes behind a delay", ("delay", "event time", "panes"),
        f"CREATE VIEW x EVENT TIME (ev, LAG INTERVAL '1' SECOND, {_NONE}) AS SELECT STREAM * FROM a; "
        f"SELECT STREAM {_FACTS}, v, COUNT(*) AS c, SUM(n) AS s "
        "FROM STREAM(DELAY(TABLE x, INTERVAL '0.5' SECOND)) AS d "
        "GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND), v", _sent),
)  # fmt: skip
