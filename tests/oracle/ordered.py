"""Oracle of the order check, and of groups that an ordered value closes (semantics 5, 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.oracle.feed import (
    BEGINNING,
    END,
    Bound,
    Feed,
    Item,
    Judged,
    Refusal,
    Row,
    Values,
    bound_of,
    rows_of,
    sortable,
)


def mark(values: Sequence[Any], within: int, rows: int) -> Any:
    """The floor of later values: the extreme of all values so far, or of all but the last ``rows``."""
    counted = [value for value in values[: len(values) - rows] if value is not None]
    return max(counted) - within if counted else None


SAID = "said"  # the single value of an item that is no row, but the bound of a column


def said(at: int | None, value: Any, arrived: int = BEGINNING) -> Row:
    """A bound of the ordered value, at its place in stream order."""
    return Row(at, {SAID: value}, arrived)


def mark_of(feed: Feed, value: Callable[[Values], Any], within: int = 0, rows: int = 0) -> Any:
    """The floor of later rows of one sequence: from its rows and bounds."""
    ((_, items),) = feed.items()
    found = rows_of(items)
    came = mark([value(row.values) for row in found if SAID not in row.values], within, rows)
    return max(
        (v for v in (came, *(row.values[SAID] for row in found if SAID in row.values)) if v is not None), default=None
    )


def ordered(name: str, feed: Feed, value: Callable[[Values], Any], within: int = 0, rows: int = 0) -> Judged:
    """Accept the rows of one sequence whose value is not NULL and does not go back too far."""
    ((writer, items),) = feed.items()
    came: list[Any] = []
    promised: list[Any] = []
    kept: list[Item] = []
    refused: list[Refusal] = []
    for item in items:
        if not isinstance(item, Row):
            kept.append(item)
            continue
        if SAID in item.values:
            promised.append(item.values[SAID])
            continue
        found, seen = value(item.values), mark(came, within, rows)
        least = max((v for v in (seen, *promised) if v is not None), default=None)
        came.append(found)
        if found is None or (least is not None and found < least):
            refused.append(Refusal(name, item.values, "BROKEN_ORDER", item.at, BEGINNING))
        else:
            kept.append(item)
    return Judged({writer: kept}, refused, len(rows_of(items)) - len(promised))


def group_by_values(
    feed: Feed,
    closer: Callable[[Values], Any],
    others: Callable[[Values], tuple[Any, ...]],
    aggregate: Callable[[Any, tuple[Any, ...], Sequence[Row]], Values],
    now: Callable[[], Any] | None = None,
) -> Feed:
    """Groups of one sequence; complete when a row with another ``closer`` has come, or at the end.

    ``now`` is the closer at the mark, if that is not the value of the last row. Results have the rowtime of the last
    row, in the order (stamp, closer, other keys). The promise is the bound, or the first row of the open groups.
    """
    ((_, items),) = feed.items()
    rows, bound = rows_of(items), bound_of(feed)
    groups: dict[tuple[Any, tuple[Any, ...]], list[Row]] = {}
    for row in rows:
        groups.setdefault((closer(row.values), others(row.values)), []).append(row)
    clock = now() if now is not None else closer(rows[-1].values) if rows else None
    out, open_since = [], [bound]
    for (value, keys), members in groups.items():
        times = [row.at for row in members if row.at is not None]
        passed = value < clock if now is not None and clock is not None else value != clock and now is None
        if passed or bound >= END:
            out.append((max(times), value, [sortable(key) for key in keys], aggregate(value, keys, members)))
        else:
            open_since.append(min(times))
    out.sort(key=lambda entry: entry[:3])
    return {"": [*(Row(at, values) for at, _, _, values in out), Bound(END if bound >= END else min(open_since))]}


def stamped_groups(
    feed: Feed,
    keys: Callable[[Row], tuple[Any, ...]],
    clocks: tuple[Any, ...],
    stamp: Callable[[tuple[Any, ...]], int],
    aggregate: Callable[[tuple[Any, ...], Sequence[Row]], Values],
) -> Feed:
    """Groups with an ``AS ROWTIME`` over closing keys, complete when one of them lies before its clock.

    A clock is ``None`` until something moves it. The promise is the stamp at the clocks.
    """
    ((_, items),) = feed.items()
    bound = bound_of(feed)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(items):
        groups.setdefault(keys(row), []).append(row)
    past = [
        key
        for key in groups
        if bound >= END or any(at is not None and part < at for part, at in zip(key, clocks, strict=True))
    ]
    past.sort(key=lambda key: (stamp(key), key))
    known = all(at is not None for at in clocks)
    promised = END if bound >= END else stamp(clocks) if known else BEGINNING
    return {"": [*(Row(stamp(key), aggregate(key, groups[key])) for key in past), Bound(promised)]}
