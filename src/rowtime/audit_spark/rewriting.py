"""The rowtime query that gives what a batch gives: for a job that groups rows of one input by time.

It is written from Spark's analyzed plan, and compared with the batch, so an expression that means something else in
rowtime is noticed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rowtime.api.pipeline import Pipeline
from rowtime.api.relations import named
from rowtime.audit_spark.cuts import Row, rows_of
from rowtime.audit_spark.inputs import Input, Inputs
from rowtime.audit_spark.operators import DELAY, Watermark, parts, simple_name
from rowtime.core.errors import RowtimeError, headline
from rowtime.core.time import SECOND
from rowtime.operators.contract.lateness import interval
from rowtime.profiling.places import declaration_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEEP: Final = 0.99
_OTHERWISE: Final = "only a job that groups the rows of one input by a window is written automatically"
_MICROS: Final = 1 << 62  # rows: more than a preview will have


@dataclass(frozen=True)
class Advice:
    """The lateness (µs) of the rows of an input: how far each is below the greatest time before it.

    ``all``: the WITHIN that loses no row. ``most``: the one that keeps 99 %, with which ``late`` rows are late.
    """

    input: str
    column: str
    delay: str
    rows: int
    all: int
    most: int
    late: int


@dataclass(frozen=True)
class Rewritten:
    """A query of rowtime: definitions and the query. ``reason``: why there is none, or why it is not the batch."""

    definitions: str = ""
    query: str = ""
    reason: str = ""

    @property
    def sql(self) -> str:
        """Return the whole script."""
        return f"{self.definitions}{self.query};" if self.query else ""


def advice_of(watermark: Watermark, inputs: Inputs) -> Advice:
    """Return how late the rows behind a watermark are, in the order in which the files came."""
    times = watermark.times
    at = times.time[times.known]
    late = np.maximum.accumulate(at) - at if len(at) else at
    order = inputs.order
    names = {order[number][0].name for number in set(times.file.tolist()) if number >= 0}
    greatest, most = (
        _whole(int(np.quantile(late, share, method="higher"))) if len(late) else 0 for share in (1.0, KEEP)
    )
    name = " and ".join(sorted(names))
    return Advice(name, watermark.column, watermark.delay, len(at), greatest, most, int((late > most).sum()))


def _whole(micros: int) -> int:
    """Return a duration, rounded up to seconds."""
    return -(-micros // SECOND) * SECOND


def rewritten(root: Any, inputs: Inputs, advice: Sequence[Advice]) -> Rewritten:
    """Return the query of a job with this analyzed plan, or why it is not written."""
    if len(inputs.every) != 1 or len(advice) != 1:
        return Rewritten(reason=_OTHERWISE)
    try:
        return _Writer(inputs.every[0], advice[0]).write(root)
    except _OtherwiseError as other:
        return Rewritten(reason=str(other))


def compared(
    spark: SparkSession, query: Rewritten, columns: Sequence[str], batch: Counter[Row], home: Path
) -> Rewritten:
    """Run a query, and return it if its rows are those of the batch; otherwise the reason."""
    if not query.query:
        return query
    try:
        pipeline = Pipeline(spark, home=str(home)).sql(query.definitions)
        rows = pipeline.preview(query.query, rows=_MICROS, end=True)
    except RowtimeError as error:
        return Rewritten(reason=f"rowtime does not accept what Spark computes: {headline(error)}")
    if rows_of(rows.select([*columns])) != batch:
        return Rewritten(reason="the query that was written gives other rows than the batch")
    return query


class _OtherwiseError(Exception):
    """The plan has another shape."""


@dataclass
class _Writer:
    """Writes views from the input up, then the query over the last of them."""

    input: Input
    advice: Advice
    views: list[str] = field(default_factory=list)
    wheres: list[str] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)
    window: str = ""

    def write(self, root: Any) -> Rewritten:
        above = []
        while simple_name(root) in ("Project", "SubqueryAlias"):
            above += [root] if simple_name(root) == "Project" else []
            root = root.child()
        if simple_name(root) != "Aggregate" or len(above) > 1:
            raise _OtherwiseError(_OTHERWISE)
        source = self._below(root.child())
        if not self.window:
            raise _OtherwiseError(_OTHERWISE)
        keys = [self.window if _is_window(one) else self._sql(one) for one in parts(root.groupingExpressions())]
        outputs = dict(self._outputs(root.aggregateExpressions()))
        if above:
            outputs = {name: outputs.get(sql, sql) for name, sql in self._outputs(above[0].projectList(), plain=True)}
        select = ", ".join(f"{sql} AS {named(name)}" for name, sql in outputs.items())
        query = f"SELECT STREAM {select}\nFROM {source}{self._where()}\nGROUP BY {', '.join(keys)}"
        given = self.input.original or self.input
        declared = declaration_of(given.name, given.place, given.kind, given.options, given.schema)
        return Rewritten("".join(f"{one};\n" for one in (declared, *self.views)), query)

    def _outputs(self, expressions: Any, *, plain: bool = False) -> Iterator[tuple[str, str]]:
        for one in parts(expressions):
            value = one.child() if simple_name(one) == "Alias" else one
            if plain and simple_name(value) not in ("AttributeReference", "GetStructField"):
                raise _OtherwiseError("expressions above the aggregation are not written automatically")
            sql = value.name() if plain and simple_name(value) == "AttributeReference" else self._sql(value)
            yield one.name(), sql

    def _below(self, plan: Any) -> str:  # noqa: PLR0911 - one for each kind of node
        """Write what is below the aggregation; return the name of the last view."""
        match simple_name(plan):
            case "StreamingRelation" | "StreamingRelationV2":
                return named(self.input.name)
            case "SubqueryAlias":
                self.aliases.add(plan.alias())
                return self._below(plan.child())
            case "View":
                return self._below(plan.child())
            case "Filter":
                source = self._below(plan.child())
                if simple_name(plan.condition()) != "IsNotNull" or self.wheres:
                    self.wheres.append(self._sql(plan.condition()))
                return source
            case "EventTimeWatermark":
                source, column = self._below(plan.child()), named(plan.eventTime().name())
                within = f"ORDER BY {column} WITHIN {interval(self.advice.all)}"
                return self._view("in_order", f"SELECT STREAM {column} AS ROWTIME, *", source, within)
            case "Project" | "Expand" if (window := _window_text(plan)) and not self.window:
                self.window = window
                return self._below(plan.child())
            case "Project":
                source = self._below(plan.child())
                columns = ", ".join(f"{sql} AS {named(name)}" for name, sql in self._outputs(plan.projectList()))
                return self._view("columns", f"SELECT STREAM {columns}", source)
            case _:
                raise _OtherwiseError(_OTHERWISE)

    def _view(self, suffix: str, select: str, source: str, order: str = "") -> str:
        count = sum(f"_{suffix}" in view.partition(" AS ")[0] for view in self.views)
        name = named(f"{self.input.name}_{suffix}{count + 1 if count else ''}")
        self.views.append(f"CREATE VIEW {name} AS\n{select}\nFROM {source}{self._where()}{order and chr(10)}{order}")
        self.wheres = []
        return name

    def _where(self) -> str:
        return f"\nWHERE {' AND '.join(self.wheres)}" if self.wheres else ""

    def _sql(self, expression: Any) -> str:
        text = str(expression.sql())
        for alias in self.aliases:
            text = re.sub(rf"(?<![\w.])`?{re.escape(alias)}`?\.", "", text)
        return text


def _is_window(attribute: Any) -> bool:
    return (
        simple_name(attribute) == "AttributeReference"
        and attribute.metadata().contains(DELAY)
        and (attribute.dataType().typeName() == "struct")
    )


def _window_text(plan: Any) -> str:
    """Return the call of the window that Spark has resolved into arithmetic; empty if the plan has none."""
    if not any(_is_window(one) for one in parts(plan.output())) or any(
        _is_window(one) for one in parts(plan.child().output())
    ):
        return ""
    text = plan.toString().partition("\n")[0]
    if gap := re.search(r" \+ cast\(([^()]+) as interval\)", text):
        return f"session_window(ROWTIME, '{gap[1]}')"
    start = re.search(r"LongType\) - (-?\d+)\) % (\d+)\)", text)
    size = re.search(r" \+ (\d+)\), LongType, TimestampType\)", text)
    if start is None or size is None:
        raise _OtherwiseError(_OTHERWISE)
    lengths = [size[1], start[2], start[1]]
    while len(lengths) > 1 and lengths[-1] == (lengths[0] if len(lengths) == 2 else "0"):  # noqa: PLR2004 - size and slide
        lengths.pop()
    return f"window(ROWTIME, {', '.join(interval(int(one)) for one in lengths)})"
