"""Pipelines, their oracles and random input, for the laws."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.oracle import feed as f
from tests.oracle.aggregates import distinct, total
from tests.oracle.group_by import ceil, floor, group_by
from tests.oracle.merge import merge
from tests.oracle.rejected import rejected
from tests.oracle.select import select
from tests.oracle.stream import stream
from tests.oracle.tsort import tsort
from tests.oracle.union_all import union_all

LONG = bool(os.environ.get("ROWTIME_LONG"))
ORIGIN = 1_704_103_200_000_000  # 2024-01-01 10:00:00 UTC, µs
HALF = 500_000  # µs; all times are multiples of half a second
SECOND = 1_000_000
DECLARE = "CREATE STREAM a ({}) {}; CREATE STREAM b (n INT, v INT, ev TIMESTAMP); "
SET = "query"  # instead of a stream: the operator whose bound is set by hand
Feeds = Mapping[str, f.Feed]
Refused = set[tuple[int, str]]


@dataclass(frozen=True)
class Law:
    """A query, and the rows and refusals that the oracle computes from the same items."""

    name: str
    operators: tuple[str, ...]
    sql: str
    oracle: Callable[[Feeds], tuple[f.Feed, list[f.Refusal]]]
    columns: str = "n INT, v INT, ev TIMESTAMP"
    """Those of stream a."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    clauses: str = ""
    """Those of stream b."""


def _streams(
    feeds: Feeds, *names: str, early: int | None = None, resync: int = 0, ahead: int | None = None
) -> tuple[list[f.Feed], list[f.Refusal]]:
    judged = [stream(name, feeds[name], early, resync, ahead) for name in names]
    return [one.feed for one in judged], [refusal for one in judged for refusal in one.refused]


