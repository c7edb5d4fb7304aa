"""Sums beyond their type, told exactly: what a tick computes in which a sum has failed.

Spark ends the job as soon as a sum on the way is beyond its type, though what follows may bring it back. Which sums are
on the way depends on the cut. So here the whole sum decides: it fits, or the row of its group is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_DECIMAL = re.compile(r"decimal\(38,(\d+)\)")
_MOST = 28  # digits behind the point, beyond which a limb has no room for a sum


@dataclass(frozen=True)
class ExactSum:
    """The sum of ``value`` as type ``kind``, in columns of the name ``name``.

    ``modifier``: DISTINCT, ``over``: FILTER; ``function`` may be AVG.
    `aggregates` are computed of a group, and then `value_text` of these, which is NULL where the sum is beyond its type
    or there is none; `fails` tells which.
    """

    name: str
    value: str
    kind: str
    modifier: str = ""
    over: str = ""
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
        if self._scale is None:
            return f"{self.name}w"
        return f"try_cast({self._whole} AS {self.kind})"

    @property
    def fails(self) -> str:
        """Whether the sum is beyond its type."""
        return f"({self.name}n > 0 AND {self.value_text} IS NULL)"

    @property
    def _scale(self) -> int | None:
        """Digits behind the point of a decimal whose sum can be beyond its type."""
        found = _DECIMAL.fullmatch(self.kind)
        return int(found[1]) if found and self._is_plain and int(found[1]) <= _MOST else None

    @property
    def _is_plain(self) -> bool:
        return not self.modifier and self.function == "sum"

    @property
    def _is_whole(self) -> bool:
        return self.kind == "bigint" and self.function == "sum"

    @property
    def _parts(self) -> dict[str, str]:
        counted = f"count({self.modifier}{self.value}){self.over}"
        if self._is_whole:
            return {"w": self._sum("sum", f"CAST({self.value} AS DECIMAL(38, 0))"), "n": counted}
        if self._scale is None:
            return {"w": self._sum(f"try_{self.function}", self.value), "n": counted}
        # Two limbs, each of which has room for the sum of as many rows as there can be.
        low = f"({self.value}) % {self._limb}"
        high = f"CAST((({self.value}) - {low}) / {self._limb} AS DECIMAL(38, 0))"
        return {"l": self._sum("sum", low), "h": self._sum("sum", high), "n": counted}

    def _sum(self, function: str, value: str) -> str:
        return f"{function}({self.modifier}{value}){self.over}"

    @property
    def _digits(self) -> int:
        assert self._scale is not None
        return (38 - self._scale) // 2

    @property
    def _limb(self) -> str:
        return f"CAST({'1' + '0' * self._digits} AS DECIMAL({self._digits + 1}, 0))"

    @property
    def _whole(self) -> str:
        """The number that both limbs make, as text: what the low one has above its digits moves to the high one."""
        low, high = f"{self.name}l", f"{self.name}h"
        carry = f"CAST(({low} - {low} % {self._limb}) / {self._limb} AS DECIMAL(38, 0))"
        h, r = f"({high} + {carry})", f"({low} % {self._limb})"
        # Both of one sign.
        borrow = f"CASE WHEN {h} > 0 AND {r} < 0 THEN 1 WHEN {h} < 0 AND {r} > 0 THEN -1 ELSE 0 END"
        kind = f"DECIMAL(38, {self._scale})"
        h2 = f"CAST({h} - ({borrow}) AS DECIMAL(38, 0))"
        r2 = f"CAST({r} + ({borrow}) * {self._limb} AS {kind})"
        width = self._digits + (1 + (self._scale or 0) if self._scale else 0)
        sign = f"IF({h2} < 0 OR {r2} < 0, '-', '')"
        return f"concat({sign}, CAST(abs({h2}) AS STRING), lpad(CAST(abs({r2}) AS STRING), {width}, '0'))"
