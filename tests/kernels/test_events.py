"""The gate of events over the times of one writer equals a loop over its items, with every cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtime.core.shapes import EventShape
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS
from rowtime.kernels.events import (
    EARLY,
    INTERVAL,
    NULL_ROWTIME,
    POINT,
    REASONS,
    Items,
    Judgement,
    Mark,
    advances,
    judge,
)
from rowtime.kernels.events import START_EDGE as BEGINS
from rowtime.testing.transcripts import ScriptItem
from tests.oracle import lifetimes as o

KINDS = ("point", "interval", "start", "end")
SHAPE = EventShape("BY", "a", "b", "kind", rows=2, delay=1, beyond=3)


def rows_of(made: Sequence[ScriptItem]) -> Items:
    rows = [item for item in made if item.values is not None]
    kinds = [KINDS.index(item.values["kind"]) for item in rows if item.values]
    starts = [BEGINNING if i.values["start"] is None else i.values["start"] for i in rows if i.values]
    stops = [END if item.values["stop"] is None else item.values["stop"] for item in rows if item.values]
    numbers = [np.array(part, np.int64) for part in ([item.number for item in rows], kinds, starts, stops)]
    return Items(*numbers, np.zeros(len(rows), bool))


def judged(made: Sequence[ScriptItem], cut: int) -> set[tuple[int, str]]:
    """The refused items if the input is split into two ticks."""
    found, mark = set(), Mark()
    for part in ([i for i in made if i.number <= cut], [i for i in made if i.number > cut]):
        said = [(item.number, item.at) for item in part if item.at is not None]
        rows = rows_of(part)
        result: Judgement = judge(SHAPE, mark, rows, said)
        arrivals = np.zeros(len(rows.positions), np.int64)
        _, lent, _ = advances(SHAPE, mark, rows, [(place, at, 0) for place, at in said], arrivals, 0)
        assert lent == result.mark, "who lends its bounds has those of its gate"
        mark = result.mark
        found |= {(int(n), REASONS[reason]) for n, reason in zip(rows.positions, result.reasons, strict=True) if reason}
    return found


@given(
    st.lists(
        st.tuples(st.sampled_from((*KINDS, "bound")), st.one_of(st.none(), st.integers(0, 20)), st.integers(0, 5)),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_the_guard_of_events_equals_a_loop(drawn: list[tuple[str, int | None, int]], cut: int) -> None:
    made = []
    for number, (kind, at, length) in enumerate(drawn, 1):
        stop = None if at is None or kind in ("point", "start") else at + length
        values = None if kind == "bound" else {"kind": kind, "start": at, "stop": stop}
        made.append(ScriptItem(number, "s", "x", values, (at or 0) if kind == "bound" else None))
    expected = {pair for pair in o.gate(made, every_rows=2, delay=1, beyond=3).refused if pair[1] != "UNMATCHED_EDGE"}
    assert judged(made, cut) == expected


@pytest.mark.parametrize("at", [MAX_MICROS + 1, MIN_MICROS - 1, 1_704_067_200_000_000_000])
@pytest.mark.parametrize("kind", [POINT, INTERVAL, BEGINS])
def test_a_time_outside_the_calendar_made_everything_after_it_late(at: int, kind: int) -> None:
    rows = Items(*(np.array(part, np.int64) for part in ([1, 2], [kind, kind], [at, 5], [END, END])), np.zeros(2, bool))
    found = judge(EventShape("BY", "a", "b", "kind", rows=1), Mark(), rows, [])
    assert (found.reasons.tolist(), found.mark.highest) == ([NULL_ROWTIME, 0], 5)


def test_an_end_outside_the_calendar_is_not_an_open_end() -> None:
    rows = Items(*(np.array(part, np.int64) for part in ([1], [INTERVAL], [5], [MAX_MICROS + 7])), np.zeros(1, bool))
    assert judge(EventShape("INTERVAL", "a", "b"), Mark(), rows, []).reasons.tolist() == [NULL_ROWTIME]


def test_rows_of_a_set_are_early_by_the_mark_before_it() -> None:
    rows = Items(
        *(np.array(part, np.int64) for part in ([1, 2, 3], [0] * 3, [9, 30, 12], [10, 31, 13])), np.zeros(3, bool)
    )
    found = judge(EventShape("POINT", "a", beyond=3), Mark(BEGINNING, 10, 4), rows, [], ordered=False)
    assert (found.reasons.tolist(), found.mark.highest, found.marks[1]) == ([0, EARLY, 0], 12, 10)
