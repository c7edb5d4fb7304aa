"""The first start: checks whether the schemas of a registry fit the columns that a script declares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rowtime.core.errors import Problem, Refused
from rowtime.core.stores import Place
from rowtime.expr.store_assignment import as_read
from rowtime.operators.sinks.sink import Sink
from rowtime.operators.streams.stream import Stream
from rowtime.plan.bind.sink_options import TopicOptions
from rowtime.plan.bind.stream_defs import StreamDef, checks_of
from rowtime.plan.formats.registry import AVRO, FRAMED, KIND_OF, RegistryOptions, form_of
from rowtime.plan.program import Program
from rowtime.runtime.schemas.avro import Unreadable, framed, loaded, types_of
from rowtime.runtime.schemas.fitting import Misfit, absent, misfits
from rowtime.runtime.schemas.json_schema import KIND as JSON
from rowtime.runtime.schemas.json_schema import json_misfits
from rowtime.runtime.schemas.protobuf import KIND as PROTOBUF
from rowtime.runtime.schemas.protobuf import compiled, installed
from rowtime.runtime.schemas.protobuf_shape import endless_misfits, shape_of
from rowtime.runtime.schemas.registry import Schema, registry_of
from rowtime.runtime.sinks.kafka_framing import Choice, record_of
from rowtime.runtime.sources.kafka import assigned
from rowtime.runtime.sources.lake_columns import type_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def schema_problems(program: Program, home: Place, spark: SparkSession) -> list[Problem]:
    """Return the mismatches (R548, R549).

    Raises ``Failure``: R501 if a registry does not answer, R502 without Spark's Avro, or Protobuf's compiler.
    """
    problems = []
    for node in program.streams:
        if node.source[0] == "kafka" and form_of(node.source[1], "format") in FRAMED:
            _loaded(spark, node.source[1], "format")
            defined = program.catalog.stream(node.name)
            assert defined is not None
            problems += list(_of_source(node, defined, home, spark))
    for sink in program.sinks:
        if (choice := choice_of(sink, home)) is not None:
            _loaded(spark, sink.options, "value.format")
            defined = program.catalog.stream(dict(sink.options)["stream"])
            assert defined is not None
            problems += _of_sink(sink, defined, choice, spark)
    return problems


def _loaded(spark: SparkSession, options: Iterable[tuple[str, str]], option: str) -> None:
    form = form_of(options, option)
    if form in AVRO:
        loaded(spark)
    elif KIND_OF[form] == PROTOBUF:
        installed()


def choice_of(node: Sink, home: Place) -> Choice | None:
    """Return the chooser of the schema for a sink's records, if they have one."""
    if node.format != "kafka" or form_of(node.options, "value.format") not in FRAMED:
        return None
    options = RegistryOptions.of(dict(node.options))
    topic, kind = TopicOptions.of(dict(node.options)).topic, KIND_OF[form_of(node.options, "value.format")]
    return Choice(registry_of(options, home), options, topic, kind)


def _of_sink(node: Sink, defined: StreamDef, choice: Choice, spark: SparkSession) -> list[Problem]:
    """Check a sink; the registry gets the schema here, before the first row."""
    types = {name: type_of(as_read(kind)) for name, kind in defined.columns}
    required = [*defined.required, node.rowtime]
    try:
        choice.framing_for(spark, record_of(node, types), required, checks_of(defined))
    except Refused as refused:
        place = defined.places.get("")
        named = f"the stream {defined.name}: "
        return [replace(problem, place=place, message=named + problem.message) for problem in refused.problems]
    return []


def _of_source(node: Stream, defined: StreamDef, home: Place, spark: SparkSession) -> Iterator[Problem]:
    """Check a source; a subject without a schema cannot be checked before its records come."""
    options = RegistryOptions.of(dict(node.source[1]))
    registry, given = registry_of(options, home), {name.lower(): value for name, value in node.source[1]}
    columns = [(column.name, as_read(column.type)) for column in node.columns]
    name_of_rowtime = given.get("rowtime.column") or None
    rowtime = next((name for name, _ in columns if name.lower() == (name_of_rowtime or "").lower()), name_of_rowtime)
    for subject in _subjects(options, given):
        schema = registry.latest(subject)
        if schema is None:
            continue
        kind = KIND_OF[form_of(node.source[1], "format")]
        if kind == PROTOBUF:
            misfits = _wrong_message(schema, options.message, columns, rowtime)
        else:
            misfits = (
                json_misfits(columns, rowtime, schema) if kind == JSON else _wrong(spark, schema, columns, rowtime)
            )
        for wrong in misfits if schema.kind == kind else _of_another(schema, kind):
            what = f"the stream {node.name}: in the schema of {subject} {wrong.what}"
            place = defined.places.get(wrong.column) or defined.places.get("")
            yield Problem("R548", what, place, wrong.hint)


def _subjects(options: RegistryOptions, given: dict[str, str]) -> list[str]:
    if options.subject:
        return [options.subject]
    topics = [topic.strip() for topic in given.get("subscribe", "").split(",") if topic.strip()]
    topics += sorted({partition.topic for partition in assigned(given["assign"])}) if "assign" in given else []
    return [options.subject_of(topic) for topic in topics]


def _of_another(schema: Schema, kind: str) -> Iterator[Misfit]:
    hint = f"Name the subject of a schema of {kind}: schema.registry.subject '…'."
    yield Misfit("", f"the kind is {schema.kind}, not {kind}", hint)


def _wrong(
    spark: SparkSession, schema: Schema, columns: Sequence[tuple[str, str]], rowtime: str | None
) -> Iterator[Misfit]:
    try:
        types = types_of(spark, framed(schema))
    except Unreadable as error:
        yield Misfit("", f"no record can be read: {error}", "Read the topic with format 'raw', as bytes.")
        return
    yield from absent(columns, rowtime, types)
    yield from misfits(columns, rowtime, types)


def _wrong_message(
    schema: Schema, name: str, columns: Sequence[tuple[str, str]], rowtime: str | None
) -> Iterator[Misfit]:
    try:
        file = compiled(schema)
        shape = shape_of(file.message(file.find(name)))
    except Unreadable as error:
        yield Misfit("", f"no record can be read: {error}", "Read the topic with format 'raw', as bytes.")
        return
    endless = list(endless_misfits(columns, shape))
    yield from endless
    left = [(column, kind) for column, kind in columns if column not in {misfit.column for misfit in endless}]
    yield from absent(left, rowtime, shape.types)
    yield from misfits(left, rowtime, shape.types)
