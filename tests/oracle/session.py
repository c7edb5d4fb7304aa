"""Oracle of sessions (semantics 5, as in Calcite): ``[first, last + gap)``, with the end as rowtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Row, Values, bound_of, sortable
from tests.oracle.group_by import in_stream_order

Keys = tuple[Any, ...]


def sessions(feed: Feed, keys: Callable[[int, Values], Keys], gap: int) -> list[tuple[Keys, list[Row]]]:
    """The rows of each session in stream order; a row at exactly last + gap begins the next one."""
    found: list[tuple[Keys, list[Row]]] = []
    current: dict[Keys, list[Row]] = {}
    for row in in_stream_order(feed):
        assert row.at is not None
        key = keys(row.at, row.values)
        if key not in current or row.at >= _last(current[key]) + gap:
            current[key] = []
            found.append((key, current[key]))
        current[key].append(row)
    return found


def _last(rows: Sequence[Row]) -> int:
    last = rows[-1].at
    assert last is not None
    return last


def session_group(
    feed: Feed,
    keys: Callable[[int, Values], Keys],
    gap: int,
    aggregate: Callable[[int, int, Keys, Sequence[Row]], Values],
    having: Callable[[Values], bool | None] = lambda _: True,
) -> Feed:
    """One row per session when the bound has reached its end, in the order of ends, keys; the bound passes."""
    bound = bound_of(feed)
    complete = []
    for key, rows in sessions(feed, keys, gap):
        start, end = rows[0].at, _last(rows) + gap
        assert start is not None
        result = Row(end, aggregate(start, end, key, rows))
        if end <= bound and having(result.values):
            complete.append((end, [sortable(part) for part in key], result))
    complete.sort(key=lambda entry: entry[:2])
    return {"": [*(entry[2] for entry in complete), Bound(bound)]}


def session_rows(feed: Feed, keys: Callable[[int, Values], Keys], gap: int) -> Feed:
    """The rows of each ended session, with its end as rowtime; rows of one end in their own order."""
    bound = bound_of(feed)
    places = {id(row): n for n, row in enumerate(in_stream_order(feed))}
    out = []
    for _, rows in sessions(feed, keys, gap):
        start, end = rows[0].at, _last(rows) + gap
        if end <= bound:
            out += [(end, places[id(row)], Row(end, {**row.values, "s": start, "e": end})) for row in rows]
    out.sort(key=lambda entry: entry[:2])
    promised = bound + 1 if BEGINNING < bound < END else bound
    return {"": [*(entry[2] for entry in out), Bound(promised)]}


def staggered(
    feed: Feed,
    keys: Callable[[int, Values], Keys],
    length: int,
    aggregate: Callable[[Keys, Sequence[Row]], Values],
) -> Feed:
    """STAGGER: a window opens with the first row of its key, ``[first, first + length)``, and is one row at its end."""
    bound = bound_of(feed)
    windows: list[tuple[Keys, list[Row]]] = []
    current: dict[Keys, list[Row]] = {}
    for row in in_stream_order(feed):
        assert row.at is not None
        key = keys(row.at, row.values)
        if key not in current or row.at >= (current[key][0].at or 0) + length:
            current[key] = []
            windows.append((key, current[key]))
        current[key].append(row)
    ended = [((rows[0].at or 0) + length, key, rows) for key, rows in windows]
    out = [(end, [sortable(part) for part in key], Row(end, aggregate(key, rows))) for end, key, rows in ended]
    out = sorted((entry for entry in out if entry[0] <= bound), key=lambda entry: entry[:2])
    promised = bound + 1 if BEGINNING < bound < END else bound
    return {"": [*(entry[2] for entry in out), Bound(promised)]}
