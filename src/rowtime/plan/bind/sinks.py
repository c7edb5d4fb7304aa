"""The sinks of a script: where pumps and queries write, and in which order.

A topic of Kafka has one order, that of its writer, so the pumps that write into it are merged first: a stream with
several writers is their merge (semantics 2.5). Elsewhere each pump has a sink of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rowtime.core.errors import Place, Refused, refuse
from rowtime.operators.contract import Operator
from rowtime.operators.contract.requirement import PLACED
from rowtime.operators.sinks.sink import Sink
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.emit import as_rows
from rowtime.plan.bind.pump_edge import pump_name
from rowtime.plan.bind.sink_options import LakeOptions, fitting, partitions_of
from rowtime.plan.bind.sources import Binder, Sources
from rowtime.plan.bind.stream_defs import TEMPORARY, StreamDef
from rowtime.plan.finite import FINITE
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.formats.types import no_partitions, unheld
from rowtime.sql.statements import CreatePump, Options


@dataclass
class SinkBinder:
    """Binds pumps to sinks; ``functions`` are names of Python functions that pumps can write to."""

    sources: Sources
    binder: Binder
    functions: Collection[str]
    topics: dict[tuple[str, str], str] = field(default_factory=dict)

    def pumps(self) -> list[list[CreatePump]]:
        """Return the pumps that run; pumps that share a sink are together."""
        groups: dict[str, list[CreatePump]] = {}
        for name, pump in self.sources.catalog.pumps.items():
            if pump.started and not self.is_inner(pump):
                target = pump.target.text.lower()
                stream = None if target in self.functions else self.sources.catalog.stream(target)
                shared = stream is not None and stream.format == "kafka"
                groups.setdefault(f"stream {target}" if shared else f"pump {name}", []).append(pump)
        return list(groups.values())

    def is_inner(self, pump: CreatePump) -> bool:
        """Return True for a pump into a stream that only queries of its script read."""
        target = pump.target.text.lower()
        stream = None if target in self.functions else self.sources.catalog.stream(target)
        return stream is not None and stream.format == TEMPORARY

    def of_pumps(self, pumps: Sequence[CreatePump]) -> Sink:
        """Return the sink of a pump, or of the pumps into one topic. Raises ``Refused``."""
        first = pumps[0]
        target, place = first.target.text.lower(), first.target.place
        nodes = [self.sources.pump(self.binder, pump).node for pump in pumps]
        if target in self.functions:
            return self.sink(f"{pump_name(first)}.sink", nodes[0], "function", (("function", target),))
        stream = self.sources.catalog.stream(target)
        if stream is None:
            raise Refused(self.sources.catalog.unknown(first.target.text, place))
        if unknown := self.sources.catalog.unknown_secrets(stream, place):
            raise Refused(*unknown)
        if stream.format == "kafka":
            self._one_stream(stream, place)
        name, node = pump_name(first), nodes[0]
        if len(pumps) > 1:
            edge = self.sources.enforcer.edge
            placed = (edge(node, PLACED, f"{pump_name(pump)}.merge") for node, pump in zip(nodes, pumps, strict=True))
            name, node = stream.name, UnionAll(self.sources.fresh(f"{stream.name}.pumps"), tuple(placed))
        sink = self.sink(f"{name}.sink", node, stream.format, (*stream.options, ("stream", stream.name)))
        columns = [*([(sink.rowtime, "TIMESTAMP")] if sink.rowtime else []), *stream.columns]
        split = partitions_of(sink.format, sink.options)
        in_files = [column for column in columns if column[0] not in split]
        if wrong := [
            *unheld(sink.format, in_files, sink.options, stream.required, place),
            *no_partitions(sink.format, columns, sink.options, place),
        ]:
            raise Refused(*wrong)
        return fitting(sink, place, stream.required)

    def _one_stream(self, stream: StreamDef, place: Place) -> None:
        """Refuse (R546) a second stream with the same topic: their rows would not be in one order."""
        given: Mapping[str, str] = {name.lower(): value for name, value in stream.options}
        topic = given.get("kafka.bootstrap.servers", ""), given.get("topic", "")
        first = self.topics.setdefault(topic, stream.name)
        if first != stream.name:
            what = f"pumps write into {first} and into {stream.name}, and both are the topic {topic[1]}"
            raise refuse("R546", what, f"Let both pumps write into {first}: then their rows are in one order.", place)

    def sink(self, name: str, node: Operator, kind: str, options: Options) -> Sink:
        """Return a sink for the rows of an operator, in stream order if that matters. Raises ``Refused`` (R133)."""
        node = as_rows(self.sources.fresh, node, name)
        choice = dict(options).get("ordered", "").lower()
        ordered = choice != "false" and (choice == "true" or not _is_set(kind, options, node))
        rowtime = dict(options).get("rowtime.column", "rowtime")
        if rowtime and rowtime.lower() in {column.lower() for column in node.emits().names}:
            hint = "Rename it, or set OPTIONS (rowtime.column 'other'), or '' for none."
            raise refuse("R133", f"the result has a column {rowtime}, and ROWTIME would be written to it", hint)
        sink = Sink(self.sources.fresh(name), node, kind, options, ordered, rowtime)
        return cast("Sink", self.sources.enforced(sink, name))


def _is_set(kind: str, options: Options, node: Operator) -> bool:
    """Return True if readers treat the output as a set, so that sorting its rows is not worthwhile.

    A directory is a set if it has the rows of a GROUP BY, which are emitted when they are final. A lake table is a set
    unless rows replace others with their key.
    """
    if kind in LAKES:
        return LakeOptions.of(dict(options)).mode == "append"
    return kind in FINITE and node.gives_groups()
