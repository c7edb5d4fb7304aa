"""The gate of an event stream, over the times of one writer: bounds, late events, adjustments (semantics 9.2, 9.3).

Everything is a running maximum over the rows in the writer's order, so a million rows need a few array operations, and
the ends of ticks do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rowtime.core.shapes import EventShape
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS, UNREACHED
from rowtime.kernels.guard import EARLY as EARLY_ROW
from rowtime.kernels.guard import Items as Guarded
from rowtime.kernels.guard import Limits, guard

POINT, INTERVAL, START_EDGE, STOP_EDGE = 0, 1, 2, 3
"""The kind of a row: a whole event, or one of its edges."""

ACCEPTED, LATE, NULL_ROWTIME, MALFORMED, EARLY = 0, 1, 2, 3, 4
REASONS = ("", "LATE", "NULL_ROWTIME", "MALFORMED", "EARLY")


@dataclass(frozen=True)
class Mark:
    """The state of a writer: its bound, its greatest start, and its number of rows."""

    bound: int = BEGINNING
    highest: int = BEGINNING
    rows: int = 0


@dataclass(frozen=True)
class Judgement:
    """The start of each row after adjustment, why it is refused, the bound when it came; and the mark after all.

    ``marks``: the reason of a refusal: the bound, or the mark above which the row is early. ``risen``: the greatest
    start before each row and, at the end, after all.
    """

    starts: np.ndarray
    reasons: np.ndarray
    bounds: np.ndarray
    mark: Mark
    marks: np.ndarray
    risen: np.ndarray


class Items(NamedTuple):
    """The rows of one writer by their positions; negative ``kinds`` mean NULL, and so do times outside the calendar.

    Those are outside 0001 to 9999, including BEGINNING; END is an unknown end.
    """

    positions: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    bad: np.ndarray


def judge(
    shape: EventShape, mark: Mark, rows: Items, given: Sequence[tuple[int, int]], *, ordered: bool = True
) -> Judgement:
    """Judge rows in the order of their positions; ``given`` are bounds (position, µs), which count for later rows.

    Rows that are not ``ordered`` are a set: they generate a bound together, which does not apply to them.
    """
    positions, kinds, starts, stops, bad = rows
    null = _without_time(kinds, starts, stops)
    early, above = _early(shape, mark, rows, null, given, ordered=ordered)
    ends = kinds == STOP_EDGE
    highest, generated = _generated(shape, mark, starts, null | early | ends, ordered=ordered)
    before = _before(generated, mark.bound) if ordered else np.full(len(positions), mark.bound)
    if given:
        before = np.maximum(before, _given(positions, given, mark.bound))
    wrong = bad | (kinds < 0) | ((kinds != POINT) & (stops < starts)) | (ends & (stops >= END))
    late, moved = _late(shape, kinds, starts, stops, before)
    reasons = np.full(len(positions), ACCEPTED)
    for flags, reason in ((late, LATE), (early, EARLY), (wrong, MALFORMED), (null & ~bad, NULL_ROWTIME)):
        if flags.any():
            reasons[flags] = reason  # the last one counts
    last = max([mark.bound, *(at for _, at in given), *(generated[-1:].tolist())])
    after = Mark(last, int(highest[-1]), mark.rows + len(positions))
    marks = np.where(early, above, before) if early.any() else before
    moved &= ~early
    return Judgement(np.where(moved, before, starts) if moved.any() else starts, reasons, before, after, marks, highest)


def _without_time(kinds: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return rows with a time that is NULL or outside 0001 to 9999; a point has no end but its start."""
    ends = (kinds != POINT) & (stops != END) & ((stops < MIN_MICROS) | (stops > MAX_MICROS))
    outside: np.ndarray = (starts < MIN_MICROS) | (starts > MAX_MICROS) | ends
    return outside


