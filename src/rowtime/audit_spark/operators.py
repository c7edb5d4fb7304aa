"""The operators of a streaming plan that keep state, and the input rows that each of them drops as late.

Spark compares a time of each row with the watermark of the batch before: the end of its window or session in an
aggregation, its event time in a deduplication or a join of streams. A row is dropped if that time is not above the
watermark. Spark counts them too, but in an aggregation after rows of a group have been combined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everywhere in Spark

from rowtime.audit_spark.inputs import NUMBER, Inputs
from rowtime.audit_spark.jobs import Job

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

DELAY: Final = "spark.watermarkDelayMs"
"""Spark's mark of a column of event times."""
_EVENT_TIME: Final = "the event time"
_KINDS: Final = {
    "Aggregate": ("aggregation", "the end of the window"),
    "Distinct": ("distinct", _EVENT_TIME),
    "Deduplicate": ("dropDuplicates", _EVENT_TIME),
    "DeduplicateWithinWatermark": ("dropDuplicatesWithinWatermark", _EVENT_TIME),
    "Join": ("join", _EVENT_TIME),
}
_OWN_STATE: Final = ("WithState", "TransformWithState")


@dataclass(frozen=True)
class Times:
    """Times (µs) of rows at a place of a plan, with the number of the file of each, in the order of the stream.

    ``known``: whether the row has a time. ``rows``: the rows as JSON.
    """

    file: NDArray[np.int64]
    time: NDArray[np.int64]
    known: NDArray[np.bool_]
    rows: pa.ChunkedArray

    def late(self, marks: Mapping[int, int]) -> NDArray[np.int64]:
        """Return the positions of rows that are not above the watermark of their file."""
        of_file = np.full(max([*marks, *self.file], default=0) + 1, np.iinfo(np.int64).min)
        for number, mark in marks.items():
            of_file[number] = mark
        return np.flatnonzero(self.known & (self.time <= of_file[self.file]))


@dataclass(frozen=True)
class Operator:
    """An operator with state. ``sides``: the times of the rows that reach it, from each of its inputs.

    ``reason``: why the rows that it drops are not known; empty if they are.
    """

    name: str
    compares: str = _EVENT_TIME
    sides: Sequence[Times] = ()
    reason: str = ""


@dataclass(frozen=True)
class Watermark:
    """An event time with a delay, as the job declares it, and the times of the rows of one input."""

    column: str
    delay: str
    times: Times


@dataclass(frozen=True)
class Plan:
    """What a job declares: its operators with state from the sink down, and its watermarks."""

    operators: Sequence[Operator]
    watermarks: Sequence[Watermark]


def plan_of(spark: SparkSession, job: Job, inputs: Inputs, mode: str, folder: Path) -> Plan:
    """Return the plan of a job, with the times of all rows; each place is read in one batch of Spark."""
    frame = job.frame(spark, inputs.streaming(spark, folder / "input"))
    inputs.bring(range(len(inputs.order)), folder / "input")
    return _Reader(spark, mode, folder).plan(frame._jdf.queryExecution().analyzed())  # noqa: SLF001 - the plan is Java's


