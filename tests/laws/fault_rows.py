"""Rows that show planted faults, and the example that most laws of rows use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rowtime.core.time import END
from rowtime.testing.transcripts import ScriptItem
from tests.laws.pipelines import HALF, ORIGIN

Plant = Callable[[pytest.MonkeyPatch], None]


def item(number: int, stream: str, writer: str, at: int, ev: int | None = None, v: int | None = 1) -> ScriptItem:
    time = ORIGIN + at * HALF
    values = {"n": number, "v": v, "ev": None if ev is None else ORIGIN + ev * HALF, "rowtime": time}
    return ScriptItem(number, stream, writer, values, None)


def bound(number: int, stream: str, writer: str, at: int) -> ScriptItem:
    return ScriptItem(number, stream, writer, None, at if at >= END else ORIGIN + at * HALF)


EXAMPLE = [
    item(1, "a", "y", 2, 3),
    item(2, "a", "x", 2, 9, v=2),
    item(3, "b", "x", 2, 2),
    item(4, "a", "x", 3, 4, v=0),
    item(5, "a", "x", 5, 6),
    item(6, "a", "y", 3, None),
    item(7, "a", "x", 4, 2),
    item(8, "a", "y", 8, 7),
    item(9, "b", "x", 8, 8),
    bound(10, "a", "y", 9),
    item(11, "a", "y", 8, 9),
    item(12, "a", "x", 9, 11),
    bound(13, "a", "x", END),
    bound(14, "b", "x", END),
]
CUT = [3, 6, 9, 11, 14]
