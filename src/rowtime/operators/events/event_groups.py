"""The common part of every GROUP BY over events: its events, its keys, and its aggregates (semantics 9.6).

The operators differ in which events a group contains and when it is final: in what they keep, and in their steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import START, STOP
from rowtime.expr.aggregates import ordered_text
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Link, Operator, Shape, Unary, quoted
from rowtime.operators.groups.grouping import Groups
from rowtime.operators.rows.collations import has_collation
from rowtime.operators.rows.conditions import whole
from rowtime.operators.rows.lifetimes import TOUCHES, derived
from rowtime.operators.rows.partials import groups_of
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class EventGroups(Groups, Unary):
    """``aggregates`` of the events of each group and ``keys``; ``items`` and ``having`` are over both by name."""

    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    having: exp.Expr | None = field(default=None, kw_only=True)

    promises = Operator.promises  # below the least bound nothing comes, so no group changes
    keeps_versions: ClassVar[bool] = True
    computes: ClassVar[bool] = True

    def emits(self) -> Shape:
        """Return the select list, as events."""
        return derived(Shape(tuple(item.column for item in self.items)))

    def aggregated(self, rows: Frame, by: Sequence[str], more: Sequence[str] = ()) -> Frame:
        """Return the groups ``by`` of rows with their aggregates and ``more``."""
        text = ordered_text if has_collation(rows.schema) else to_spark
        calls = {item.column.name: item.expression for item in self.aggregates}
        return groups_of(rows, by, calls, more, text)

    def selected(self, groups: Frame, times: Sequence[str]) -> Frame:
        """Return the select list over groups that satisfy HAVING, with columns for their times."""
        passing = groups if self.having is None else groups.where(whole(to_spark(self.having)))
        return passing.selectExpr(*(item.sql for item in self.items), *times)

    @property
    def item_names(self) -> list[str]:
        """Return the columns of the select list, in Spark SQL."""
        return [quoted(item.column.name) for item in self.items]

    @property
    def key_names(self) -> list[str]:
        """Return the columns that group the events."""
        return [key.column.name for key in self.keys]

    @property
    def identity(self) -> list[str]:
        """Return the columns that are equal in all changes of one kept event."""
        return [*self.input.emits().names, START, STOP]

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the events that are alive, and those that end at its start or begin at its end."""
        return Link(self.same_keys(), meets=TOUCHES, narrows="meet")
