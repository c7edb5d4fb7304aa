"""The high-water scan and the whole clock pass equal a loop over single items."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.kernels.high_water import calm, scan
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.runtime.clock_pass import clock_pass, gate_verdicts
from tests.oracle.guard import judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

LONG = bool(os.environ.get("ROWTIME_LONG"))
NEAR = 1_000_000  # µs; times lie within a few µs of it, so that ties and edges are common
INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Item:
    """A row at ``time``, a record that cannot be decoded, or a bound."""

    kind: str
    time: int | None
    group: int  # the distance from the time to the last instant of its group


@dataclass(frozen=True)
class Case:
    """One writer: its mark and floor, its items, and the positions that are left out."""

    mark: int
    floor: int
    items: Sequence[Item]
    gaps: Sequence[int]

    @property
    def placed(self) -> list[tuple[int, Item]]:
        """The items with their positions."""
        positions = np.cumsum([1 + gap for gap in self.gaps[: len(self.items)]])
        return list(zip(positions.tolist(), self.items, strict=True))


@dataclass
class Loop:
    """The result of the loop over one writer: (position, reason, refused by) of refused rows."""

    mark: int
    refused: list[tuple[int, str, int]] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)


def row_by_row(case: Case, within: int, reason: str, *, by_group: bool = False) -> Loop:
    """Semantics 4 and 7.1, item by item."""
    found = Loop(case.mark)
    for position, item in case.placed:
        by = max(found.mark, case.floor)
        if item.kind == "bound":
            assert item.time is not None
            found.mark = max(found.mark, item.time)
        elif item.kind == "malformed":
            found.refused.append((position, "MALFORMED", by))
        elif item.time is None:
            found.refused.append((position, "NULL_ROWTIME", by))
        else:
            judged = item.time + (item.group if by_group else 0)
            if judged + within < found.mark or judged < case.floor:
                # Below its own clock a row is out of order, wherever the stream stood when its writer joined (semantics
                # 2.6).
                found.refused.append((position, reason if judged < found.mark else "LATE", by))
                found.mark = max(found.mark, item.time)  # its writer has promised it
            else:
                found.mark = max(found.mark, item.time)
                found.accepted.append(item.time)
    return found


near = st.integers(NEAR - 4, NEAR + 8)
rows = st.builds(Item, st.just("row"), near, st.integers(0, 3))
nulls = st.builds(Item, st.just("row"), st.none(), st.just(0))
bounds = st.builds(Item, st.just("bound"), st.one_of(near, near, st.just(END)), st.just(0))
items = st.lists(st.one_of(rows, rows, rows, rows, nulls, bounds), max_size=10)
marks = st.one_of(st.just(BEGINNING), near, st.just(END))
floors = st.one_of(st.just(BEGINNING), st.just(BEGINNING), near)
gaps = st.lists(st.sampled_from([0, 0, 0, 1, 7]), min_size=10, max_size=10)


def cases(what: st.SearchStrategy[list[Item]]) -> st.SearchStrategy[Case]:
    return st.builds(Case, marks, floors, what, gaps)


withins = st.sampled_from([0, 0, 1, 2, 5])


@settings(max_examples=1500 if LONG else 150, deadline=None, derandomize=not LONG, database=None)
@given(cases(items), withins)
def test_the_scan_equals_the_loop(case: Case, within: int) -> None:
    placed = [item for _, item in case.placed]
    known = np.array([item.time is not None for item in placed], bool)
    times = np.array([0 if item.time is None else item.time for item in placed], np.int64)
    is_row = np.array([item.kind == "row" for item in placed], bool)
    found = scan(times, times, known, is_row, case.mark, within, case.floor)
    loop = row_by_row(case, within, "LATE")
    judged = {position for position, reason, _ in loop.refused if reason != "NULL_ROWTIME"}
    assert {case.placed[n][0] for n in np.flatnonzero(found.refused)} == judged
    assert max(found.mark, case.floor) == max(loop.mark, case.floor)
    if placed and known.all() and is_row.all():
        short = calm(times, case.mark, within, case.floor)
        assert (short is None) == bool(loop.refused)
        assert short is None or (short.mark, short.lowest, short.highest) == (loop.mark, times.min(), times.max())


@pytest.mark.parametrize("piece", [2, gate_verdicts.PIECE])
@settings(max_examples=1500 if LONG else 150, deadline=None, derandomize=not LONG, database=None)
@given(st.lists(cases(st.lists(st.one_of(rows, rows, rows, nulls), max_size=10)), max_size=4), withins)
def test_times_that_the_source_gave_are_judged_like_the_loop(piece: int, given_cases: list[Case], within: int) -> None:
    writers = dict(zip("dacb", given_cases, strict=False))
    gate = gate_of(writers, within, "LATE", in_band=False)
    table = pa.table(
        {
            "__w": pa.array([w for w, case in writers.items() for _ in case.items], pa.string()),
            "__p": pa.array([p for case in writers.values() for p, _ in case.placed], pa.int64()),
            "t": pa.array([item.time for case in writers.values() for item in case.items], pa.int64()),
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_verdicts, "PIECE", piece)
        agree(clock_pass.judge(None, gate, table), writers, within, "LATE")  # type: ignore[arg-type]


@pytest.mark.parametrize("piece", [2, gate_verdicts.PIECE])
@settings(max_examples=1500 if LONG else 150, deadline=None, derandomize=not LONG, database=None)
@given(
    st.lists(st.one_of(st.none(), near, near), max_size=10),
    st.one_of(st.none(), near),
    withins,
    st.one_of(st.none(), withins),
)
def test_a_set_without_order_is_judged_by_the_mark_before_it(
    piece: int, times: list[int | None], mark: int | None, within: int, early: int | None
) -> None:
    gate = Gate("__g", within, "LATE", {} if mark is None else {"w": mark}, batched=True, early=early)
    table = pa.table({"__w": ["w"] * len(times), "__p": range(len(times)), "t": pa.array(times, pa.int64())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_verdicts, "PIECE", piece)
        found = clock_pass.judge(None, gate, table)  # type: ignore[arg-type]
    expected, accepted = [], []
    for place, time in enumerate(times):
        if time is None:
            expected.append((place, "NULL_ROWTIME"))
        elif mark is not None and time + within < mark:
            expected.append((place, "LATE"))
        elif mark is not None and early is not None and time > mark + early:
            expected.append((place, "EARLY"))
        else:
            accepted.append(time)
    table = [] if found.refused is None else found.refused.to_pylist()
    assert [(row["__p"], row["reason"]) for row in table] == expected
    if times:
        assert found.marks.get("w", BEGINNING) == max([*accepted, BEGINNING if mark is None else mark])


@pytest.mark.parametrize("in_band", [False, True], ids=["bounds beside", "bounds among the rows"])
def test_the_clock_pass_equals_the_loop(spark: SparkSession, in_band: bool) -> None:
    for seed in range(40 if LONG else 2):
        chance = random.Random(seed)
        writers = {f"w'{n % 7}\\{n}": random_case(chance) for n in range(60)}
        within, reason = chance.choice([0, 1, 2, 5]), chance.choice(["LATE", "OUT_OF_ORDER"])
        by_group = chance.random() < 0.5
        gate = gate_of(writers, within, reason, in_band=in_band, by_group=by_group)
        found = clock_pass.judge(dataframe(spark, writers, in_band=in_band), gate)
        agree(found, writers, within, reason, by_group=by_group)


def random_case(chance: random.Random) -> Case:
    def near_by() -> int:
        return NEAR + chance.randint(-4, 8)

    def item() -> Item:
        kind = chance.choice(["row"] * 6 + ["null", "bound", "bound", "malformed"])
        if kind == "bound":
            return Item("bound", near_by() if chance.random() < 0.8 else END, 0)
        if kind == "row":
            return Item("row", near_by(), chance.randint(0, 3))
        return Item("row" if kind == "null" else kind, None, 0)

    mark = chance.choice([BEGINNING, near_by(), near_by(), END])
    floor = chance.choice([BEGINNING, BEGINNING, near_by()])
    count = chance.randint(0, 10)
    return Case(mark, floor, [item() for _ in range(count)], [chance.choice([0, 0, 0, 1, 7]) for _ in range(10)])


def test_all_rows_may_be_late(spark: SparkSession) -> None:
    case = Case(NEAR, BEGINNING, [Item("row", NEAR - n, 0) for n in (3, 1, 2, 4)], [0] * 4)
    gate = gate_of({"w": case}, 0, "LATE", in_band=False)
    found = clock_pass.judge(dataframe(spark, {"w": case}, in_band=False), gate)
    assert dict(found.counts) == {"in": 4, "accepted": 0, "LATE": 4}
    agree(found, {"w": case}, 0, "LATE")


def test_a_tick_without_rows_refuses_nothing(spark: SparkSession) -> None:
    gate = Gate("__g", 0, "LATE", {"w": NEAR})
    found = clock_pass.judge(dataframe(spark, {}, in_band=False), gate)
    assert found.refused is None
    assert found.marks == {"w": NEAR}


def gate_of(writers: Mapping[str, Case], within: int, reason: str, *, in_band: bool, by_group: bool = False) -> Gate:
    beside = [
        (w, p, i.time) for w, case in writers.items() for p, i in case.placed if i.kind == "bound" and not in_band
    ]
    return Gate(
        "__g",
        within,
        reason,
        {w: case.mark for w, case in writers.items() if case.mark > BEGINNING},
        beside,  # type: ignore[arg-type]
        {w: case.floor for w, case in writers.items() if case.floor > BEGINNING},
        "__b" if in_band else None,
        "__m",
        judged="__j" if by_group else None,
    )


def dataframe(spark: SparkSession, writers: Mapping[str, Case], *, in_band: bool) -> Any:
    placed = [(w, p, i) for w, case in writers.items() for p, i in case.placed if in_band or i.kind != "bound"]
    time = [None if i.kind == "bound" else i.time for *_, i in placed]
    bound = [min(i.time, NEAR * 1000) if i.kind == "bound" and i.time is not None else None for *_, i in placed]
    last = [None if t is None else t + i.group for t, (*_, i) in zip(time, placed, strict=True)]
    table = pa.table(
        {
            "__w": pa.array([w for w, *_ in placed], pa.string()),
            "__p": pa.array([p for _, p, _ in placed], pa.int64()),
            "__g": pa.array(time, INSTANT),
            "__j": pa.array(last, INSTANT),
            "__b": pa.array(bound, INSTANT),
            "__m": pa.array(["?" if i.kind == "malformed" else None for *_, i in placed], pa.string()),
        }
    )
    kinds = [
        ("__w", "string"),
        ("__p", "bigint"),
        *((name, "timestamp") for name in ("__g", "__j", "__b")),
        ("__m", "string"),
    ]
    order = np.random.default_rng(len(placed)).permutation(len(placed))
    return Frame.of(spark, table.take(pa.array(order)), kinds)


def agree(found: Verdict, writers: Mapping[str, Case], within: int, reason: str, *, by_group: bool = False) -> None:
    """The verdicts of the loops over all writers."""
    loops = {w: row_by_row(case, within, reason, by_group=by_group) for w, case in writers.items()}
    expected = sorted((w, p, why, by) for w, loop in loops.items() for p, why, by in loop.refused)
    table = [] if found.refused is None else found.refused.to_pylist()
    got = sorted((r["__w"], r["__p"], r["reason"], r["mark"]) for r in table)
    assert [entry[:3] for entry in got] == [entry[:3] for entry in expected]
    assert [clipped(entry[3]) for entry in got] == [clipped(entry[3]) for entry in expected]
    counts = Counter(why for *_, why, _ in expected)
    counts.update({"in": len(expected), "accepted": 0})
    accepted = [time for loop in loops.values() for time in loop.accepted]
    counts.update({"in": len(accepted), "accepted": len(accepted)})
    assert {k: n for k, n in found.counts.items() if n} == {k: n for k, n in counts.items() if n}
    assert (found.mean is None) == (not accepted)
    if accepted:
        assert (found.lowest, found.highest) == (min(accepted), max(accepted))
        assert found.mean == pytest.approx(sum(accepted) / len(accepted), abs=1)
    for w, case in writers.items():
        # Bounds after the last row are left to the caller, who knows them without reading rows.
        rest = [i.time for _, i in case.placed if i.kind == "bound" and i.time is not None]
        mark = max([found.marks.get(w, BEGINNING), case.floor, *rest])
        assert clipped(mark) == clipped(max(loops[w].mark, case.floor))


def clipped(time: int) -> int:
    """A bound among the rows is a timestamp, so infinity is a distant time."""
    return min(time, NEAR * 1000)


def test_the_guard_equals_the_loop(spark: SparkSession) -> None:
    for seed in range(20 if LONG else 1):
        chance = random.Random(seed)
        late, early = chance.choice([0, 1, 3]), chance.choice([0, 2, 4])
        writers = {f"w{n}": random_case(chance) for n in range(60)}
        writers = {
            name: Case(min(case.mark, NEAR + 8), BEGINNING, [i for i in case.items if i.kind == "row"], case.gaps)
            for name, case in writers.items()
        }
        gate = replace(gate_of(writers, late, "LATE", in_band=False), early=early)
        found = clock_pass.judge(dataframe(spark, writers, in_band=False), gate)
        expected = {}
        for name, case in writers.items():
            mark = None if case.mark <= BEGINNING else case.mark
            judged = judge([item.time for item in case.items], late, early, mark)
            for (position, item), (result, before, _) in zip(case.placed, judged, strict=True):
                if result != "OK" or item.time is None:
                    reason = "NULL_ROWTIME" if item.time is None else result
                    expected[name, position] = (reason, BEGINNING if before is None else before)
            if judged and judged[-1][2] is not None:
                assert found.marks[name] == judged[-1][2]
        rows = [] if found.refused is None else found.refused.to_pylist()
        assert {(row["__w"], row["__p"]): (row["reason"], row["mark"]) for row in rows} == expected
        assert found.counts["in"] == sum(len(case.items) for case in writers.values())
        assert found.counts["accepted"] == found.counts["in"] - len(expected)
