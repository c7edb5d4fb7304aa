"""What an OVER holds is counted right: for random windows, rows, cuts and restarts; without Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowtime.core.columns import AT, DUE, KEY_HASH, POSITION
from rowtime.core.time import END
from rowtime.kernels.hashes import hashes
from rowtime.kernels.window_functions import Count, Nth
from rowtime.kernels.windowed import Frame, Wanted, Windows
from rowtime.operators.contract.state import Segment
from rowtime.operators.over import slices
from rowtime.operators.over.over_calls import OverControl
from rowtime.operators.over.over_memory import Memory
from rowtime.state.segments import SegmentLog
from tests.laws.pipelines import LONG

pytestmark = pytest.mark.sampled(8)

LATEST = Nth(1, last=True, ignore_nulls=True)
PERIOD = 8
EVERY = Frame(None)
LAST_TWO = Frame(2, 1)
BACK_THREE = Frame(3, by_range=True)
SHAPES = {
    "the last rows": (LAST_TWO,),
    "the last rows and an accumulator": (LAST_TWO, EVERY),
    "the last rows, and those of a range": (Frame(1, 1), BACK_THREE),
    "a range and an accumulator": (BACK_THREE, Frame(None, 1)),
    "an accumulator": (EVERY,),
}


@dataclass
class Files:
    """Stands for a tick: files of state in memory."""

    control_: OverControl = field(default_factory=OverControl)
    logs: dict[str, SegmentLog] = field(default_factory=dict)
    written: dict[str, pa.Table] = field(default_factory=dict)

    def control(self, _: object) -> OverControl:
        return self.control_

    def remember(self, _: object, **changes: Any) -> None:
        self.control_ = replace(self.control_, **changes)

    def segments(self, _: object, what: str) -> Any:
        log = self.logs.setdefault(what, SegmentLog())

        class Segments:
            add, forget, replace, overlapping, crowded = (
                log.add, log.forget, log.replace, log.overlapping, log.crowded
            )  # fmt: skip
            tables = staticmethod(lambda segments: [self.written[segment.path] for segment in segments])

        return Segments

    def keep(self, _: object, what: str, rows: pa.Table, time: str) -> Sequence[Segment]:
        if not rows.num_rows:
            return []
        path, times = f"{what}{len(self.written)}", np.asarray(rows[time].combine_chunks())
        self.written[path] = rows
        return [Segment(path, rows.num_rows, int(times.min()), int(times.max()))]


Row = tuple[int, int, int | None]  # key, time, value


def _expected(windows: Windows, rows: Sequence[Row], clock: int, *, closes: bool) -> tuple[int, int]:
    """The rows and accumulators that later rows may need after a clock, found by looking at all rows."""
    held_rows = held_heads = 0
    for key in {row[0] for row in rows}:
        mine = [row for row in rows if row[0] == key]
        if windows.expires is not None:
            breaks = [n for n in range(1, len(mine)) if mine[n][1] - mine[n - 1][1] > windows.expires]
            mine = mine[max(breaks, default=0) :]
        last = mine[-1][1]
        ends = [END, *([(last // PERIOD + 1) * PERIOD] if closes else [])]
        ends += [last + windows.expires + 1] if windows.expires is not None else []
        if min(ends) <= clock:
            continue
        first = len(mine) - windows.rows_kept
        if windows.span is not None:
            first = min(first, next(n for n, row in enumerate(mine) if row[1] >= last - windows.span))
        gone = mine[: max(first, 0)]
        held_rows += len(mine) - len(gone)
        counts = all(isinstance(call.function, Count) for call in windows.calls if call.running)
        held_heads += windows.heads and any(counts or row[2] is not None for row in gone)
    return held_rows, held_heads


def _table(rows: Sequence[tuple[int, Row]], *, keyed: bool, closes: bool) -> pa.Table:
    at = pa.array([row[1] for _, row in rows], pa.int64())
    ends = [(row[1] // PERIOD + 1) * PERIOD if closes else END for _, row in rows]
    keys = pa.array([row[0] for _, row in rows], pa.int64())
    columns = {POSITION: pa.array([n for n, _ in rows], pa.int64()), AT: at, DUE: pa.array(ends, pa.int64()),
               "v": pa.array([row[2] for _, row in rows], pa.int64())}  # fmt: skip
    return pa.table(columns | ({"k": keys, KEY_HASH: pa.array(hashes([keys]))} if keyed else {}))


@pytest.mark.parametrize("picks", [False, True], ids=["counts", "picks"])
@pytest.mark.parametrize("ends", ["with the stream", "with a period", "by a gap", "both"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_held_equals_what_later_rows_may_need(
    monkeypatch: pytest.MonkeyPatch, shape: str, ends: str, *, picks: bool
) -> None:
    monkeypatch.setattr(slices, "SLICE", 1)
    for seed in range(300 if LONG else 4):
        chance = random.Random(seed)
        keyed = ends != "with the stream" or chance.random() < 0.7
        closes, expires = ends in ("with a period", "both"), 4 if ends in ("by a gap", "both") else None
        function = LATEST if picks else Count()
        calls = (Wanted(f"c{n}", "v", function, frame) for n, frame in enumerate(SHAPES[shape]))
        windows = Windows(("k",) if keyed else (), tuple(calls), expires)
        node = SimpleNamespace(
            name="over", windows=windows, keys=windows.keys, closers=(0,) * closes, expires=windows.expires
        )
        tick, rows, now = Files(), list[Row](), 0
        for _ in range(40):
            new = []
            for _ in range(chance.choice([0, 1, 1, 2, 6])):
                now += chance.choice([0, 0, 1, 1, 2, 9])
                key = chance.randrange(4) * keyed + (now // PERIOD * 4 if closes else 0)
                new.append((len(rows), (key, now, chance.choice([None, 1, 2]))))
                rows.append(new[-1][1])
            now += chance.choice([0, 0, 3])
            if chance.random() < 0.1:  # as if a version had written the state that does not count
                tick.control_ = replace(tick.control_, held_rows=None, held_heads=None, held_at=OverControl().held_at)
            memory = Memory(tick, node, now)  # type: ignore[arg-type]
            cut = chance.randrange(len(new) + 1)
            for piece in (part for part in (new[:cut], new[cut:]) if part):
                fresh = _table(piece, keyed=keyed, closes=closes)
                parallel = chance.choice([1, 2])
                answer = slices.compute(
                    windows, memory.read("heads", fresh), memory.read("rows", fresh), fresh, parallel
                )
                memory.keep(answer, piece[-1][1][1])
            memory.finish()
            found = (tick.control_.held_rows, tick.control_.held_heads)
            assert found == _expected(windows, rows, now, closes=closes), f"seed {seed} after {rows}"
