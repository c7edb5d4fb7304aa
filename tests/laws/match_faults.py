"""Faults in MATCH_RECOGNIZE; in `test_planted_faults` the laws catch each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import rowtime.operators.patterns.match as match_module
from rowtime.kernels.matching.automaton import _Graph
from rowtime.operators.patterns.conditions import Values
from rowtime.operators.patterns.partitions import MATCHED_TO, MATCHES, START_FROM, Laid
from rowtime.operators.patterns.remembered import Memory
from tests.laws.fault_rows import Plant, bound, item

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import pytest

ROWS = [  # one writer, with ties
    item(number, "a", "x", at, v=v)
    for number, (at, v) in enumerate(
        ((1, 0), (2, 1), (3, 1), (7, 2), (8, 2), (9, 0), (9, 1), (11, 1), (12, 3), (14, 0), (20, 2)), 1
    )
]
OF_ONE_KEY = [item(n, "a", "x", at, v=1) for n, at in enumerate((1, 2, 2, 3, 4, 9, 10, 11), 1)]
BY_BOUNDS = [  # the first match is certain before the row after its start has failed as a start
    item(1, "a", "x", 1), item(2, "a", "x", 2), bound(3, "a", "x", 5), bound(4, "a", "x", 8), item(5, "a", "x", 9),
    item(6, "a", "x", 10), bound(7, "a", "x", 20),
]  # fmt: skip
WITHIN, KEYED, UNMATCHED, LEFT_OUT, TOTALS = (
    "a match within a time",
    "matches of keys that expire, from each row on",
    "all rows with unmatched ones",
    "all rows but those that are left out, with empty matches",
    "totals of the rows of a match",
)
EXAMPLES = {
    WITHIN: (ROWS, [2, 5, 8, 11]),
    KEYED: (OF_ONE_KEY, [1, 2, 3, 4, 6, 8]),
    UNMATCHED: (BY_BOUNDS, [2, 3, 4, 6, 7]),
    LEFT_OUT: (ROWS, [2, 5, 8, 11]),
    TOTALS: (ROWS, [2, 5, 8, 11]),
}


def _a_time_that_includes_its_end(patch: pytest.MonkeyPatch) -> None:
    real = match_module.Clause

    def longer(machine: Any, within: int | None, *others: Any) -> Any:
        return real(machine, None if within is None else within + 1, *others)

    patch.setattr(match_module, "Clause", longer)


def _reluctant_ones_are_greedy(patch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = _Graph._turns
    patch.setattr(
        _Graph, "_turns", staticmethod(lambda part, again, then: real(replace(part, greedy=True), again, then))
    )


def _rows_before_a_start_are_dropped(patch: pytest.MonkeyPatch) -> None:
    real = Memory.keep
    patch.setattr(Memory, "keep", lambda self, *given: real(replace(self, reach=0), *given))


def _the_bound_alone_decides_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "due", lambda *_: np.zeros(0, np.int64))


def _remembering(patch: pytest.MonkeyPatch, forgotten: str) -> None:
    real = Laid.of_heads
    patch.setattr(
        Laid, "of_heads", lambda self, name, default: default if name == forgotten else real(self, name, default)
    )


def _starts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _remembering(patch, START_FROM)


def _numbers_of_matches_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _remembering(patch, MATCHES)


def _matched_rows_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _remembering(patch, MATCHED_TO)


def _moves_cross_the_edges_of_partitions(patch: pytest.MonkeyPatch) -> None:
    def at(self: Values, value: str, places: Any, move: int = 0) -> Any:
        there = places >= 0
        moved = np.clip(np.where(there, places, 0) + move, 0, len(self.rows.times) - 1)
        return self.columns[value].take(pa.array(moved, mask=~there))

    patch.setattr(Values, "at", at)


FAULTS: tuple[tuple[str, Plant], ...] = (
    (WITHIN, _a_time_that_includes_its_end),
    (LEFT_OUT, _reluctant_ones_are_greedy),
    (KEYED, _rows_before_a_start_are_dropped),
    (UNMATCHED, _the_bound_alone_decides_nothing),
    (KEYED, _starts_are_forgotten),
    (KEYED, _numbers_of_matches_are_forgotten),
    (UNMATCHED, _matched_rows_are_forgotten),
    (KEYED, _moves_cross_the_edges_of_partitions),
)
