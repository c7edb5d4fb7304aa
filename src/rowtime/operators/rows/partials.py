"""Accumulators: the columns in which a GROUP BY keeps its aggregates from tick to tick.

If every aggregate splits into partial results, these are kept, one row per group and segment. Otherwise the rows
themselves are kept, with the columns that the aggregates use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.expr.aggregates import ORDERED, Decomposed, Part, decompose, ordered_text, split
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.spark_groups import tried_groups
from rowtime.frames.typed import kind_of_text
from rowtime.operators.rows.arguments import with_arguments
from rowtime.operators.rows.collations import grouped, with_one_zero
from rowtime.operators.rows.exact_sums import ExactSum, average
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import quoted, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

_ALIKE = re.compile(r" collate |\b(?:float|double)\b", re.IGNORECASE)
"""In the text of a type that is, or contains, one of which equal values may differ: in their bytes, or by a sign."""


@dataclass(frozen=True)
class Accumulators:
    """The kept form of the aggregates ``(name, call)`` of one GROUP BY."""

    aggregates: tuple[tuple[str, exp.Expr], ...]

    @cached_property
    def forms(self) -> tuple[Decomposed | None, ...]:
        """Return the partial form of each aggregate, if it has one."""
        return tuple(decompose(call) for _, call in self.aggregates)

    @property
    def splits(self) -> bool:
        """Return True if partial results are enough; no row has to be kept."""
        return all(form is not None for form in self.forms)

    def places(self, items: Sequence[Item]) -> list[str]:
        """Return where each select-list item is in a group row: in a column of its own or in a kept one."""
        same = {
            name: f"__s{index}_0"
            for index, (name, _) in enumerate(self.aggregates)
            if self.splits and (form := self.forms[index]) is not None and form.final == "{0}" and not form.result
        }
        names = [item.expression.name if isinstance(item.expression, exp.Column) else None for item in items]
        return [f"__f{n}" if name is None else same.get(name, name) for n, name in enumerate(names)]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the kept columns."""
        if self.splits:
            return tuple(name for name, _ in self._parts())
        used = {c.name: None for _, call in self.aggregates for c in call.find_all(exp.Column)}
        return tuple(dict.fromkeys([*used, ROWTIME, WRITER, POSITION]))

    def seeds(self, types: Mapping[str, str]) -> list[str]:
        """Return the kept columns of one row, as select items."""
        if not self.splits:
            return [quoted(name) for name in self.columns]
        return [_cast(part.seed, _kind(part, types.get(name))) + f" AS {name}" for name, part in self._parts()]

    def merges(self, types: Mapping[str, str], over: str = "") -> list[str]:
        """Return aggregates that merge kept columns; ``over``: over the rows of a window."""
        texts = ((name, part, _merge(part, types.get(name)).format(name)) for name, part in self._parts())
        return [_cast(text + over, _kind(part, types.get(name))) + f" AS {name}" for name, part, text in texts]

    def finals(self, types: Mapping[str, str], *, tries: bool = False) -> list[str]:
        """Return the values of the aggregates, as select items over partial results.

        ``tries``: an average that overflows its type is NULL, and an additional column says whether it does.
        """
        texts = []
        for index, (name, _) in enumerate(self.aggregates):
            form = self.forms[index]
            assert form is not None
            parts = [f"__s{index}_{n}" for n in range(len(form.parts))]
            final, kind = form.final.format(*parts), types.get(name, "") if form.result else ""
            if kind.startswith("interval"):
                final = f"CASE WHEN {parts[1]} > 0 THEN {parts[0]} / {parts[1]} END"
            elif kind.startswith("decimal"):
                mean = average(parts[0], parts[1], types[parts[0]], types[name], tries=tries)
                final = f"CASE WHEN {parts[1]} > 0 THEN {mean} END"
                texts += [f"({parts[1]} > 0 AND {mean} IS NULL) AS {name}x"] if tries else []
            texts.append(_cast(final, kind or None) + f" AS {name}")
        return texts

    def exact(
        self,
        rows: Frame,
        by: Sequence[str],
        more: Sequence[str],
        types: Mapping[str, str],
        *,
        of_rows: bool = False,
    ) -> Frame:
        """Return the result of `merges` or `finals` for the groups ``by``; an aggregate that fails is NULL.

        ``more``: further aggregates; ``of_rows``: from rows in any case, else from rows or seeds. `beyond` says which
        groups have such an aggregate.
        """
        splits = self.splits and not of_rows
        calls: Mapping[str, exp.Expr] = dict(self.aggregates)
        if not splits:
            rows, calls = with_arguments(rows, calls)
        sums = self._sums(rows, calls, types, splits=splits)
        texts = [text for sum_of in sums.values() for text in sum_of.aggregates]
        if splits:
            kept = {n: _merge(part, types.get(n)).format(n) for n, part in self._parts() if n not in sums}
            texts += [f"{text} AS {name}" for name, text in kept.items()]
            finals, groups = self.finals(types, tries=True), grouped(rows, by, [*texts, *more])
        else:
            others = {name: call for name, call in calls.items() if name not in sums}
            finals, groups = [], computed_groups(rows, by, others, [*texts, *more])
        tried = {name for name, call in self.aggregates if _summed(call)[1]}
        flags = [f"{sum_of.fails} AS {name}x" for name, sum_of in sums.items() if name not in tried]
        groups = _with_sums(groups, sums)
        return groups.selectExpr("*", *flags, *finals) if flags or finals else groups

    def of_rows(self, rows: Frame, by: Sequence[str], more: Sequence[str] = ()) -> Frame:
        """Return the groups ``by`` of rows, with the aggregates and ``more`` aggregates."""
        return groups_of(rows, by, dict(self.aggregates), more)

    def beyond(self, groups: Frame) -> list[tuple[str, exp.Expr]]:
        """Return for each aggregate of `exact` that may fail the condition that it does, and the aggregate."""
        parts = [name for name, part in self._parts() if part.typed]
        calls = {name: self.aggregates[int(name.removeprefix("__s").split("_")[0])][1] for name in parts}
        calls |= dict(self.aggregates)
        return [(f"{name}x", call) for name, call in calls.items() if f"{name}x" in groups.columns]

    def _sums(
        self, rows: Frame, calls: Mapping[str, exp.Expr], types: Mapping[str, str], *, splits: bool
    ) -> Mapping[str, ExactSum | Correlation]:
        """Return the sums that may overflow their types, of partial results or of rows; and correlations."""
        if splits:
            parts = (name for name, part in self._parts() if part.typed)
            return {name: ExactSum(name, name, types[name]) for name in parts if types.get(name, "double") != "double"}
        computed = {name: Correlation.of(name, call) or _exact(rows, name, call) for name, call in calls.items()}
        return {name: exact_sum for name, exact_sum in computed.items() if exact_sum is not None}

    def types(self, rows: Frame) -> dict[str, str]:
        """Return the Spark types of partial and final columns."""
        if not self.splits:
            return {}
        wanted = {name: part.typed for name, part in self._parts() if part.typed}
        forms = zip(self.aggregates, self.forms, strict=True)
        results = {name: form.result for (name, _), form in forms if form is not None and form.result}
        types = {name: _type_of(rows, text) for name, text in {**wanted, **results}.items()}
        texts = {name: part.merge.format(part.seed) for name, part in self._parts() if part.by_bytes}
        kinds = {name: _type_of(rows, text) for name, text in texts.items()}
        return types | {name: kind for name, kind in kinds.items() if _ALIKE.search(kind)}

    def _parts(self) -> list[tuple[str, Part]]:
        """Return the partial columns; without aggregates one that keeps the groups, as a count of their rows."""
        forms = ((index, form) for index, form in enumerate(self.forms) if form is not None)
        parts = [(f"__s{index}_{n}", part) for index, form in forms for n, part in enumerate(form.parts)]
        return parts or [("__c", Part("1L", "sum({0})"))]


