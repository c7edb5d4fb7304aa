"""The facts about all rows of a source: what the tasks have counted, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rowtime.core.time import DAY
from rowtime.operators.contract.lateness import LADDER
from rowtime.profiling.chained import Chain, UnsettledError, chained
from rowtime.profiling.counts import Durations, bins_of
from rowtime.profiling.lone_rows import Leap
from rowtime.profiling.samples import duplicates
from rowtime.profiling.stretches import Counted, Stretch

ReadInOrder = Callable[[int | None], Sequence[Counted]]
"""Reads all rows again, those of a writer in one task, in order; behind a guard (µs), if there is one."""


@dataclass(frozen=True)
class Facts:
    """What is known of the rows of a source; numbers of rows unless they are durations (µs).

    ``merged``: the clock of each writer of the source, by which a run refuses rows. ``own``: the clocks of files, or of
    the values of a column, by their names and writers; ``None`` if they are those of the writers. ``limit``: the guard
    (EARLY BEYOND) behind which late rows are counted, and ``early``: rows that it refuses. ``readings``: how often all
    rows were read.
    """

    rows: int
    bad: int
    nulls: int
    outside: int
    odd: int
    ties: int
    merged: Chain
    own: Chain | None
    ahead: Durations
    silences: Durations
    lone: tuple[Leap, ...] = ()
    limit: int | None = None
    honest: int = 0
    """The longest step of a mark that is no lone row, as an edge."""
    early: int = 0
    duplicates: int | None = None
    exact: bool = True
    readings: int = 1

    @property
    def timed(self) -> int:
        """Return the number of rows that a gate compares with a mark and does not refuse as early."""
        return self.rows - self.bad - self.nulls - self.outside - self.early

    @property
    def late(self) -> Durations:
        """Return how late the late rows are, by the clocks by which a run refuses them."""
        return self.merged.clock.late


@dataclass(frozen=True)
class Guards:
    """What is known of the guard of a gate: it has the limit ``present`` (µs), or may have one (``possible``)."""

    present: int | None = None
    possible: bool = True


def facts_of(
    counted: Sequence[Counted],
    in_order: ReadInOrder,
    guards: Guards = Guards(),
    *,
    hashed: bool = False,
) -> Facts:
    """Return the facts; rows are read again if tasks could not know the marks before theirs, or a guard is needed.

    ``hashed``: rows have hashes of their keys.
    """
    parts = _in_order(counted)
    readings = 1
    try:
        _check(parts)
        merged, own = _merged(parts), _own(parts)
    except UnsettledError:
        parts, readings = _in_order(in_order(None)), 2
        merged, own = _merged(parts), _own(parts)
    lone = tuple(leap for part in parts for leap in part.lone.lone)
    honest = _honest(merged.clock.leaps, lone)
    limit, early = guards.present, 0
    if limit is None and lone and guards.possible:
        limit = _between(honest, min(leap.length for leap in lone))
    if limit is not None:
        behind = _in_order(in_order(limit))
        merged, readings = _merged(behind), readings + 1
        early = sum(part.early for part in behind)
    totals = {name: sum(getattr(part, name) for part in parts) for name in ("rows", "bad", "nulls", "outside", "odd")}
    number, exact = duplicates([task.sample for task in counted]) if hashed else (None, True)
    ahead, silences = Durations(), Durations()
    for part in parts:
        ahead.merge(part.ahead)
        silences.merge(part.silences)
    return Facts(
        **totals, ties=_ties(parts), merged=merged, own=own, ahead=ahead, silences=silences, lone=lone, limit=limit,
        honest=honest, early=early, duplicates=number, exact=exact, readings=readings,
    )  # fmt: skip


def _in_order(counted: Sequence[Counted]) -> list[Stretch]:
    """Return the stretches in the order of their writers and positions."""
    return sorted((part for task in counted for part in task.stretches), key=lambda part: (part.writer, part.first))


def _check(parts: Sequence[Stretch]) -> None:
    """Raise ``UnsettledError`` if rows of one task are between those of another one."""
    if any(one.writer == other.writer and one.last >= other.first for one, other in pairwise(parts)):
        raise UnsettledError


def _merged(parts: Sequence[Stretch]) -> Chain:
    return chained(([part.writer], part.clock) for part in parts)


def _own(parts: Sequence[Stretch]) -> Chain | None:
    own = [(part, part.own) for part in parts if part.own is not None]
    if not own:
        return None
    return chained(([f"{part.writer}\0{name}" for name in part.names], clock) for part, clock in own if part.names)


def _honest(leaps: Durations, lone: Sequence[Leap]) -> int:
    """Return the edge that no step of a mark exceeds, apart from those of lone rows; the longest if no edge does."""
    others = Durations(leaps.bins.copy(), leaps.greatest)
    for leap in lone:
        others.bins[bins_of(np.array([leap.length], np.int64))] -= 1
    places = others.bins.nonzero()[0]
    if not len(places):
        return 0
    return LADDER[int(places[-1])] if places[-1] < len(LADDER) else others.greatest


def wide_limit(honest: int) -> int:
    """Return a limit for steps of the mark that is a day at least, and twice the honest ones."""
    wide = max(DAY, 2 * honest)
    return next((edge for edge in LADDER if edge >= wide), wide)


def _between(honest: int, lone: int) -> int | None:
    """Return a limit that honest steps do not exceed and those of lone rows do: the wide one, else the greatest."""
    edges = [edge for edge in LADDER if honest <= edge < lone]
    wide = wide_limit(honest)
    return wide if wide < lone else edges[-1] if edges else None


def _ties(parts: Sequence[Stretch]) -> int:
    """Return the rows that have the time of the row of their writer before."""
    timed = [part for part in parts if part.times is not None]
    between = sum(
        one.writer == other.writer and one.times[1] == other.times[0]  # type: ignore[index]
        for one, other in pairwise(timed)
    )
    return between + sum(part.ties for part in parts)
