"""Averages of decimals that exceed their type: 38 digits, 4 more after the point than the sum."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.kernels.exact import Overflow, fitting_averages

ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(1 - 10**38, 10**38 - 1)), st.integers(1, 5)), max_size=5)


def beyond(total: int | None, count: int, scale: int) -> bool:
    """Computed with Python's decimals."""
    if total is None:
        return False
    shown, wide = min(scale + 4, 38), Context(prec=200, rounding=ROUND_HALF_UP)
    mean = wide.divide(wide.scaleb(Decimal(total), -scale), Decimal(count))
    return wide.quantize(mean, Decimal(1).scaleb(-shown)).copy_abs() >= Decimal(10) ** (38 - shown)


@settings(deadline=None)
@given(ROWS, st.integers(0, 38))
def test_averages_that_do_not_fit_are_found(rows: list[tuple[int | None, int]], scale: int) -> None:
    wide = Context(prec=80)
    values = [None if total is None else wide.scaleb(Decimal(total), -scale) for total, _ in rows]
    totals = pa.array(values, pa.decimal128(38, scale))
    wanted = [beyond(total, count, scale) for total, count in rows]
    counts = np.array([count for _, count in rows], np.int64)
    if not any(wanted):
        fitting_averages(totals, counts)
        return
    with pytest.raises(Overflow) as wrong:
        fitting_averages(totals, counts)
    assert wrong.value.beyond.tolist() == wanted


@pytest.mark.parametrize(("total", "fits"), [(10**34 - 1, True), (10**34, False)])
def test_the_limit_is_where_38_digits_end(total: int, fits: bool) -> None:
    totals = pa.array([Decimal(total)], pa.decimal128(38, 0))
    if fits:
        fitting_averages(totals, np.array([1]))
    else:
        with pytest.raises(Overflow, match="beyond its type"):
            fitting_averages(totals, np.array([1]))
