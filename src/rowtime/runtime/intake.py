"""Intake: what a tick takes from a source, in the form for the stream operator.

The facts that a source knows without reading rows (file names, footers, offsets) decide whether a clock pass is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract.intake import Intake
from rowtime.operators.streams.stream_clocks import StreamClocks
from rowtime.runtime.local_rows import of_source
from rowtime.runtime.sources.contract import Slice, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.frames.frame import Frame


@dataclass(frozen=True)
class Taken:
    """A source's range in this tick; the writers that hold the stream after it, came, or left after their items.

    ``columns``: those that somebody reads, if not all (`plan.required_columns.columns_of_streams`).
    """

    source: Source
    part: Slice
    present: Sequence[str]
    joined: Sequence[str]
    left: Sequence[str] = ()
    columns: Collection[str] | None = None

    @property
    def rows(self) -> int | None:
        """The greatest possible number of rows, if known; the exact one if all of them have been decoded."""
        return self.source.count(self.part)


def intake_of(spark: SparkSession, taken: Taken, control: StreamClocks) -> Intake:
    """Return the intake of one stream for one tick."""
    source, part = taken.source, taken.part
    bounds = [(item.writer, item.position, item.at) for item in part.bounds]
    sent = {(item.writer, item.position): item.arrival for item in part.bounds if item.arrival is not None}
    moved = any(part.end[w] > part.start.get(w, 0) for w in part.end)
    rows = of_source(spark, source, part, taken.columns) if moved and part.rows != 0 else None
    count = taken.rows
    intake = Intake(
        rows if count != 0 else None,
        count,
        all_columns=partial(of_source, spark, source, part) if _is_narrow(rows, taken.columns) else None,
        gated=source.gives_rowtime or _ends_inside(part, control) or any(at < END for _, _, at in bounds),
        raises=not source.steady or source.gives_rowtime,
        decodes=source.decodes,
        given=source.gives_rowtime,
        bounds=bounds,
        sent=sent,
        arrived={} if source.gives_rowtime else dict(part.arrived),
        present=[*taken.present],
        left=taken.left,
        joined=taken.joined,
    )
    if "runs" not in part.detail:
        return replace(intake, in_band=source.in_band, stamped=not source.steady)
    facts = _Runs(part.detail["runs"], control, taken.joined, bounds)
    lowest, highest = facts.span
    return replace(
        intake,
        rows=rows if facts.rows else None,
        gated=facts.gated,
        raises=facts.raises,
        given=facts.given,
        bound=BEGINNING if part.bound is None else part.bound,
        columns=[(writer, position, text) for writer, position, text in part.detail.get("columns", ())],
        shown=facts.shown,
        arrived=facts.arrived(part),
        modes=facts.modes,
        lowest=lowest,
        highest=highest,
    )


def _ends_inside(part: Slice, control: StreamClocks) -> bool:
    """Return True if rows of the range may follow the end of their stream."""
    return "end inside" in part.detail or any(at >= END for at in control.clocks.values())


Run = Sequence[Any]  # first position, count, least, greatest (µs UTC), order: o in order, n no rowtimes


def _is_narrow(rows: Frame | None, columns: Collection[str] | None) -> bool:
    """Return True if only these of a source's columns have been read: not every source leaves out others."""
    return rows is not None and columns is not None and all(n in columns or n.startswith("__") for n in rows.columns)


class _Runs:
    """The content of stream log file names: runs of rows, given rowtimes and their order."""

    def __init__(
        self,
        runs: Mapping[str, Sequence[Run]],
        control: StreamClocks,
        joined: Sequence[str],
        bounds: Sequence[tuple[str, int, int]],
    ) -> None:
        self._runs = {writer: list(of_writer) for writer, of_writer in runs.items() if of_writer}
        self._bounds: dict[str, list[tuple[int, int]]] = {writer: [] for writer in self._runs}
        for writer, position, at in bounds:
            # Only a bound with rows after it affects the rows.
            if writer in self._runs and position < self._runs[writer][-1][0]:
                self._bounds[writer].append((position, at))
        self._clocks: dict[str, int] = dict(control.clocks)
        # Semantics 2.6: a new writer starts at the stream's clock, one that comes back also at its own.
        for writer in () if control.clock is None else joined:
            own = control.away.get(writer, BEGINNING)
            self._clocks[writer] = max(control.reached, own, self._clocks.get(writer, BEGINNING))
        self.modes = {**control.modes}
        for writer, of_writer in self._runs.items():
            given = [run for run in of_writer if run[4] != "n"]
            mode = "given" if len(given) == len(of_writer) else "mixed" if given else "arrival"
            if self.modes.get(writer, mode) != mode:
                mode = "mixed"
            self.modes[writer] = mode

    @property
    def rows(self) -> bool:
        return bool(self._runs)

    @property
    def given(self) -> bool:
        """Return True if some rows may have a rowtime from their writer."""
        return any(self.modes[writer] != "arrival" for writer in self._runs)

    @property
    def mixed(self) -> bool:
        """Return True if some rows may lack a rowtime while others have one."""
        return any(self.modes[w] == "mixed" or any(run[4] == "u" for run in r) for w, r in self._runs.items())

    @property
    def raises(self) -> bool:
        """Return True if arrival times may have to be raised to the clock of their writer."""
        return self.mixed or any(
            self.modes[w] == "arrival" and at < END for w, bounds in self._bounds.items() for _, at in bounds
        )

    @cached_property
    def gated(self) -> bool:
        """Return False if every run is at or above its writer's clock."""
        return self.mixed or not all(self._clean(writer, of_writer) for writer, of_writer in self._runs.items())

    def _clean(self, writer: str, of_writer: Sequence[Run]) -> bool:
        """Return True if given rowtimes do not go back; arrival times are raised, but none comes after the end."""
        mark = self._clocks.get(writer, BEGINNING)
        items: list[tuple[int, Any]] = [*((run[0], run) for run in of_writer), *self._bounds[writer]]
        for _, what in sorted(items, key=itemgetter(0)):
            if isinstance(what, int):
                mark = max(mark, what)
            elif mark >= END:
                return False
            elif self.modes[writer] == "given":
                if what[4] != "o" or what[2] < mark:
                    return False
                mark = what[3]
        return True

    @property
    def shown(self) -> dict[str, int]:
        """Return the last rowtime of ordered runs."""
        marks = {w: max(r[3] for r in of_writer) for w, of_writer in self._runs.items() if self.modes[w] == "given"}
        return {} if self.gated else marks

    def arrived(self, part: Slice) -> dict[str, int]:
        """Return the arrival clocks of the writers that give no rowtimes."""
        return {w: at for w, at in part.arrived.items() if self.modes.get(w) == "arrival"}

    @property
    def span(self) -> tuple[int, int]:
        """Return the least and the greatest rowtime, if known."""
        runs = [run for of_writer in self._runs.values() for run in of_writer]
        if not runs or self.gated or any(mode != "given" for mode in self.modes.values()):
            return BEGINNING, END
        return min(run[2] for run in runs), max(run[3] for run in runs)
