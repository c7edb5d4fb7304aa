"""Streaming DataFrames given to a pipeline: their declarations, and the streams they define."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.api.relations import EventTime, columns_text, named
from rowtime.core.columns import FRAME_PLACE, FRAME_WRITER
from rowtime.core.errors import Place, Refused, refuse
from rowtime.core.shapes import EventShape
from rowtime.plan.bind.stream_defs import StreamDef, rows_of, stream_of
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreateStream


@dataclass(frozen=True)
class GivenStream:
    """A DataFrame with the ``names`` of its rowtime, writer and position columns, as `Pipeline.source` takes them."""

    given: DataFrame
    named: Mapping[str, str | None]
    early_beyond: timedelta | None = None
    resync_after: int = 0
    early_beyond_arrival: timedelta | None = None
    event_time: EventTime | None = None
    shape: str | None = None
    unordered: bool = False

    @cached_property
    def _placed(self) -> tuple[DataFrame, Mapping[str, str | None]]:
        return (self.given, self.named) if self.unordered else placed(self.given, self.named)

    @property
    def frame(self) -> DataFrame:
        """Return the DataFrame, with the place of each row if its source gives it."""
        return self._placed[0]

    @property
    def names(self) -> Mapping[str, str | None]:
        """Return the names of the columns, with those that the source gives."""
        return self._placed[1]

    def stream(self, name: str) -> StreamDef:
        """Return the stream. Raises ``Refused`` if rows have no order, or if the declarations contradict each other."""
        if not self.given.isStreaming:
            hint = "Read it with spark.readStream, or join it as a table: df.createOrReplaceTempView('…')."
            raise refuse("R124", f"the DataFrame {name} is not a streaming DataFrame", hint)
        if self.unordered and self.named["position"] is not None:
            raise refuse(
                "R224", f"{name} has a position column, and is declared unordered", "Leave one of the two out."
            )
        if not self.unordered and self.names["position"] is None:
            raise without_order(name, self.given)
        shape = None if self.shape is None else self._shape(name, self.shape)
        columns = tuple(
            (field.name, field.dataType.simpleString())
            for field in self.given.schema.fields
            if shape is None or field.name.lower() not in self._of_rows(shape)
        )
        options = tuple((key, value or "") for key, value in self.names.items())
        limits = (self.early_beyond, self.early_beyond_arrival)
        early, ahead = (None if limit is None else limit // timedelta(microseconds=1) for limit in limits)
        resync = rows_of(str(self.resync_after) if self.resync_after else "", Place(1, 1))
        event = None if self.event_time is None else self.event_time.settings()
        if event is not None and event.beyond is None:
            event = replace(event, beyond=early)  # as EARLY BEYOND beside EVENT TIME
        return StreamDef(name, columns, "dataframe", options, None, (), (), (), early, resync, ahead, event, shape)

    def _of_rows(self, shape: EventShape) -> set[str]:
        """Return the columns that describe a row, not its event: the two edges of an event differ in them."""
        described = (self.names["position"], self.names["rowtime"]) if shape.edges else ()
        return {column.lower() for column in described if column} - {column.lower() for column in shape.columns}

    def _shape(self, name: str, text: str) -> EventShape | None:
        """Parse the text after EVENT SHAPE; edges need an order, which a batch without positions lacks."""
        if self.event_time or self.early_beyond or self.early_beyond_arrival:
            raise _together(name, "a guard or an event time", "Leave one of the two out.")
        columns = {field.name: _TIMES.get(field.dataType.typeName(), "STRING") for field in self.given.schema.fields}
        script = parse_script(f"CREATE STREAM {named(name)} ({columns_text(columns)}) EVENT SHAPE {text}")
        if script.problems:
            raise Refused(*script.problems)
        statement, *more = script.statements
        if more:
            raise refuse("R101", f"{text!r}")
        assert isinstance(statement, CreateStream)
        shape = stream_of(statement).shape
        if shape is not None and self.names["position"] is None and (shape.edges or shape.imports is not None):
            raise _together(name, "rows without an order", "Name the column that has the position of each row.")
        return shape


_TIMES = {
    **dict.fromkeys(("byte", "short", "integer", "long"), "BIGINT"), **dict.fromkeys(("float", "double"), "DOUBLE"),
    **dict.fromkeys(("decimal", "decimal(38,18)"), "DOUBLE"), "boolean": "BOOLEAN", "timestamp": "TIMESTAMP",
}  # fmt: skip
"""The types that an event shape needs to know: it checks for times; every other type is STRING."""


def _together(name: str, what: str, hint: str) -> Refused:
    return refuse("R190", f"{what} beside the event shape of {name} is not supported yet", hint)


# The order of the rows of a streaming DataFrame that names no position: its source gives it, if the rows keep it.
#
# Kafka numbers the records of a partition, ``rate`` its rows, and files have an order by their times of change and
# names, each from its first row on. Spark passes this on if it computes the DataFrame row by row. After an aggregate, a
# join, a union or a repartition, nothing says which row of a batch came first.

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
