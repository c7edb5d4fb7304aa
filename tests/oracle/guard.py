"""Oracle of the guard (semantics 7.2): item by item."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.feed import END

Judgement = tuple[str, int | None, int | None]
Item = tuple[
    str, int | None
]  # "row", "bound", "arrival" (the time of a row without one) or "stamp" (of a producer); and its time


def vote(times: Sequence[int | None], index: int, early: int, resync: int, *, ended: bool) -> str | None:
    """The verdict of the rows after a jump about it, one after the other; ``None`` while it is open."""
    near = others = 0
    time = times[index]
    assert time is not None
    for later in times[index + 1 :]:
        if later is not None and abs(later - time) <= early:
            near += 1
        else:
            others += 1
        if resync in (near, others):
            return "OK" if near == resync else "EARLY"
    return "EARLY" if ended else None


def judge(times: Sequence[int | None], late: int, early: int, mark: int | None = None) -> list[Judgement]:
    """Result, mark before and mark after each row of one writer; ``None`` before the first."""
    return judge_items([("row", time) for time in times], late, early, mark, started=mark is not None)


def judge_items(
    items: Sequence[Item], late: int, early: int, mark: int | None = None, *, started: bool = False
) -> list[Judgement]:
    """The same over items with bounds: a bound raises the mark, and a row after it is not the first."""
    found: list[Judgement] = []
    for kind, given in items:
        before, result, time = mark, "OK", given
        if time is not None and kind in ("arrival", "stamp") and mark is not None and mark < END:
            time = max(time, mark)
        if time is not None and kind != "bound" and mark is not None and time < mark - late:
            result = "LATE"
        elif time is not None and kind in ("row", "stamp") and started and mark is not None and time > mark + early:
            result = "EARLY"
        elif time is not None:
            mark = time if mark is None else max(mark, time)
            started = started or kind in ("row", "stamp")
        found.append((result, before, mark))
    return found


def judge_steps(times: Sequence[int | None], late: int, early: int) -> list[tuple[str, int | None]]:
    """Result and mark after each row; early is a step from the last row that had a time."""
    found: list[tuple[str, int | None]] = []
    mark: int | None = None
    previous: int | None = None
    for time in times:
        result = "OK"
        if time is not None:
            if previous is not None and time > previous + early:
                result = "EARLY"
            else:
                result = "LATE" if mark is not None and time < mark - late else "OK"
                mark = time if mark is None else max(mark, time)
            previous = time
        found.append((result, mark))
    return found
