"""Oracle of the guard (SPEC 7.2): one item after the other."""

from __future__ import annotations

from collections.abc import Sequence

Judgement = tuple[str, int | None, int | None]
Item = tuple[str, int | None]  # "row", "bound", or "arrival": a row whose time nobody gave; its time


def judge(times: Sequence[int | None], late: int, early: int, mark: int | None = None) -> list[Judgement]:
    """Result, mark before and mark after each row of one writer; ``None`` before the first."""
    return judge_items([("row", time) for time in times], late, early, mark, started=mark is not None)


def judge_items(
    items: Sequence[Item], late: int, early: int, mark: int | None = None, *, started: bool = False
) -> list[Judgement]:
    """The same over items among which are bounds: they raise the mark, and make no row the first."""
    found: list[Judgement] = []
    for kind, time in items:
        before, result = mark, "OK"
        if time is not None and kind != "bound" and mark is not None and time < mark - late:
            result = "LATE"
        elif time is not None and kind == "row" and started and mark is not None and time > mark + early:
            result = "EARLY"
        elif time is not None:
            mark = time if mark is None else max(mark, time)
            started = started or kind == "row"
        found.append((result, before, mark))
    return found
