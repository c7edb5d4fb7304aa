"""Oracle of the order check, and of groups that an ordered value closes (SPEC 5, 6)."""

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


def ordered(name: str, feed: Feed, value: Callable[[Values], int | None]) -> Judged:
    """Let the rows of one sequence pass whose value does not go back and is not NULL."""
    ((writer, items),) = feed.items()
    mark: int | None = None
    kept: list[Item] = []
    refused: list[Refusal] = []
    for item in items:
        found = value(item.values) if isinstance(item, Row) else 0
        if isinstance(item, Row) and (found is None or (mark is not None and found < mark)):
            refused.append(Refusal(name, item.values, "BROKEN_ORDER", item.at, BEGINNING))
            continue
        if isinstance(item, Row):
            mark = found
        kept.append(item)
    return Judged({writer: kept}, refused, len(rows_of(items)))


def group_by_values(
    feed: Feed,
    closer: Callable[[Values], Any],
    others: Callable[[Values], tuple[Any, ...]],
    aggregate: Callable[[Any, tuple[Any, ...], Sequence[Row]], Values],
) -> Feed:
    """Groups of one sequence; complete once a row with another ``closer`` has come, or at the end.

    Stamped with the rowtime of the last row; in the order (stamp, closer, other keys). The
    promise is the bound, or the first row of the open groups.
    """
    ((_, items),) = feed.items()
    rows, bound = rows_of(items), bound_of(feed)
    groups: dict[tuple[Any, tuple[Any, ...]], list[Row]] = {}
    for row in rows:
        groups.setdefault((closer(row.values), others(row.values)), []).append(row)
    now = closer(rows[-1].values) if rows else None
    out, open_since = [], [bound]
    for (value, keys), members in groups.items():
        times = [row.at for row in members if row.at is not None]
        if value != now or bound >= END:
            out.append((max(times), value, [sortable(key) for key in keys], aggregate(value, keys, members)))
        else:
            open_since.append(min(times))
    out.sort(key=lambda entry: entry[:3])
    return {"": [*(Row(at, values) for at, _, _, values in out), Bound(END if bound >= END else min(open_since))]}
