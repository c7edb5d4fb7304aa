"""OpenLineage: events that say which datasets a run reads and writes, and from which columns each column is made.

OpenLineage's own configuration decides where events go; nothing is sent unless a run is asked to.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from rowtime.client.home import Home
from rowtime.core.columns import ROWTIME
from rowtime.core.errors import headline, refuse
from rowtime.core.log import LOG
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.observe.observer import Observer, Run
from rowtime.operators.contract import Operator
from rowtime.operators.contract.lineage import AGGREGATION, IDENTITY, TRANSFORMATION, Derivation
from rowtime.plan.required_columns import columns_required_of

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    from rowtime.operators.sinks.sink import Sink
    from rowtime.runtime.report import TickReport

EVERY: Final = 60.0  # seconds between two events of a running run
PATIENCE: Final = 10.0  # seconds that the end of a run waits for events that are being sent
PRODUCER: Final = "https://pypi.org/project/rowtime"
NAMESPACE: Final = "OPENLINEAGE_NAMESPACE"


class Client(Protocol):
    """A sender of events: an ``OpenLineageClient``."""

    def emit(self, event: Any) -> None:
        """Send one."""
        ...


class Lineage(Observer):
    """Sends events of a run: START, RUNNING once a minute at most, COMPLETE or FAIL.

    ``client``: the sender; by default OpenLineage's own, by its configuration. Events are sent in a thread of their
    own, so a slow or missing server delays no tick. Raises ``Refused`` (R610) if OpenLineage is not installed.
    """

    def __init__(self, home: Home, client: Client | None = None) -> None:
        self._client = _new_client() if client is None else client
        self._home = home
        self._sender = ThreadPoolExecutor(1, "rowtime-lineage")
        self._last: Future[None] | None = None
        self._last_event = 0.0
        self._rows_in: Counter[str] = Counter()
        self._rows_out: Counter[str] = Counter()

    def given_up(self) -> None:
        """Do nothing: there is nothing to send."""
        self._sender.shutdown(wait=False)

    def started(self, run: Run) -> None:
        """Send START."""
        self._last_event = time.monotonic()
        self._send(run, "START")

    def ticked(self, run: Run, report: TickReport, progress: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Send RUNNING, with the rows so far."""
        self._rows_in.update(report.taken)
        self._rows_out.update(report.written)
        if time.monotonic() - self._last_event >= EVERY:
            self._last_event = time.monotonic()
            self._send(run, "RUNNING")

    def ended(self, run: Run, error: BaseException | None) -> None:
        """Send COMPLETE, or FAIL with the message; do not wait for events that cannot be sent soon."""
        self._send(run, "COMPLETE" if error is None else "FAIL", error)
        if self._last is not None:
            with suppress(TimeoutError):
                self._last.result(PATIENCE)
        self._sender.shutdown(wait=False, cancel_futures=True)

    def _send(self, run: Run, kind: str, error: BaseException | None = None) -> None:
        event = self._event(run, kind, error)
        self._last = self._sender.submit(self._emit, event)

    def _emit(self, event: Any) -> None:
        try:
            self._client.emit(event)
        except Exception as error:  # noqa: BLE001 - whatever a transport raises, the run continues
            LOG.warning("an event was not sent to OpenLineage: %s", headline(error), extra={"event": "lineage"})

    def _event(self, run: Run, kind: str, error: BaseException | None) -> Any:
        from openlineage.client.event_v2 import Job, RunEvent, RunState  # noqa: PLC0415 - an extra
        from openlineage.client.event_v2 import Run as RunOfEvent  # noqa: PLC0415

        job = job_of(run)
        return RunEvent(
            eventTime=datetime.now(UTC).isoformat(),
            eventType=RunState[kind],
            run=RunOfEvent(run.run_id, _run_facets(error)),
            job=Job(job.namespace, job.name, _job_facets(run)),
            inputs=self._inputs(run, job),
            outputs=self._outputs(run, job),
            producer=PRODUCER,
        )

    def _dataset(self, name: str, source: tuple[str, Sequence[tuple[str, str]]], run: Run, job: Dataset) -> Dataset:
        secrets = run.engine.program.secrets
        dataset = dataset_of(name, source[0], dict(source[1]), self._home, job)
        return Dataset(secrets.hide(dataset.namespace), secrets.hide(dataset.name))

    def _inputs(self, run: Run, job: Dataset) -> list[InputDataset]:
        from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415
        from openlineage.client.facet_v2 import input_statistics_input_dataset as statistics  # noqa: PLC0415

        inputs = []
        for node in _sources(run):
            place = self._dataset(node.name, node.source, run, job)  # type: ignore[attr-defined]  # it reads something
            rows = statistics.InputStatisticsInputDatasetFacet(rowCount=self._rows_in[node.name])
            facets = _schema([(column.name, column.type) for column in node.emits().of_users])
            inputs.append(InputDataset(*place, facets=facets, inputFacets={"inputStatistics": rows}))
        return inputs

    def _outputs(self, run: Run, job: Dataset) -> list[OutputDataset]:
        from openlineage.client.event_v2 import OutputDataset  # noqa: PLC0415
        from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics  # noqa: PLC0415

        places = {node.name: self._dataset(node.name, node.source, run, job) for node in _sources(run)}  # type: ignore[attr-defined]
        lineage, outputs = ColumnLineage(), []
        for node in run.engine.program.sinks:
            place = self._dataset(node.name, (node.format, node.options), run, job)
            rows = statistics.OutputStatisticsOutputDatasetFacet(rowCount=self._rows_out[node.name])
            rowtime = [(node.rowtime, "TIMESTAMP")] if node.rowtime else []
            written = zip(node.emits().names, run.engine.types.of(node), strict=True)
            facets = _schema([*rowtime, *written]) | {"columnLineage": _columns(node, lineage, places)}
            outputs.append(OutputDataset(*place, facets=facets, outputFacets={"outputStatistics": rows}))
        return outputs