@dataclass
class _Reader:
    spark: SparkSession
    mode: str
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    def plan(self, root: Any) -> Plan:
        operators = [self._operator(node) for node in below(root) if _kind(node)]
        marked = {node.nodeId().toString(): node for node in below(root) if simple_name(node) == "EventTimeWatermark"}
        watermarks = [self._watermark(node) for node in marked.values() if not _keeps_state(node.child())]
        return Plan(operators, watermarks)

    def _watermark(self, node: Any) -> Watermark:
        column = node.eventTime()
        times = self._times(node.child(), _position(node.child(), column), shown=False)
        return Watermark(column.name(), node.delay().toString(), times)

    def _operator(self, node: Any) -> Operator:
        kind = _kind(node)
        if kind not in _KINDS:
            return Operator(kind, reason="its state is the job's own; only its results are compared")
        name, compares = _KINDS[kind]
        children = [*parts(node.children())]
        if any(_keeps_state(child) for child in children):
            return Operator(name, compares, reason="its rows are results of another operator")
        sides = []
        for child in children:
            of_keys = parts(node.groupingExpressions()) if kind == "Aggregate" else parts(child.output())
            marked = [
                one for one in of_keys if simple_name(one) == "AttributeReference" and one.metadata().contains(DELAY)
            ]
            if not marked or (kind == "Aggregate" and self.mode == "complete"):
                continue  # such rows are never late
            sides.append(self._times(child, _position(child, marked[0])))
            if kind == "Aggregate":
                name = f"{name} by {marked[0].name()}"
                compares = compares if _is_window(marked[0]) else _EVENT_TIME
        if any(len(side.file) and side.file.min() < 0 for side in sides):
            return Operator(name, compares, reason="its rows are repartitioned first, which hides their files")
        return Operator(name, compares, sides)

    def _times(self, plan: Any, position: int, *, shown: bool = True) -> Times:
        """Return the times of a column at a place of the plan, which has no operator with state below.

        ``shown``: with the rows as JSON.
        """
        import pyarrow as pa  # noqa: PLC0415 - as Spark
        import pyarrow.compute as pc  # noqa: PLC0415

        output = [*parts(plan.output())]
        names = _different(one.name() for one in output)
        dataset = self.spark._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]  # noqa: SLF001
        frame = DataFrame(dataset.ofRows(self.spark._jsparkSession, plan), self.spark).toDF(*names)  # noqa: SLF001
        time = F.col(f"`{names[position]}`" + (".end" if _is_window(output[position]) else ""))
        if "ntz" in output[position].dataType().typeName():
            micros = F.timestamp_diff("MICROSECOND", F.lit("1970-01-01").cast("timestamp_ntz"), time)
        else:
            micros = F.unix_micros(time)
        file = F.regexp_extract(F.input_file_name(), NUMBER, 1)
        tables: list[pa.Table] = []

        def take(batch: DataFrame, _: int) -> None:
            row = F.to_json(F.struct("*")) if shown else F.lit("")
            tables.append(batch.select(file.alias("file"), micros.alias("time"), row.alias("row")).toArrow())

        checkpoint = self.folder / f"places-{next(self.numbers)}"
        query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()
        table = pa.concat_tables(tables)
        files = pc.if_else(pc.equal(table["file"], ""), "-1", table["file"]).cast(pa.int64()).to_numpy()
        order = np.argsort(files, kind="stable")
        known = table["time"].is_valid().to_numpy()
        times = pc.fill_null(table["time"], 0).to_numpy()
        return Times(files[order], times[order], known[order], table["row"].take(pa.array(order)))


def below(plan: Any) -> Iterator[Any]:
    """Yield a plan and all below it, in Spark's order."""
    yield plan
    for child in parts(plan.children()):
        yield from below(child)


def parts(sequence: Any) -> Iterator[Any]:
    """Yield the items of a sequence of Scala."""
    for number in range(sequence.size()):
        yield sequence.apply(number)


def simple_name(node: Any) -> str:
    """Return the name of the class of a node of Spark."""
    return str(node.getClass().getSimpleName())


def _kind(node: Any) -> str:
    """Return the name of an operator that keeps state in a stream; empty for others."""
    name = simple_name(node)
    if not node.isStreaming() or (name == "Join" and not all(child.isStreaming() for child in parts(node.children()))):
        return ""
    return name if name in _KINDS or any(word in name for word in _OWN_STATE) else ""


def _keeps_state(plan: Any) -> bool:
    return any(_kind(node) for node in below(plan))


def _is_window(attribute: Any) -> bool:
    return str(attribute.dataType().typeName()) == "struct"


def _position(plan: Any, attribute: Any) -> int:
    wanted = attribute.exprId().toString()
    return next(n for n, one in enumerate(parts(plan.output())) if one.exprId().toString() == wanted)


def _different(names: Iterator[str]) -> list[str]:
    """Return names of which no two are equal, and which can be quoted."""
    result: list[str] = []
    for name in names:
        plain = name.replace("`", "").replace(".", "_")
        taken = {one.lower() for one in result}
        numbered = chain([plain], (f"{plain}_{n}" for n in count(2)))
        result.append(next(one for one in numbered if one.lower() not in taken))
    return result
