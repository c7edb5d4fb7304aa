"""Limits of an existing table's columns that are narrower than the stream's declaration (semantics 10).

A table may have a varchar(3) for a STRING, an int for a BIGINT, NOT NULL for a column that may be NULL. Law: if a row
satisfies all conditions, the table does not refuse it for the type, length, range or NULL of a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rowtime.expr.store_assignment import always_fits, as_read

_WHOLE: Final = {1: "TINYINT", 2: "SMALLINT", 4: "INT", 8: "BIGINT"}
_MOST_DIGITS: Final = 38  # of Spark's decimals
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "NUMERIC", "FLOAT", "DOUBLE", "REAL")
_FLOATING: Final = ("FLOAT", "DOUBLE", "REAL")
_TEXTS: Final = ("STRING", "CHAR", "VARCHAR")


@dataclass(frozen=True)
class Limit:
    """The limits of one column: ``characters``; whole numbers of so many ``bytes``; ``digits`` before the point.

    ``scale``: the digits after the point, to which a number is rounded. ``required``: no NULL.
    """

    name: str
    type: str
    characters: int | None = None
    bytes: int | None = None
    signed: bool = True
    digits: int | None = None
    scale: int = 0
    required: bool = False

    def conditions(self, source: str, declared: str) -> Iterator[tuple[str, str]]:
        """Yield the conditions beyond the ``declared`` type, in words and as Spark SQL; NULL satisfies them.

        ``source``: SQL of the value that is assigned; empty if there is none, which means NULL.
        """
        if self.required:
            yield f"{self.name} NOT NULL in the table", f"{source} IS NOT NULL" if source else "false"
        value = f"try_cast({source} AS {as_read(declared)})" if source else ""
        if condition := self._size(value, declared) if value else "":
            yield f"{self.name} {self._words} in the table", condition

    @property
    def _words(self) -> str:
        if self.characters is not None:
            return f"{self.type}({self.characters})"
        return self.type if self.digits is None else f"{self.type}({self.digits + self.scale}, {self.scale})"

    def _size(self, value: str, declared: str) -> str:
        kind = declared.strip().upper()
        if self.characters is not None and kind.startswith(_TEXTS):
            fits = always_fits(declared, f"VARCHAR({self.characters})")
            return "" if fits else f"rtrim(substring({value}, {self.characters + 1})) = ''"
        if not kind.startswith(_NUMBERS):
            return ""
        if self.bytes is not None:
            return self._whole(value, declared)
        if self.digits is not None and self.digits < _MOST_DIGITS:
            return self._decimal(value, declared)
        return ""

    def _whole(self, value: str, declared: str) -> str:
        assert self.bytes is not None
        if self.signed and always_fits(declared, _WHOLE[self.bytes]):
            return ""
        bits = 8 * self.bytes - (1 if self.signed else 0)
        least = -(2**bits) if self.signed else 0
        return f"round({value}) BETWEEN {_exact(least)} AND {_exact(2**bits - 1)}"

    def _decimal(self, value: str, declared: str) -> str:
        assert self.digits is not None
        kind = declared.strip().upper()
        digits = self.digits + self.scale
        if 0 <= self.scale <= digits <= _MOST_DIGITS and always_fits(declared, f"DECIMAL({digits}, {self.scale})"):
            return ""
        if kind.startswith(_FLOATING):  # databases define NaN themselves
            return f"isnan({value}) OR abs(round({value}, {self.scale})) < 1E{self.digits}D"
        exact = value if kind.startswith(("DECIMAL", "NUMERIC")) else f"CAST({value} AS DECIMAL(20, 0))"
        return f"abs(round({exact}, {self.scale})) < {_exact(10**self.digits)}"


def _exact(number: int) -> str:
    """Return a decimal with its own number of digits: with 38, Spark would round the value to compare."""
    return f"CAST('{number}' AS DECIMAL({len(str(abs(number)))}, 0))"
