"""Sums beyond their type, told exactly: what a tick computes in which a sum has failed.

Spark ends the job as soon as a sum on the way is beyond its type, though what follows may bring it back. Which sums are
on the way depends on the cut. So here the whole sum decides: it fits, or the row of its group is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")  # precision and scale
_MOST = 38  # digits of a decimal
_DIGITS = 20  # of the low limb of a number of 38, so that the high one fits in a BIGINT
_LIMB = f"CAST(1{'0' * _DIGITS} AS DECIMAL({_DIGITS + 1}, 0))"


def may_be_beyond(kind: str) -> bool:
    """True for a type of sums that rows can exceed."""
    return kind == "bigint" or kind.startswith(f"decimal({_MOST},")


def limbs(value: str, kind: str) -> tuple[str, str]:
    """The low and high limb of a number of type BIGINT or DECIMAL, each a whole number.

    Both have room for the sum of as many rows as there can be.
    """
    number = f"CAST({value} AS DECIMAL(38, {_scale(kind)}))"
    if _scale(kind):  # the number without its point
        number = f"CAST(replace(CAST({number} AS STRING), '.', '') AS DECIMAL(38, 0))"
    return f"({number} % {_LIMB})", f"CAST({number} DIV {_LIMB} AS DECIMAL(19, 0))"


def whole(low: str, high: str, kind: str) -> str:
    """The number that sums of both limbs make, as text: what the low one has above its digits moves to the high one."""
    h, r = f"({high} + {low} DIV {_LIMB})", f"({low} % {_LIMB})"
    # Both of one sign.
    borrow = f"CASE WHEN {h} > 0 AND {r} < 0 THEN 1 WHEN {h} < 0 AND {r} > 0 THEN -1 ELSE 0 END"
    h2, r2 = f"({h} - {borrow})", f"({r} + {borrow} * {_LIMB})"
    sign = f"IF({h2} < 0 OR {r2} < 0, '-', '')"
    digits = f"concat(CAST(abs({h2}) AS STRING), lpad(CAST(abs({r2}) AS STRING), {_DIGITS}, '0'))"
    scale = _scale(kind)
    if not scale:
        return f"concat({sign}, {digits})"
    padded = f"lpad({digits}, greatest(length({digits}), {scale + 1}), '0')"
    return f"concat({sign}, regexp_replace({padded}, '(.{{{scale}}})$', '.$1'))"


def _scale(kind: str) -> int:
    """Digits behind the point."""
    found = DECIMAL.fullmatch(kind)
    return int(found[2]) if found else 0


@dataclass(frozen=True)
class ExactSum:
    """The sum of ``value`` as type ``kind``, in columns of the name ``name``.

    ``modifier``: DISTINCT; ``function`` may be AVG.
    `aggregates` are computed of a group, and then `value_text` of these, which is NULL where the sum is beyond its type
    or there is none; `fails` tells which.
    """

    name: str
    value: str
    kind: str
    modifier: str = ""
    function: str = "sum"

    @cached_property
    def aggregates(self) -> list[str]:
        """The aggregates, as select items."""
        return [f"{text} AS {self.name}{part}" for part, text in self._parts.items()]

    @property
    def value_text(self) -> str:
        """The sum, of the aggregates."""
        if self._is_whole:
            return f"try_cast({self.name}w AS BIGINT)"
        if not self._has_limbs:
            return f"{self.name}w"
        return f"try_cast({whole(f'{self.name}l', f'{self.name}h', self.kind)} AS {self.kind})"

    @property
    def fails(self) -> str:
        """Whether the sum is beyond its type."""
        return f"({self.name}n > 0 AND {self.value_text} IS NULL)"

    @property
    def _is_whole(self) -> bool:
        return self.kind == "bigint" and self.function == "sum"

    @property
    def _has_limbs(self) -> bool:
        return may_be_beyond(self.kind) and not self.modifier and self.function == "sum"

    @property
    def _parts(self) -> dict[str, str]:
        counted = f"count({self.modifier}{self.value})"
        if self._is_whole:
            return {"w": self._sum("sum", f"CAST({self.value} AS DECIMAL(38, 0))"), "n": counted}
        if not self._has_limbs:
            return {"w": self._sum(f"try_{self.function}", self.value), "n": counted}
        low, high = limbs(self.value, self.kind)
        return {"l": self._sum("sum", low), "h": self._sum("sum", high), "n": counted}

    def _sum(self, function: str, value: str) -> str:
        return f"{function}({self.modifier}{value})"
