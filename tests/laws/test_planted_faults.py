"""Faults planted in the engine, one an operator: the laws have to catch each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.sql import functions as F  # noqa: N812

import rowtime.kernels.windowed as windowed_module
import rowtime.operators.gates.tsort as tsort_module
import rowtime.operators.over.over as over_module
import rowtime.operators.over.slices as slices_module
import rowtime.operators.streams.stream as stream_module
import rowtime.operators.streams.union_all as union_module
from rowtime.core.columns import IS_DUE
from rowtime.core.time import END
from rowtime.kernels import guard as guard_module
from rowtime.kernels import window_functions
from rowtime.kernels.high_water import Scan
from rowtime.operators.contract import Delta
from rowtime.operators.gates.pump_gate import PumpGate
from rowtime.operators.gates.rejected import Rejected
from rowtime.operators.gates.tsort import TSort
from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.groups.group_values import GroupByValues
from rowtime.operators.order.limit import Limit
from rowtime.operators.order.merge import Merge
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.over.over import Over
from rowtime.operators.over.value_clocks import ValueClocks
from rowtime.operators.rows.ends import Ends
from rowtime.operators.rows.select import Select
from rowtime.operators.sorts.sort_by import SortBy
from rowtime.operators.streams.quarantine import Quarantine
from rowtime.operators.streams.stream import Stream
from rowtime.operators.windows.chains import Chains
from rowtime.operators.windows.hop import Hop
from rowtime.operators.windows.session import SessionGroup
from rowtime.operators.windows.stagger import Stagger
from rowtime.plan.bind import group_plan, numbering
from rowtime.plan.bind import orders as orders_module
from rowtime.runtime.clock_pass import judged_runs
from rowtime.runtime.session import derive
from rowtime.state.segments import SegmentLog
from rowtime.testing.transcripts import ScriptItem
from tests.laws.arrival_pipelines import BY_ARRIVAL
from tests.laws.checking import check, outcome
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.guard_pipelines import GUARDS
from tests.laws.over_pipelines import OVER
from tests.laws.pipelines import HALF, LAWS, ORIGIN, SET
from tests.laws.pump_pipelines import PUMPED
from tests.laws.session_pipelines import SESSIONS
from tests.laws.set_bound_pipelines import BY_HAND
from tests.laws.sorted_pipelines import SORTED
from tests.laws.window_pipelines import WINDOWS
from tests.oracle import feed as f

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAW = {
    law.name: law
    for law in (*LAWS, *DEEPER, *WINDOWS, *SESSIONS, *SORTED, *OVER, *BY_HAND, *BY_ARRIVAL, *GUARDS, *PUMPED)
}
Plant = Callable[[pytest.MonkeyPatch], None]


def _item(number: int, stream: str, writer: str, at: int, ev: int | None = None, v: int | None = 1) -> ScriptItem:
    time = ORIGIN + at * HALF
    values = {"n": number, "v": v, "ev": None if ev is None else ORIGIN + ev * HALF, "rowtime": time}
    return ScriptItem(number, stream, writer, values, None)


def _bound(number: int, stream: str, writer: str, at: int) -> ScriptItem:
    return ScriptItem(number, stream, writer, None, at if at >= END else ORIGIN + at * HALF)


EXAMPLE = [
    _item(1, "a", "y", 2, 3),
    _item(2, "a", "x", 2, 9, v=2),
    _item(3, "b", "x", 2, 2),
    _item(4, "a", "x", 3, 4, v=0),
    _item(5, "a", "x", 5, 6),
    _item(6, "a", "y", 3, None),
    _item(7, "a", "x", 4, 2),
    _item(8, "a", "y", 8, 7),
    _item(9, "b", "x", 8, 8),
    _bound(10, "a", "y", 9),
    _item(11, "a", "y", 8, 9),
    _item(12, "a", "x", 9, 11),
    _bound(13, "a", "x", END),
    _bound(14, "b", "x", END),
]
CUT = [3, 6, 9, 11, 14]
STEPS = [  # the value stays over two ticks, goes back, and goes on
    _item(number, "a", "x", number, v=v) for number, v in enumerate((1, 1, 1, 2, 1, 2, 3), 1)
]
LOOSE = [  # a group of 0 and 1 with a row behind the first of 4, which is complete before it
    _item(number, "a", "x", number, v=v) for number, v in enumerate((0, 4, 0, 1, 6, 7, 3, 9, 9, 9), 1)
]
FUTURE = [_item(number, "a", "x", number, ev) for number, ev in enumerate((1, 9, 2, 6, 3, 8), 1)]
AHEAD = [_item(number, "a", "x", at) for number, at in enumerate((1, 9, 2, 6, 4, 8), 1)]
CONFIRMED = [  # a first row from the future, a bound behind a jump that is confirmed, and one that is not
    _item(1, "a", "x", 40), _item(2, "a", "x", 1), _item(3, "a", "x", 2), _item(4, "a", "x", 9),
    _bound(5, "a", "x", 12), _item(6, "a", "x", 10), _item(7, "a", "x", 11), _item(8, "a", "x", 30),
]  # fmt: skip
LEADING = [  # just too far above its arrival, the same a little later, and what only the first would refuse
    ScriptItem(n, "a", "x", {"n": n, "v": 1, "ev": None, "rowtime": ORIGIN + at}, None)
    for n, at in enumerate((4, 1, 5, 9, 5, 6), 1)
]
PUMPED = [
    _item(1, "b", "x", 1), _item(2, "b", "x", 9), _item(3, "b", "x", 2), _item(4, "b", "x", 10), _item(5, "a", "x", 3),
    _item(6, "a", "x", 4),
]  # fmt: skip
FAR = [  # the first of the row's windows ends in the tick in which it comes, the last one later
    _item(1, "a", "x", 1), _bound(2, "a", "x", 4), _bound(3, "b", "x", 4), _bound(4, "a", "x", 12),
    _bound(5, "b", "x", 12),
]  # fmt: skip
NULLS = [
    _item(1, "a", "x", 1, v=1), _item(2, "a", "x", 2, v=None), _item(3, "b", "x", 9), _item(4, "a", "x", 9),
]  # fmt: skip
ALIKE = [_item(number, "a", "x", at, v=v) for number, (at, v) in enumerate(((0, 1), (1, 2), (4, 1), (9, 1)), 1)]
COUNTS = [  # the second with more rows of a value comes later
    _item(number, "a", "x", at, v=v) for number, (at, v) in enumerate(((1, 1), (2, 2), (3, 2), (5, 0), (9, 1)), 1)
]
ENDINGS = [  # of two sessions that end together the second is fuller, but not than one that ends later in the step
    _item(number, "a", "x", at, v=v)
    for number, (at, v) in enumerate(((1, 2), (2, 1), (2, 2), (3, 0), (5, 9), (9, 9)), 1)
]
ARRIVED = [  # just too far above its arrival, the same a little later, and what only the first would make late
    ScriptItem(n, "a", "x", {"n": n, "v": 1, "ev": ORIGIN + ev, "rowtime": ORIGIN + n}, None)
    for n, ev in enumerate((4, 1, 5, 9, 2, 4), 1)
]
RAISED = [  # a first row below the bound that was set before it makes no other row early
    _item(1, "a", "x", 1, 1), _bound(2, SET, "", 4), _item(3, "a", "y", 1, 3), _item(4, "a", "y", 2, 20),
    _item(5, "a", "x", 3, 5), _item(6, "a", "x", 4, 3),
]  # fmt: skip
JUMP = [  # a first row from the future, then a time that goes on, then another that a whole run confirms
    _item(number, "a", "x", number, ev) for number, ev in enumerate((20, 1, 2, 3, 12, 12, 13, 14), 1)
]
VISITS = [_item(number, "a", "x", at) for number, at in enumerate((1, 3, 5, 8, 20), 1)]  # a pause of the gap, exactly
CLOSE = [  # rows of one key two seconds apart, and ties
    _item(number, "a", "x", at, v=v)
    for number, (at, v) in enumerate(((1, 1), (2, 1), (2, 1), (3, 2), (4, 1), (5, 1), (6, 3), (6, 1), (7, 1)), 1)
]
EXAMPLES = {
    "ranges of time a key": (CLOSE, [2, 3, 5, 7, 9]),
    "running aggregates a key": (CLOSE, [2, 3, 5, 7, 9]),
    "running totals that begin anew each period": (CLOSE, [2, 3, 5, 7, 9]),
    "sessions with partial results": (VISITS, [1, 2, 3, 4, 5]),
    "sessions sorted inside their rowtime": (ENDINGS, [5, 6]),
    "sessions sorted inside a rowtime of their own": (ENDINGS, [5, 6]),
    "groups of rows of sessions": (VISITS, [1, 2, 3, 4, 5]),
    "groups of hopping windows that keep rows": (FAR, [3, 5]),
    "a t-sort with a guard": (FUTURE, [2, 4, 6]),
    "a t-sort that finds back": (JUMP, [2, 4, 5, 8]),
    "a stream with a guard": (AHEAD, [2, 3, 5, 6]),
    "a stream that finds back": (CONFIRMED, [2, 3, 5, 6, 8]),
    "a stream that looks at arrival": (LEADING, [2, 4, 6]),
    "a guarded stream that a pump fills": (PUMPED, [2, 4, 6]),
    "a t-sort whose bound is set": (RAISED, [2, 3, 6]),
    "a t-sort that looks at arrival": (ARRIVED, [2, 4, 6]),
    "a guard whose bound is set": (RAISED, [2, 3, 6]),
    "groups that a promise closes": (STEPS, [1, 3, 5, 7]),
    "rows sorted by a promised value": (STEPS, [1, 3, 5, 7]),
    "groups of a promise with a rowtime of their own": (STEPS, [1, 3, 5, 7]),
    "groups sorted inside a longer step": (COUNTS, [1, 2, 3, 4, 5]),
    "distinct rows of groups": (ALIKE, [2, 4]),
    "a sorted union": (NULLS, [2, 4]),
    "groups of a column within some rows": (LOOSE, [2, 4, 7, 8, 10]),
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
    real = tsort_module._beyond_arrival
    patch.setattr(tsort_module, "_beyond_arrival", lambda limit: real(limit + 1))


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
    patch.setattr(Quarantine, "released", lambda self, *rest: (real(self, *rest), self.control.behind.clear())[0])


def _limit_of_a_stream_inclusive(patch: pytest.MonkeyPatch) -> None:
    real = stream_module._beyond_arrival
    patch.setattr(stream_module, "_beyond_arrival", lambda limit: real(limit + 1))


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


def _last_rows_counted(patch: pytest.MonkeyPatch) -> None:
    real = judged_runs.scan
    patch.setattr(judged_runs, "scan", lambda *args: real(*args[:7]))


def _last_rows_forgotten_between_ticks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judged_runs, "calm", lambda *_: None)
    real = judged_runs.scan
    patch.setattr(judged_runs, "scan", lambda *args: replace(real(*args), recent=np.full(len(args[7]), f.BEGINNING)))


def _loose_groups_released_at_once(patch: pytest.MonkeyPatch) -> None:
    real = GroupByValues.emits
    patch.setattr(GroupByValues, "emits", lambda self: replace(real(self), released=True))


def _inputs_swapped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(union_module, "prefix", lambda index: f"{9999 - index:04d}/")


def _bound_of_a_stream_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = Stream._gate
    patch.setattr(Stream, "_gate", lambda *args, **more: _without(real(*args, **more)))


def _without(gate: Any) -> Any:
    from dataclasses import replace

    return replace(gate, bounds=())


def _filter_that_stops_the_clock(patch: pytest.MonkeyPatch) -> None:
    real = Select.step

    def step(self: Select, tick: Any, deltas: Any) -> Delta:
        if self.where is not None:
            deltas = [Delta(deltas[0].rows, dict.fromkeys(deltas[0].clocks, ORIGIN), deltas[0].count)]
        return real(self, tick, deltas)

    patch.setattr(Select, "step", step)


def _group_that_closes_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ends, "end_text", property(lambda _: "unix_micros(`__k0`) + 9000000L"))


def _group_that_promises_too_much(patch: pytest.MonkeyPatch) -> None:
    real = GroupBy.promises
    patch.setattr(
        GroupBy,
        "promises",
        lambda self, c, k: {w: b if b >= END else b + 3_600_000_000 for w, b in real(self, c, k).items()},
    )


def _merge_that_forgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Merge, "_hold", lambda *_: None)


def _segments_dropped_early(patch: pytest.MonkeyPatch) -> None:
    real = SegmentLog.forget
    patch.setattr(SegmentLog, "forget", lambda self, up_to: real(self, up_to + 4 * HALF))


def _broken_order_let_through(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ordered, "step", lambda _self, _tick, deltas: deltas[0])


def _sorted_rows_promised_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SortBy, "promises", lambda _self, clocks, _control: {w: b + 4 * HALF for w, b in clocks[0].items()})


def _windows_that_end_late(patch: pytest.MonkeyPatch) -> None:
    real = Hop._copied
    patch.setattr(Hop, "_copied", lambda self, rows: real(replace(self, size=self.size + HALF), rows))


def _copies_in_another_order(patch: pytest.MonkeyPatch) -> None:
    real = Hop._copied
    patch.setattr(Hop, "_copied", lambda self, rows: real(self, rows).withColumn("__p", -F.col("__p")))


def _rows_held_for_one_window(patch: pytest.MonkeyPatch) -> None:
    real = GroupBy._hold_rows
    patch.setattr(GroupBy, "_hold_rows", lambda self, *args: real(replace(self, many=False), *args))


def _null_times_let_through(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Hop, "_timed", lambda _self, _tick, delta: delta.rows)


def _sorted_groups_released_at_once(patch: pytest.MonkeyPatch) -> None:
    real = GroupBy.emits
    patch.setattr(GroupBy, "emits", lambda self: replace(real(self), released=True))


def _value_let_out_too_early(patch: pytest.MonkeyPatch) -> None:
    real = ValueClocks.past
    patch.setattr(ValueClocks, "past", lambda self, t, b: [c.replace(" < ", " <= ") for c in real(self, t, b)])


def _stamp_promised_too_early(patch: pytest.MonkeyPatch) -> None:
    real = ValueClocks.stamp_at
    patch.setattr(ValueClocks, "stamp_at", lambda self, t, s, b: real(self, t, s, b) + (8 * HALF if b < END else 0))


def _nulls_where_they_are_not_wanted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(orders_module, "way_of", lambda key: "DESC" if key.args.get("desc") else "ASC")


def _sessions_joined_at_their_end(patch: pytest.MonkeyPatch) -> None:
    real = Chains.numbered
    patch.setattr(Chains, "numbered", lambda self, pieces: real(replace(self, gap=self.gap + 1), pieces))


def _sessions_that_do_not_go_on(patch: pytest.MonkeyPatch) -> None:
    real = Chains.due

    def due(self: Chains, *args: Any) -> Any:
        pieces = real(self, *args)
        return None if pieces is None else pieces.where(IS_DUE)

    patch.setattr(Chains, "due", due)


def _sessions_promised_too_far(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        SessionGroup, "promises", lambda _, clocks, _control: {"": max(clocks[0].values(), default=0) + 4 * HALF}
    )


def _sessions_left_in_the_order_of_their_keys(patch: pytest.MonkeyPatch) -> None:
    real = SessionGroup.emits
    patch.setattr(SessionGroup, "emits", lambda self: real(replace(self, sort=(), directions=())))


def _stamped_sessions_released_at_once(patch: pytest.MonkeyPatch) -> None:
    real = SessionGroup.emits
    patch.setattr(SessionGroup, "emits", lambda self: replace(real(self), released=True))


def _windows_shorter_than_said(patch: pytest.MonkeyPatch) -> None:
    real = Stagger._opened
    patch.setattr(Stagger, "_opened", lambda self, *args: real(replace(self, length=self.length - HALF), *args))


def _numbers_in_stream_order(patch: pytest.MonkeyPatch) -> None:
    real = numbering._sorting
    patch.setattr(numbering, "_sorting", lambda query, key, window: real(query, key, replace(window, order=())))


def _one_row_too_many(patch: pytest.MonkeyPatch) -> None:
    real = Limit.step
    patch.setattr(Limit, "step", lambda self, tick, deltas: real(replace(self, count=self.count + 1), tick, deltas))


def _rows_alike_left_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_plan, "distinct_rows", lambda node, *_: node)


def _endless_groups_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ValueClocks, "past", lambda _self, _tick, _bound: ["true"])
    patch.setattr(ValueClocks, "moved", lambda *_: True)


def _refusals_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rejected, "step", lambda self, tick, deltas: Delta(None, deltas[0].clocks))


def _rows_of_a_range_forgotten_early(patch: pytest.MonkeyPatch) -> None:
    real = over_module.alive
    patch.setattr(over_module, "alive", lambda rows, clock: real(rows, clock + 6 * HALF))


def _lower_end_left_out(patch: pytest.MonkeyPatch) -> None:
    real = windowed_module.by_range
    patch.setattr(
        windowed_module,
        "by_range",
        lambda rows, values, lower, upper: real(rows, values, None if lower is None else lower - 1, upper),
    )


def _slices_without_the_frame_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slices_module, "SLICE", 1)
    real = slices_module._answers
    patch.setattr(slices_module, "_answers", lambda windows, parts: real(windows, [(p[0], None, p[2]) for p in parts]))


def _no_value_seen_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(window_functions, "_previous", lambda _, places: np.full(len(places), -1))


def _a_rank_a_row(patch: pytest.MonkeyPatch) -> None:
    real = window_functions._levels
    patch.setattr(window_functions, "_levels", lambda one, other: (one[0] + other[0], *real(one, other)[1:]))


def _accumulators_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Over, "_keep", lambda self, tick, answer, clock: self._add(tick, "rows", answer.kept, clock))


def _a_row_less_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(windowed_module.Windows, "rows_kept", 1)


def _period_forgotten_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ends, "end_text", property(lambda _: "unix_micros(`__k0`)"))


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
    ("group by with partial results", _group_that_closes_late),
    ("group by with partial results", _group_that_promises_too_much),
    ("group by with partial results", _segments_dropped_early),
    ("t-sort with a further key", _merge_that_forgets),
    ("rejected rows", _refusals_lost),
    ("groups that a promise closes", _value_let_out_too_early),
    ("groups that a promise closes", _broken_order_let_through),
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
    ("groups of a column within some rows", _last_rows_counted),
    ("groups of a column within some rows", _last_rows_forgotten_between_ticks),
    ("groups of a column within some rows", _loose_groups_released_at_once),
    ("rows sorted inside a step", _sorted_rows_promised_too_early),
    ("sessions with partial results", _sessions_joined_at_their_end),
    ("sessions with partial results", _sessions_that_do_not_go_on),
    ("sessions with partial results", _sessions_promised_too_far),
    ("groups of rows of sessions", _sessions_that_do_not_go_on),
    ("sessions sorted inside their rowtime", _sessions_left_in_the_order_of_their_keys),
    ("sessions sorted inside a rowtime of their own", _stamped_sessions_released_at_once),
    ("staggered windows", _windows_shorter_than_said),
    ("rows of hopping windows", _windows_that_end_late),
    ("rows of hopping windows", _copies_in_another_order),
    ("groups of hopping windows that keep rows", _rows_held_for_one_window),
    ("windows of a column that may be null", _null_times_let_through),
    ("groups sorted inside a longer step", _sorted_groups_released_at_once),
    ("rows sorted by a promised value", _value_let_out_too_early),
    ("groups of a promise with a rowtime of their own", _stamp_promised_too_early),
    ("a sorted union", _nulls_where_they_are_not_wanted),
    ("the first three rows", _one_row_too_many),
    ("distinct rows of groups", _rows_alike_left_as_they_are),
    ("groups that only the end closes", _endless_groups_closed),
    ("the first rows of each step", _numbers_in_stream_order),
    ("ranges of time a key", _rows_of_a_range_forgotten_early),
    ("ranges of time a key", _lower_end_left_out),
    ("running aggregates a key", _accumulators_not_kept),
    ("numbers of rows over a union", _no_value_seen_before),
    ("ranges from a rounded time", _a_rank_a_row),
    ("ranges of time a key", _slices_without_the_frame_before),
    ("numbers of rows over a union", _a_row_less_kept),
    ("running totals that begin anew each period", _period_forgotten_early),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plant"), FAULTS, ids=[plant.__name__.strip("_") for _, plant in FAULTS])
def test_a_planted_fault_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, plant: Plant
) -> None:
    session = derive(spark)
    plant(monkeypatch)
    with pytest.raises(Exception, match=r".*") as caught:
        _check(session, name)
    assert isinstance(caught.value, AssertionError), caught.value


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in FAULTS}))
def test_without_a_fault_nothing_is_caught(spark: SparkSession, name: str) -> None:
    _check(derive(spark), name)


def _check(session: SparkSession, name: str) -> None:
    items, cut = EXAMPLES.get(name, (EXAMPLE, CUT))
    check(LAW[name], items, outcome(session, LAW[name], items, cut))
