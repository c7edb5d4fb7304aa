"""Exact sums beyond their type, for a tick in which a sum has failed.

Spark ends the job as soon as an intermediate sum overflows its type, although later values may bring it back. The
intermediate sums depend on the cut. So here only the whole sum counts: it fits, or the row of its group is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rowtime.frames.kinds import DECIMAL, MOST_DIGITS

_DIGITS = 20  # of the low limb of a number with 38 digits, so that the high one fits in a BIGINT
_DIVIDED = 6  # the least number of digits after the point of a quotient of decimals
_INTERVAL, _DAY = "interval", "86400000000L"
_MONTHS = ("interval year", "interval month")
_LIMB = f"CAST(1{'0' * _DIGITS} AS DECIMAL({_DIGITS + 1}, 0))"


def may_be_beyond(kind: str) -> bool:
    """Return True for a type of sums that rows can overflow."""
    return kind == "bigint" or kind.startswith(f"decimal({MOST_DIGITS},")


def limbs(value: str, kind: str) -> tuple[str, str]:
    """Return the low and high limb of a BIGINT, of the µs of an interval, or of a DECIMAL, each a whole number.

    The high one is 0 for all but a DECIMAL. Both have room for the sum of as many rows as there can be.
    """
    if kind.startswith(_INTERVAL):
        value, kind = _micros(value), "bigint"
    if kind == "bigint":
        return f"CAST({value} AS DECIMAL({_DIGITS}, 0))", "CAST(0 AS DECIMAL(19, 0))"
    number = f"CAST({value} AS DECIMAL(38, {_scale(kind)}))"
    if _scale(kind):  # the number without its point
        number = f"CAST(replace(CAST({number} AS STRING), '.', '') AS DECIMAL(38, 0))"
    return f"({number} % {_LIMB})", f"CAST({number} DIV {_LIMB} AS DECIMAL(19, 0))"


def whole(low: str, high: str, kind: str) -> str:
    """Return the sum of both limbs as text: digits of the low one beyond its limit move to the high one."""
    h, r = f"({high} + {low} DIV {_LIMB})", f"({low} % {_LIMB})"
    # Both with one sign.
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
    """Return the number of digits after the point."""
    match = DECIMAL.fullmatch(kind)
    return int(match[2]) if match else 0


def average(total: str, count: str, kind: str, result: str, *, tries: bool = False) -> str:
    """Return the quotient of a sum of type ``kind`` and a BIGINT, as the type ``result`` of AVG.

    `/` loses digits if the sum has 38. So the integer quotient and the rounded remainder are combined without the
    point. Halves are rounded away from zero, as in AVG. ``tries``: NULL if the quotient overflows its type.
    """

    def applied(sign: str, function: str, one: str, other: str) -> str:
        return f"try_{function}({one}, {other})" if tries else f"({one} {sign} {other})"

    scale, cast = _scale(result), "try_cast" if tries else "CAST"
    if scale <= max(_scale(kind), _DIVIDED):
        return f"{cast}({applied('/', 'divide', total, count)} AS {result})"
    rest = f"({total} % {count})"
    parts = f"CAST(concat(CAST({rest} AS STRING), 'E{scale}') AS DECIMAL(38, 0))"
    twice = f"(2 * {parts} + IF({total} < 0, -{count}, {count}))"
    rounded = f"CAST(({twice} - {twice} % (2 * {count})) / (2 * {count}) AS DECIMAL(38, 0))"
    quotient = f"{cast}({applied('/', 'divide', f'({total} - {rest})', count)} AS DECIMAL(38, 0))"
    moved = applied("*", "multiply", quotient, f"CAST(1{'0' * scale} AS DECIMAL({scale + 1}, 0))")
    return f"{cast}(concat(CAST({applied('+', 'add', moved, rounded)} AS STRING), 'E-{scale}') AS {result})"


def average_type(kind: str) -> str:
    """Return the type of the AVG of decimals whose sum has this type; with 38 digits, Spark's may have fewer."""
    match = DECIMAL.fullmatch(kind)
    if match is None:
        return ""
    digits = int(match[1])
    return f"decimal({digits if digits == MOST_DIGITS else digits - 6},{min(int(match[2]) + 4, MOST_DIGITS)})"


