"""Streaming DataFrames given to a pipeline: their declarations, and the streams they define."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from rowtime.api.derived_places import placed, without_order
from rowtime.api.relations import EventTime, columns_text, named
from rowtime.core.errors import Place, Refused, refuse
from rowtime.core.shapes import EventShape
from rowtime.plan.bind.stream_defs import StreamDef, rows_of, stream_of
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreateStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
