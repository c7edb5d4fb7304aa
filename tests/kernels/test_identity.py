"""Numbers for values: sums of weights by them, and whether all values are one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowtime.kernels.identity import only_value, summed

TEXTS = st.sampled_from(["", "a", "b", "ab", "ba", "aa", "é"])
NUMBERS = st.sampled_from([0, 1, -(2**62), 2**62])


@given(st.one_of(st.lists(st.lists(of | st.none(), max_size=5), min_size=1, max_size=3) for of in (TEXTS, NUMBERS)))
def test_one_value_is_found_in_any_chunks(chunks: list[list[Any]]) -> None:
    kind = pa.string() if any(isinstance(value, str) for chunk in chunks for value in chunk) else pa.int64()
    column = pa.chunked_array([pa.array(["z" if kind == pa.string() else 7, *chunk], kind)[1:] for chunk in chunks])
    values = {value for chunk in chunks for value in chunk}
    assert only_value(column) == (values.pop() if len(values) == 1 else None)


@given(st.lists(st.tuples(TEXTS | st.none(), NUMBERS, st.sampled_from([-1, 1, 2])), max_size=12), st.booleans())
def test_weights_are_summed_by_all_columns(rows: list[tuple[str | None, int, int]], alone: bool) -> None:
    names, numbers, weights = ([row[n] for row in rows] for n in range(3))
    columns = [pa.chunked_array([pa.array(numbers, pa.int64())])]
    keys: list[Any] = [*numbers]
    if not alone:
        columns.append(pa.chunked_array([pa.array(names, pa.string())]))
        keys = [*zip(numbers, names, strict=True)]
    expected: Counter[Any] = Counter()
    for key, weight in zip(keys, weights, strict=True):
        expected[key] += weight
    places, sums = summed(columns, np.array(weights, np.int64))
    assert [keys.index(keys[place]) for place in places] == [*places], "the first places"
    found = {keys[place]: total for place, total in zip(places.tolist(), sums.tolist(), strict=True)}
    assert found == {key: total for key, total in expected.items() if total}
