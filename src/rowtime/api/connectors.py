"""Connectors: choose the source of a stream and the sink of a pump by their format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rowtime.api.given_streams import GivenStream
from rowtime.client.home import Home
from rowtime.core.errors import refuse
from rowtime.core.stores import Place
from rowtime.core.time import wall_clock
from rowtime.expr.store_assignment import as_read
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.operators.streams.stream import Stream
from rowtime.plan.bind.ledger import LEDGER
from rowtime.plan.bind.sink_options import TopicOptions, partitions_of
from rowtime.plan.formats.lake import LAKES, STARTS
from rowtime.plan.formats.registry import FRAMED, RegistryOptions, form_of
from rowtime.plan.program import Program
from rowtime.runtime.claims import pump_of
from rowtime.runtime.sinks.callables import ConsoleSink, FunctionSink, MemorySink
from rowtime.runtime.sinks.contract import Batch, Sink
from rowtime.runtime.sinks.directory import DirectorySink, folder_at
from rowtime.runtime.sinks.stream_log import StreamLogSink, writer_of
from rowtime.runtime.sources.contract import Repeatable
from rowtime.runtime.sources.files import FilesSource
from rowtime.runtime.sources.ledger import LedgerSource
from rowtime.runtime.sources.rate import RateSource
from rowtime.runtime.sources.stream_log import StreamLogSource
from rowtime.state.checkpoint import Checkpoint, folder_of


def source_of(
    node: Stream, place: Checkpoint, program: Program, home: Home, given: Mapping[str, GivenStream]
) -> Repeatable:
    """Return the source of a stream; its notes are in a checkpoint. ``given``: streams from Python."""
    kind, options = node.source[0], dict(node.source[1])
    columns = [(column.name, as_read(column.type)) for column in node.columns]
    notes = place.folder / "sources" / folder_of(node.name)
    if kind == "log":
        filled = (n for n in program.sinks if dict(n.options).get("stream") == node.name)
        pumps = [writer_of(pump_of(sink.name)) for sink in filled]
        return StreamLogSource(home.log_path(node.name), columns, exclude=pumps, from_now=node.from_now)
    if kind in ("parquet", "csv", "json"):
        return FilesSource(kind, options, columns, notes, from_now=node.from_now)
    if kind in ("kafka", *LAKES):
        return _with_versions(node, columns, notes, home)
    if kind == "rate":
        return RateSource(options, wall_clock)
    if kind == LEDGER.format:
        return LedgerSource(node.name, place.journal, program, notes, from_now=node.from_now)
    if kind == "dataframe":
        from rowtime.runtime.sources.batches import BatchSource  # noqa: PLC0415

        batches = given[node.name]
        return BatchSource(batches.frame, batches.names, wall_clock, [name for name, _ in columns])
    raise refuse("R210", f"{kind} cannot be read as a stream")


def sink_of(node: SinkNode, home: Home, functions: Mapping[str, Callable[[Batch], object]]) -> Sink:
    """Return the sink of a program's output; ``functions``: the sinks that are Python functions."""
    options = dict(node.options)
    if node.format in ("parquet", "csv", "json"):
        if "path" not in options:
            raise refuse("R207", f"a {node.format} sink needs a path", "Add OPTIONS (path '/data/out').")
        split = partitions_of(node.format, node.options)
        return DirectorySink(folder_at(options["path"]), pump_of(node.name), split)
    if node.format == "log":
        return StreamLogSink(home, options["stream"], pump_of(node.name))
    if node.format == "function":
        return FunctionSink(functions[options["function"]], node.name)
    if node.format == "memory":
        return MemorySink(node.name)
    if node.format in ("kafka", "jdbc", *LAKES):
        return _server(node, home)
    if node.format == "console":
        result = functions.get("result")
        return FunctionSink(result, node.name) if result else ConsoleSink(node.name)
    raise refuse("R210", f"{node.format} cannot be written to")


def _server(node: SinkNode, home: Home) -> Sink:
    """Return a sink on a server or in a lake; its client is imported only here."""
    if node.format == "jdbc":
        from rowtime.runtime.sinks.database import JdbcSink  # noqa: PLC0415

        return JdbcSink(node)
    if node.format in LAKES:
        from rowtime.runtime.sinks.lakes import lake_sink  # noqa: PLC0415

        return lake_sink(node)
    from rowtime.runtime.schema_checks import choice_of  # noqa: PLC0415
    from rowtime.runtime.sinks.kafka_topic import KafkaSink  # noqa: PLC0415

    choice = choice_of(node, home.path)
    if TopicOptions.of(options := dict(node.options)).transactions:
        from rowtime.runtime.sinks.kafka_exactly_once import TransactionalSink  # noqa: PLC0415

        return TransactionalSink(options, options["stream"], choice)
    return KafkaSink(options, options["stream"], choice)


def _with_versions(node: Stream, columns: list[tuple[str, str]], notes: Place, home: Home) -> Repeatable:
    """Return a source whose start version is an option."""
    (kind, given), starts = node.source, "startingOffsets" if node.source[0] == "kafka" else STARTS
    options = {name: value for name, value in given if not node.from_now or name.lower() != starts.lower()}
    options |= {starts: "latest"} if node.from_now else {}
    if kind == "kafka":
        return _kafka(options, columns, notes, home)
    return _lake(node.name, kind, options, columns, notes)


def _lake(name: str, kind: str, options: Mapping[str, str], columns: list[tuple[str, str]], notes: Place) -> Repeatable:
    from rowtime.runtime.sources.lake import LakeSource  # noqa: PLC0415
    from rowtime.runtime.sources.lakes import history_of  # noqa: PLC0415

    return LakeSource(name, history_of(kind, options), options, columns, notes)


def _kafka(options: Mapping[str, str], columns: list[tuple[str, str]], notes: Place, home: Home) -> Repeatable:
    from rowtime.runtime.schemas.pinned import PinnedSchemas  # noqa: PLC0415
    from rowtime.runtime.schemas.registry import registry_of  # noqa: PLC0415
    from rowtime.runtime.sources.kafka import KafkaSource  # noqa: PLC0415

    form = form_of(options.items(), "format")
    framed = form in FRAMED
    schemas = PinnedSchemas(registry_of(RegistryOptions.of(options), home.path), notes) if framed else None
    return KafkaSource(options, columns, form, schemas=schemas)
