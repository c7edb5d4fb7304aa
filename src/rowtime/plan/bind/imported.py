"""Binds BOUND FROM: a stream of events that takes the bounds of another one (SPEC 9.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from rowtime.core.errors import Place, refuse
from rowtime.operators.events.bounded_events import BoundedEvents
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.events.imported_bounds import ImportedBounds
from rowtime.operators.streams.union_all import UnionAll

if TYPE_CHECKING:
    from rowtime.core.shapes import EventShape
    from rowtime.operators.streams.stream import Stream
    from rowtime.plan.bind.sources import Binder, Sources


def importing(sources: Sources, binder: Binder, source: Stream, shape: EventShape) -> BoundedEvents:
    """The events of ``source``: its rows and the bounds in the merged order, and the gate behind.

    Raises ``Refused`` (R199) where the other stream has no bounds of its own.
    """
    name = source.name
    bounds = ImportedBounds(sources.fresh(f"{name}.imported"), _lender(sources, binder, name, shape), source.columns)
    union = UnionAll(sources.fresh(f"{name}.union"), (replace(source, event_bounds=True), bounds))
    return BoundedEvents(sources.fresh(f"{name}.events"), union, source.columns, shape)


def _lender(sources: Sources, binder: Binder, name: str, shape: EventShape) -> EventStream:
    """The stream whose bounds are taken."""
    other = shape.imports or ""
    found = None if other in sources.catalog.views else sources.catalog.stream(other)
    if found is None or found.shape is None or found.shape.imports is not None:
        what = f"{name} has BOUND FROM {other}, which is no stream with an EVENT SHAPE and bounds of its own"
        raise refuse("R199", what, "Name the stream whose writers send bounds, or that generates them.", Place(1, 1))
    node = sources.named(binder, other, exp.to_table(other)).node
    return cast("EventStream", node)  # it has a shape, and imports nothing
