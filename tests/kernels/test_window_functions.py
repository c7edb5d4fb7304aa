"""Window functions over random rows with random cuts equal the oracle's; without Spark."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rowtime.core.columns import AT, DUE, KEY_HASH
from rowtime.kernels import window_functions as k
from rowtime.kernels.windowed import Answer, Frame, Wanted, Windows, lasting, newest
from rowtime.operators.over.slices import compute
from tests.laws.pipelines import LONG
from tests.oracle import over as oracle
from tests.oracle.aggregates import mean, total
from tests.oracle.feed import Row

pytestmark = pytest.mark.sampled(8)

many = settings(max_examples=1000 if LONG else 60, deadline=None, derandomize=not LONG, database=None)
HALF = 3
Aggregate = oracle.Aggregate

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [None, -3, -1, 0, 2, 7]),
    "big": (pa.int64(), [None, -(2**62), -5, 2**61, 2**62]),
    "float": (pa.float64(), [None, -1.5, 0.25, 3.0, 1e17, math.nan, math.inf, -math.inf]),
    "decimal": (pa.decimal128(20, 2), [None, Decimal("-99999999999999999.99"), Decimal("0.01"), Decimal("12345.60")]),
    "text": (pa.string(), [None, "", "a", "b", "ä"]),
    "ascending": (pa.int64(), []),  # a function of the time
}


def _of(make: Callable[[Sequence[Any]], Any]) -> Aggregate:
    return lambda rows: make(oracle.column(rows, "v"))


def _float_sum(rows: Sequence[Row]) -> float | None:
    known = oracle.column(rows, "v", nulls=False)
    try:
        return math.fsum(known) if known else None
    except (OverflowError, ValueError):
        return float(sum(known))


def _extreme(rows: Sequence[Row], *, most: bool) -> Any:
    known = oracle.column(rows, "v", nulls=False)
    key = lambda v: (v != v, v if v == v else 0)  # noqa: E731, PLR0124 - NaN is the greatest
    return (max if most else min)(known, key=key) if known else None


FUNCTIONS: dict[str, tuple[k.Function, Aggregate, tuple[str, ...]]] = {
    "count": (k.Count(), lambda rows: len(oracle.column(rows, "v", nulls=False)), ("int", "text")),
    "sum": (k.Sum(), _of(total), ("int", "decimal")),
    "float sum": (k.Sum(), _float_sum, ("float",)),
    "avg": (k.Avg(), _of(mean), ("int", "big", "float")),
    "min": (k.Extreme(greatest=False), lambda rows: _extreme(rows, most=False), ("int", "float", "decimal", "text")),
    "max": (k.Extreme(greatest=True), lambda rows: _extreme(rows, most=True), ("int", "float", "decimal", "text")),
    "var_samp": (k.Spread(sample=True, root=False), oracle.spread("v", sample=True), ("int",)),
    "var_pop": (k.Spread(sample=False, root=False), oracle.spread("v", sample=False), ("int",)),
    "exp_avg": (k.Decayed(HALF), oracle.decayed("v", HALF), ("int",)),
    "first": (k.Nth(), oracle.nth("v"), ("int", "text")),
    "last": (k.Nth(last=True), oracle.nth("v", last=True), ("int", "text")),
    "first not null": (k.Nth(ignore_nulls=True), oracle.nth("v", nulls=False), ("int",)),
    "last not null": (k.Nth(last=True, ignore_nulls=True), oracle.nth("v", last=True, nulls=False), ("int",)),
    "count distinct": (k.Distinct(), _of(lambda found: len({*found} - {None})), ("int", "float", "decimal", "text")),
    "levels": (k.Levels(), _of(lambda found: len({*found})), ("ascending",)),
    "third": (k.Nth(3), oracle.nth("v", 3), ("int",)),
    "third not null": (k.Nth(3, ignore_nulls=True), oracle.nth("v", 3, nulls=False), ("int",)),
}
CASES = [(name, kind) for name, (_, _, kinds) in FUNCTIONS.items() for kind in kinds]

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 99)), min_size=1, max_size=24)
frames = st.one_of(
    st.builds(Frame, st.one_of(st.none(), st.integers(0, 5))),
    st.builds(lambda a, b: Frame(a + b, b), st.integers(0, 4), st.integers(0, 3)),
    st.builds(lambda b: Frame(None, b), st.integers(0, 3)),
    st.builds(lambda a, b: Frame(a + b, b, by_range=True), st.integers(0, 6), st.integers(0, 3)),
    st.builds(lambda b: Frame(None, b, by_range=True), st.integers(1, 4)),
)


class Ticks:
    """Runs windows over parts of the rows, with the state that an operator would keep."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.heads: list[pa.Table] = []
        self.kept: list[pa.Table] = []

    def step(self, fresh: pa.Table, *, compact: bool, slices: int) -> Answer:
        heads = pa.concat_tables(self.heads).sort_by("__p") if self.heads else None
        kept = newest(pa.concat_tables(self.kept)) if self.kept else None
        answer = compute(self.windows, heads, kept, fresh, slices)
        self.kept.append(answer.kept)
        if answer.heads is not None:
            self.heads.append(answer.heads)
        if compact and not self.windows.timed:
            together = newest(pa.concat_tables(self.kept))
            self.kept = [lasting(self.windows.keys, together, self.windows.rows_kept, self.windows.span)]
        return answer


