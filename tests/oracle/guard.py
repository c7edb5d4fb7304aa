"""Oracle of the guard (SPEC 7.2): one row after the other."""

from __future__ import annotations

from collections.abc import Sequence

Judgement = tuple[str, int | None, int | None]


def judge(times: Sequence[int | None], late: int, early: int, mark: int | None = None) -> list[Judgement]:
    """Result, mark before and mark after each row of one writer; ``None`` before the first."""
    found: list[Judgement] = []
    for time in times:
        before, result = mark, "OK"
        if time is not None and mark is not None and time > mark + early:
            result = "EARLY"
        elif time is not None and mark is not None and time < mark - late:
            result = "LATE"
        elif time is not None:
            mark = time if mark is None else max(mark, time)
        found.append((result, before, mark))
    return found