def _early(  # noqa: PLR0913 - the columns of one judgement
    shape: EventShape, mark: Mark, rows: Items, null: np.ndarray, given: Sequence[tuple[int, int]], *, ordered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that start too far above their writer's greatest start and bound (they do not raise it); and that."""
    count = len(rows.positions)
    if shape.beyond is None or not count:
        return np.zeros(count, bool), np.zeros(count, np.int64)
    bounds = np.array([item for item in given if item[1] < END], np.int64).reshape(-1, 2)
    judged = (rows.kinds != STOP_EDGE) & (rows.kinds >= 0) & ~null
    highest, started = max(mark.highest, mark.bound), mark.highest > BEGINNING
    if mark.bound >= END:  # everything is late
        return np.zeros(count, bool), np.full(count, END)
    if not ordered:
        return judged & started & (rows.starts - shape.beyond > highest), np.full(count, highest)
    order = np.argsort(np.concatenate([rows.positions, bounds[:, 0]]), kind="stable")
    places = np.argsort(order, kind="stable")[:count]
    times = np.concatenate([np.where(judged, rows.starts, BEGINNING), bounds[:, 1]])[order]
    flags = np.concatenate([judged, np.zeros(len(bounds), bool)])[order]
    known = np.concatenate([judged, np.ones(len(bounds), bool)])[order]
    none = np.zeros(len(order), bool)
    guarded = guard(
        Guarded(times, known, flags, flags, none), highest, Limits(UNREACHED, shape.beyond), started=started
    )
    early: np.ndarray = guarded.result[places] == EARLY_ROW
    return early, guarded.before[places]


def advances(  # noqa: PLR0913 - a writer's items, and its earlier state
    shape: EventShape, mark: Mark, rows: Items, given: Sequence[tuple[int, int, int]], times: np.ndarray, clock: int
) -> tuple[list[tuple[int, int, int]], Mark, int]:
    """(clock, position, bound) of each item at which a writer's bound rose; its mark and its clock after all.

    ``times`` are the arrivals of the rows, ``given`` bounds (position, bound, arrival), ``clock`` the writer's earlier
    clock; all in µs. An unknown arrival is BEGINNING: a clock is a running maximum.
    """
    null = _without_time(rows.kinds, rows.starts, rows.stops)
    early, _ = _early(shape, mark, rows, null, [(position, bound) for position, bound, _ in given], ordered=True)
    highest, generated = _generated(shape, mark, rows.starts, null | early | (rows.kinds == STOP_EDGE))
    steps = np.array(given, np.int64).reshape(-1, 3)
    positions = np.concatenate([rows.positions, steps[:, 0]])
    order = np.argsort(positions, kind="stable")
    clocks = np.maximum.accumulate(np.concatenate([[clock], np.concatenate([times, steps[:, 2]])[order]]))
    bounds = np.maximum.accumulate(np.concatenate([[mark.bound], np.concatenate([generated, steps[:, 1]])[order]]))
    rises = bounds[1:] > bounds[:-1]
    rises_of_clock = zip(
        clocks[1:][rises].tolist(), positions[order][rises].tolist(), bounds[1:][rises].tolist(), strict=True
    )
    after = Mark(int(bounds[-1]), int(highest[-1]), mark.rows + len(times))
    return list(rises_of_clock), after, int(clocks[-1])


def _generated(
    shape: EventShape, mark: Mark, starts: np.ndarray, hidden: np.ndarray, *, ordered: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the greatest start before each row and after all, and the strongest bound generated by each row.

    ``hidden``: rows that raise no bound, those without a time and ends, which repeat a start.
    """
    count = len(starts)
    highest = np.empty(count + 1, np.int64)
    highest[0] = mark.highest
    # A product: a million choices in random order take five times as long.
    shown = np.multiply(starts - BEGINNING, ~hidden, out=highest[1:])
    shown += BEGINNING
    np.maximum.accumulate(highest, out=highest)
    if not ordered:
        highest[1:] = highest[-1]
    fired = np.zeros(0, np.int64)
    if shape.rows is not None:
        fired = np.arange(-(mark.rows + 1) % shape.rows, count, shape.rows)
    elif shape.every is not None:
        fired = np.flatnonzero(highest[1:] > highest[:-1])
        passed = highest[fired + 1] // shape.every
        fired = fired[(passed > highest[fired] // shape.every) | (highest[fired] <= BEGINNING)]
    fired = fired[highest[fired + 1] > BEGINNING]
    bounds = np.maximum.accumulate(np.maximum(highest[fired + 1] - shape.delay, mark.bound))
    lengths = np.diff(fired, prepend=0, append=count)
    return highest, np.repeat(np.concatenate([[mark.bound], bounds]), lengths)


def _before(generated: np.ndarray, bound: int) -> np.ndarray:
    """Return the bound before each row."""
    before = np.empty(len(generated), np.int64)
    before[:1] = bound
    before[1:] = generated[:-1]
    return before


def _given(positions: np.ndarray, given: Sequence[tuple[int, int]], bound: int) -> np.ndarray:
    """Return the strongest bound before each row."""
    ordered = sorted(given)
    strongest = np.maximum.accumulate([bound, *(at for _, at in ordered)])
    return strongest[np.searchsorted([position for position, _ in ordered], positions, side="left")]


def _late(
    shape: EventShape, kinds: np.ndarray, starts: np.ndarray, stops: np.ndarray, before: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to refuse, and rows to move to the bound: those that extend beyond it, if the shape adjusts."""
    ends = kinds == STOP_EDGE
    behind = (ends & (stops < before)) | (~ends & (starts < before))
    reaches = ((kinds == INTERVAL) & (stops > before)) | (kinds == START_EDGE)
    moved = behind & reaches & (before < END) if shape.adjusts else np.zeros(len(starts), bool)
    return behind & ~moved, moved
