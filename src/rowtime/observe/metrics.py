"""Metrics for Prometheus: a page in the OpenMetrics format, served while pipelines run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.errors import Refused, refuse
from rowtime.core.log import LOG
from rowtime.observe import families
from rowtime.observe.families import COUNTER, Value
from rowtime.observe.observer import Observer, Run

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from rowtime.runtime.report import TickReport
    from rowtime.runtime.retries import Retries

HERE: Final = "127.0.0.1"


@dataclass
class _Figures:
    """The counts of one run in this process; the run itself has the rest."""

    run: Run
    pipeline: str
    rows_in: Counter[str] = field(default_factory=Counter)
    milliseconds: Counter[str] = field(default_factory=Counter)
    counts: Counter[families.Family] = field(default_factory=Counter)
    failed: int = 0

    def values(self) -> Iterator[Value]:
        """Yield all of its metrics, now."""
        engine = self.run.engine
        yield from families.values_of(engine.plan, engine.entry, engine.clock())
        yield from (Value(families.ROWS_IN, (name,), many) for name, many in [*self.rows_in.items()])
        yield from (Value(families.TICK_SECONDS, (part,), ms / 1000) for part, ms in [*self.milliseconds.items()])
        spread = families.JOBS, families.TASKS, families.SHUFFLED
        for family in (families.TICKS, *spread, families.FILES, families.BYTES, families.RETRIES):
            yield Value(family, (), self.counts[family])
        yield Value(families.RETRYING, (), self.failed)


class Metrics(Observer):
    """Serves the metrics of one or several pipelines in one page.

    ``port``: the port, on ``host``, until ``close``; 0 takes a free one, which is then in ``port``. Without a port the
    page is not served: use ``registry``, your own ``prometheus_client.CollectorRegistry`` or a new one. Each series has
    the label ``pipeline``: the last part of the path of its checkpoint, or the whole path if another pipeline has the
    same last part. Raises ``Refused``: R610 if prometheus-client is not installed, R611 if the port is in use.
    """

    def __init__(
        self, port: int | None = None, *, host: str = HERE, registry: CollectorRegistry | None = None, own: bool = False
    ) -> None:
        self.registry = _new_registry() if registry is None else registry
        self._own = own  # whether it belongs to one run, with which it ends
        self._runs: dict[str, _Figures] = {}
        self._turn = threading.Lock()
        self._server: WSGIServer | None = None
        self.port = port
        if port is not None:
            self._server = _served(host, port, self.registry)
            self.port = self._server.server_port
            where = f"http://{host}:{self.port}/metrics"
            LOG.info("metrics are served at %s", where, extra={"event": "metrics", "address": where})
        self.registry.register(self)

    def given_up(self) -> None:
        """Remove a run whose start failed."""
        if self._own:
            self.close()

    def started(self, run: Run) -> None:
        """Add a run."""
        place = str(run.engine.checkpoint.folder).rstrip("/")
        name = place.rpartition("/")[2]
        with self._turn:
            taken = {counters.pipeline for counters in self._runs.values()}
            self._runs[run.run_id] = _Figures(run, place if name in taken else name)

    def ticked(self, run: Run, report: TickReport, progress: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Count a tick."""
        cost, counters = report.cost, self._runs[run.run_id]
        with self._turn:
            counters.rows_in.update(cost.rows_in)
            for part, spent in cost.milliseconds.items():
                counters.milliseconds[part] += spent  # type: ignore[assignment]  # a Counter takes fractions
            counters.counts.update({families.TICKS: 1, families.FILES: cost.files, families.BYTES: cost.size})
            spread = {families.TASKS: cost.spread.tasks, families.SHUFFLED: cost.spread.shuffled}
            counters.counts.update({families.JOBS: cost.jobs, **spread})
            counters.failed = 0

    def failed(self, run: Run, retries: Retries) -> None:
        """Count a failed attempt."""
        with self._turn:
            self._runs[run.run_id].counts[families.RETRIES] += 1
            self._runs[run.run_id].failed = retries.failures

    def ended(self, run: Run, error: BaseException | None) -> None:  # noqa: ARG002 - the contract
        """Remove a run that has ended."""
        with self._turn:
            self._runs.pop(run.run_id, None)
        if self._own:
            self.close()

    def close(self) -> None:
        """Stop serving the page; a second call does nothing."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def collect(self) -> Iterable[Metric]:
        """Return each metric with its series, for ``prometheus_client``."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415 - an extra

        kinds = {COUNTER: CounterMetricFamily, families.GAUGE: GaugeMetricFamily}
        metrics = {
            family: kinds[family.kind](family.name, family.meaning, labels=family.all_labels)
            for family in families.FAMILIES
        }
        with self._turn:
            values = [(counters.pipeline, value) for counters in self._runs.values() for value in counters.values()]
        for pipeline, value in values:
            metrics[value.family].add_metric([*map(_shown, (pipeline, *value.labels))], value.value)
        return [metric for metric in metrics.values() if metric.samples]


def metrics_at(address: int | str | Metrics) -> Metrics:
    """Return the metrics for a run: at a port of this machine, at ``host:port``, or in an existing object."""
    if isinstance(address, Metrics):
        return address
    host, _, port = str(address).rpartition(":")
    if not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004 - the last possible port
        raise refuse("R611", f"{address} is not a port for metrics", "Give a number, or host:port.")
    return Metrics(int(port), host=host.strip("[]") or HERE, own=True)


def _new_registry() -> CollectorRegistry:
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 - an extra
    except ImportError:
        what = "metrics need prometheus-client, which is not installed"
        raise refuse("R610", what, "Install it: pip install 'rowtime[metrics]'.") from None
    return CollectorRegistry()


def _served(host: str, port: int, registry: CollectorRegistry) -> WSGIServer:
    from prometheus_client import start_http_server  # noqa: PLC0415 - an extra

    try:
        return start_http_server(port, host, registry)[0]
    except OSError as error:
        raise _taken(host, port, error) from None


def _taken(host: str, port: int, error: OSError) -> Refused:
    what = f"metrics cannot be served at {host}:{port}: {error.strerror or error}"
    return refuse("R611", what, "Give --metrics-port another number, or 0 for one that is free.")


def _shown(label: str) -> str:
    """Return a label that UTF-8 can encode."""
    return label.encode("utf-8", "replace").decode()
