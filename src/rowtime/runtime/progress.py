"""Progress in the shape of Spark's ``StreamingQueryProgress``, one per tick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rowtime.core.clock import least
from rowtime.core.time import BEGINNING, to_text
from rowtime.state.costs import CLOCK, INPUT, JOBS, JOURNAL, PLANNING, SINKS

if TYPE_CHECKING:
    from rowtime.operators.streams.stream import Stream
    from rowtime.runtime.engine import Engine
    from rowtime.runtime.report import TickReport


def progress_of(engine: Engine, report: TickReport, query_id: str, run_id: str) -> dict[str, Any]:
    """The progress of one tick as plain values, with the names that Spark uses."""
    entry, taken = engine.entry, sum(report.taken.values())
    cost = report.cost
    spent, seconds = cost.milliseconds, max(cost.total / 1000, 1e-9)
    return {
        "id": query_id,
        "runId": run_id,
        "name": ", ".join(node.name for node in engine.program.sinks),
        "timestamp": to_text(entry["at"]).replace(" ", "T") + "Z",
        "batchId": report.tick,
        "batchDuration": int(seconds * 1000),
        "numInputRows": taken,
        "processedRowsPerSecond": taken / seconds,
        "durationMs": {
            "latestOffset": int(spent.get(INPUT, 0)),
            "queryPlanning": int(spent.get(PLANNING, 0)),
            "addBatch": int(sum(spent.get(part, 0) for part in (CLOCK, JOBS, SINKS))),
            "commitOffsets": int(spent.get(JOURNAL, 0)),
            "triggerExecution": int(cost.total),
        },
        "eventTime": {"watermark": _bound(entry, engine)},
        "stateOperators": [{"operatorName": key, "numRowsTotal": rows} for key, rows in sorted(entry["held"].items())],
        "sources": [_source(engine, node, report) for node in engine.program.streams],
        "sink": {
            "description": ", ".join(f"{node.name} ({node.format})" for node in engine.program.sinks),
            "numOutputRows": sum(report.written.values()),
        },
        "observedMetrics": {name: dict(counts) for name, counts in report.ledger.items()},
    }


def _bound(entry: Mapping[str, Any], engine: Engine) -> str:
    bounds = [least(entry["clocks"].get(node.name, {}).values()) for node in engine.program.sinks]
    return to_text(min(bounds, default=BEGINNING))


def _source(engine: Engine, node: Stream, report: TickReport) -> dict[str, Any]:
    notes = engine.entry["sources"][node.name]
    return {
        "description": f"{node.name} ({node.source[0]})",
        "endOffset": notes["offsets"],
        "numInputRows": report.taken.get(node.name, 0),
        "clock": to_text(least(engine.entry["clocks"].get(node.name, {}).values())),
        **({"files": list(report.noted[node.name])} if node.name in report.noted else {}),
    }
