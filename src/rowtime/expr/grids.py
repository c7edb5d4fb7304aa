"""Columns of groups as functions of the groups' rowtime.

The rowtime of a group is the end of its key (semantics 5), so only some rowtimes occur: those on a *grid*. A minute
from ``FLOOR(t TO MINUTE)`` is a function of the rowtime R of its group, ``FLOOR(Before(R) TO MINUTE)``: the last
instant before the end is in the group. This is true of every key, whatever its width. Between the points of the grid
the function has the value of the next point, where the next row is. So groups over such a column end at the greatest
rowtime that a row of theirs can have: the hour from 8:00 holds minutes up to 8:59, whose rowtime is 9:00.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.core.time import DAY
from rowtime.expr.conditions import col
from rowtime.expr.group_end import (
    MONDAY,
    MONTHS_OF,
    argument_of,
    fixed_end,
    group_end,
    moved,
    unit_of,
    unshifted,
)
from rowtime.sql.intervals import MICROS, duration_of, months_of, of_micros
from rowtime.sql.nodes import Before, Step
from rowtime.sql.numbers import whole_number

_LONGEST = 31 * DAY  # of a month


def at_end(key: exp.Expr, *, closed: bool) -> exp.Expr:
    """Return a key, over the rowtime of rows, as a function of the rowtime of their groups, which is the key's end.

    ``closed``: a group includes its end.
    """
    inner, by = unshifted(key)
    width = MICROS.get(unit_of(inner) or "") if isinstance(inner, exp.Ceil) else None
    if width is not None and not inner.find(Before):
        # To round up t is to round down t - 1 µs, and to add a unit.
        inner, by, closed = exp.Floor(this=inner.this.copy(), to=inner.args["to"].copy()), by + width, False
    return key.copy() if closed else moved(filled({ROWTIME: Before(this=col(ROWTIME))}, inner), by)


def filled(values: Mapping[str, exp.Expr], node: exp.Expr) -> exp.Expr:
    """Return an expression with values in place of columns."""
    return node.copy().transform(
        lambda part: values[part.name].copy() if isinstance(part, exp.Column) and part.name in values else part
    )


def on_grid(node: exp.Expr) -> exp.Expr:
    """Return an expression that is equal at the rowtimes that occur: the rowtime plus an interval, if there is one."""
    inner, by = unshifted(node)
    end = fixed_end(inner) if inner.find(Before) else None
    return node if end is None else moved(col(ROWTIME), by - end[1])


def flat(node: exp.Expr) -> exp.Expr:
    """Return an equal expression without a rounding inside a coarser one: the hour of a minute is the hour."""
    node = node.copy()
    for part in list(node.walk()):
        coarse = _lattice(part)
        while coarse is not None:
            argument = argument_of(part)
            inner, by = unshifted(argument)
            fine = _lattice(inner)
            if fine is None or not fine.within(coarse, by):
                break
            argument.replace(moved(argument_of(inner).copy(), by))
    return node


def spelled(node: exp.Expr) -> exp.Expr:
    """Return an equal expression in which STEP is the only way to round down to a fixed length of time."""

    def change(part: exp.Expr) -> exp.Expr:
        lattice = _lattice(part) if isinstance(part, exp.Floor | exp.TimestampTrunc | Step) else None
        if lattice is None or lattice.months or lattice.phase:
            return part
        return Step(this=part.this, expression=of_micros(lattice.period))

    return node.copy().transform(change)


@dataclass(frozen=True)
class _Lattice:
    """The values of a rounding: every ``period`` (µs) from ``phase`` on, or the first days of every so many months."""

    period: int
    phase: int = 0
    months: int = 0

    def within(self, coarse: _Lattice, by: int) -> bool:
        """Return True if what is rounded to this, and moved by so many µs, is rounded alike by the coarser one."""
        if self.months:
            return not by and bool(coarse.months) and coarse.months % self.months == 0
        return coarse.period % self.period == 0 and (coarse.phase - by - self.phase) % self.period == 0


def _lattice(node: exp.Expr) -> _Lattice | None:
    """Return the values of an expression that rounds a time down."""
    unit = (unit_of(node) or "") if isinstance(node, exp.Floor | exp.TimestampTrunc) else ""
    if isinstance(node, exp.Cast | exp.TryCast) and node.to.this == exp.DType.DATE:
        unit = "DAY"
    elif isinstance(node, exp.Year) or (isinstance(node, exp.Extract) and node.name.upper() == "YEAR"):
        unit = "YEAR"
    elif isinstance(node, Step):
        width, months = duration_of(node.expression), months_of(node.expression)
        return _Lattice(DAY, months=months) if months else _Lattice(width) if width else None
    if unit in MICROS:
        return _Lattice(MICROS[unit], MONDAY if unit == "WEEK" else 0)
    return _Lattice(DAY, months=MONTHS_OF[unit]) if unit in MONTHS_OF else None


def rounded(node: exp.Expr) -> tuple[exp.Expr, int, int] | None:
    """Return the time that an expression rounds, and how far (µs) below and above it the result may be."""
    if isinstance(node, exp.Anonymous) and node.name.upper() == "TIME_BUCKET":
        width, time, *_ = node.expressions
        micros = duration_of(width.unnest())
        return (time, micros - 1, 0) if micros and micros > 0 else None
    if isinstance(node, exp.Ceil):
        unit = unit_of(node) or ""
        span = MICROS.get(unit) or _LONGEST * MONTHS_OF.get(unit, 0)
        return (node.this, 0, span - 1) if span else None
    lattice = None if isinstance(node, exp.Year | exp.Extract) else _lattice(node)
    return None if lattice is None else (argument_of(node), (_LONGEST * lattice.months or lattice.period) - 1, 0)


def is_short(node: exp.Expr) -> bool:
    """Return True if the end of each group by a function of the rowtime is known, however far bisection looks."""
    return not group_end(node, "").seen or all(map(_is_short, node.walk()))


def _is_short(part: exp.Expr) -> bool:
    if isinstance(part, exp.Substring | exp.Left):
        length = part.args.get("length") or part.args.get("expression")
        return (whole_number(length) or 0) >= len("yyyy")
    if isinstance(part, exp.Anonymous):
        return part.name.upper() == "DATE_FORMAT"  # its patterns begin with the year
    return isinstance(part, _PLAIN) or unit_of(part) is not None or _lattice(part) is not None


_PLAIN = (
    exp.Column, exp.Identifier, Before, exp.Add, exp.Sub, exp.Paren, exp.Interval, exp.Literal, exp.Var, exp.Cast,
    exp.DataType,
)  # fmt: skip
