"""The order of the rows of a streaming DataFrame that names no position: its source gives it, if the rows keep it.

Kafka numbers the records of a partition, ``rate`` its rows, and files have an order by their times of change and names,
each from its first row on. Spark passes this on if it computes the DataFrame row by row. After an aggregate, a
join, a union or a repartition, nothing says which row of a batch came first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.api.relations import columns_text, named
from rowtime.core.columns import FRAME_PLACE, FRAME_WRITER
from rowtime.core.errors import Refused, refuse

Names = Mapping[str, str | None]

_ROW_BY_ROW = {"Project", "Filter", "SubqueryAlias", "View", "EventTimeWatermark", "ResolvedHint"}
_IN_FILES = {*_ROW_BY_ROW, "Generate"} - {"View"}  # rows of one record follow each other; a view hides the metadata
_FORMATS = {"csv", "json", "parquet", "delta"}
"""Formats of files that have a form in SQL."""


@dataclass(frozen=True)
class Origin:
    """Where Spark reads a streaming DataFrame, and whether each of its rows comes from one record.

    ``source``: Spark's name of the source. ``columns``: the columns of the source that the DataFrame has, by their
    names there. ``nodes``: what Spark does above the source.
    """

    source: str
    options: Mapping[str, str]
    columns: Mapping[str, str]
    nodes: frozenset[str]
    files: bool

    @classmethod
    def of(cls, frame: DataFrame) -> Origin | None:
        """Return the source of a DataFrame; ``None`` if it has several, or cannot be looked at."""
        jvm_frame: Any = getattr(frame, "_jdf", None)
        if jvm_frame is None:
            return None
        top = plan = jvm_frame.queryExecution().analyzed()
        nodes = set()
        while plan.children().size() == 1:
            nodes.add(plan.nodeName())
            plan = plan.children().apply(0)
        if plan.children().size() or not plan.nodeName().startswith("StreamingRelation"):
            return None
        first = plan.nodeName() == "StreamingRelation"
        source, files = (plan.dataSource().className() if first else plan.sourceName()), False
        if first:
            given_options = plan.dataSource().options()
            options = {key: given_options.apply(key) for key in _each(given_options.keys().toSeq())}
            files = plan.sourceName().startswith("FileSource[")  # Delta, say, has an order of its own
        else:
            options = dict(plan.extraOptions().asCaseSensitiveMap())
        given = {attribute.exprId().id(): attribute.name() for attribute in _each(plan.output())}
        kept = {a.exprId().id(): a.name() for a in _each(top.output())}
        columns = {name: kept[number] for number, name in given.items() if number in kept}
        return cls(source.lower(), options, columns, frozenset(nodes), files)

    def option(self, name: str) -> str:
        """Return an option, or an empty string."""
        return next((value for key, value in self.options.items() if key.lower() == name.lower()), "")


def placed(frame: DataFrame, names: Names) -> tuple[DataFrame, Names]:
    """Return the DataFrame with the writer and position of its rows, and their names, if its source gives them."""
    origin = Origin.of(frame)
    if names["position"] is not None or origin is None:
        return frame, names
    if origin.source == "kafka":
        return _of_kafka(frame, names, origin)
    if origin.source in ("rate", "rate-micro-batch", "ratestreamprovider"):
        return frame, {**names, "position": origin.columns.get("value") if origin.nodes <= _ROW_BY_ROW else None}
    newest_first = origin.option("latestFirst").lower() == "true"
    return (
        _of_files(frame, names) if origin.files and origin.nodes <= _IN_FILES and not newest_first else (frame, names)
    )


def _of_kafka(frame: DataFrame, names: Names, origin: Origin) -> tuple[DataFrame, Names]:
    topic, partition, offset = (origin.columns.get(name) for name in ("topic", "partition", "offset"))
    several = topic is None and ("," in origin.option("subscribe") or not origin.option("subscribe"))
    if partition is None or offset is None or several or not origin.nodes <= _ROW_BY_ROW:
        return frame, names
    if names["writer"] is not None:
        return frame, names if names["writer"].lower() != partition.lower() else {**names, "position": offset}
    number = F.lpad(frame[partition].cast("string"), 5, "0")
    writer = number if topic is None else F.concat(frame[topic], F.lit("/"), number)
    return frame.withColumn(FRAME_WRITER, writer), {**names, "writer": FRAME_WRITER, "position": offset}


def _of_files(frame: DataFrame, names: Names) -> tuple[DataFrame, Names]:
    metadata = frame.metadataColumn("_metadata")
    fields = (
        F.unix_micros(metadata["file_modification_time"]).alias("at"),
        metadata["file_path"].alias("path"),
        metadata["file_block_start"].alias("block"),
    )
    return frame.withColumn(FRAME_PLACE, F.struct(*fields)), {**names, "position": FRAME_PLACE}


def without_order(name: str, frame: DataFrame) -> Refused:
    """Return the refusal of a DataFrame whose rows have no order, with what to do for its source."""
    call = f"pipeline.source({name!r}, …, "
    ways = [
        f"Name columns that number the rows of each writer: {call}writer='…', position='…').",
        f"Or declare that the rows of a batch have no order, and the result may depend on it: {call}unordered=True).",
    ]
    origin = Origin.of(frame)
    if origin is not None and origin.source == "kafka":
        ways.insert(0, "Keep Kafka's topic, partition and offset in the DataFrame, and only select and filter there.")
    if origin is not None and (path := origin.option("path")) and origin.source in _FORMATS:
        columns = columns_text({field.name: field.dataType.simpleString().upper() for field in frame.schema.fields})
        create = f"CREATE STREAM {named(name)} ({columns}) USING {origin.source} OPTIONS (path '{path}')"
        ways.insert(0, f"Read the files by SQL, and compute there what the DataFrame does: {create}.")
    what = f"the rows of the streaming DataFrame {name} have no order, so the result would depend on Spark's batches"
    return refuse("R224", what, " ".join(ways))


def _each(values: Any) -> Iterator[Any]:
    return (values.apply(number) for number in range(values.size()))
