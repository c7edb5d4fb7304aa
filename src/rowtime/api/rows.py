"""Queries over rows as Python objects: T-sort, groups, frames and joins.

Like every `Relation`, each is SQL text, so SQL and Python give the same plan and the same errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rowtime.api.relations import Folded, Relation, interval, named

ROWTIME = "ROWTIME"
How = Literal["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
_ONE_SIDE = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")


def floor(unit: str, of: str = ROWTIME) -> str:
    """Return a time rounded down to a unit, as SQL text: ``FLOOR(ROWTIME TO MINUTE)``."""
    return f"FLOOR({of} TO {unit.upper()})"


def tumble(size: timedelta, of: str = ROWTIME) -> str:
    """Return windows of equal length that follow each other, as a key of `Rows.group_by`."""
    return f"TUMBLE({of}, {interval(size)})"


def hop(slide: timedelta, size: timedelta, of: str = ROWTIME) -> str:
    """Return windows of equal length that begin every ``slide``, as a key of `Rows.group_by`."""
    return f"HOP({of}, {interval(slide)}, {interval(size)})"


def session(gap: timedelta, of: str = ROWTIME) -> str:
    """Return sessions of a key, whose rows are less than ``gap`` apart, as a key of `Rows.group_by`."""
    return f"SESSION({of}, {interval(gap)})"


@dataclass(frozen=True)
class Rows(Relation):
    """Represents a stream, view or query of rows.

    Columns and expressions are SQL text. ``ROWTIME`` without a name before it is that of these rows.
    """

    @property
    def rejected(self) -> Rows:
        """Return the rows that the gate of this stream or view refused."""
        return Rows(self.pipeline, f"{self.source}.rejected")

    def t_sort(self, time: str, *, within: timedelta, then: Sequence[str] = ()) -> Rows:
        """Sort the rows by a time, which becomes their ROWTIME; a row that is further behind than ``within`` is LATE.

        ``then``: further columns that order equal times.
        """
        terms = ", ".join(map(named, (time, *then)))
        text = f"SELECT STREAM {named(time)} AS ROWTIME, * FROM {self.source}"  # noqa: S608 - the user's own query
        return self._query(f"{text} ORDER BY {terms} WITHIN {interval(within)}")

    def promote(self, time: str) -> Rows:
        """Make an expression the ROWTIME, without a sort."""
        return self._query(f"SELECT STREAM {time} AS ROWTIME, * FROM {self.source}")  # noqa: S608 - as above

    def group_by(self, *keys: str, within: timedelta | None = None, **computed: str) -> Groups:
        """Group by columns, by windows (`tumble`, `hop`, `session`), and by expressions under names.

        One of them must be monotonic, such as `floor`, or a window; otherwise the query is refused (R104). With
        ``within``, the first expression under a name may use a time that is out of order: a row is LATE if its group
        may already be complete.
        """
        return Groups(self, keys, tuple(computed.items()), within)

    def over(
        self,
        *,
        partition_by: Sequence[str] = (),
        last: timedelta | None = None,
        rows: int | None = None,
        **computed: str,
    ) -> Rows:
        """Add calls such as ``SUM(n)`` over the earlier rows of ``partition_by`` and the row itself.

        ``last``: the length of the frame; ``rows``: how many rows before the current one; neither: all earlier rows.
        """
        by = [f"PARTITION BY {', '.join(map(named, partition_by))}"] if partition_by else []
        frame = [f"RANGE {interval(last)} PRECEDING"] if last is not None else []
        frame += [f"ROWS {rows} PRECEDING"] if rows is not None else []
        window = f"({' '.join([*by, *frame])})"
        items = ", ".join(f"{call} OVER {window} AS {named(name)}" for name, call in computed.items())
        return self._query(f"SELECT STREAM *, {items} FROM {self.source}")  # noqa: S608 - as above

    def join(
        self,
        other: Relation | str,
        on: str,
        *,
        how: How = "JOIN",
        within: tuple[timedelta, timedelta] | None = None,
        **columns: str,
    ) -> Rows:
        """Join rows that meet a condition; in it and in ``columns`` this side is ``l`` and the other one ``r``.

        ``other``: rows, or the name of a static table. ``within``: how much later the row of the other side may be, at
        least and at most; a join of two streams needs it, or equal rowtimes.
        """
        met = on
        if within is not None:
            least, most = (f"l.ROWTIME + {interval(span)}" for span in within)
            met = f"{on} AND r.ROWTIME BETWEEN {least} AND {most}"
        all_columns = "l.*" if how in _ONE_SIDE else "*"
        items = ", ".join(f"{text} AS {named(name)}" for name, text in columns.items()) or all_columns
        sides = f"{_side(self, 'l')} {how} {_side(other, 'r')}"
        return self._query(f"SELECT STREAM {items} FROM {sides} ON {met}")  # noqa: S608 - as above

    def limit(self, count: int) -> Rows:
        """Keep the first rows in stream order."""
        return self._query(f"SELECT STREAM * FROM {self.source} LIMIT {count}")  # noqa: S608 - as above


@dataclass(frozen=True)
class Groups:
    """Groups of ``below``, to be aggregated."""

    below: Rows
    keys: tuple[str, ...]
    computed: tuple[tuple[str, str], ...]
    within: timedelta | None

    def agg(self, *, having: str | None = None, **values: str | Folded) -> Rows:
        """Aggregate each group: the result has the keys, then the aggregates under their names.

        An aggregate is SQL text, as in ``hits="COUNT(*)"``, or a Python function (`Folded`).
        """
        windows = [key for key in self.keys if "(" in key]
        plain = [named(key) for key in self.keys if key not in windows]
        tolerance = "" if self.within is None else f" WITHIN {interval(self.within)}"
        times = [f"{text}{'' if n else tolerance}" for n, (_, text) in enumerate(self.computed)]
        shown = [f"{text} AS {named(name)}" for name, text in self.computed]
        shown += [*plain, *(f"{self.below.aggregated(value)} AS {named(name)}" for name, value in values.items())]
        text = f"SELECT STREAM {', '.join(shown)} FROM {self.below.source}"  # noqa: S608 - the user's own query
        text += f" GROUP BY {', '.join([*times, *windows, *plain])}"
        return self.below._query(text + (f" HAVING {having}" if having else ""))  # noqa: SLF001 - one of ours


def _side(relation: Relation | str, alias: str) -> str:
    """Return the text after FROM or JOIN, with an alias."""
    if isinstance(relation, str):
        return f"{named(relation)} AS {alias}"
    return f"({relation.text}) AS {alias}" if relation.text else f"{relation.source} AS {alias}"