def groups_of(
    rows: Frame,
    by: Sequence[str],
    calls: Mapping[str, exp.Expr],
    more: Sequence[str] = (),
    text: Callable[[exp.Expr], str] = ordered_text,
) -> Frame:
    """Return the groups ``by`` of rows, with the aggregates ``calls`` by name, as ``text`` of them, and ``more``.

    TRY_SUM and TRY_AVG are exact: Spark gives NULL if an intermediate sum overflows its type, which depends on the cut.
    There are further columns, beside these.
    """
    sums = {name: _exact(rows, name, call) for name, call in calls.items() if _summed(call)[1]}
    exact = {name: exact_sum for name, exact_sum in sums.items() if exact_sum is not None}
    texts = [f"{text(call)} AS {name}" for name, call in calls.items() if name not in exact]
    parts = [part for exact_sum in exact.values() for part in exact_sum.aggregates]
    return _with_sums(grouped(rows, by, [*texts, *parts, *more]), exact)


def _with_sums(groups: Frame, sums: Mapping[str, ExactSum | Correlation]) -> Frame:
    """Return groups with the values of ``sums``, whose aggregates they have."""
    if not sums:
        return groups
    groups = groups.selectExpr("*", *(f"{exact_sum.total} AS {name}s" for name, exact_sum in sums.items()))
    return groups.selectExpr("*", *(f"{exact_sum.value_text} AS {name}" for name, exact_sum in sums.items()))