def _filtered(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    (a,), refused = _streams(feeds, "a")
    return merge(select(a, lambda v: v["v"] is not None and v["v"] > 0, lambda v: {"n": v["n"]})), refused


def _sorted(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("query", a, lambda v: v["ev"], 2 * SECOND)
    return merge(select(judged.feed, project=lambda v: {"n": v["n"]})), [*refused, *judged.refused]


def _keyed(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("query", a, lambda v: v["ev"], 2 * SECOND, keys=lambda v: (v["v"],))
    return merge(select(judged.feed, project=lambda v: {"n": v["n"]}), keyed=True), [*refused, *judged.refused]


def _union(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    parts, refused = _streams(feeds, "a", "b")
    return merge(select(union_all(*parts), project=lambda v: {"n": v["n"]})), refused


def _column(rows: Sequence[f.Row], name: str) -> list[Any]:
    return [row.values[name] for row in rows]


def _groups(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    (a,), refused = _streams(feeds, "a")

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        n = _column(rows, "n")
        return {"v": key[1], "c": len(n), "s": total(n), "first": n[0], "last": n[-1], "all": n}

    closer = floor(2 * SECOND)
    return group_by(a, [closer], lambda at, v: (closer.value(at), v["v"]), row), refused


def _ceiled(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    (a,), refused = _streams(feeds, "a")
    closer = ceil(SECOND)
    made = group_by(a, [closer], lambda at, _: (closer.value(at),), lambda _, rows: {"d": distinct(_column(rows, "v"))})
    return made, refused


def _chain(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    parts, refused = _streams(feeds, "a", "b")
    merged = merge(union_all(*parts))
    judged = tsort("query", merged, lambda v: v["ev"], SECOND)
    closer = floor(2 * SECOND)
    made = group_by(judged.feed, [closer], lambda at, _: (closer.value(at),), lambda _, rows: {"c": len(rows)},
                    having=lambda v: v["c"] > 1)  # fmt: skip
    return made, [*refused, *judged.refused]


def _within(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    (a,), refused = _streams(feeds, "a")
    closer = floor(2 * SECOND)
    judged = tsort("query", a, lambda v: v["ev"], SECOND, last_of_group=lambda at: closer.end(at) - 1)
    made = group_by(judged.feed, [closer], lambda at, _: (closer.value(at),), lambda _, rows: {"c": len(rows)})
    return made, [*refused, *judged.refused]


def _rejected(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
    judged = {writer: stream("a", {writer: items}) for writer, items in feeds["a"].items()}
    refused = {w: [f.Row(r.by, {"refusal": r}) for r in one.refused] for w, one in judged.items()}
    gate = {w: one.feed[w] for w, one in judged.items()}
    shown = rejected(refused, gate, lambda r: {"n": r.values["n"], "reason": r.reason})
    return merge(shown), [refusal for one in judged.values() for refusal in one.refused]


LAWS = (
    Law("filter and projection", ("select", "stream", "merge", "sink"),
        "SELECT STREAM n FROM a WHERE v > 0", _filtered),
    Law("t-sort", ("t-sort",),
        "SELECT STREAM ev AS ROWTIME, n FROM a ORDER BY ev WITHIN INTERVAL '2' SECOND", _sorted),
    Law("t-sort with a further key", ("t-sort", "merge"),
        "SELECT STREAM ev AS ROWTIME, n FROM a ORDER BY ev WITHIN INTERVAL '2' SECOND, v", _keyed),
    Law("union all", ("union all", "merge"),
        "SELECT STREAM n FROM a UNION ALL SELECT STREAM n FROM b", _union),
    Law("group by with partial results", ("group by",),
        "SELECT STREAM v, COUNT(*) AS c, SUM(n) AS s, FIRST(n) AS first, LAST(n) AS last, COLLECT_LIST(n) AS all "
        "FROM a GROUP BY STEP(a.ROWTIME BY INTERVAL '2' SECOND), v", _groups),
    Law("group by ceil that keeps rows", ("group by",),
        "SELECT STREAM COUNT(DISTINCT v) AS d FROM a GROUP BY CEIL(a.ROWTIME TO SECOND)", _ceiled),
    Law("group by over a t-sort over a union", ("merge", "group by"),
        "SELECT STREAM COUNT(*) AS c FROM (SELECT STREAM ev AS ROWTIME, n FROM (SELECT STREAM * FROM a UNION ALL "
        "SELECT STREAM * FROM b) AS u ORDER BY ev WITHIN INTERVAL '1' SECOND) AS t "
        "GROUP BY STEP(t.ROWTIME BY INTERVAL '2' SECOND) HAVING COUNT(*) > 1", _chain),
    Law("group by within", ("t-sort", "group by"),
        "SELECT STREAM COUNT(*) AS c FROM a GROUP BY STEP(ev BY INTERVAL '2' SECOND) WITHIN INTERVAL '1' SECOND",
        _within),
    Law("rejected rows", ("rejected",), "SELECT STREAM n, reason FROM a.rejected", _rejected),
)  # fmt: skip

Draw = tuple[str, str, int | None, int | None, int]  # stream, writer, rowtime, event time or None for null, v


@st.composite
def items(draw: Callable[..., Any]) -> list[ScriptItem]:
    """Items of two streams: rows with ties, disorder and nulls, bounds, perhaps an end."""
    writers = draw(st.sampled_from([("x",), ("x", "y")]))
    time = st.integers(0, 12)
    one = st.tuples(
        st.sampled_from("aab"), st.sampled_from(writers), time, st.one_of(time, st.none()), st.integers(0, 2),
        st.sampled_from(["row", "row", "row", "bound"]),
    )  # fmt: skip
    made = []
    for number, (name, writer, at, ev, v, kind) in enumerate(draw(st.lists(one, min_size=4, max_size=14)), 1):
        values = {"n": number, "v": v, "ev": _instant(ev), "rowtime": _instant(at)}
        bound = None if kind == "row" else _instant(at)
        made.append(ScriptItem(number, name, writer, values if bound is None else None, bound))
    if draw(st.booleans()):
        made += [ScriptItem(len(made) + i, name, "x", None, f.END) for i, name in enumerate("ab", 1)]
    return made


def _instant(halves: int | None) -> int | None:
    return None if halves is None else ORIGIN + halves * HALF


def transcript(law: Law, made: Sequence[ScriptItem]) -> Transcript:
    """The items as a transcript of the law's query; every writer is known from the start."""
    writers = {name: _writers(made, name) for name in "ab"}
    return Transcript(
        law.name,
        law.name,
        DECLARE.format(law.columns, law.clauses) + law.sql,
        tuple(made),
        (),
        "exact",
        frozenset(),
        writers,
        law.tables,
    )


def _writers(made: Sequence[ScriptItem], name: str) -> list[str]:
    return sorted({item.writer for item in made if item.stream == name} | {"x"})


def feeds(made: Sequence[ScriptItem], known: Sequence[ScriptItem] = ()) -> Feeds:
    """The same items for the oracle; an end is that of every writer. ``known``: items of all writers."""
    found: dict[str, dict[str, list[f.Item]]] = {name: {w: [] for w in _writers(known or made, name)} for name in "ab"}
    for item in made:
        if item.stream == SET:
            for items in (items for feed in found.values() for items in feed.values()):
                items.append(f.Given(item.at or 0))
        elif item.values is not None:
            found[item.stream][item.writer].append(f.Row(item.values["rowtime"], item.values, item.number))
        elif item.at is not None:
            for writer in found[item.stream] if item.at >= f.END else [item.writer]:
                found[item.stream][writer].append(f.Bound(item.at))
    return found


def shuffled(made: Sequence[ScriptItem], seed: int) -> list[ScriptItem]:
    """Another order of the writers: the order within each writer stays, and ends are last."""
    chance = random.Random(seed)
    queues: dict[tuple[str, str], list[ScriptItem]] = {}
    for item in made:
        key = ("~", "~") if item.at is not None and item.at >= f.END else (item.stream, item.writer)
        queues.setdefault(key, []).append(item)
    ends = queues.pop(("~", "~"), [])
    served = []
    while queues:
        key = chance.choice(sorted(queues))
        served.append(queues[key].pop(0))
        if not queues[key]:
            del queues[key]
    return [ScriptItem(n, i.stream, i.writer, i.values, i.at) for n, i in enumerate([*served, *ends], 1)]
