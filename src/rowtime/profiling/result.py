"""The profile of a source: tables, recommendations, a statement and a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from rowtime.core.time import BEGINNING, to_text
from rowtime.operators.contract.lateness import interval
from rowtime.profiling.advice import Advice, Point, advice_of, clauses, costs, curve, point
from rowtime.profiling.chained import Chain
from rowtime.profiling.facts import Facts
from rowtime.profiling.findings import findings
from rowtime.profiling.pictures import svg
from rowtime.profiling.texts import as_text

_MICROS = timedelta(microseconds=1)
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Profile:
    """The disorder of the rows of a gate or stream, ``name``, by the time ``time`` (SQL).

    ``column``: the column that names clocks of their own (``writer``), else ``file`` or ``writer``. ``names``: paths of
    files by their numbers. ``rewrite``: the statement with ``{clauses}`` in it.
    """

    name: str
    time: str
    facts: Facts
    column: str
    names: dict[str, str] = field(default_factory=dict)
    rewrite: str = "ORDER BY {time} {clauses}"
    keep: float = 0.999

    @property
    def rows(self) -> int:
        """The number of rows, with those that have no time."""
        return self.facts.rows

    @property
    def advice(self) -> Advice:
        """The recommendations; durations in µs."""
        return advice_of(self.facts, self.keep)

    @property
    def within(self) -> timedelta:
        """The recommended WITHIN."""
        return self.advice.within.within * _MICROS

    @property
    def early_beyond(self) -> timedelta | None:
        """The recommended limit of the guard."""
        return None if self.advice.early is None else self.advice.early * _MICROS

    @property
    def idle_after(self) -> timedelta | None:
        """The recommended IDLE AFTER; ``None`` with one writer, and without arrival times."""
        return None if self.advice.idle is None else self.advice.idle * _MICROS

    @property
    def statement(self) -> str:
        """The SQL that sorts the rows with the recommended clauses."""
        return self.rewrite.replace("{time}", self.time).replace("{clauses}", clauses(self.facts, self.advice))

    def late_rows(self, within: timedelta) -> int:
        """Return how many rows a run with this WITHIN refuses as LATE, behind the recommended guard.

        Raises ``ValueError`` if ``within`` is not one of `curve`, and less than the greatest lateness: rows are counted
        between these only.
        """
        micros = within // _MICROS
        if micros < self.facts.late.greatest and micros not in {at.within for at in self.points}:
            raise ValueError(f"{interval(micros)} is not a tolerance of the curve")
        return point(self.facts, micros).late

    @property
    def points(self) -> list[Point]:
        """The curve: tolerances (µs) with the rows that they keep."""
        return curve(self.facts)

    @property
    def curve(self) -> pa.Table:
        """The curve as a table: ``within`` (DURATION, also the delay of results), ``late`` rows, the share ``kept``."""
        points = self.points
        return pa.table(
            {
                "within": pa.array([at.within for at in points], pa.duration("us")),
                "late": pa.array([at.late for at in points], pa.int64()),
                "kept": pa.array([at.kept for at in points], pa.float64()),
            }
        )

    @property
    def writers(self) -> pa.Table:
        """A row for each writer, file or value of the column: how late its rows are by its own clock.

        ``writer``, ``rows`` with a time, ``first`` and ``last`` (the least and the greatest time), ``late`` rows,
        ``p50``, ``p99`` and ``greatest`` lateness of these, and ``gap``, the longest step of its clock.
        """
        rows = self.writer_rows()
        kinds = {"writer": pa.string(), "rows": pa.int64(), "first": _INSTANT, "last": _INSTANT, "late": pa.int64()}
        kinds |= dict.fromkeys(("p50", "p99", "greatest", "gap"), pa.duration("us"))
        return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})

    def writer_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `writers` as plain values (µs)."""
        return [*map(self._writer, self._chain.places)]

    @property
    def _chain(self) -> Chain:
        return self.facts.merged if self.facts.own is None else self.facts.own

    def _writer(self, key: str) -> dict[str, Any]:
        chain = self._chain
        facts, at, late = chain.facts, chain.places[key], chain.late(key)
        timed = facts.highest[at] > BEGINNING
        return {
            "writer": self._called(key),
            "rows": int(facts.seen[at]),
            "first": int(facts.lowest[at]) if timed else None,
            "last": int(facts.highest[at]) if timed else None,
            "late": late.rows,
            "p50": late.quantile(0.5),
            "p99": late.quantile(0.99),
            "greatest": late.greatest,
            "gap": int(facts.leap[at]),
        }

    def _called(self, key: str) -> str:
        writer, null, name = key.partition("\0")
        if not null:
            return writer
        if self.column == "file":
            return self.names.get(name, name)
        return name if len(self.facts.merged.places) == 1 else f"{writer} {name}"

    @property
    def findings(self) -> list[str]:
        """What else is remarkable, a sentence each."""
        return [*findings(self.facts, self.column)]

    @property
    def recommendations(self) -> list[str]:
        """The recommended clauses in words, with what each costs."""
        return costs(self.facts, self.advice)

    def svg(self) -> str:
        """Return the curve as a picture: the rows kept by each WITHIN, which is the delay of results."""
        return svg(f"{self.name} by {self.time}", self.points, self.advice)

    def _repr_html_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return as_text(self)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values; durations in µs, instants as texts."""
        facts, advice = self.facts, self.advice
        writers = [
            {**row, **{name: None if row[name] is None else to_text(row[name]) for name in ("first", "last")}}
            for row in self.writer_rows()
        ]
        numbers = ("rows", "bad", "nulls", "outside", "odd", "ties", "early", "duplicates", "readings")
        return {
            "name": self.name,
            "time": self.time,
            **{name: getattr(facts, name) for name in numbers},
            "duplicates_exact": facts.exact,
            "late": facts.late.as_json(),
            "late_by_own_clocks": None if facts.own is None else facts.own.clock.late.as_json(),
            "gaps": facts.merged.clock.leaps.as_json(),
            "ahead_of_arrival": facts.ahead.as_json(),
            "silences": facts.silences.as_json(),
            "whole_hours": facts.merged.clock.hours.peaks,
            "lone_rows": [{"position": at.position, "ahead": at.length} for at in facts.lone],
            "by": self.column,
            "writers": writers,
            "curve": [at.as_json() for at in self.points],
            "knee": advice.knee.as_json(),
            "recommended": {"within": advice.within.as_json(), "early": advice.early, "idle": advice.idle},
            "findings": self.findings,
            "statement": self.statement,
        }
