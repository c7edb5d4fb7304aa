"""Streams and queries as Python objects: each is SQL text, bound and checked like any other.

Columns and expressions are SQL text, durations are ``timedelta``. Each method has the name of its clause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from rowtime.core.errors import Refused
from rowtime.plan.bind.event_time import EventTimeSettings, settings_of
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreateStream

if TYPE_CHECKING:
    from rowtime.api.pipeline import Pipeline
    from rowtime.runtime.sinks.contract import Batch


@dataclass(frozen=True)
class EventTime:
    """Declares which column is the event time, and how its bound is made.

    ``resolution``: the unit of whole numbers (SECONDS, MILLISECONDS, …). ``mode``: OUTPUT_EVENT_TIME, INPUT_WATERMARK
    or MANUAL. ``early_beyond``: a time that lies further above the greatest time of its writer is refused. Settings
    that are left out have the defaults of SQL.
    """

    column: str
    resolution: str | None = None
    lag: timedelta | None = None
    minimum_gap: timedelta | None = None
    mode: str | None = None
    early_beyond: timedelta | None = None

    def __str__(self) -> str:
        settings = {
            "RESOLUTION": self.resolution,
            "LAG": self.lag and interval(self.lag),
            "MINIMUM GAP": None if self.minimum_gap is None else interval(self.minimum_gap),
            "MODE": self.mode,
            "EARLY BEYOND": None if self.early_beyond is None else interval(self.early_beyond),
        }
        return f"EVENT TIME ({', '.join([named(self.column), *_given(settings)])})"

    def settings(self) -> EventTimeSettings:
        """Return the settings of the event time of a stream; raises ``Refused`` if SQL would refuse them."""
        script = parse_script(f"CREATE STREAM s (x INT) {self}")
        if script.problems:
            raise Refused(*script.problems)
        (statement,) = script.statements
        assert isinstance(statement, CreateStream)
        assert statement.event_time is not None
        return settings_of(statement.event_time, source=True)


@dataclass(frozen=True)
class Folded:
    """Represents an aggregate: a Python function over the values of a column in a group, in stream order.

    ``returns`` is the Spark type of its result.
    """

    function: Callable[[list[Any]], Any]
    column: str
    returns: str


@dataclass(frozen=True)
class Relation:
    """Represents a stream, view or query of ``pipeline``; ``source`` is its text after FROM."""

    pipeline: Pipeline
    source: str
    text: str = ""

    @property
    def sql(self) -> str:
        """Return the query as SQL."""
        return self.text or f"SELECT STREAM * FROM {self.source}"  # noqa: S608 - the user's own query

    def _query(self, text: str) -> Self:
        return type(self)(self.pipeline, *queried(text))

    def where(self, condition: str) -> Self:
        """Keep the rows for which a condition is true."""
        return self._query(f"SELECT STREAM * FROM {self.source} WHERE {condition}")  # noqa: S608 - the user's own query

    def select(self, *columns: str, **computed: str) -> Self:
        """Select columns, and expressions under names."""
        items = [*map(named, columns), *(f"{text} AS {named(name)}" for name, text in computed.items())]
        return self._query(f"SELECT STREAM {', '.join(items)} FROM {self.source}")  # noqa: S608 - the user's own query

    def union_all(self, *others: Relation) -> Self:
        """Merge these rows with those of other relations by rowtime."""
        return self._query(" UNION ALL ".join([self.sql, *(other.sql for other in others)]))

    def view(self, name: str, *, event_time: EventTime | None = None) -> Self:
        """Name the query, and optionally declare its event time."""
        clause = f" {event_time}" if event_time else ""
        self.pipeline.sql(f"CREATE VIEW {named(name)}{clause} AS {self.sql}")
        return type(self)(self.pipeline, named(name))

    @property
    def rejected(self) -> Relation:
        """Return the rows that the gate of this stream or view refused."""
        return Relation(self.pipeline, f"{self.source}.rejected")

    def panes(  # noqa: PLR0913 - the settings of PANES, each a keyword
        self,
        time: str,
        *,
        duration: timedelta,
        period: timedelta | None = None,
        offset: timedelta | None = None,
        discard_age: timedelta | None = None,
        keys: Sequence[str] = (),
    ) -> Panes:
        """Group by windows of the event time, and by keys."""
        spans = {"DURATION": duration, "PERIOD": period, "OFFSET": offset, "DISCARD AGE": discard_age}
        settings = {word: None if span is None else interval(span) for word, span in spans.items()}
        grouped = [f"PANES({', '.join([named(time), *_given(settings)])})", *map(named, keys)]
        return Panes(self, ", ".join(grouped), tuple(keys))

    def aggregated(self, value: str | Folded) -> str:
        """Return an aggregate as SQL text; a Python function is registered with the pipeline."""
        if isinstance(value, str):
            return value
        name = self.pipeline.python_function(value.function, value.returns)
        return f"{name}(COLLECT_LIST({value.column}))"

    def into(self, stream: str) -> None:
        """Write the rows to a stream of the pipeline: a topic, a table, files."""
        self.pipeline.sql(f"INSERT INTO {named(stream)} {self.sql}")

    def to(self, function: Callable[[Batch], object] | None = None) -> None:
        """Send the rows to a function, once per tick; without a function, to the console."""
        self.pipeline.sql(self.sql)
        if function is not None:
            self.pipeline.sink("result", function)


@dataclass(frozen=True)
class Panes:
    """Panes of ``below``, to be aggregated."""

    below: Relation
    grouped: str
    keys: tuple[str, ...]

    def aggregate(
        self, *, having: str | None = None, emit_changes: bool = False, emit_every: timedelta | None = None,
        **values: str | Folded,
    ) -> Relation:  # fmt: skip
        """Aggregate each pane: it has the named aggregates, PANE_START, PANE_TIMING, …, or `Folded` functions."""
        computed = [f"{self.below.aggregated(value)} AS {named(name)}" for name, value in values.items()]
        text = f"SELECT STREAM {', '.join([*map(named, self.keys), *computed])} FROM {self.below.source}"  # noqa: S608 - as above
        text += f" GROUP BY {self.grouped}"
        text += f" HAVING {having}" if having else ""
        text += " EMIT CHANGES" if emit_changes else ""
        text += f" EMIT EVERY {interval(emit_every)}" if emit_every else ""
        return self.below._query(text)  # noqa: SLF001 - the module's own


def queried(text: str) -> tuple[str, str]:
    """Return a query twice: as the text after FROM, and as it is."""
    return f"({text}) AS q", text


def columns_text(columns: Mapping[str, str]) -> str:
    """Return columns with their types, as in a definition."""
    return ", ".join(f"{named(name)} {kind}" for name, kind in columns.items())


def named(name: str) -> str:
    """Return a name as SQL text, quoted if necessary."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def interval(span: timedelta) -> str:
    """Return a duration as SQL text."""
    micros = span // timedelta(microseconds=1)
    sign, whole, part = "-" if micros < 0 else "", abs(micros) // 1_000_000, abs(micros) % 1_000_000
    return f"INTERVAL '{sign}{whole}{f'.{part:06d}'.rstrip('0') if part else ''}' SECOND"


def _given(settings: Mapping[str, str | timedelta | None]) -> list[str]:
    return [f"{word} {value}" for word, value in settings.items() if value]
