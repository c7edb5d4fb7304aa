"""Faults in windows and sessions; in `test_planted_faults` the laws catch each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from rowtime.core.columns import IS_DUE
from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.windows.hop import Hop
from rowtime.operators.windows.session import Chains, SessionGroup
from rowtime.operators.windows.stagger import Stagger
from tests.laws.fault_rows import Plant, bound, item
from tests.laws.pipelines import HALF

if TYPE_CHECKING:
    import pytest

FAR = [  # the first window of the row ends in the tick in which the row arrives, the last one later
    item(1, "a", "x", 1), bound(2, "a", "x", 4), bound(3, "b", "x", 4), bound(4, "a", "x", 12),
    bound(5, "b", "x", 12),
]  # fmt: skip
ENDINGS = [  # of two sessions with one end the second has more rows, but fewer than one that ends later in the step
    item(number, "a", "x", at, v=v)
    for number, (at, v) in enumerate(((1, 2), (2, 1), (2, 2), (3, 0), (5, 9), (9, 9)), 1)
]
VISITS = [item(number, "a", "x", at) for number, at in enumerate((1, 3, 5, 8, 20), 1)]  # a pause of exactly the gap

EXAMPLES = {
    "sessions with partial results": (VISITS, [1, 2, 3, 4, 5]),
    "sessions sorted inside their rowtime": (ENDINGS, [5, 6]),
    "sessions sorted inside a rowtime of their own": (ENDINGS, [5, 6]),
    "groups of rows of sessions": (VISITS, [1, 2, 3, 4, 5]),
    "groups of hopping windows that keep rows": (FAR, [3, 5]),
}


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


FAULTS: tuple[tuple[str, Plant], ...] = (
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
)
