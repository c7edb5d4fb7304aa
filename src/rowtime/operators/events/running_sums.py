"""Counts and sums to which a start adds and from which an end subtracts: the columns of a snapshot.

Each sum is kept in its type until a tick fails because of a value. From then on sums that may overflow their type are
kept in two limbs, which have room for any value: so only the sum of the alive events counts, and not the intermediate
sums. Sums of intervals are kept so from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rowtime.frames.frame import Frame
from rowtime.frames.kinds import DECIMAL
from rowtime.frames.typed import kind_of_text
from rowtime.operators.rows.exact_sums import as_interval, average_type, limbs, may_be_beyond, whole
from rowtime.operators.rows.exact_sums import average as quotient
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_spark

_INTERVAL = "interval"
_EXACT = "exact "  # before the type of a sum that is kept in limbs
_LEAST, _GREATEST = f"{1 - 2**63}L - 1L", f"{2**63 - 1}L"
_WIDE = 28  # digits of the sum of a decimal of 18, which together with the 20 of a BIGINT use all 38 digits


@dataclass(frozen=True)
class RunningSums:
    """COUNT, SUM and AVG ``aggregates``; ``kinds``: the Spark type of each sum, empty for a plain count.

    ``means``: the type of each average of decimals, else empty. Checkpoints before 0.4 lack them: the widest is taken.
    Columns of the n-th: `__n0` the number of values, `__s0` their sum or its low limb, `__h0` its high limb, `__b0` the
    number of values that are not finite.
    """

    aggregates: tuple[Item, ...]
    kinds: Sequence[str]
    means: Sequence[str] = ()

    @classmethod
    def of(cls, aggregates: tuple[Item, ...], rows: Frame) -> RunningSums:
        """Return the sums of arguments over these rows."""
        kinds, means = list[str](), list[str]()
        for call in (item.expression for item in aggregates):
            kinds.append("" if isinstance(call, exp.Count) else kind_of_text(rows, f"sum({to_spark(call.this)})"))
            kinds[-1] = _EXACT + kinds[-1] if kinds[-1].startswith(_INTERVAL) else kinds[-1]
            averages = isinstance(call, exp.Avg) and kinds[-1].startswith("decimal")
            means.append(kind_of_text(rows, to_spark(call)) if averages else "")
        return cls(aggregates, kinds, means)

    def roomy(self, *, trying: bool) -> RunningSums:
        """Return the same with limbs if a product with a weight would lose digits or, ``trying``, a sum overflows."""
        wide = (_loses_digits(kind) or (trying and may_be_beyond(kind)) for kind in self.kinds)
        named = zip(self.kinds, wide, strict=True)
        return RunningSums(self.aggregates, [_EXACT + kind if moves else kind for kind, moves in named], self.means)

    @property
    def columns(self) -> list[str]:
        """Return the names of the kept columns."""
        return [name for n, kind in enumerate(self.kinds) for name in _columns(n, kind)]

    @staticmethod
    def declared(aggregates: Sequence[Item]) -> tuple[list[str], list[str]]:
        """Return the names of the columns that every type needs, and of those that only some need."""
        only = [isinstance(item.expression, exp.Count) for item in aggregates]
        some = [f"__{part}{n}" for n, counts in enumerate(only) if not counts for part in "hb"]
        return [name for n, counts in enumerate(only) for name in _columns(n, "" if counts else "int")], some

    def moved(self, rows: Frame, roomy: RunningSums) -> Frame:
        """Return kept rows in the form of `roomy`."""
        texts = dict[str, str]()
        for n, (kind, other) in enumerate(zip(self.kinds, roomy.kinds, strict=True)):
            if kind != other:
                texts |= dict(zip((f"__s{n}", f"__h{n}"), limbs(f"__s{n}", kind), strict=True))
        others = [name for name in rows.columns if name not in texts]
        return rows.selectExpr(*others, *(f"CAST({text} AS DECIMAL(38, 0)) AS {name}" for name, text in texts.items()))

    def values(self, weight: str) -> list[str]:
        """Return the columns of one event, which counts ``weight`` times."""
        values = []
        for n, (item, kind) in enumerate(zip(self.aggregates, self.kinds, strict=True)):
            text = "1" if isinstance(item.expression.this, exp.Star) else to_spark(item.expression.this)
            values.append(f"IF(({text}) IS NULL, 0L, {weight}) AS __n{n}")
            if kind == "double":
                bad = f"(isnan({text}) OR abs({text}) = double('infinity'))"
                values.append(f"IF(({text}) IS NULL OR {bad}, 0D, ({text}) * {weight}) AS __s{n}")
                values.append(f"IF(({text}) IS NOT NULL AND {bad}, {weight}, 0L) AS __b{n}")
            elif kind.startswith(_EXACT):
                parts = zip("sh", limbs(text, kind.removeprefix(_EXACT)), strict=True)
                times = f"CAST({weight} AS DECIMAL(17, 0))"
                values += [
                    f"CAST(coalesce({part} * {times}, 0) AS DECIMAL(38, 0)) AS __{name}{n}" for name, part in parts
                ]
            elif kind:
                values.append(f"CAST(coalesce(({text}) * {weight}, 0) AS {kind}) AS __s{n}")
        return values

    def finals(self, *, trying: bool = False) -> list[str]:
        """Return the aggregates with their names; ``trying``: NULL if one overflows its type."""
        return [f"{self._final(n, trying=trying)} AS {item.column.name}" for n, item in enumerate(self.aggregates)]

    def beyond(self) -> Iterator[tuple[str, exp.Expr]]:
        """Yield for each sum in limbs the condition that it overflows its type, and the aggregate."""
        for n, item in enumerate(self.aggregates):
            if self.kinds[n].startswith(_EXACT):
                yield f"(__n{n} > 0 AND {item.column.name} IS NULL)", item.expression

    def _final(self, n: int, *, trying: bool) -> str:
        call, kind = self.aggregates[n].expression, self.kinds[n]
        if isinstance(call, exp.Count):
            return f"__n{n}"
        average, exact = isinstance(call, exp.Avg), kind.startswith(_EXACT)
        kind = kind.removeprefix(_EXACT)
        total = f"IF(__b{n} > 0, double('NaN'), __s{n})" if kind == "double" else f"__s{n}"
        interval = kind.startswith(_INTERVAL)
        if interval:
            total = as_interval(f"__s{n}", kind, tries=trying)
        elif exact and kind != "bigint":
            total = f"{'try_cast' if trying else 'CAST'}({whole(f'__s{n}', f'__h{n}', kind)} AS {kind})"
        elif exact and not average:  # the low limb of a BIGINT is the whole sum
            total = f"IF({total} BETWEEN {_LEAST} AND {_GREATEST}, {total}, NULL)" if trying else total
            total = f"CAST({total} AS BIGINT)"
        if average and not kind.startswith("decimal"):
            total = f"{total} / __n{n}" if interval else f"CAST({total} AS DOUBLE) / __n{n}"
        elif average:
            mean = self.means[n] if self.means else average_type(kind)
            total = quotient(total, f"__n{n}", kind, mean, tries=trying)
        return f"IF(__n{n} = 0, NULL, {total})"


def _loses_digits(kind: str) -> bool:
    """Return True for a decimal whose product with a BIGINT would lose digits after the point in Spark."""
    match = DECIMAL.fullmatch(kind)
    return match is not None and int(match[1]) >= _WIDE and int(match[2]) > 0


def _columns(n: int, kind: str) -> list[str]:
    more = {"double": f"__b{n}"}.get(kind, f"__h{n}" if kind.startswith(_EXACT) else "")
    return [f"__n{n}", *([f"__s{n}"] if kind else []), *([more] if more else [])]
