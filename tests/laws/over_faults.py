"""Faults in window functions; in `test_planted_faults` the laws catch each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import rowtime.kernels.windowed as windowed_module
import rowtime.operators.over.over_memory as memory_module
import rowtime.operators.over.slices as slices_module
from rowtime.kernels import window_functions
from rowtime.operators.rows.ends import Ends
from rowtime.plan.bind import numbering
from tests.laws.fault_rows import Plant, item
from tests.laws.pipelines import HALF

if TYPE_CHECKING:
    import pytest

CLOSE = [  # rows of one key two seconds apart, and ties
    item(number, "a", "x", at, v=v)
    for number, (at, v) in enumerate(((1, 1), (2, 1), (2, 1), (3, 2), (4, 1), (5, 1), (6, 3), (6, 1), (7, 1)), 1)
]

EXAMPLES = {
    "ranges of time a key": (CLOSE, [2, 3, 5, 7, 9]),
    "running aggregates a key": (CLOSE, [2, 3, 5, 7, 9]),
    "running totals that begin anew each period": (CLOSE, [2, 3, 5, 7, 9]),
}


def _numbers_in_stream_order(patch: pytest.MonkeyPatch) -> None:
    real = numbering._sorting
    patch.setattr(numbering, "_sorting", lambda query, key, window: real(query, key, replace(window, order=())))


def _rows_of_a_range_forgotten_early(patch: pytest.MonkeyPatch) -> None:
    real = memory_module.alive
    patch.setattr(memory_module, "alive", lambda rows, clock: real(rows, clock + 6 * HALF))


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
    memory, real = memory_module.Memory, memory_module.Memory.keep
    patch.setattr(memory, "keep", lambda self, answer, clock: real(self, replace(answer, heads=None), clock))


def _a_row_less_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(windowed_module.Windows, "rows_kept", 1)


def _period_forgotten_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ends, "end_text", property(lambda _: "unix_micros(`__k0`)"))


FAULTS: tuple[tuple[str, Plant], ...] = (
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
