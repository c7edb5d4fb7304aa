"""Faults in operators that judge rows: gates, guards, T-sorts, pumps; in `test_planted_faults` the laws catch each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import rowtime.operators.gates.tsort as tsort_module
import rowtime.operators.streams.stream as stream_module
import rowtime.operators.streams.union_all as union_module
from rowtime.core.time import END
from rowtime.kernels import guard as guard_module
from rowtime.kernels.high_water import Scan
from rowtime.operators.contract import Delta
from rowtime.operators.gates.pump_gate import PumpGate
from rowtime.operators.gates.rejected import Rejected
from rowtime.operators.gates.tsort import TSort
from rowtime.operators.rows.select import Select
from rowtime.operators.streams.quarantine import Quarantine
from rowtime.operators.streams.stream import Stream
from rowtime.runtime.clock_pass import judged_runs
from rowtime.testing.transcripts import ScriptItem
from tests.laws.fault_rows import Plant, bound, item
from tests.laws.pipelines import ORIGIN, SET

if TYPE_CHECKING:
    import pytest

FUTURE = [item(number, "a", "x", number, ev) for number, ev in enumerate((1, 9, 2, 6, 3, 8), 1)]
AHEAD = [item(number, "a", "x", at) for number, at in enumerate((1, 9, 2, 6, 4, 8), 1)]
CONFIRMED = [  # a first row from the future, a bound after a confirmed jump, and one after a jump that is not confirmed
    item(1, "a", "x", 40), item(2, "a", "x", 1), item(3, "a", "x", 2), item(4, "a", "x", 9),
    bound(5, "a", "x", 12), item(6, "a", "x", 10), item(7, "a", "x", 11), item(8, "a", "x", 30),
]  # fmt: skip
# just above the limit from its arrival, the same a little later, and a row that only the first could refuse
LEADING = [
    ScriptItem(n, "a", "x", {"n": n, "v": 1, "ev": None, "rowtime": ORIGIN + at}, None)
    for n, at in enumerate((4, 1, 5, 9, 5, 6), 1)
]
PUMPED = [
    item(1, "b", "x", 1), item(2, "b", "x", 9), item(3, "b", "x", 2), item(4, "b", "x", 10), item(5, "a", "x", 3),
    item(6, "a", "x", 4),
]  # fmt: skip
# just above the limit from its arrival, the same a little later, and a row that only the first could make late
ARRIVED = [
    ScriptItem(n, "a", "x", {"n": n, "v": 1, "ev": ORIGIN + ev, "rowtime": ORIGIN + n}, None)
    for n, ev in enumerate((4, 1, 5, 9, 2, 4), 1)
]
RAISED = [  # a first row below the bound that was set before it makes no other row early
    item(1, "a", "x", 1, 1), bound(2, SET, "", 4), item(3, "a", "y", 1, 3), item(4, "a", "y", 2, 20),
    item(5, "a", "x", 3, 5), item(6, "a", "x", 4, 3),
]  # fmt: skip
JUMP = [  # a first row from the future, then a normal time, then another jump that later rows confirm
    item(number, "a", "x", number, ev) for number, ev in enumerate((20, 1, 2, 3, 12, 12, 13, 14), 1)
]

EXAMPLES = {
    "a t-sort with a guard": (FUTURE, [2, 4, 6]),
    "a t-sort that finds back": (JUMP, [2, 4, 5, 8]),
    "a stream with a guard": (AHEAD, [2, 3, 5, 6]),
    "a stream that finds back": (CONFIRMED, [2, 3, 5, 6, 8]),
    "a stream that looks at arrival": (LEADING, [2, 4, 6]),
    "a guarded stream that a pump fills": (PUMPED, [2, 4, 6]),
    "a t-sort whose bound is set": (RAISED, [2, 3, 6]),
    "a t-sort that looks at arrival": (ARRIVED, [2, 4, 6]),
    "a guard whose bound is set": (RAISED, [2, 3, 6]),
}


def _mark_of_the_tick(patch: pytest.MonkeyPatch) -> None:
    def scan(times: Any, judged: Any, known: Any, rows: Any, mark: int, within: int, *rest: Any) -> Scan:
        found = real(times, judged, known, rows, mark, within, *rest)
        return replace(found, refused=known & rows & (judged < found.mark - within))

    real = judged_runs.scan
    patch.setattr(judged_runs, "scan", scan)
    patch.setattr(judged_runs, "calm", lambda *_: None)


def _early_rows_that_count(patch: pytest.MonkeyPatch) -> None:
    real = guard_module.guard

    def guard(items: Any, mark: int, *rest: Any, **more: Any) -> Any:
        return replace(real(items, mark, *rest, **more), mark=max(mark, int(items.times.max())))

    patch.setattr(judged_runs, "guard", guard)


def _set_bound_forgotten_between_ticks(patch: pytest.MonkeyPatch) -> None:
    real = TSort.step

    def step(self: TSort, tick: Any, deltas: Any) -> Delta:
        found = real(self, tick, deltas)
        tick.control(self).floors.clear()
        return found

    patch.setattr(TSort, "step", step)


def _rows_below_a_set_bound_let_through(patch: pytest.MonkeyPatch) -> None:
    real = TSort._gate
    patch.setattr(TSort, "_gate", lambda *args: replace(real(*args), floors={}))


def _first_row_that_was_refused_counts(patch: pytest.MonkeyPatch) -> None:
    real = guard_module.guard

    def guard(items: Any, mark: int, limits: Any, **more: Any) -> Any:
        return real(items, max(mark, limits.floor), limits, **{**more, "started": None})

    patch.setattr(judged_runs, "guard", guard)


def _limit_of_arrival_inclusive(patch: pytest.MonkeyPatch) -> None:
    real = tsort_module.beyond_arrival
    patch.setattr(tsort_module, "beyond_arrival", lambda time, limit: real(time, limit and limit + 1))


def _rows_ahead_of_arrival_raise_the_mark(patch: pytest.MonkeyPatch) -> None:
    real = judged_runs.scan

    def scan(times: Any, judged: Any, known: Any, rows: Any, *rest: Any) -> Scan:
        return real(times, judged, known | rows, rows, *rest)

    patch.setattr(judged_runs, "scan", scan)


def _votes_of_one_tick(patch: pytest.MonkeyPatch) -> None:
    real = guard_module.guard
    patch.setattr(judged_runs, "guard", lambda *args, **more: real(*args, **{**more, "ended": True}))


def _bounds_behind_open_rows_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = Quarantine.released
    patch.setattr(
        Quarantine, "released", lambda self, *rest: (real(self, *rest), self.tick.remember(self.gate, behind=[]))[0]
    )


def _limit_of_a_stream_inclusive(patch: pytest.MonkeyPatch) -> None:
    real = stream_module.beyond_arrival
    patch.setattr(stream_module, "beyond_arrival", lambda time, limit: real(time, limit and limit + 1))


def _guard_of_a_pump_that_believes_its_bound(patch: pytest.MonkeyPatch) -> None:
    real = TSort._gate

    def gate(self: TSort, control: Any, present: Any) -> Any:
        known = real(self, control, present)
        return replace(known, marks={w: max(control.followed.values()) for w in present})

    patch.setattr(TSort, "_gate", gate)


def _held_rows_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = Quarantine.before
    patch.setattr(
        Quarantine, "before", lambda self, rows, *rest: (self.segments.forget(END), real(self, rows, *rest))[1]
    )


def _first_row_forgotten_between_ticks(patch: pytest.MonkeyPatch) -> None:
    real = Stream._gate
    patch.setattr(Stream, "_gate", lambda *args, **more: replace(real(*args, **more), started=()))


def _inputs_swapped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(union_module, "prefix", lambda index: f"{9999 - index:04d}/")


def _without(gate: Any) -> Any:
    from dataclasses import replace

    return replace(gate, bounds=())


def _bound_of_a_stream_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = Stream._gate
    patch.setattr(Stream, "_gate", lambda *args, **more: _without(real(*args, **more)))


def _filter_that_stops_the_clock(patch: pytest.MonkeyPatch) -> None:
    real = Select.step

    def step(self: Select, tick: Any, deltas: Any) -> Delta:
        if self.where is not None:
            deltas = [Delta(deltas[0].rows, dict.fromkeys(deltas[0].clocks, ORIGIN))]
        return real(self, tick, deltas)

    patch.setattr(Select, "step", step)


def _refusals_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rejected, "step", lambda self, tick, deltas: Delta(None, deltas[0].clocks))


def _checks_of_a_target_forgotten(patch: pytest.MonkeyPatch) -> None:
    tests = PumpGate.tests
    patch.setattr(PumpGate, "tests", lambda self, types: (one for one in tests(self, types) if "%" not in one.name))


def _a_gate_of_a_pump_that_looks_once(patch: pytest.MonkeyPatch) -> None:
    step = PumpGate.step
    patch.setattr(
        PumpGate, "step", lambda self, tick, deltas: step(self, tick, deltas) if tick.number < 1 else deltas[0]
    )


FAULTS: tuple[tuple[str, Plant], ...] = (
    ("filter and projection, behind a pump", _checks_of_a_target_forgotten),
    ("filter and projection, behind a pump", _a_gate_of_a_pump_that_looks_once),
    ("t-sort", _mark_of_the_tick),
    ("union all", _inputs_swapped),
    ("filter and projection", _bound_of_a_stream_forgotten),
    ("filter and projection", _filter_that_stops_the_clock),
    ("rejected rows", _refusals_lost),
    ("a t-sort with a guard", _early_rows_that_count),
    ("a t-sort whose bound is set", _set_bound_forgotten_between_ticks),
    ("a t-sort whose bound is set", _rows_below_a_set_bound_let_through),
    ("a t-sort that looks at arrival", _limit_of_arrival_inclusive),
    ("a t-sort that looks at arrival", _rows_ahead_of_arrival_raise_the_mark),
    ("a guard whose bound is set", _first_row_that_was_refused_counts),
    ("a t-sort that finds back", _votes_of_one_tick),
    ("a t-sort that finds back", _held_rows_forgotten),
    ("a stream with a guard", _early_rows_that_count),
    ("a stream with a guard", _first_row_forgotten_between_ticks),
    ("a stream that finds back", _votes_of_one_tick),
    ("a stream that finds back", _held_rows_forgotten),
    ("a stream that finds back", _bounds_behind_open_rows_forgotten),
    ("a stream that looks at arrival", _limit_of_a_stream_inclusive),
    ("a guarded stream that a pump fills", _early_rows_that_count),
    ("a guarded stream that a pump fills", _guard_of_a_pump_that_believes_its_bound),
)