@dataclass(frozen=True)
class ExactSum:
    """The sum of ``value`` as type ``kind``, in columns of the name ``name``.

    ``modifier``: DISTINCT; ``result``: the type of the average, if an average is needed. `aggregates` are computed for
    a group, then `total` from these, which is NULL if the sum overflows its type or there is none, and `value_text`
    from the total; `fails` distinguishes the two.
    """

    name: str
    value: str
    kind: str
    modifier: str = ""
    result: str = ""

    @cached_property
    def aggregates(self) -> list[str]:
        """Return the aggregates, as select items."""
        return [f"{text} AS {self.name}{part}" for part, text in self._parts.items()]

    @property
    def total(self) -> str:
        """Return the sum of the aggregates; in a column named ``s`` after the name."""
        if self.kind == "bigint" and self.result:  # the average is a DOUBLE, as well
            return f"CAST({self.name}w AS DOUBLE)"
        if self.kind == "bigint":
            return f"try_cast({self.name}w AS BIGINT)"
        if self.kind.startswith(_MONTHS):
            return f"CAST(make_ym_interval(0, try_cast({self.name}w AS INT)) AS {self.kind})"
        if self.kind.startswith(_INTERVAL):
            return as_interval(f"{self.name}w", self.kind, tries=True)
        if not may_be_beyond(self.kind):
            return f"try_cast({self.name}w AS {self.kind})"
        return f"try_cast({whole(f'{self.name}l', f'{self.name}h', self.kind)} AS {self.kind})"

    @property
    def value_text(self) -> str:
        """Return the sum or average, from the total; NULL for an average that overflows its type."""
        total, count = f"{self.name}s", f"{self.name}n"
        if not self.result:
            return total
        return f"CASE WHEN {count} > 0 THEN {average(total, count, self.kind, self.result, tries=True)} END"

    @property
    def fails(self) -> str:
        """Return whether the sum or the average overflows its type."""
        return f"({self.name}n > 0 AND {self.name} IS NULL)"

    @property
    def _parts(self) -> dict[str, str]:
        counted = f"count({self.modifier}{self.value})"
        if self.kind == "bigint":
            return {"w": self._sum("sum", f"CAST({self.value} AS DECIMAL(38, 0))"), "n": counted}
        if self.kind.startswith(_MONTHS):
            months = f"(12L * extract(YEAR FROM {self.value}) + extract(MONTH FROM {self.value}))"
            return {"w": self._sum("sum", f"CAST({months} AS DECIMAL(38, 0))"), "n": counted}
        if self.kind.startswith(_INTERVAL):
            return {"w": self._sum("sum", f"CAST({_micros(self.value)} AS DECIMAL(38, 0))"), "n": counted}
        if not may_be_beyond(self.kind):
            return {"w": self._sum("try_sum", self.value), "n": counted}
        if not self.modifier:
            low, high = (f"sum({limb})" for limb in limbs(self.value, self.kind))
        else:  # equal limbs may be unequal values
            added = (f"(a, x) -> CAST(a + {limb} AS DECIMAL(38, 0))" for limb in limbs("x", self.kind))
            zero = "CAST(0 AS DECIMAL(38, 0))"
            low, high = (f"aggregate(collect_set({self.value}), {zero}, {add})" for add in added)
        return {"l": low, "h": high, "n": counted}

    def _sum(self, function: str, value: str) -> str:
        return f"{function}({self.modifier}{value})"


def _micros(interval: str) -> str:
    return f"unix_micros(timestamp_micros(0L) + {interval})"


def as_interval(micros: str, kind: str, *, tries: bool = False) -> str:
    """Return µs as an interval of days; too many fail or, if it ``tries``, are NULL."""
    whole = f"{'try_cast' if tries else 'CAST'}({micros} AS BIGINT)"
    seconds = f"CAST(CAST({whole} % {_DAY} AS DECIMAL(18, 6)) / 1000000 AS DECIMAL(18, 6))"
    return f"CAST(make_dt_interval(CAST({whole} DIV {_DAY} AS INT), 0, 0, {seconds}) AS {kind})"