def lineage_of(client: Literal[True] | Client | None, home: Home) -> Lineage | None:
    """Return the sender for a run: by OpenLineage's configuration, with a client, or none."""
    if not client:
        return None
    return Lineage(home, None if client is True else client)


def job_of(run: Run) -> Dataset:
    """Return the job: the last part of the checkpoint's path, in OpenLineage's namespace, or ``rowtime``."""
    place = str(run.engine.checkpoint.folder).rstrip("/")
    return Dataset(os.environ.get(NAMESPACE) or "rowtime", place.rpartition("/")[2] or place)


def _sources(run: Run) -> list[Operator]:
    """Return the streams and tables that are read."""
    return [node for node in run.engine.program.operators if not node.inputs and hasattr(node, "source")]


def _run_facets(error: BaseException | None) -> dict[str, Any]:
    from openlineage.client.facet_v2 import error_message_run, processing_engine_run  # noqa: PLC0415

    engine = processing_engine_run.ProcessingEngineRunFacet(version=version("rowtime"), name="rowtime")
    failed = {} if error is None else {"errorMessage": error_message_run.ErrorMessageRunFacet(str(error), "Python")}
    return {"processing_engine": engine, **failed}


def _job_facets(run: Run) -> dict[str, Any]:
    from openlineage.client.facet_v2 import job_type_job, sql_job  # noqa: PLC0415

    kind = job_type_job.JobTypeJobFacet(processingType="STREAMING", integration="ROWTIME", jobType="QUERY")
    return {"jobType": kind, "sql": sql_job.SQLJobFacet(query=run.engine.program.written, dialect="rowtime")}


def _schema(columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset  # noqa: PLC0415

    fields = [schema_dataset.SchemaDatasetFacetFields(name, kind.upper() or None) for name, kind in columns]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields)}


def _columns(node: Sink, lineage: ColumnLineage, places: Mapping[str, Dataset]) -> Any:
    from openlineage.client.facet_v2 import column_lineage_dataset as facets  # noqa: PLC0415

    def field(place: Place, kind: str, subtypes: Sequence[str]) -> facets.InputField:
        how = [facets.Transformation(kind, subtype) for subtype in subtypes]
        return facets.InputField(*places[place[0]], place[1], how)

    sources = {name: lineage.sources_of(node, ROWTIME if name == node.rowtime else name) for name in node.columns}
    fields = {
        name: facets.Fields([field(place, "DIRECT", [how]) for place, how in sorted(of.items())])
        for name, of in sources.items()
    }
    decides = sorted(lineage.decides(node).items())
    return facets.ColumnLineageDatasetFacet(fields, [field(place, "INDIRECT", sorted(what)) for place, what in decides])


def _new_client() -> Client:
    try:
        from openlineage.client import OpenLineageClient  # noqa: PLC0415 - an extra
    except ImportError:
        what = "lineage needs the package openlineage-python, which is not installed"
        raise refuse("R610", what, "Install it: pip install 'rowtime[openlineage]'.") from None
    client: Client = OpenLineageClient()
    return client


class Dataset(NamedTuple):
    """A stream, table or sink in OpenLineage's naming: a namespace and a name."""

    namespace: str
    name: str


