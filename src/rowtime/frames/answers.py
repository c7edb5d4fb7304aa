"""What is asked of Spark about expressions without a translation, and its answers, as data without a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from rowtime.core.columns import ASKED_GROUP
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.kinds import arrow_of
from rowtime.frames.queries import Uncomputed
from rowtime.frames.tables import Column
from rowtime.frames.words import Untranslated


@dataclass(frozen=True)
class Part:
    """An expression, as Spark SQL, over some columns.

    ``tries``: it is attempted, and its value is in a struct. ``groups``: it is an aggregate, with a value for each
    group of rows, which `ASKED_GROUP` numbers from 0 on, without gaps and ascending. ``key``: the keys of its only
    column are wanted, by which texts with a collation compare. ``calls``: it calls a function of the user, which may be
    called for these rows only.
    """

    sql: str
    columns: tuple[Column, ...]
    tries: bool = False
    groups: bool = False
    key: bool = False
    calls: bool = False

    @property
    def tries_groups(self) -> bool:
        """Return True for an aggregate that is tried, whose job ends with the first group for which it fails."""
        return self.tries and self.groups

    @property
    def names(self) -> list[str]:
        """Return the names of the columns of the rows that it is asked for."""
        return [*(name for name, _ in self.columns), *([ASKED_GROUP] if self.groups else [])]

    @property
    def is_row(self) -> bool:
        """Return True if Spark takes its value for a new row, which stands in no other expression: JSON_TUPLE."""
        return self.sql[:10].lower() == "json_tuple"

    def count(self, rows: pa.Table) -> int:
        """Return how many values it has for these rows."""
        if not self.groups or not rows.num_rows:
            return int(rows.num_rows)
        return int(rows[ASKED_GROUP][-1].as_py()) + 1

    def array_type(self, kind: str) -> pa.DataType:
        """Return the Arrow type of its values; ``kind``: the type of the expression."""
        return pa.struct([(TRIED_VALUE, arrow_of(kind))]) if self.tries else arrow_of(kind)

    def values(self, given: pa.ChunkedArray, kind: str) -> pa.Array:
        """Return values as Spark gives them in their Arrow type."""
        array = given.combine_chunks()
        if not self.tries:
            return array.cast(arrow_of(kind))
        return struct_of(array.field(0).cast(arrow_of(kind)), array.is_null())


def struct_of(values: pa.Array, failed: pa.Array) -> pa.StructArray:
    """Return a struct for each value; NULL where it has failed."""
    return pa.StructArray.from_arrays([values], fields=[pa.field(TRIED_VALUE, values.type)], mask=failed)


Call = tuple[str, int]
"""Where values are asked for: an operator, and how many times it has asked before in its step."""


class Wanted(BaseException):
    """Spark has to say more of expressions before rows are known; no operator may handle it.

    ``parts``: the expressions; ``rows``: for which values, by expression; ``call``: who asks. Without rows, the types
    are wanted first; if they are ``None``, nothing else is.
    """

    def __init__(self, parts: Sequence[Part], rows: Sequence[pa.Table] | None = (), call: Call = ("", 0)) -> None:
        super().__init__(", ".join(part.sql for part in parts))
        self.parts, self.rows, self.call = parts, rows, call


@dataclass
class Answers:
    """What Spark has said, for a process without a session.

    ``functions``: the names of Spark's functions; ``kinds``: the types of expressions, empty for those it refuses;
    ``values``: by call and expression; ``None`` if one cannot be computed. ``rounds``: in which an expression is
    needed, counted from 0 on.
    """

    functions: frozenset[str] = frozenset()
    kinds: Mapping[Part, str] = field(default_factory=dict)
    values: Mapping[Call, Mapping[Part, pa.Array | None]] = field(default_factory=dict)
    rounds: dict[Part, set[int]] = field(default_factory=dict)
    _call: Call = ("", 0)
    _depths: dict[str, int] = field(default_factory=dict)

    def steps(self, operator: str, inputs: Sequence[str]) -> None:
        """Begin the step of an operator, after those of its ``inputs``."""
        self._call = operator, 0
        self._depths[operator] = max((self._depths.get(name, 0) for name in inputs), default=0)

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """Ask for types of expressions over no rows, which is not one more time that the operator asks."""
        call, depths = self._call, dict(self._depths)
        try:
            yield
        finally:
            self._call = call
            self._depths.clear()
            self._depths.update(depths)

    def depth(self, operator: str) -> int:
        """Return how many values, one after the other, an operator has needed up to now, with those below it."""
        return self._depths.get(operator, 0)

    def kind(self, part: Part) -> str:
        """Return the type of an expression; raises ``Wanted`` and ``Untranslated``."""
        if part not in self.kinds:
            raise Wanted([part], None)
        if not self.kinds[part]:
            raise Untranslated(part.sql)
        return self.kinds[part]

    def of(self, parts: Sequence[Part], wanted: Sequence[pa.Table]) -> list[pa.Array]:
        """Return the values of expressions for rows; raises ``Wanted`` and ``Uncomputed``."""
        call, needed = self._call, {part for part, rows in zip(parts, wanted, strict=True) if rows.num_rows}
        known = self.values.get(call, {}) if needed else {}
        if not needed <= known.keys():
            raise Wanted(parts, wanted, call)
        for part in parts:
            self.rounds.setdefault(part, set()).add(self._depths.get(call[0], 0))
        self._call = call[0], call[1] + 1
        self._depths[call[0]] = self._depths.get(call[0], 0) + 1
        return [
            _checked(part, known[part], rows) if part in needed else pa.array([], part.array_type(self.kind(part)))
            for part, rows in zip(parts, wanted, strict=True)
        ]


def _checked(part: Part, values: pa.Array | None, rows: pa.Table) -> pa.Array:
    if values is None:
        raise Uncomputed(part.sql)
    if len(values) != part.count(rows):
        raise AssertionError(f"{part.sql}: Spark has answered for other rows than those that were wanted")
    return values


ANSWERS: Final[ContextVar[Answers | None]] = ContextVar("answers", default=None)
"""Those of this process, if it has no session."""
