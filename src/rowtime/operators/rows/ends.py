"""The ends of groups that are functions of the rowtime, in Spark SQL and at an instant.

`expr.group_end` knows the end of one function's groups; for several functions it is the earliest end. GROUP BY and
ORDER BY use the same ends, stamps and promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from rowtime.core.columns import ROWTIME, SEEN
from rowtime.core.time import BEGINNING, END, MAX_MICROS
from rowtime.expr.group_end import GroupEnd, first_after, group_end, is_restamped
from rowtime.operators.contract import Tick, micros
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class Lead:
    """A value that ascends from group to group: over the keys, and over the rowtime."""

    value: exp.Expr
    at: exp.Expr

    @property
    def end(self) -> GroupEnd:
        """Return the end of the value."""
        return group_end(self.at, f"({to_spark(self.value)})")


@dataclass(frozen=True)
class Ends:
    """The groups of ``keys``; their values are in columns with the keys' names.

    ``stamp``: the rowtime of a group's rows, over these columns; by default the end: that of the ``lead``, if groups
    are gathered by one, or of the group.
    """

    keys: tuple[Item, ...]
    stamp: exp.Expr | None = None
    lead: Lead | None = None

    def _ends(self) -> list[GroupEnd]:
        return [group_end(key.expression, key.column.name) for key in self.keys]

    @property
    def end_text(self) -> str:
        """Return the end of a group, BIGINT µs: the first instant past it."""
        return _least([end.text for end in self._ends()])

    @property
    def stamp_text(self) -> str:
        """Return the rowtime of a group's result, TIMESTAMP."""
        if self.stamp is not None:
            given, latest = f"CAST({to_spark(self.stamp)} AS TIMESTAMP)", micros(MAX_MICROS)
            return f"if({given} > {latest}, {latest}, {given})"
        ends = self._ends() if self.lead is None else [self.lead.end]
        stamps = [f"{end.text} - 1" if end.closed else end.text for end in ends]
        # The last group of the calendar ends with it: there is no later time to use.
        return f"timestamp_micros({_least([*stamps, f'{MAX_MICROS}L'])})"

    @property
    def restamped(self) -> bool:
        """Return True if release 0.1 gave such groups another rowtime."""
        functions = [self.lead.at] if self.lead is not None else [key.expression for key in self.keys]
        return self.stamp is None and any(map(is_restamped, functions))

    @property
    def seen(self) -> bool:
        """Return True if the texts need ``__x`` too."""
        lead = () if self.lead is None else (self.lead.end,)
        return any(end.seen for end in (*self._ends(), *lead))

    def end_at(self, tick: Tick, at: int) -> int:
        """Return the end of the group that contains the instant ``at`` (µs UTC)."""
        if not BEGINNING < at < END:
            return at
        ends = [first_after(key.expression, at) for key in self.keys]
        if None not in ends:
            return min(end for end in ends if end is not None)
        return tick.scalar(self._at(at, self.end_text))

    def stamp_at(self, tick: Tick, at: int) -> int:
        """Return the stamp of the group that contains the instant ``at``: no later group has a lesser one."""
        if not BEGINNING < at < END:
            return at
        ends = self._ends()
        if self.stamp is None and self.lead is None and len({end.closed for end in ends}) == 1:
            return min(MAX_MICROS, self.end_at(tick, at) - (1 if ends[0].closed else 0))
        return tick.scalar(self._at(at, f"unix_micros({self.stamp_text})"))

    def _at(self, at: int, text: str) -> str:
        keys = ", ".join(key.sql for key in self.keys)
        # Our own names and numbers, and expressions that were parsed and bound.
        inner = f"SELECT {keys}, {ROWTIME} AS {SEEN} FROM (SELECT timestamp_micros({at}L) AS {ROWTIME})"  # noqa: S608
        return f"SELECT {text} FROM ({inner})"  # noqa: S608


def _least(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"least({', '.join(texts)})"
