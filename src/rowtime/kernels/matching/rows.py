"""The rows of many partitions that patterns are looked for in, and what is known of their end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from rowtime.kernels.frames import Ints, Known
from rowtime.kernels.window_functions import Table

NOTHING = -1
"""In the place of a row: there is none."""


@dataclass(frozen=True)
class Rows:
    """Rows laid out by partition, in stream order in each, from ``begins`` to ``ends`` (exclusive).

    ``times`` (µs) never fall in a partition. ``over``: no row can follow in the partition. ``whole``: its first row
    here is its first row. ``bound`` (µs): no later row of any partition lies below it. ``ahead``: how many rows behind
    a row its conditions read.
    """

    begins: Ints
    ends: Ints
    times: Ints
    over: Known
    whole: Known
    bound: int
    ahead: int = 0

    @cached_property
    def partition(self) -> Ints:
        """The partition of each row."""
        return np.repeat(np.arange(len(self.begins)), self.ends - self.begins)

    @cached_property
    def known(self) -> Ints:
        """Of each partition the row up to which (exclusive) it can be decided what a row is taken as."""
        return np.where(self.over, self.ends, np.maximum(self.ends - self.ahead, self.begins))


@dataclass(frozen=True)
class Picked:
    """Which row of those that were taken as some variables: the ``offset``-th, from the end if ``last``, from 0 on."""

    variables: frozenset[int]
    last: bool
    offset: int = 0


class Running(Protocol):
    """An aggregate of the rows that a path has taken as some ``variables`` so far, as parts (`window_functions`)."""

    @property
    def variables(self) -> frozenset[int]:
        """Whose rows they are."""
        ...

    def begin(self, count: int) -> Table:
        """The parts of paths that have taken no row."""
        ...

    def take(self, parts: Table, rows: Ints) -> Table:
        """The parts of paths that take a row each."""
        ...


Test = Callable[[Ints, Sequence[Ints], Sequence[Table]], Known]
"""What of some rows satisfies a condition: by the rows, the rows that their paths pick, and the paths' aggregates."""


@dataclass(frozen=True)
class Asked:
    """A condition that reads the match: the rows that it picks, and the aggregates, by their numbers."""

    picked: tuple[Picked, ...]
    running: tuple[int, ...]
    test: Test


@dataclass(frozen=True)
class Conditions:
    """What rows have to satisfy to be taken as a variable, by its number; one that is not there takes every row.

    ``of_rows``: for each row, where the row alone decides. ``of_paths``: what has to be asked path by path.
    ``running``: the aggregates that these ask for.
    """

    of_rows: Mapping[int, Known] = field(default_factory=dict)
    of_paths: Mapping[int, Asked] = field(default_factory=dict)
    running: Sequence[Running] = ()
