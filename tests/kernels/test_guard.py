"""The guard equals a loop over the rows, whatever the blocks."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.time import BEGINNING
from rowtime.kernels import guard as guard_module
from rowtime.kernels.guard import EARLY, LATE, OK, guard
from tests.oracle.guard import judge

LONG = bool(os.environ.get("ROWTIME_LONG"))
NAMES = {OK: "OK", EARLY: "EARLY", LATE: "LATE"}


@pytest.mark.parametrize("block", [2, guard_module.BLOCK])
@settings(max_examples=2000 if LONG else 200, deadline=None, derandomize=not LONG, database=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(1000, 1020)), max_size=14),
    st.one_of(st.none(), st.integers(1000, 1012)),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_the_guard_equals_the_loop(
    block: int, times: list[int | None], mark: int | None, late: int, early: int
) -> None:
    known = np.array([time is not None for time in times], bool)
    values = np.array([0 if time is None else time for time in times], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard_module, "BLOCK", block)
        found = guard(values, known, BEGINNING if mark is None else mark, late, early)
    expected = judge(times, late, early, mark)
    assert [NAMES[code] for code in found.result.tolist()] == [result for result, _, _ in expected]
    assert [None if at == BEGINNING else at for at in found.before.tolist()] == [before for _, before, _ in expected]
    assert [None if at == BEGINNING else at for at in found.after.tolist()] == [after for _, _, after in expected]
    assert found.mark == (BEGINNING if not (last := expected[-1][2] if expected else mark) else last)
