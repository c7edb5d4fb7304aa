"""ORDER BY m, k…: rows sorted by further keys within each value of m, a function of the rowtime.

Semantics 5. A row gets the end of its value of m as rowtime, like the rows of a GROUP BY. So all rows of one value have
one instant, in which the keys order them. Nothing is kept here: a consumer that needs the order gets a `Merge` above,
which releases a value once it is past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks
from rowtime.core.columns import BEFORE, ROWTIME, SEEN
from rowtime.core.fields import LATER, UNSTORED
from rowtime.operators.contract import Column, Control, Delta, Operator, Shape, Tick, Unary, quoted
from rowtime.operators.contract.requirement import PLACED, UNORDERED, Requirement
from rowtime.operators.groups.grouping import Groups
from rowtime.operators.rows.ends import Ends
from rowtime.operators.rows.select import Item


def moved_shape(
    below: Shape, order: tuple[str, ...], hidden: tuple[str, ...], *, released: bool, unmoved: tuple[str, ...] = ()
) -> Shape:
    """Return an edge whose rows got a later rowtime: ``order`` orders equal ones, then their former order.

    Rows change places only among rows with equal values of the columns ``unmoved``; about others, the facts were about
    the old order.
    """
    columns = tuple(
        column if column.name in unmoved else Column(column.name, column.type)
        for column in below.columns
        if column.name not in hidden
    )
    before = tuple(term for term in below.order if term != ROWTIME)
    extra = tuple(dict.fromkeys([*hidden, BEFORE, *below.without_origin().extra]))
    order = (ROWTIME, *order, BEFORE, *before)
    kept = replace(below, columns=columns, order=order, extra=extra)
    return replace(kept, released=released, unmerged=True, stamped=False, event=None)


def sortable(below: Operator) -> Requirement:
    """Return the requirement of an ORDER BY: places, because sorts share hidden columns; those of groups differ."""
    return UNORDERED if isinstance(below, Groups) else PLACED


@dataclass(frozen=True)
class Stamps(Control):
    """``stamps``: for each clock of the input the rowtime of a row there (both µs UTC), set anew in each tick."""

    stamps: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SortBy(Unary):
    """``key`` is m, named ``__m``; ``keys`` are hidden columns that order equal values, ``directions`` theirs.

    ``stamp``: the ``AS ROWTIME`` of the select list, over ``__m``; else the end of the value. ``ordered``: the columns
    that have the same value in all rows of a value of m. ``anew``: release 0.1 gave the rows another rowtime, so its
    checkpoints cannot continue.
    """

    key: Item
    keys: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    stamp: exp.Expr | None = None
    ordered: tuple[str, ...] = field(default=(), metadata=UNSTORED)
    anew: bool = field(default=False, metadata=LATER)

    control: ClassVar = Stamps
    kind: ClassVar[str] = "order by"
    decides: ClassVar[str] = "SORT"
    same_below: ClassVar = ()
    promise: ClassVar[str] = "the end of the value that contains each writer's clock"
    reason: ClassVar[str] = "a later row has that value or a later one, and its rowtime is the end of its value"

    def __post_init__(self) -> None:
        """Set ``anew``."""
        object.__setattr__(self, "anew", Ends((self.key,), self.stamp).restamped)

    def requires(self) -> tuple[Requirement, ...]:
        """Require places, if the order of the rows below may use the hidden names of this one."""
        return (sortable(self.input),)

    def emits(self) -> Shape:
        """Return the input's columns under the new rowtime; rows may be ahead of the bound."""
        keys = tuple(f"{key} {way}" for key, way in zip(self.keys, self.directions, strict=True))
        return moved_shape(self.input.emits(), keys, self.keys, released=False, unmoved=self.ordered)

    def promises(self, clocks: Sequence[Clocks], control: Stamps) -> Clocks:
        """Return the stamp of the value at each writer's clock, evaluated by ``step``."""
        stamps: Mapping[str, int] = control.stamps
        return {writer: stamps.get(str(at), at) for writer, at in clocks[0].items()}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Give the new rows their stamp."""
        delta, control, ends = deltas[0], tick.control(self), Ends((self.key,), self.stamp)
        control = tick.remember(self, stamps={str(at): ends.stamp_at(tick, at) for at in set(delta.clocks.values())})
        clocks = self.promises([delta.clocks], control)
        if delta.rows is None:
            return Delta(None, clocks)
        shape = self.emits()
        texts = {ROWTIME: f"{ends.stamp_text} AS {ROWTIME}", BEFORE: f"{ROWTIME} AS {BEFORE}"}
        names = [texts.get(name, name) for name in shape.internals]
        rows = delta.rows.selectExpr("*", self.key.sql, f"{ROWTIME} AS {SEEN}")
        return Delta(rows.selectExpr(*map(quoted, shape.names), *names), clocks)
