"""Faults in groups, sorts and limits; in `test_planted_faults` the laws catch each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rowtime.core.time import END
from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.groups.group_values import GroupByValues
from rowtime.operators.order.limit import Limit
from rowtime.operators.order.merge import Merge
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.over.value_clocks import ValueClocks
from rowtime.operators.rows.ends import Ends
from rowtime.operators.sorts.sort_by import SortBy
from rowtime.plan.bind import group_plan
from rowtime.plan.bind import orders as orders_module
from rowtime.runtime.clock_pass import judged_runs
from rowtime.state.segments import SegmentLog
from tests.laws.fault_rows import Plant, item
from tests.laws.pipelines import HALF
from tests.oracle import feed as f

if TYPE_CHECKING:
    import pytest

STEPS = [  # the value stays the same over two ticks, goes back, and goes on
    item(number, "a", "x", number, v=v) for number, v in enumerate((1, 1, 1, 2, 1, 2, 3), 1)
]
LOOSE = [  # a group of 0 and 1 with a row after the first row of 4, when the group is complete
    item(number, "a", "x", number, v=v) for number, v in enumerate((0, 4, 0, 1, 6, 7, 3, 9, 9, 9), 1)
]
NULLS = [
    item(1, "a", "x", 1, v=1), item(2, "a", "x", 2, v=None), item(3, "b", "x", 9), item(4, "a", "x", 9),
]  # fmt: skip
ALIKE = [item(number, "a", "x", at, v=v) for number, (at, v) in enumerate(((0, 1), (1, 2), (4, 1), (9, 1)), 1)]
COUNTS = [  # the second, with more rows of a value, comes later
    item(number, "a", "x", at, v=v) for number, (at, v) in enumerate(((1, 1), (2, 2), (3, 2), (5, 0), (9, 1)), 1)
]

EXAMPLES = {
    "groups that a promise closes": (STEPS, [1, 3, 5, 7]),
    "rows sorted by a promised value": (STEPS, [1, 3, 5, 7]),
    "groups of a promise with a rowtime of their own": (STEPS, [1, 3, 5, 7]),
    "groups sorted inside a longer step": (COUNTS, [1, 2, 3, 4, 5]),
    "distinct rows of groups": (ALIKE, [2, 4]),
    "a sorted union": (NULLS, [2, 4]),
    "groups of a column within some rows": (LOOSE, [2, 4, 7, 8, 10]),
}


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
    real = Merge._beyond
    patch.setattr(Merge, "_beyond", lambda self, *rows: real(self, *rows).where("false"))


def _segments_dropped_early(patch: pytest.MonkeyPatch) -> None:
    real = SegmentLog.forget
    patch.setattr(SegmentLog, "forget", lambda self, up_to: real(self, up_to + 4 * HALF))


def _broken_order_let_through(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ordered, "step", lambda _self, _tick, deltas: deltas[0])


def _sorted_rows_promised_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SortBy, "promises", lambda _self, clocks, _control: {w: b + 4 * HALF for w, b in clocks[0].items()})


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


def _one_row_too_many(patch: pytest.MonkeyPatch) -> None:
    real = Limit.step
    patch.setattr(Limit, "step", lambda self, tick, deltas: real(replace(self, count=self.count + 1), tick, deltas))


def _rows_alike_left_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_plan, "distinct_rows", lambda node, *_: node)


def _endless_groups_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ValueClocks, "past", lambda _self, _tick, _bound: ["true"])
    patch.setattr(ValueClocks, "moved", lambda *_: True)


FAULTS: tuple[tuple[str, Plant], ...] = (
    ("group by with partial results", _group_that_closes_late),
    ("group by with partial results", _group_that_promises_too_much),
    ("group by with partial results", _segments_dropped_early),
    ("t-sort with a further key", _merge_that_forgets),
    ("groups that a promise closes", _value_let_out_too_early),
    ("groups that a promise closes", _broken_order_let_through),
    ("groups of a column within some rows", _last_rows_counted),
    ("groups of a column within some rows", _last_rows_forgotten_between_ticks),
    ("groups of a column within some rows", _loose_groups_released_at_once),
    ("rows sorted inside a step", _sorted_rows_promised_too_early),
    ("groups sorted inside a longer step", _sorted_groups_released_at_once),
    ("rows sorted by a promised value", _value_let_out_too_early),
    ("groups of a promise with a rowtime of their own", _stamp_promised_too_early),
    ("a sorted union", _nulls_where_they_are_not_wanted),
    ("the first three rows", _one_row_too_many),
    ("distinct rows of groups", _rows_alike_left_as_they_are),
    ("groups that only the end closes", _endless_groups_closed),
)
