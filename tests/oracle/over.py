"""Oracle of OVER (semantics 5, 12): for each row its frame, as a list of the earlier rows and itself.

Everything is computed again for every row: no state, not fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.feed import Bound, Feed, Row, Values, clock_of, rows_of

Key = Callable[[Row], Any]
Aggregate = Callable[[Sequence[Row]], Any]


@dataclass(frozen=True)
class Frame:
    """From ``lower`` before the row (``None``: all earlier rows) to ``upper`` before it.

    Counted in rows; with ``value`` in units of that value, both ends inclusive. ``own``: the row itself may be inside.
    """

    lower: int | None
    upper: int = 0
    value: Callable[[Row], int] | None = None
    own: bool = True

    def rows(self, came: Sequence[Row]) -> list[Row]:
        """The frame of the last of these rows."""
        me = came[-1]
        if self.value is None:
            first = 0 if self.lower is None else max(0, len(came) - 1 - self.lower)
            inside = list(came[first : max(first, len(came) - self.upper)])
        else:
            now = self.value(me)
            inside = [
                row
                for row in came
                if (self.lower is None or self.value(row) >= now - self.lower) and self.value(row) <= now - self.upper
            ]
        return inside if self.own else [row for row in inside if row is not me]


def over(
    feed: Feed,
    frames: dict[str, tuple[Frame, Aggregate]],
    key: Key = lambda _: None,
    project: Callable[[Values], Values] = lambda v: v,
    expires: int | None = None,
) -> Feed:
    """One row out for each row of a sequence, with the value of each aggregate over its frame.

    ``expires``: a key without a row for longer than this (µs) begins again.
    """
    (items,) = feed.values()
    came: dict[Any, list[Row]] = {}
    out = []
    for row in rows_of(items):
        mine = came.setdefault(key(row), [])
        assert row.at is not None
        if expires is not None and mine and mine[-1].at is not None and row.at - mine[-1].at > expires:
            mine.clear()
        mine.append(row)
        made = {name: aggregate(frame.rows(mine)) for name, (frame, aggregate) in frames.items()}
        out.append(Row(row.at, project({**row.values, **made}), keys=()))
    return {"": [*out, Bound(clock_of(items))]}


# -- aggregates over the rows of a frame ------------------------------------------------


def column(rows: Sequence[Row], name: str, *, nulls: bool = True) -> list[Any]:
    """The values of a column in a frame."""
    return [row.values[name] for row in rows if nulls or row.values[name] is not None]


def nth(name: str, n: int = 1, *, last: bool = False, nulls: bool = True, default: Any = None) -> Aggregate:
    """The n-th value of a frame, from its end if ``last``; the default if there are fewer."""

    def value(rows: Sequence[Row]) -> Any:
        found = column(rows, name, nulls=nulls)
        if len(found) < n:
            return default
        return found[-n] if last else found[n - 1]

    return value


def spread(name: str, *, sample: bool) -> Aggregate:
    """VAR_SAMP or VAR_POP."""

    def value(rows: Sequence[Row]) -> float | None:
        found = column(rows, name, nulls=False)
        if len(found) <= sample:
            return None
        mean = sum(found) / len(found)
        return float(sum((one - mean) ** 2 for one in found) / (len(found) - sample))

    return value


def decayed(name: str, half_life: int) -> Aggregate:
    """EXP_AVG: the weight of a row halves with each half-life that it lies before the current one."""

    def value(rows: Sequence[Row]) -> float | None:
        known = [(row.at, row.values[name]) for row in rows if row.values[name] is not None and row.at is not None]
        if not known:
            return None
        now = known[-1][0]
        weights = [2.0 ** ((at - now) / half_life) for at, _ in known]
        return sum(w * v for w, (_, v) in zip(weights, known, strict=True)) / sum(weights)

    return value
