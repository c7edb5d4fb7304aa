"""Progress in the form of Spark's ``StreamingQueryProgress``, one per tick, from the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rowtime.core.clock import least
from rowtime.core.time import BEGINNING, SECOND, to_text
from rowtime.operators.contract import Operator
from rowtime.state.costs import CLOCK, DRIVER, INPUT, JOBS, JOURNAL, PLANNING, SINKS, TickCost

if TYPE_CHECKING:
    from rowtime.operators.streams.stream import Stream
    from rowtime.runtime.engine import Engine
    from rowtime.runtime.report import TickReport
    from rowtime.state.segments import Kept

_LATE = ("LATE", "OUT_OF_ORDER")  # Spark calls these dropped by the watermark


def progress_of(engine: Engine, report: TickReport, query_id: str, run_id: str, since: int | None) -> dict[str, Any]:
    """Return the progress of one tick as plain values, with Spark's names.

    ``since``: when the tick before it began (µs UTC); without one there is no input rate.
    """
    cost, taken = report.cost, sum(report.taken.values())
    seconds = max(cost.total / 1000, 1e-9)
    waited = None if since is None else max(cost.began - since, 1) / SECOND
    return {
        "id": query_id,
        "runId": run_id,
        "name": name_of(engine),
        "timestamp": timestamp(cost.began),
        "batchId": report.tick,
        "batchDuration": int(cost.total),
        "numInputRows": taken,
        "inputRowsPerSecond": None if waited is None else taken / waited,
        "processedRowsPerSecond": taken / seconds,
        "durationMs": _durations(cost),
        "parts": {part: round(ms, 1) for part, ms in cost.milliseconds.items()},
        "spark": {"jobs": cost.jobs, **asdict(cost.spread)},
        "eventTime": {**_event_times(engine, report), "watermark": timestamp(_bound(engine))},
        "stateOperators": [_state(key, kept, report) for key, kept in sorted(report.kept.items())],
        "sources": [_source(engine, node, report, waited) for node in engine.program.streams],
        "sink": {
            "description": ", ".join(f"{node.name} ({node.format})" for node in engine.program.sinks),
            "numOutputRows": sum(report.written.values()),
        },
        "observedMetrics": {name: dict(counts) for name, counts in report.ledger.items()},
    }


def name_of(engine: Engine) -> str:
    """Return the name of a query: those of its sinks."""
    return ", ".join(node.name for node in engine.program.sinks)


def timestamp(at: int) -> str:
    """Return an instant (µs UTC) in Spark's form: ``2024-01-31T23:59:59.123Z``; the infinite ones in rowtime's."""
    text = to_text(at)
    if " " not in text or not text[0].isdigit():
        return text
    whole, _, part = text.partition(".")
    return f"{whole.replace(' ', 'T')}.{part[:3]:0<3}Z"


def _durations(cost: TickCost) -> dict[str, int]:
    spent = cost.milliseconds
    return {
        "latestOffset": int(spent.get(INPUT, 0)),
        "queryPlanning": int(spent.get(PLANNING, 0)),
        "addBatch": int(sum(spent.get(part, 0) for part in (CLOCK, JOBS, DRIVER, SINKS))),
        "commitOffsets": int(spent.get(JOURNAL, 0)),
        "triggerExecution": int(cost.total),
    }


def _bound(engine: Engine) -> int:
    clocks = engine.entry["clocks"]
    return min((least(clocks.get(node.name, {}).values()) for node in engine.program.sinks), default=BEGINNING)


def _event_times(engine: Engine, report: TickReport) -> dict[str, str]:
    """Return the times of the accepted rows, from the last gates before the sinks that judged times."""
    times = report.cost.times
    gates = set(_last_gates(engine.program.sinks, times))
    if not gates:
        return {}
    micros = {"min": min(times[gate][0] for gate in gates), "max": max(times[gate][1] for gate in gates)}
    rows = {gate: report.ledger.get(gate, {}).get("accepted", 0) for gate in gates}
    if all(len(times[gate]) > 2 for gate in gates) and any(rows.values()):  # noqa: PLR2004 - least, greatest, mean
        micros["avg"] = sum(times[gate][2] * many for gate, many in rows.items()) // sum(rows.values())
    return {name: timestamp(at) for name, at in micros.items()}


def _last_gates(nodes: Iterable[Operator], times: Mapping[str, Any]) -> Iterable[str]:
    for node in nodes:
        if node.name in times:
            yield node.name
        else:
            yield from _last_gates(node.inputs, times)


def _state(key: str, kept: Kept, report: TickReport) -> dict[str, Any]:
    counts = report.ledger.get(key.rsplit("/", 1)[0], {})
    return {
        "operatorName": key,
        "numRowsTotal": kept.rows,
        "numRowsUpdated": kept.written,
        "numRowsRemoved": kept.dropped,
        "numRowsDroppedByWatermark": sum(counts.get(reason, 0) for reason in _LATE),
        "memoryUsedBytes": kept.size,
        "customMetrics": {"files": kept.files},
    }


def _source(engine: Engine, node: Stream, report: TickReport, waited: float | None) -> dict[str, Any]:
    rows = report.taken.get(node.name, 0)
    return {
        "description": f"{node.name} ({node.source[0]})",
        "startOffset": report.before["sources"].get(node.name, {}).get("offsets", {}),
        "endOffset": engine.entry["sources"][node.name]["offsets"],
        "numInputRows": rows,
        "inputRowsPerSecond": None if waited is None else rows / waited,
        "processedRowsPerSecond": rows / max(report.cost.total / 1000, 1e-9),
        "clock": to_text(least(engine.entry["clocks"].get(node.name, {}).values())),
        **({"backlog": asdict(report.backlogs[node.name])} if node.name in report.backlogs else {}),
        **({"files": list(report.noted[node.name])} if node.name in report.noted else {}),
    }
