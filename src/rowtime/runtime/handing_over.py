"""Hands the rows of committed ticks over to the sinks; at a start, also what a crash has left of the last tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from rowtime.core.stores import ObjectPlace
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.runtime.sinks.failures import naming
from rowtime.runtime.sinks.lake import LakeSink
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.skipping import offering
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import arrived


def hand_over(  # noqa: PLR0913 - whose rows, of which tick, and where they go
    spark: SparkSession, checkpoint: Checkpoint, stage: Stage, node: SinkNode, tick: int, staged: Mapping[str, Any]
) -> None:
    """Publish what a tick has staged; errors name the pump, and the command that sets its rows aside."""
    with offering(checkpoint.folder, node, tick, staged), naming(node):
        stage.publish(spark, node, tick, staged)


def hand_over_all(
    spark: SparkSession,
    checkpoint: Checkpoint,
    stages: Mapping[str, Stage],
    nodes: Sequence[SinkNode],
    entry: Mapping[str, Any],
) -> None:
    """Publish what the entry of a tick has for its sinks: one after the other, but Delta tables in stores at once.

    If some fail, the others get theirs all the same, and the error is that of one.
    """
    groups: dict[str, list[SinkNode]] = {}
    for node in nodes:
        if node.name in entry["outputs"]:
            groups.setdefault(_apart(stages[node.name]), []).append(node)

    def each(group: Sequence[SinkNode]) -> None:
        for node in group:
            hand_over(spark, checkpoint, stages[node.name], node, entry["tick"], entry["outputs"][node.name])

    first, *others = [group for group in (groups.pop("", []), *groups.values()) if group] or [[]]
    with ThreadPoolExecutor(len(others) or 1) as pool:
        under_way = [pool.submit(each, group) for group in others]
        each(first)
    for one in under_way:
        one.result()


def _apart(stage: Stage) -> str:
    """The table of a sink if it is in a store and its commits depend on nothing else's; empty for every other sink."""
    sink = stage.sink
    if isinstance(sink, LakeSink) and sink.alone and isinstance(sink.path, ObjectPlace):
        return str(sink.path)
    return ""


def written(checkpoint: Checkpoint, stages: Mapping[str, Stage], nodes: Sequence[SinkNode]) -> None:
    """Wait until all that a tick writes to stores is there; what a target says has the name of its pump in front."""
    for node in nodes:
        with naming(node):
            arrived(stages[node.name].folder)
    arrived(checkpoint.folder)


def forget(checkpoint: Checkpoint, stages: Mapping[str, Stage]) -> None:
    """Wait until nothing of a tick that has failed is under way; what it has written is swept."""
    for folder in (checkpoint.folder, *(stage.folder for stage in stages.values())):
        with suppress(Exception):  # the tick has failed already
            arrived(folder)


def finish(
    spark: SparkSession,
    checkpoint: Checkpoint,
    stages: Mapping[str, Stage],
    nodes: Sequence[SinkNode],
    entry: Mapping[str, Any],
) -> None:
    """Sweep what crashed ticks staged, and publish what the last entry has and the sinks may not."""
    for node in nodes:
        staged = entry["outputs"].get(node.name)
        with naming(node):
            stages[node.name].recover(staged)
        if staged is not None and checkpoint.published < entry["tick"]:
            hand_over(spark, checkpoint, stages[node.name], node, staged.get("tick", entry["tick"]), staged)


def settle(
    spark: SparkSession, checkpoint: Checkpoint, stages: Mapping[str, Stage], entry: Mapping[str, Any], *, now: bool
) -> None:
    """Hand over what sinks have gathered of committed ticks, as far as it is due, or all of it ``now``."""
    gathering = [stage for stage in stages.values() if stage.gathered is not None]
    if gathering and all([_settled(spark, checkpoint, stage, now=now) for stage in gathering]):  # noqa: C419 - each one
        checkpoint.published = entry["tick"]


def _settled(spark: SparkSession, checkpoint: Checkpoint, stage: Stage, *, now: bool) -> bool:
    kept = stage.gathered
    assert kept is not None
    with offering(checkpoint.folder, kept.node, kept.tick, kept.staged), naming(kept.node):
        return stage.settle(spark, now=now)
