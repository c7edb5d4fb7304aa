"""The rows of many partitions in which patterns are searched, and whether more can follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from rowtime.kernels.frames import Flags, Ints
from rowtime.kernels.window_functions import Table

NOTHING = -1
"""A row index that means no row."""


@dataclass(frozen=True)
class Rows:
    """Rows laid out by partition, in stream order in each, from ``begins`` to ``ends`` (exclusive).

    ``times`` (µs) never fall in a partition. ``over``: no row can follow in the partition. ``whole``: its first row
    here is its first row. ``bound`` (µs): no later row of any partition is below it. ``ahead``: how many rows after a
    row its conditions read.
    """

    begins: Ints
    ends: Ints
    times: Ints
    over: Flags
    whole: Flags
    bound: int
    ahead: int = 0

    @cached_property
    def partition(self) -> Ints:
        """Return the partition of each row."""
        return np.repeat(np.arange(len(self.begins)), self.ends - self.begins)

    @cached_property
    def known(self) -> Ints:
        """Return for each partition the row up to which (exclusive) a row's variables can be decided."""
        return np.where(self.over, self.ends, np.maximum(self.ends - self.ahead, self.begins))


@dataclass(frozen=True)
class Picked:
    """Which row of those taken as some variables: the ``offset``-th, from the end if ``last``, from 0 on."""

    variables: frozenset[int]
    last: bool
    offset: int = 0


class Running(Protocol):
    """An aggregate of the rows that a path has taken as some ``variables`` so far, as parts (`window_functions`)."""

    @property
    def variables(self) -> frozenset[int]:
        """Return the variables of these rows."""
        ...

    def begin(self, count: int) -> Table:
        """Return the parts of paths that have taken no row."""
        ...

    def take(self, parts: Table, rows: Ints) -> Table:
        """Return the parts of paths that take a row each."""
        ...

    def value(self, parts: Table) -> Table:
        """Return the values of paths, as `Function.value` does."""
        ...


Test = Callable[[Ints, Sequence[Ints], Sequence[Table]], tuple[Flags, Ints]]
"""Tests which of some rows satisfy a condition, from the rows, their paths' picked rows and aggregates.

The second answer is 0, or for a row whose condition cannot be computed the number of the reason, from 1 on.
"""


@dataclass(frozen=True)
class PathCondition:
    """A condition that reads the match: the rows that it picks, and the aggregates, by their numbers."""

    picked: tuple[Picked, ...]
    running: tuple[int, ...]
    test: Test


@dataclass(frozen=True)
class Conditions:
    """The conditions of variables, by number; a variable without one accepts every row.

    ``of_rows``: for each row, if the row alone decides; ``broken``: the number of the reason why that cannot be
    computed, if it is so for a row. ``of_paths``: conditions to evaluate path by path. ``running``: the aggregates that
    these need.
    """

    of_rows: Mapping[int, Flags] = field(default_factory=dict)
    of_paths: Mapping[int, PathCondition] = field(default_factory=dict)
    running: Sequence[Running] = ()
    broken: Mapping[int, Ints] = field(default_factory=dict)
