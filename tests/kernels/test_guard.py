"""The guard equals a loop over the items, with every division into blocks."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowtime.core.time import BEGINNING, END
from rowtime.kernels import guard as guard_module
from rowtime.kernels.guard import EARLY, LATE, OK, Items, Limits, guard
from tests.oracle.feed import Bound, Row, rows_of
from tests.oracle.guard import Item, judge_items
from tests.oracle.tsort import tsort

LONG = bool(os.environ.get("ROWTIME_LONG"))
NAMES = {OK: "OK", EARLY: "EARLY", LATE: "LATE"}
near = st.integers(1000, 1020)
rows = st.tuples(st.just("row"), st.one_of(st.none(), near, near, near))
others = st.tuples(st.sampled_from(["bound", "arrival", "stamp"]), near)
ends = st.tuples(st.just("bound"), st.just(END))


def columns(items: list[Item]) -> Items:
    known = np.array([time is not None for _, time in items], bool)
    times = np.array([BEGINNING if time is None else time for _, time in items], np.int64)
    kinds = np.array([kind for kind, _ in items], str)
    raised = (kinds == "arrival") | (kinds == "stamp")
    return Items(times, known, kinds != "bound", known & ((kinds == "row") | (kinds == "stamp")), raised)


@pytest.mark.parametrize("block", [1, 2, guard_module.BLOCK])
@settings(max_examples=2000 if LONG else 200, deadline=None, derandomize=not LONG, database=None)
@given(
    items=st.lists(st.one_of(rows, rows, rows, rows, others, others, ends), max_size=14),
    mark=st.one_of(st.none(), st.integers(1000, 1012)),
    started=st.booleans(),
    late=st.integers(0, 6),
    early=st.integers(0, 6),
)
@example(items=[("row", 1009), ("row", 1008), ("row", 1001)], mark=1020, started=True, late=2, early=2)  # all are late
@example(
    items=[("row", 1020), ("row", 1019), ("row", 1020)], mark=1000, started=True, late=2, early=5
)  # only early rows could raise the mark
@example(
    items=[("bound", 1001), ("row", 1020), ("row", 1001)], mark=None, started=False, late=2, early=2
)  # a row after a bound is not the first
def test_the_guard_equals_the_loop(
    block: int, items: list[Item], mark: int | None, started: bool, late: int, early: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard_module, "BLOCK", block)
        before = BEGINNING if mark is None else mark
        found = guard(columns(items), before, Limits(late, early), started=started and mark is not None)
    expected = judge_items(items, late, early, mark, started=started and mark is not None)
    assert [NAMES[code] for code in found.result.tolist()] == [result for result, _, _ in expected]
    assert [None if at == BEGINNING else at for at in found.before.tolist()] == [before for _, before, _ in expected]
    assert [None if at == BEGINNING else at for at in found.after.tolist()] == [after for _, _, after in expected]
    assert found.mark == (BEGINNING if not (last := expected[-1][2] if expected else mark) else last)


@pytest.mark.parametrize("block", [1, 2, guard_module.BLOCK])
@settings(max_examples=2000 if LONG else 300, deadline=None, derandomize=not LONG, database=None)
@given(
    times=st.lists(st.one_of(st.none(), near, near, near, near), max_size=14),
    mark=st.one_of(st.none(), st.integers(1000, 1012)),
    cuts=st.lists(st.integers(0, 14), max_size=3),
    early=st.integers(0, 6),
    resync=st.integers(1, 3),
    ended=st.booleans(),
)
def test_a_jump_is_decided_like_in_the_loop_wherever_the_rows_are_cut(
    block: int, times: list[int | None], mark: int | None, cuts: list[int], early: int, resync: int, ended: bool
) -> None:
    feed = {"w": [Row(0, {"at": at, "n": n}) for n, at in enumerate(times)]}
    if mark is not None:  # three rows that agree make the mark
        feed["w"] = [Row(0, {"at": mark, "n": -n}) for n in range(resync + 1, 0, -1)] + feed["w"]
    items = [*feed["w"], Bound(END)] if ended else feed["w"]
    expected = tsort("g", {"w": items}, lambda v: v["at"], 3, early=early, resync=resync)
    values = [row.values["at"] for row in feed["w"]]
    found: list[str] = []
    held: list[int | None] = []
    state, started = BEGINNING, False
    edges = sorted({min(cut, len(values)) for cut in cuts} | {len(values)})
    for start, stop in zip([0, *edges], edges, strict=False):
        held += values[start:stop]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(guard_module, "BLOCK", block)
            listed = columns([("row", at) for at in held])
            done = guard(listed, state, Limits(3, early, resync), started=started, ended=ended and stop == len(values))
        found += [NAMES[code] for code in done.result.tolist()]
        state, started, held = done.mark, done.started, held[len(done.result) :]
        assert len(held) < 2 * resync
    refused = [refusal.values["n"] for refusal in expected.refused if refusal.reason != "NULL_ROWTIME"]
    names = [row.values["n"] for row in feed["w"]]
    assert [names[n] for n, result in enumerate(found) if result != "OK"] == refused
    accepted = [row.values["n"] for row in rows_of(expected.feed["w"])]
    assert [names[n] for n, result in enumerate(found) if result == "OK" and values[n] is not None] == accepted