def _table(made: Sequence[tuple[int, int, int]], kind: str, times: Sequence[int], first: int) -> pa.Table:
    type_, values = VALUES[kind]
    column = pa.array([_value(values, v, at) for (_, _, v), at in zip(made, times, strict=True)], type_)
    numbers = {
        "__p": range(first, first + len(made)),
        AT: times,
        KEY_HASH: [key for key, _, _ in made],
        DUE: [0] * len(made),
    }
    columns = {name: pa.array(numbers_, pa.int64()) for name, numbers_ in numbers.items()}
    return pa.table(
        {**columns, "__k0": pa.array([[None, "x", "y"][key] for key, _, _ in made], pa.string()), "__a0": column}
    )


def _value(values: Sequence[Any], number: int, at: int) -> Any:
    return values[number % len(values)] if values else at // 2


def _gap(rows: Sequence[Row], index: int) -> int:
    return (rows[index].at or 0) - (rows[index - 1].at or 0)


def _alike(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and got is not None:
        same = math.isnan(got) if math.isnan(wanted) else math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-9)
        return same or got == wanted
    return bool(got == wanted)


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name} of {kind}" for name, kind in CASES])
def test_a_function_equals_the_oracle_however_the_rows_are_cut(name: str, kind: str) -> None:
    function, aggregate, _ = FUNCTIONS[name]

    @many
    @given(rows, frames, st.booleans(), st.sampled_from([None, None, 0, 2, 4]), st.integers(0, 99))
    def holds(made: list[tuple[int, int, int]], frame: Frame, keyed: bool, expires: int | None, seed: int) -> None:
        assume(frame.lower is not None or name != "count distinct")
        windows = Windows(("__k0",) if keyed else (), (Wanted("f", "__a0", function, frame),), expires)
        times = [sum(step for _, step, _ in made[: n + 1]) for n in range(len(made))]
        values = VALUES[kind][1]
        came = [Row(at, {"v": _value(values, v, at), "k": key}) for at, (key, _, v) in zip(times, made, strict=True)]
        judged = oracle.Frame(frame.lower, frame.upper, (lambda row: row.at or 0) if frame.by_range else None)
        wanted = []
        for n, row in enumerate(came):
            mine = [other for other in came[: n + 1] if not keyed or other.values["k"] == row.values["k"]]
            breaks = [i for i in range(1, len(mine)) if expires is not None and _gap(mine, i) > expires]
            wanted.append(aggregate(judged.rows(mine[max(breaks, default=0) :])))
        chance, ticks, got, start = random.Random(seed), Ticks(windows), [], 0
        while start < len(made):
            end = chance.randint(start + 1, len(made))
            rows_ = _table(made[start:end], kind, times[start:end], start)
            answer = ticks.step(rows_, compact=chance.random() < 0.3, slices=chance.choice([1, 1, 2, 3]))
            got += answer.values["f"].to_pylist()
            start = end
        assert all(_alike(g, w) for g, w in zip(got, wanted, strict=True)), f"{got}, expected {wanted}"

    holds()
