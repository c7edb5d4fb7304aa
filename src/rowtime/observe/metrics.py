"""Metrics for Prometheus: a page in the OpenMetrics format, served while pipelines run."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rowtime.core.clock import NOBODY, least
from rowtime.core.errors import Refused, refuse
from rowtime.core.log import LOG
from rowtime.core.time import BEGINNING, END, SECOND
from rowtime.observe.observer import Observer, Run
from rowtime.plan.lateness import late_rows
from rowtime.plan.stored import StoredPlan
from rowtime.plan.waiting import Wait, waiting
from rowtime.state.costs import left_in

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
    counts: Counter[Family] = field(default_factory=Counter)
    failed: int = 0

    def values(self) -> Iterator[Value]:
        """Yield all of its metrics, now."""
        engine = self.run.engine
        yield from values_of(engine.plan, engine.entry, engine.clock())
        yield from (Value(ROWS_IN, (name,), many) for name, many in [*self.rows_in.items()])
        yield from (Value(TICK_SECONDS, (part,), ms / 1000) for part, ms in [*self.milliseconds.items()])
        spread = JOBS, TASKS, SHUFFLED
        for family in (TICKS, *spread, FILES, BYTES, RETRIES):
            yield Value(family, (), self.counts[family])
        yield Value(RETRYING, (), self.failed)


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
            counters.counts.update({TICKS: 1, FILES: cost.files, BYTES: cost.size})
            spread = {TASKS: cost.spread.tasks, SHUFFLED: cost.spread.shuffled}
            counters.counts.update({JOBS: cost.jobs, **spread})
            counters.failed = 0

    def failed(self, run: Run, retries: Retries) -> None:
        """Count a failed attempt."""
        with self._turn:
            self._runs[run.run_id].counts[RETRIES] += 1
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

        kinds = {COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily}
        metrics = {
            family: kinds[family.kind](family.name, family.meaning, labels=family.all_labels) for family in FAMILIES
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


# The metrics of a pipeline: their names, labels and meaning, and their values from its plan and its journal.
#
# The number of series depends on the plan, never on writers, keys or ticks: only the slowest writers are named.

NAMED: Final = 5  # writers of a stream that are named
COUNTER, GAUGE = "counter", "gauge"


@dataclass(frozen=True)
class Family:
    """One metric: its name (a counter's without ``_total``), labels besides ``pipeline``, kind and meaning."""

    name: str
    labels: tuple[str, ...]
    kind: str
    meaning: str

    @property
    def all_labels(self) -> list[str]:
        """Return the labels, with the one that each series has."""
        return ["pipeline", *self.labels]

    @property
    def sample(self) -> str:
        """Return the name in queries."""
        return f"{self.name}_total" if self.kind == COUNTER else self.name


class Value(NamedTuple):
    """One series: its metric, its labels in order, and its value."""

    family: Family
    labels: tuple[str, ...]
    value: float


BOUND: Final = Family(
    "rowtime_bound_seconds",
    ("operator", "kind"),
    GAUGE,
    "the bound of a stream, view or sink, in seconds since 1970 UTC; +Inf at the end; missing before the first bound",
)
FRESHNESS: Final = Family(
    "rowtime_freshness_seconds",
    ("operator", "kind"),
    GAUGE,
    "wall clock minus bound; 0 at the end",
)
WRITERS: Final = Family("rowtime_writers", ("stream",), GAUGE, "writers that hold a stream")
BEHIND: Final = Family(
    "rowtime_writer_behind_seconds",
    ("stream", "writer"),
    GAUGE,
    f"how far the clock of each of the {NAMED} slowest writers of a stream is behind the clock of its fastest writer",
)
OTHERS_BEHIND: Final = Family(
    "rowtime_other_writers_behind_seconds",
    ("stream",),
    GAUGE,
    "the same of all other writers, summed",
)
HELD: Final = Family("rowtime_held_rows", ("operator",), GAUGE, "rows that can still match or go out, and open groups")
HOLDING: Final = Family(
    "rowtime_holding_seconds",
    ("operator", "stream", "writer"),
    GAUGE,
    "how long the bound that holds the rows of an operator has not advanced, and the writer whose clock it is",
)
STATE_ROWS: Final = Family("rowtime_state_rows", ("operator",), GAUGE, "rows of state")
STATE_BYTES: Final = Family("rowtime_state_bytes", ("operator",), GAUGE, "bytes of the files of state")
GATE_ROWS: Final = Family(
    "rowtime_gate_rows", ("gate",), COUNTER, "rows that reached a gate since the checkpoint began"
)
REFUSED: Final = Family(
    "rowtime_refused_rows",
    ("gate", "reason"),
    COUNTER,
    "rows that a gate refused since the checkpoint began",
)
LATENESS: Final = Family(
    "rowtime_lateness_seconds",
    ("gate", "share"),
    GAUGE,
    "how far late rows were below the clock: half of a gate's late rows (0.5), 99 % (0.99) and all (1) at most so far",
)
ROWS_OUT: Final = Family(
    "rowtime_output_rows", ("sink",), COUNTER, "rows that a sink has received since the checkpoint began"
)
ROWS_IN: Final = Family("rowtime_input_rows", ("stream",), COUNTER, "rows that this process has read")
BACKLOG: Final = Family(
    "rowtime_backlog",
    ("stream", "unit"),
    GAUGE,
    "how much of a stream was left to read when the last tick chose its input, in rows, bytes, or versions of a table",
)
TICKS: Final = Family("rowtime_ticks", (), COUNTER, "ticks of this process")
LAST_TICK: Final = Family(
    "rowtime_last_tick_timestamp_seconds", (), GAUGE, "when the last tick was committed, in seconds since 1970 UTC"
)
TICK_SECONDS: Final = Family(
    "rowtime_tick_seconds", ("part",), COUNTER, "seconds that ticks took in this process, by part"
)
JOBS: Final = Family("rowtime_spark_jobs", (), COUNTER, "Spark jobs of the ticks of this process")
TASKS: Final = Family("rowtime_spark_tasks", (), COUNTER, "tasks of Spark that computed the ticks of this process")
SHUFFLED: Final = Family("rowtime_shuffled_bytes", (), COUNTER, "bytes that they passed on to the last one of a tick")
FILES: Final = Family("rowtime_written_files", (), COUNTER, "files that ticks of this process have written")
BYTES: Final = Family("rowtime_written_bytes", (), COUNTER, "bytes of these files")
RETRIES: Final = Family("rowtime_retries", (), COUNTER, "ticks that failed and were tried again, in this process")
RETRYING: Final = Family(
    "rowtime_retrying", (), GAUGE, "failed attempts of the tick under way; 0 if the last attempt succeeded"
)

FAMILIES: Final = (
    BOUND, FRESHNESS, WRITERS, BEHIND, OTHERS_BEHIND, HELD, HOLDING, STATE_ROWS, STATE_BYTES, GATE_ROWS, REFUSED,
    LATENESS, ROWS_OUT, ROWS_IN, BACKLOG, TICKS, LAST_TICK, TICK_SECONDS, JOBS, TASKS, SHUFFLED, FILES, BYTES, RETRIES,
    RETRYING,
)  # fmt: skip


def values_of(plan: StoredPlan, entry: Mapping[str, Any], now: int) -> Iterator[Value]:
    """Yield the metrics in an entry of the journal; ``now``: the wall clock (µs UTC)."""
    clocks = entry.get("clocks", {})
    for name, of in clocks.items():
        if name in plan.operators:
            yield from _bound_of((name, plan.operators[name].kind), least(of.values()), now)
    for name in plan.of_kind("stream"):
        yield from _writers_of(name, {w: at for w, at in clocks.get(name, {}).items() if w != NOBODY})
    yield from _held(plan, entry, now)
    yield from _state(entry)
    for gate, counts in entry.get("totals", {}).items():
        yield Value(GATE_ROWS, (gate,), counts.get("in", 0))
        reasons = (why for why in counts if why not in ("in", "accepted"))
        yield from (Value(REFUSED, (gate, why), counts[why]) for why in reasons)
    for late in late_rows(plan, entry):
        shares = {"0.5": late.median, "0.99": late.within, "1": late.greatest}
        yield from (Value(LATENESS, (late.gate, share), at / SECOND) for share, at in shares.items())
    for name in plan.of_kind("sink"):
        yield Value(ROWS_OUT, (name,), entry.get("control", {}).get(name, {}).get("sequence", 0))
    yield from (Value(BACKLOG, (name, left.unit), left.amount) for name, left in left_in(entry).items())
    if "at" in entry:
        yield Value(LAST_TICK, (), entry["at"] / SECOND)


def _bound_of(labels: tuple[str, str], bound: int, now: int) -> Iterator[Value]:
    if bound > BEGINNING:
        yield Value(BOUND, labels, float("inf") if bound >= END else bound / SECOND)
        yield Value(FRESHNESS, labels, 0 if bound >= END else (now - bound) / SECOND)


def _writers_of(stream: str, clocks: Mapping[str, int]) -> Iterator[Value]:
    yield Value(WRITERS, (stream,), len(clocks))
    finite = {writer: at for writer, at in clocks.items() if BEGINNING < at < END}
    fastest = max(finite.values(), default=BEGINNING)
    slowest = heapq.nsmallest(NAMED, finite.items(), key=lambda one: (one[1], one[0]))
    named = sum(fastest - at for _, at in slowest)
    yield from (Value(BEHIND, (stream, writer), (fastest - at) / SECOND) for writer, at in slowest)
    yield Value(OTHERS_BEHIND, (stream,), (sum(fastest - at for at in finite.values()) - named) / SECOND)


def _held(plan: StoredPlan, entry: Mapping[str, Any], now: int) -> Iterator[Value]:
    yield from _summed(HELD, ((key, rows) for key, rows in entry.get("held", {}).items()))
    since = entry.get("since", {})
    waits = (wait for wait in waiting(plan, entry, now) if isinstance(wait, Wait) and wait.operator in since)
    for wait in waits:
        waited = max(0, now - since[wait.operator][1]) / SECOND
        yield Value(HOLDING, (wait.operator, wait.stream, wait.writer), waited)


def _state(entry: Mapping[str, Any]) -> Iterator[Value]:
    kept = entry.get("segments", {})
    yield from _summed(STATE_ROWS, ((key, row[1]) for key, rows in kept.items() for row in rows))
    yield from _summed(STATE_BYTES, ((key, sum(row[5:6])) for key, rows in kept.items() for row in rows))


def _summed(family: Family, parts: Iterable[tuple[str, int]]) -> Iterator[Value]:
    """Sum by operator, for keys ``operator/what``."""
    sums: Counter[str] = Counter()
    for key, many in parts:
        sums[key.rsplit("/", 1)[0]] += many
    return (Value(family, (name,), many) for name, many in sums.items())
