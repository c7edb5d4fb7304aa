"""Accumulators: the columns in which a GROUP BY keeps its aggregates from tick to tick.

If every aggregate splits into partial results, those are kept, one row a group and
segment. Otherwise the rows themselves are kept, with the columns that the aggregates use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.expr.aggregates import Decomposed, Part, decompose, ordered_text
from rowtime.operators.contract import P, Route, T, W, quoted
from rowtime.operators.select import Item
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEPT, COMPLETE = 0, 1  # the routes of a group: into the state, or out


def routed(  # noqa: PLR0913 - a group row and where it goes
    groups: DataFrame,
    complete: str,
    items: Sequence[Item],
    having: exp.Expr | None,
    stamp: str,
    routes: Mapping[str, Route],
) -> DataFrame:
    """The columns of groups that some route takes, and for each group its route.

    ``complete`` is the condition; what `Accumulators.places` calls ``__f0``, … is computed where
    it holds alone, for of an open group it might fail. ``stamp``: the rowtime of a complete group.
    """
    if having is not None:
        groups = groups.where(f"NOT ({complete}) OR ({to_spark(having)})")
    taken = dict.fromkeys(name for route in routes.values() for name in (*route.columns.values(), route.time))
    made = {f"__f{n}": f"CASE WHEN {complete} THEN {to_spark(item.expression)} END" for n, item in enumerate(items)}
    made |= {T: stamp, W: "''", P: "0L"}
    columns = [f"{made[name]} AS {name}" if name in made else name for name in taken]
    return groups.selectExpr(*columns, f"CASE WHEN {complete} THEN {COMPLETE} ELSE {KEPT} END AS __route")


@dataclass(frozen=True)
class Accumulators:
    """The kept form of the aggregates ``(name, call)`` of one GROUP BY."""

    aggregates: tuple[tuple[str, exp.Expr], ...]

    @cached_property
    def forms(self) -> tuple[Decomposed | None, ...]:
        """The partial form of each aggregate, where it has one."""
        return tuple(decompose(call) for _, call in self.aggregates)

    @property
    def splits(self) -> bool:
        """True if partial results are enough; no row has to be kept."""
        return all(form is not None for form in self.forms)

    def places(self, items: Sequence[Item]) -> list[str]:
        """Where each entry of a select list stands in a group row: in a column of its own or in a kept one."""
        same = {
            name: f"__s{index}_0"
            for index, (name, _) in enumerate(self.aggregates)
            if self.splits and (form := self.forms[index]) is not None and form.final == "{0}" and not form.result
        }
        found = [item.expression.name if isinstance(item.expression, exp.Column) else None for item in items]
        return [f"__f{n}" if name is None else same.get(name, name) for n, name in enumerate(found)]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The kept columns."""
        if self.splits:
            return tuple(name for name, _ in self._parts()) or ("__c",)
        used = {c.name: None for _, call in self.aggregates for c in call.find_all(exp.Column)}
        return tuple(dict.fromkeys([*used, T, W, P]))

    def seeds(self, types: Mapping[str, str]) -> list[str]:
        """The kept columns of one row, as select items."""
        if not self.splits:
            return [quoted(name) for name in self.columns]
        parts = [_cast(part.seed, types.get(name)) + f" AS {name}" for name, part in self._parts()]
        return parts or ["1L AS __c"]

    def merges(self, types: Mapping[str, str], over: str = "") -> list[str]:
        """Aggregates that put kept columns together; ``over``: of the rows of a window."""
        parts = [_cast(part.merge.format(name) + over, types.get(name)) + f" AS {name}" for name, part in self._parts()]
        return parts or [f"sum(__c){over} AS __c"]

    def finals(self, types: Mapping[str, str]) -> list[str]:
        """The values of the aggregates, as select items over kept columns."""
        if not self.splits:
            return [f"{ordered_text(call)} AS {name}" for name, call in self.aggregates]
        texts = []
        for index, (name, _) in enumerate(self.aggregates):
            form = self.forms[index]
            assert form is not None
            final = form.final.format(*(f"__s{index}_{n}" for n in range(len(form.parts))))
            texts.append(_cast(final, types.get(name) if form.result else None) + f" AS {name}")
        return texts

    def types(self, rows: DataFrame) -> dict[str, str]:
        """The Spark types that partial and final columns have, by analysis without a job."""
        wanted = {name: part.typed for name, part in self._parts() if part.typed} if self.splits else {}
        results = {
            name: form.result
            for (name, _), form in zip(self.aggregates, self.forms, strict=True)
            if self.splits and form is not None and form.result
        }
        return {name: _type_of(rows, text) for name, text in {**wanted, **results}.items()}

    def _parts(self) -> list[tuple[str, Part]]:
        return [
            (f"__s{index}_{n}", part)
            for index, form in enumerate(self.forms)
            if form is not None
            for n, part in enumerate(form.parts)
        ]


def _type_of(rows: DataFrame, text: str) -> str:
    if text.startswith("avg+"):
        total = text.removeprefix("avg+")
        mean = _type_of(rows, "avg" + total.removeprefix("sum"))
        return mean if mean == "double" else _type_of(rows, total)
    return rows.groupBy().agg(_expression(text)).schema[0].dataType.simpleString()


def _expression(text: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.expr(text)


def _cast(text: str, kind: str | None) -> str:
    return f"CAST({text} AS {kind})" if kind else text
