"""Joins of frames by any condition: what has no translation is computed of each side first, or of the pairs.

A comparison between the sides finds the pairs, whatever computes its two values. What reads both sides in another way
is computed for the pairs that the other parts of the condition leave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from rowtime.core.columns import PAIR_MATCH, PAIR_ROW
from rowtime.expr.conditions import col, columns_in, conjuncts
from rowtime.frames.answers import Part
from rowtime.frames.catalyst import kind_of
from rowtime.frames.keyed import key_of, with_keys
from rowtime.frames.kinds import is_collated
from rowtime.frames.translated import scope_of_fields, tested
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import quoted, to_spark
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

BESIDE: Final = ("inner", "left")
"""Joins that return the columns of both sides."""
_COMPARED: Final = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_NESTED: Final = ("array<", "struct<")
Joined = Callable[["Frame", "Frame", str, str], "Frame"]
"""Joins rows by a condition with a translation; raises ``Untranslated``."""


def joined_by_values(one: Frame, other: Frame, test: str, how: str, joined: Joined) -> Frame:
    """Join rows with others by a condition of Spark SQL of which ``joined`` knows only parts.

    ``how``: ``inner``, ``left``, ``left_semi`` or ``left_anti``. Raises ``Untranslated`` and ``Uncomputed``.
    """
    sides = _Sides(one, other)
    pairing, others = ["true"], list[str]()
    for part in _parts(parse_expression(test)):
        text = to_spark(part)
        if not sides.translates(text):
            text = sides.compared(part) or text
        (pairing if sides.translates(text) else others).append(f"({text})")
    shown = [*map(quoted, one.columns), *(map(quoted, other.columns) if how in BESIDE else ())]
    met = " AND ".join(pairing)
    if not others:
        return joined(sides.left, sides.right, met, how).valued(shown)
    numbers = pa.array(range(sides.left.count()), pa.int64())
    left = sides.left.with_column(PAIR_ROW, "bigint", numbers)
    pairs = joined(left, sides.right, met, "inner").kept(" AND ".join(others))
    if how == "inner":
        return pairs.valued(shown)
    matches = pairs.valued([f"{PAIR_ROW} AS {PAIR_MATCH}", *map(quoted, other.columns)])
    return joined(left, matches, f"{PAIR_ROW} = {PAIR_MATCH}", how).valued(shown)


def _parts(condition: exp.Expr) -> Iterator[exp.Expr]:
    for part in conjuncts(condition.unnest()):
        inner = part.unnest()
        yield from _parts(inner) if isinstance(inner, exp.And) else (inner,)


@dataclass
class _Sides:
    """Both sides of a join, with the values that its condition needs as columns."""

    left: Frame
    right: Frame
    _number: int = 0

    def translates(self, text: str) -> bool:
        """Return True if a condition over both has a translation."""
        try:
            tested(text, scope_of_fields((*self.left.fields, *self.right.fields)))
        except Untranslated:
            return False
        return True

    def compared(self, part: exp.Expr) -> str | None:
        """Return a comparison of both sides over columns that compare like its values; ``None`` for anything else."""
        if not isinstance(part, _COMPARED):
            return None
        values = (part.this, part.expression)
        of = [self._side(columns_in([value])) for value in values]
        if {*of} != {"left", "right"}:
            return None
        names = [self._column(side, value) for side, value in zip(of, values, strict=True)]
        kinds = [dict(getattr(self, side).fields)[name] for side, name in zip(of, names, strict=True)]
        wanted = next((kind for kind in kinds if is_collated(kind)), "")
        if wanted:
            if kinds[0] != kinds[1]:
                self._accepted(part)
                wanted = next(
                    (kind for kind, value in zip(kinds, values, strict=True) if value.find(exp.Collate)), wanted
                )
            if not is_collated(wanted):
                return None
            for n, side in enumerate(of):
                names[n] = self._keyed(side, names[n] if kinds[n] == wanted else self._cast(side, names[n], wanted))
            kinds = [dict(getattr(self, side).fields)[name] for side, name in zip(of, names, strict=True)]
        left, right = map(col, names)
        if isinstance(part, exp.EQ) and kinds[0] == kinds[1] and kinds[0].lower().startswith(_NESTED):
            same = to_spark(exp.NullSafeEQ(this=left, expression=right))
            return f"{same} AND {quoted(names[0])} IS NOT NULL"
        return to_spark(type(part)(this=left, expression=right))

    def _accepted(self, part: exp.Expr) -> None:
        """Raise ``Untranslated`` if Spark does not compare these values: it may not know in which collation."""
        names = columns_in([part])
        fields = [of for of in (*self.left.fields, *self.right.fields) if of[0] in names]
        kind_of(self.left.sparkSession, Part(to_spark(part), tuple(fields)))

    def _side(self, names: Collection[str]) -> str:
        """Return which side has all these columns; empty if none does."""
        lower = {name.lower() for name in names}
        of = (side for side in ("left", "right") if lower <= {name.lower() for name in getattr(self, side).columns})
        return next(of, "") if lower else ""

    def _column(self, side: str, value: exp.Expr) -> str:
        """Return the name of a column with a value of one side, which is computed if it is no column."""
        rows: Frame = getattr(self, side)
        if isinstance(value, exp.Column) and len(value.parts) == 1:
            return next(name for name in rows.columns if name.lower() == value.name.lower())
        return self._added(side, to_spark(value))

    def _cast(self, side: str, name: str, kind: str) -> str:
        return self._added(side, f"CAST({quoted(name)} AS {kind})")

    def _added(self, side: str, text: str) -> str:
        name, self._number = f"__joined{self._number}", self._number + 1
        setattr(self, side, getattr(self, side).valued(["*", f"{text} AS {quoted(name)}"]))
        return name

    def _keyed(self, side: str, name: str) -> str:
        setattr(self, side, with_keys(getattr(self, side), [name]))
        return key_of(name)


def same_names(one: Sequence[str], other: Sequence[str]) -> None:
    """Raise ``Untranslated`` if both sides have a column of one name."""
    twice = {name.lower() for name in one} & {name.lower() for name in other}
    if twice:
        raise Untranslated(f"both sides have {', '.join(sorted(twice))}")
