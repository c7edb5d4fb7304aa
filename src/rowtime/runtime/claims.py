"""Claims: before a pipeline does anything, its pumps claim their targets, and dropped pumps release theirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rowtime.client.home import Home
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.runtime.sinks.failures import naming
from rowtime.runtime.sinks.ownership import Claim, Proof
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.sinks.stream_log import StreamLogSink
from rowtime.sql.statements import CreatePump
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.journal import behind


def claim(  # noqa: PLR0913 - whose pumps, and the claims on their targets
    checkpoint: Checkpoint,
    nodes: Sequence[SinkNode],
    stages: Mapping[str, Stage],
    take_over: Collection[str],
    at: int,
    pumps: Mapping[str, CreatePump],
) -> None:
    """Claim the targets of all pumps, ``at`` (µs UTC); either all claims are recorded or none.

    ``pumps``: those of the script; several share the sink of a topic, and a takeover by one of them is enough.

    Raises ``Refused``: R440 to R442, see `runtime.sinks.ownership`, and ``Failure`` (R420) if a target has rows of this
    checkpoint that its journal does not know of: an older copy of it has been restored.
    """
    entry = checkpoint.journal.last() or {}
    claims = {name: _claim(checkpoint, entry, name, take_over, at) for name in stages}
    for node in nodes:
        if node.format == "kafka":
            into = pumps_into(node, pumps)
            taken = any(name in take_over for name in into)
            called = next(iter(into), "")
            claims[node.name] = replace(claims[node.name], take_over=taken, called=called, shared=True)
    records = []
    for node in nodes:
        with naming(node):
            records.append((node, stages[node.name].claim(claims[node.name])))
    for node, record in records:
        with naming(node):
            record()
    last = entry.get("tick", -1)
    for name, stage in stages.items():
        if excess := stage.beyond(last, claims[name]):
            raise behind(checkpoint.folder, excess, last)


def let_leave(checkpoint: Checkpoint, home: Home, at: int) -> None:
    """Let the writers of dropped pumps leave their logs, which would otherwise wait for them forever."""
    entry = checkpoint.journal.last() or {}
    for name, target in (checkpoint.plan.retired if checkpoint.plan else {}).items():
        if stream := log_of(target):
            StreamLogSink(home, stream, pump_of(name)).leave(_claim(checkpoint, entry, name, (), at))


def pump_of(sink: str) -> str:
    """The name of the pump that a sink belongs to."""
    return sink.removesuffix(".sink")


def pumps_into(node: SinkNode, pumps: Mapping[str, CreatePump]) -> list[str]:
    """The pumps whose rows a sink writes: several if it is a topic."""
    if node.format != "kafka":
        return [pump_of(node.name)]
    stream = dict(node.options)["stream"].lower()
    return [name for name, pump in pumps.items() if pump.started and pump.target.text.lower() == stream]


def log_of(target: Mapping[str, Any]) -> str | None:
    """Return the stream whose log a sink writes, from its target in a plan."""
    return dict(target["options"])["stream"] if target["format"] == "log" else None


def _claim(checkpoint: Checkpoint, entry: Mapping[str, Any], sink: str, take_over: Collection[str], at: int) -> Claim:
    pump, sent = pump_of(sink), None
    control = entry.get("control", {}).get(sink, {})
    if "sequence" in control:
        staged = entry.get("outputs", {}).get(sink)
        handed_over = staged is None or checkpoint.published >= entry["tick"]
        written = control["sequence"] - control.get("skipped", 0)
        sent = written - (0 if handed_over else staged["count"]), written
    number = control.get("sequence", 0)
    proof = Proof(*control["proof"]) if control.get("proof") else None
    identity, place, tick = checkpoint.identity, str(checkpoint.folder), entry.get("tick", -1)
    link = control.get("link", "")
    return Claim(pump, identity, place, at, sent, pump in take_over, number, proof=proof, link=link, tick=tick)
