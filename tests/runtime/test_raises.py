"""Which row raised a mark by far, by the mark before each row and by the times of the rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.time import BEGINNING, HOUR
from rowtime.operators.streams.raises import raised, raised_by_times

TIMES = st.lists(st.integers(0, 12).map(lambda n: n * HOUR // 2), max_size=12)
STORED = st.one_of(st.none(), st.just([3, 0, 5 * HOUR, 7, 2]))


def one_by_one(stored: list[int] | None, before: int, times: list[int], late: set[int]) -> list[int] | None:
    """Return the result by going from row to row; the row with number n is at position 10 + n."""
    for n, time in enumerate(times):
        if time > before:
            far = before <= BEGINNING or time - before > HOUR
            stored, before = [10 + n, before, time, 0, 0] if far else None, time
        elif stored is not None:
            stored = [*stored[:3], stored[3] + 1, stored[4] + (n in late)]
    return stored


@settings(deadline=None)
@given(STORED, st.sampled_from([BEGINNING, 0, 2 * HOUR, 5 * HOUR]), TIMES, st.sets(st.integers(0, 11)))
def test_both_forms_equal_a_loop_over_the_rows(
    stored: list[int] | None, before: int, times: list[int], late: set[int]
) -> None:
    positions, indexes = 10 + np.arange(len(times)), np.array(sorted(n for n in late if n < len(times)), np.int64)
    highest = np.maximum.accumulate(np.array([before, *times], np.int64))
    expected = one_by_one(stored, before, times, late)
    by_marks = raised(stored, positions, highest, indexes)
    by_times = raised_by_times(stored, positions, before, np.array(times, np.int64), indexes)
    assert [by_marks and by_marks[:5], by_times and by_times[:5]] == [expected, expected]
