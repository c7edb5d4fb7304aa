"""Events with lifetimes as Python objects; each method has the name of its SQL function or clause.

Like every `Relation`, it makes SQL text, so SQL and Python give the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rowtime.api.relations import Relation, interval, named, queried
from rowtime.api.rows import Rows

Period = tuple[str | datetime, str | datetime] | str
"""Two times (without a zone in UTC) or SQL texts of times; or the text of a period, as ``PERIOD (a, b)``."""


@dataclass(frozen=True)
class Events(Relation):
    """Represents a stream, view or query of events with lifetimes."""

    def to_point(self) -> Events:
        """Reduce each event to one microsecond at its start."""
        return self._called("TO_POINT")

    def point_at_end(self) -> Events:
        """Reduce each event to one microsecond at its end."""
        return self._called("POINT_AT_END")

    def shift(self, by: timedelta) -> Events:
        """Move both ends of each event."""
        return self._called("SHIFT", interval(by))

    def extend(self, by: timedelta | None = None) -> Events:
        """Move the end of each event, or remove it."""
        return self._called("EXTEND", *([] if by is None else [interval(by)]))

    def alter_duration(self, duration: timedelta | str) -> Events:
        """Give each event a length from its start: a duration, or an SQL expression over the event."""
        return self._called("ALTER_DURATION", _length(duration))

    def quantize(self, step: timedelta, offset: timedelta | None = None) -> Events:
        """Round the start of each event down and its end up."""
        return self._called("QUANTIZE", *_steps(step, offset))

    def chop(self, step: timedelta, offset: timedelta | None = None) -> Events:
        """Cut each event into pieces at fixed steps."""
        return self._called("CHOP", *_steps(step, offset))

    def stitch(self) -> Events:
        """Combine events with the same payload that touch or overlap."""
        return self._called("STITCH")

    def clip(self, other: Events, *keys: str) -> Events:
        """Cut each event at the first later start of another event with the same values in some columns."""
        return self._called("CLIP", other.argument, *map(named, keys))

    def clip_at_most(self, limit: timedelta | str) -> Events:
        """Cut each event after a length: a duration, or an SQL expression over the event."""
        return self._called("CLIP", f"AT MOST {_length(limit)}")

    def clip_within(self, period: Period) -> Events:
        """Keep only the part of each event that lies in a period."""
        return self._called("CLIP", f"WITHIN {_period(period)}")

    def point_to_signal(self, *keys: str) -> Events:
        """Extend each event from its start to the next start with the same values in some columns."""
        return self._called("POINT_TO_SIGNAL", *map(named, keys))

    @property
    def argument(self) -> str:
        """Return the events as an SQL argument."""
        return f"({self.text})" if self.text else self.source

    def _called(self, function: str, *arguments: str) -> Events:
        return Events(self.pipeline, f"{function}({', '.join([self.argument, *arguments])})")

    # -- by their lifetimes -------------------------------------------------------------

    def contains(self, period: Period | datetime) -> Events:
        """Keep the events whose lifetime contains a period or a time."""
        return self._where("CONTAINS", period)

    def overlaps(self, period: Period) -> Events:
        """Keep the events whose lifetime overlaps a period."""
        return self._where("OVERLAPS", period)

    def equals(self, period: Period) -> Events:
        """Keep the events whose lifetime equals a period."""
        return self._where("EQUALS", period)

    def precedes(self, period: Period) -> Events:
        """Keep the events that have ended when a period begins."""
        return self._where("PRECEDES", period)

    def succeeds(self, period: Period) -> Events:
        """Keep the events that begin after a period has ended."""
        return self._where("SUCCEEDS", period)

    def immediately_precedes(self, period: Period) -> Events:
        """Keep the events that end exactly when a period begins."""
        return self._where("IMMEDIATELY PRECEDES", period)

    def immediately_succeeds(self, period: Period) -> Events:
        """Keep the events that begin exactly when a period ends."""
        return self._where("IMMEDIATELY SUCCEEDS", period)

    def _where(self, how: str, period: Period | datetime) -> Events:
        condition = f"LIFETIME(e) {how} {_period(period)}"
        return self._query(f"SELECT STREAM * FROM {self.argument} AS e WHERE {condition}")  # noqa: S608 - the user's own query

    # -- groups -----------------------------------------------------------------------

    def snapshot(self, *keys: str) -> Grouped:
        """Group by snapshots, which begin at every start and end of an event, and by columns."""
        return Grouped(self, "SNAPSHOT()", keys)

    def tumble(
        self,
        size: timedelta,
        *keys: str,
        offset: timedelta | None = None,
        point_at_end: bool = False,
        clip_end: bool = False,
    ) -> Grouped:
        """Group by windows that follow each other, and by columns; ``clip_end`` cuts lifetimes only at their end."""
        options = _options(point_at_end=point_at_end, clip_end=clip_end)
        return Grouped(self, f"TUMBLE({', '.join([*_steps(size, offset), *options])})", keys)

    def hop(
        self,
        hop: timedelta,
        size: timedelta,
        *keys: str,
        offset: timedelta | None = None,
        point_at_end: bool = False,
        clip_end: bool = False,
    ) -> Grouped:
        """Group by windows that begin every ``hop``, and by columns."""
        options = _options(point_at_end=point_at_end, clip_end=clip_end)
        return Grouped(self, f"HOP({', '.join([interval(hop), *_steps(size, offset), *options])})", keys)

    def session(
        self,
        gap: timedelta,
        *keys: str,
        longest: timedelta | None = None,
        point_at_end: bool = False,
        clip_end: bool = False,
    ) -> Grouped:
        """Group by sessions, and by columns; a session that lasts longer than ``longest`` is cut."""
        options = _options(point_at_end=point_at_end, clip_end=clip_end)
        return Grouped(self, f"SESSION({', '.join([*_steps(gap, longest), *options])})", keys)

    def count_window(self, starts: int, *keys: str) -> Grouped:
        """Group by a number of successive start times, and by columns."""
        return Grouped(self, f"COUNT_WINDOW({starts})", keys)

    # -- two streams ------------------------------------------------------------------

    def join(self, other: Events, on: str | None = None, **columns: str) -> Events:
        """Join events that meet a condition; in it and in ``columns`` this side is ``l`` and the other one ``r``."""
        return self._joined("JOIN", other, on, columns)

    def left_join(self, other: Events, on: str | None = None, **columns: str) -> Events:
        """Join as `join` does, and keep the parts of these events without a match."""
        return self._joined("LEFT JOIN", other, on, columns)

    def right_join(self, other: Events, on: str | None = None, **columns: str) -> Events:
        """Join as `join` does, and keep the parts of the other events without a match."""
        return self._joined("RIGHT JOIN", other, on, columns)

    def full_join(self, other: Events, on: str | None = None, **columns: str) -> Events:
        """Join as `join` does, and keep the parts of both sides without a match."""
        return self._joined("FULL JOIN", other, on, columns)

    def left_semi_join(self, other: Events, on: str | None = None) -> Events:
        """Keep the parts of these events in which a matching event of the other side is alive."""
        return self._joined("LEFT SEMI JOIN", other, on, {})

    def left_anti_join(self, other: Events, on: str | None = None) -> Events:
        """Keep the parts of these events in which no matching event of the other side is alive."""
        return self._joined("LEFT ANTI JOIN", other, on, {})

    def _joined(self, how: str, other: Events, on: str | None, columns: dict[str, str]) -> Events:
        items = ", ".join(f"{text} AS {named(name)}" for name, text in columns.items()) or "l.*"
        sides = f"{self.argument} AS l {how} {other.argument} AS r"
        return self._query(f"SELECT STREAM {items} FROM {sides}{f' ON {on}' if on else ''}")  # noqa: S608 - the user's own query

    # -- out of the engine ------------------------------------------------------------

    def emit_intervals(self, start: str = "start", stop: str = "stop", *, fully_ordered: bool = False) -> Rows:
        """Emit a row for each event that has ended."""
        return self._emitted("INTERVALS", (start, stop), " FULLY ORDERED" if fully_ordered else "")

    def emit_points(self, start: str = "start") -> Rows:
        """Emit a row for each start."""
        return self._emitted("POINTS", (start,))

    def emit_edges(self, edge: str = "edge", start: str = "start", stop: str = "stop") -> Rows:
        """Emit a row for each start and each end."""
        return self._emitted("EDGES", (edge, start, stop))

    def emit_changes(self) -> Rows:
        """Emit inserts and retractions at once."""
        return Rows(self.pipeline, *queried(f"{self.sql} EMIT CHANGES"))

    def _emitted(self, form: str, columns: Sequence[str], more: str = "") -> Rows:
        names = ", ".join(map(named, columns))
        return Rows(self.pipeline, *queried(f"{self.sql} EMIT {form} ({names}){more}"))


@dataclass(frozen=True)
class Grouped:
    """Groups of events, to be aggregated."""

    below: Events
    window: str
    keys: tuple[str, ...]

    def aggregate(self, *, having: str | None = None, **values: str) -> Events:
        """Aggregate each group: the result has the keys, then the aggregates under their names."""
        items = [*map(named, self.keys), *(f"{text} AS {named(name)}" for name, text in values.items())]
        text = f"SELECT STREAM {', '.join(items)} FROM {self.below.source}"  # noqa: S608 - the user's own query
        text += f" GROUP BY {', '.join([self.window, *map(named, self.keys)])}"
        return Events(self.below.pipeline, *queried(text + (f" HAVING {having}" if having else "")))


def _period(period: Period | datetime) -> str:
    return f"PERIOD ({', '.join(map(_time, period))})" if isinstance(period, tuple) else _time(period)


def _length(length: timedelta | str) -> str:
    return length if isinstance(length, str) else interval(length)


def _time(time: str | datetime) -> str:
    if isinstance(time, str):
        return time
    return f"TIMESTAMP '{time.astimezone(UTC) if time.tzinfo else time:%Y-%m-%d %H:%M:%S.%f}'"


def _steps(step: timedelta, offset: timedelta | None) -> list[str]:
    return [interval(step)] if offset is None else [interval(step), interval(offset)]


def _options(*, point_at_end: bool, clip_end: bool) -> list[str]:
    return [*(["'point at end'"] if point_at_end else []), *(["'clip end'"] if clip_end else [])]
