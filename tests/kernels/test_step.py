"""The step limit equals a loop over the rows, with every cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.time import BEGINNING
from rowtime.kernels.guard import EARLY, LATE, OK, Limits
from rowtime.operators.gates.split import step_limit
from tests.oracle.guard import judge_steps

NAMES = {OK: "OK", EARLY: "EARLY", LATE: "LATE"}
near = st.integers(1000, 1020)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.one_of(st.none(), near, near, near), max_size=14),
    st.integers(0, 14),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_the_step_limit_equals_the_loop(times: list[int | None], cut: int, late: int, early: int) -> None:
    found: list[tuple[str, int | None]] = []
    mark = previous = BEGINNING
    for part in (times[:cut], times[cut:]):
        known = np.array([time is not None for time in part], bool)
        values = np.array([BEGINNING if time is None else time for time in part], np.int64)
        judged, previous = step_limit(values, known, mark, previous, Limits(late, early))
        mark = judged.mark
        marks = [None if at == BEGINNING else at for at in judged.after.tolist()]
        found += zip((NAMES[code] for code in judged.result.tolist()), marks, strict=True)
    assert found == judge_steps(times, late, early)