_SUMS: Mapping[str, tuple[type[exp.Sum | exp.Avg], bool]] = {
    "TRY_SUM": (exp.Sum, True),
    "TRY_AVG": (exp.Avg, True),
    "MEAN": (exp.Avg, False),
}


def _summed(call: exp.Expr) -> tuple[exp.Sum | exp.Avg | None, bool]:
    """Return an aggregate without FILTER, as SUM or AVG, and whether it gives NULL beyond its type; ``None`` if other.

    A call with FILTER and DISTINCT has both.
    """
    _, inner = split(call)
    if isinstance(inner, exp.Anonymous) and inner.name.upper() in _SUMS and len(inner.expressions) == 1:
        function, tries = _SUMS[inner.name.upper()]
        return function(this=inner.expressions[0].copy()), tries
    return (inner if isinstance(inner, exp.Sum | exp.Avg) else None), False


def _exact(rows: Frame, name: str, call: exp.Expr) -> ExactSum | None:
    """Return the exact sum of a call over rows; ``None`` for another aggregate, and for a sum of floating point."""
    condition, _ = split(call)
    summed, tries = _summed(call)
    if summed is None:
        return None
    distinct = isinstance(summed.this, exp.Distinct)
    value = to_spark(summed.this.expressions[0] if distinct else summed.this)
    if condition:  # with FILTER, Spark may compute values that it excludes
        value = f"CASE WHEN {condition} THEN {value} END"
    total, modifier = _type_of(rows, f"sum({value})"), "DISTINCT " if distinct else ""
    if isinstance(summed, exp.Sum):
        return None if total == "double" else ExactSum(name, value, total, modifier)
    result = _type_of(rows, f"avg({value})")
    if total == "double" or (result == "double" and not tries):
        return None
    return ExactSum(name, value, total, modifier, result)


def _kind(part: Part, kind: str | None) -> str | None:
    """Return the type to cast to; none if a partial column has the type of its seed anyway."""
    return None if part.by_bytes else kind


def _merge(part: Part, kind: str | None) -> str:
    """Return the merge of a partial column of that type, as far as it is known."""
    return part.by_bytes if part.by_bytes and kind and _ALIKE.search(kind) else part.merge


def _type_of(rows: Frame, text: str) -> str:
    if text.startswith("avg+"):
        total = text.removeprefix("avg+")
        kind = _type_of(rows, total)
        if kind in ("bigint", "double"):
            return kind if kind == "double" else "decimal(38,0)"
        mean = _type_of(rows, "avg" + total.removeprefix("sum"))
        return mean if mean == "double" else kind
    return kind_of_text(rows, text)


