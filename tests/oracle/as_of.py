"""Oracle of the join as of a time (semantics 6): of the rows up to that time, the last one with the key."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.feed import Bound, Feed, Row, Values, bound_of, rows_of
from tests.oracle.join import placed
from tests.oracle.merge import merge
from tests.oracle.select import select
from tests.oracle.union_all import union_all


def as_of(
    left: Feed,
    right: Feed,
    on: Callable[[Values, Values], bool | None],
    row: Callable[[Row, Row | None], Values],
    *,
    outer: bool = False,
) -> Feed:
    """One row for each row of the left with a match (``outer``: for each row), with its rowtime, in order.

    It goes out when no further row of the right can be at or before its time, and no further row of the left can come
    before it: in the order of a union whose first input is the right.
    """
    known = placed(right)
    together = merge(union_all(select(right, project=lambda _: {}), select(left, project=lambda v: {"left": v})))
    out = []
    for one in rows_of(together[""]):
        if "left" not in one.values:
            continue
        mine = Row(one.at, one.values["left"])
        assert mine.at is not None
        older = [other for _, other in known if other.at is not None and other.at <= mine.at]
        found = [other for other in older if on(mine.values, other.values)]
        if found or outer:
            out.append(Row(mine.at, row(mine, found[-1] if found else None)))
    return {"": [*out, Bound(min(bound_of(left), bound_of(right)))]}
