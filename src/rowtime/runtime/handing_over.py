"""Hands the rows of committed ticks over to the sinks; at a start, also what a crash has left of the last tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.runtime.sinks.failures import naming
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.skipping import offering
from rowtime.state.checkpoint import Checkpoint


def hand_over(  # noqa: PLR0913 - whose rows, of which tick, and where they go
    spark: SparkSession, checkpoint: Checkpoint, stage: Stage, node: SinkNode, tick: int, staged: Mapping[str, Any]
) -> None:
    """Publish what a tick has staged; errors name the pump, and the command that sets its rows aside."""
    with offering(checkpoint.folder, node, tick, staged), naming(node):
        stage.publish(spark, node, tick, staged)


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
