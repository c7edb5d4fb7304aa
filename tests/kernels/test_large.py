"""Steps over large arrays give what numpy gives for the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtime.core import threads
from rowtime.kernels import edges, large
from tests.kernels.test_edges import test_pairs_equal_those_of_queues as pairs_equal_those_of_queues

NUMBERS = st.lists(st.integers(0, 2**64 - 1), max_size=20)


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(threads, "LARGE", 0)


@given(NUMBERS)
def test_numbers_are_sorted(numbers: list[int]) -> None:
    assert large.in_order(np.array(numbers, np.uint64)).tolist() == sorted(numbers)


@pytest.mark.parametrize("processors", [1, 2, 7])
def test_values_are_taken(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "processors", lambda: processors)
    places = np.random.default_rng(1).integers(0, 50, 31)
    for values in (np.arange(50) * 3, np.arange(50) % 2 == 0):
        assert large.taken(values, places).tolist() == values[places].tolist()
        assert large.taken(values, places[:0]).tolist() == []


def test_columns_are_computed_in_their_order() -> None:
    assert threads.per_column(lambda n: n * n, range(9), 5) == [n * n for n in range(9)]
    assert threads.per_column(lambda n: n, [], 5) == []


@pytest.mark.parametrize("width", [64, 0])
def test_pairs_of_many_edges_equal_those_of_queues(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "_WIDTH", width)
    pairs_equal_those_of_queues()