def dataset_of(name: str, kind: str, given: Mapping[str, str], home: Home, job: Dataset) -> Dataset:
    """Return the dataset of a stream, table or sink of the plan by its format and options.

    Internal ones (functions, memory, DataFrames) are a part of the ``job``.
    """
    options = {option.lower(): value for option, value in given.items()}
    if kind == "log":
        return _at(str(home.log_path(options.get("stream", name))))
    if kind == "kafka":
        server = options.get("kafka.bootstrap.servers", "").partition(",")[0]
        return Dataset(
            f"kafka://{server}", options.get("topic") or options.get("subscribe") or options.get("stream", name)
        )
    if kind == "jdbc":
        return _of_database(options)
    if kind == "iceberg":
        where = options.get("catalog.uri") or options.get("catalog.warehouse") or options.get("catalog", "")
        return Dataset(f"iceberg://{_without_login(where)}", options.get("table", name))
    if "path" in options:
        return _at(options["path"])
    return Dataset(job.namespace, f"{job.name}/{name}")


def _at(path: str) -> Dataset:
    place = place_of(path)
    if isinstance(place, ObjectPlace):
        return Dataset(place.bucket.url, place.key)
    return Dataset("file", str(Path(path).absolute()))


def _of_database(options: Mapping[str, str]) -> Dataset:
    url = urlsplit(options.get("url", "").removeprefix("jdbc:"))
    scheme = {"postgresql": "postgres"}.get(url.scheme, url.scheme)
    parts = [url.path.strip("/"), options.get("dbtable", "")]
    return Dataset(f"{scheme}://{_without_login(url.netloc)}", ".".join(part for part in parts if part))


def _without_login(where: str) -> str:
    """Return a URL or a host without user, password, and query string."""
    before, slashes, rest = where.rpartition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{before}{slashes}{host.rpartition('@')[2]}{slash}{path}"


# Which columns of streams and tables a sink's columns are made from, and which decide about its rows.
#
# Operators declare this (`Operator.made_from`, `decided_by`). A column without a declaration counts as made from all
# columns that the operator reads, so lineage names too much rather than too little.

_RANKS: Final = (IDENTITY, TRANSFORMATION, AGGREGATION)
_TIME: Final = "rowtime.column"  # the option of a stream that names the rowtime column

Place = tuple[str, str]  # the name of a stream or table in the plan, and a column of it


@dataclass
class ColumnLineage:
    """The lineage of one plan; results are cached."""

    _sources: dict[Place, dict[Place, str]] = field(default_factory=dict)

    def sources_of(self, node: Operator, column: str) -> Mapping[Place, str]:
        """Return the columns of streams and tables from which a column of an operator is made, and how."""
        key = (node.name, column)
        if key not in self._sources:
            self._sources[key] = {}
            sources: dict[Place, str] = {}
            for place, how in self._below(node, column):
                sources[place] = max(sources.get(place, IDENTITY), how, key=_RANKS.index)
            self._sources[key] = sources
        return self._sources[key]

    def _below(self, node: Operator, column: str) -> Iterator[tuple[Place, str]]:
        if not node.inputs:
            yield from ((place, IDENTITY) for place in _at_source(node, column))
        for number, child in enumerate(node.inputs):
            source = node.made_from(number, column)
            if source is None:
                source = Derivation([name for name in child.readable() if not name.startswith("__")], TRANSFORMATION)
            for name in source.columns:
                for place, how in self.sources_of(child, name).items():
                    yield place, max(how, source.how, key=_RANKS.index)

    def decides(self, node: Operator) -> Mapping[Place, frozenset[str]]:
        """Return the columns of streams and tables that decide about the rows of an operator, and what they do."""
        deciders: dict[Place, set[str]] = {}
        for above in _through(node, set()):
            for number, child in enumerate(above.inputs):
                decisive = above.decided_by(number)
                names = columns_required_of(above, number, ()) if decisive is None else decisive
                for name in {*names} & {*child.readable(), ROWTIME}:
                    for place in self.sources_of(child, name):
                        deciders.setdefault(place, set()).add(above.decides)
        return {place: frozenset(what) for place, what in deciders.items()}


def _through(node: Operator, seen: set[str]) -> Iterator[Operator]:
    if node.name not in seen:
        seen.add(node.name)
        yield node
        for child in node.inputs:
            yield from _through(child, seen)


def _at_source(node: Operator, column: str) -> Iterator[Place]:
    """Yield the column itself; for the rowtime the column that gives it, if the stream has one."""
    names = node.emits().names
    if column == ROWTIME:
        options = {name.lower(): value for name, value in getattr(node, "source", ("", ()))[1]}
        column = options.get(_TIME, "")
    yield from ((node.name, name) for name in names if name == column or name.lower() == column.lower())