def _cast(text: str, kind: str | None) -> str:
    return f"CAST({text} AS {kind})" if kind else text


# Aggregates that fail for the rows of a group: these groups are found, so that the others get their values.
#
# Spark computes an aggregate for all groups in one job and ends it with the first group that fails. No expression
# around an aggregate prevents that. So in a tick in which a value has failed, CORR is computed in a way that cannot
# fail, and the other aggregates are tried: if they fail, for half of the groups, and so on.

_NEVER_FAIL = (exp.Count, exp.Min, exp.Max, *ORDERED)


def computed_groups(rows: Frame, by: Sequence[str], calls: Mapping[str, exp.Expr], more: Sequence[str]) -> Frame:
    """Return the groups ``by`` of rows, with ``calls`` by name, and ``more`` aggregates, which cannot fail.

    A call that fails for a group is NULL. If it can fail, a column with ``x`` behind the name says whether it does.
    """
    texts = {name: ordered_text(call) for name, call in calls.items()}
    tried = [name for name, call in calls.items() if not isinstance(split(call)[1], _NEVER_FAIL)]
    listed = [*(f"{text} AS {name}" for name, text in texts.items()), *more]
    if not tried:
        return grouped(rows, by, listed)
    groups = tried_groups(rows, by, listed, tried)
    values = {name: f"{name}.{TRIED_VALUE} AS {name}" for name in tried}
    flags = (f"{is_failing(name)} AS {name}x" for name in tried)
    valued = groups.selectExpr(*(values.get(name, quoted(name)) for name in groups.columns), *flags)
    return with_one_zero(valued, listed)


def is_failing(name: str) -> str:
    """Return Spark SQL for whether an aggregate that is tried, in a column of this name, fails."""
    return f"{name} IS NULL"


@dataclass(frozen=True)
class Correlation:
    """CORR of two values, in columns of the name ``name``, like `ExactSum`.

    It fails for more than one pair if one of the values is the same in all of them. Pairs with a NULL do not count.
    """

    name: str
    values: tuple[str, str]

    @classmethod
    def of(cls, name: str, call: exp.Expr) -> Correlation | None:
        """Return the correlation that a call computes; ``None`` for another call."""
        condition, inner = split(call)
        if not isinstance(inner, exp.Corr) and not (isinstance(inner, exp.Anonymous) and inner.name.upper() == "CORR"):
            return None
        values = inner.expressions if isinstance(inner, exp.Anonymous) else [inner.this, inner.expression]
        texts = [to_spark(value) for value in values]
        one, other = (f"CASE WHEN {condition} THEN {text} END" if condition else text for text in texts)
        return cls(name, (one, other))

    @property
    def aggregates(self) -> list[str]:
        """Return the aggregates, as select items."""
        given = " AND ".join(f"({value}) IS NOT NULL" for value in self.values)
        x, y = (f"CASE WHEN {given} THEN try_cast({value} AS DOUBLE) END" for value in self.values)
        parts = {
            "g": f"count(CASE WHEN {given} THEN 1 END)",
            "n": f"regr_count({y}, {x})",
            "c": f"covar_pop({x}, {y})",
            "v": f"covar_pop({x}, {x})",  # as CORR adds them, so that the digits are those of other ticks
            "w": f"covar_pop({y}, {y})",
        }
        return [f"{text} AS {self.name}{part}" for part, text in parts.items()]

    @property
    def total(self) -> str:
        """Return the covariance of all pairs; in a column named ``s`` after the name."""
        return f"{self.name}c * {self.name}n"

    @property
    def value_text(self) -> str:
        """Return the correlation; NULL if it fails."""
        n, v, w = (f"{self.name}{part}" for part in "nvw")
        return f"CASE WHEN {n} > 1 THEN try_divide({self.name}s, sqrt({v} * {n} * ({w} * {n}))) END"

    @property
    def fails(self) -> str:
        """Return whether it fails, or a value is not a number."""
        n, given = f"{self.name}n", f"{self.name}g"
        return f"({given} > {n} OR ({n} > 1 AND {self.name} IS NULL))"
