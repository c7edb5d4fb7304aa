"""Delivers the rows of committed ticks to the sinks; at a start, also what a crash has left of the last tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
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
from rowtime.state.journal import Entry


@dataclass(frozen=True)
class HandingOver:
    """The sinks of a program, ``nodes``, and their stages by name, which have the rows of committed ticks.

    Errors name the pump, and the command to set its rows aside.
    """

    spark: SparkSession
    checkpoint: Checkpoint
    stages: Mapping[str, Stage]
    nodes: Sequence[SinkNode]

    def publish(self, entry: Entry) -> None:
        """Publish an entry's rows to its sinks: one after the other, but Delta tables in stores concurrently.

        If some fail, the others still get theirs, and one of the errors is raised.
        """
        groups: dict[str, list[SinkNode]] = {"": []}
        for node in self.nodes:
            if node.name in entry["outputs"]:
                groups.setdefault(_apart(self.stages[node.name]), []).append(node)
        first, *others = [group for group in groups.values() if group] or [[]]
        if not others:
            self._publish(first, entry)
            return
        with ThreadPoolExecutor(len(others)) as pool:
            under_way = [pool.submit(self._publish, group, entry) for group in others]
            self._publish(first, entry)
        for future in under_way:
            future.result()

    def _publish(self, nodes: Sequence[SinkNode], entry: Entry) -> None:
        for node in nodes:
            self._hand_over(node, entry["tick"], entry["outputs"][node.name])

    def _hand_over(self, node: SinkNode, tick: int, staged: Mapping[str, Any]) -> None:
        with offering(self.checkpoint.folder, node, tick, staged), naming(node):
            self.stages[node.name].publish(self.spark, node, tick, staged)

    def written(self) -> None:
        """Wait until all writes of a tick to stores are done."""
        for node in self.nodes:
            with naming(node):
                arrived(self.stages[node.name].folder)
        arrived(self.checkpoint.folder)

    def forget(self) -> None:
        """Wait until no write of a failed tick is running; its files are removed later."""
        for folder in (self.checkpoint.folder, *(stage.folder for stage in self.stages.values())):
            with suppress(Exception):  # the tick has failed already
                arrived(folder)

    def finish(self, entry: Entry) -> None:
        """Remove the staged files of crashed ticks, and publish what the sinks may lack of the last entry.

        Raises ``Refused`` (R403) if a successor drives, whose staged rows would be removed.
        """
        self.checkpoint.journal.check_driver()
        for node in self.nodes:
            staged = entry["outputs"].get(node.name)
            with naming(node):
                self.stages[node.name].recover(staged)
            if staged is not None and self.checkpoint.published < entry["tick"]:
                self._hand_over(node, staged.get("tick", entry["tick"]), staged)

    def settle(self, entry: Entry, *, now: bool) -> None:
        """Deliver what sinks have gathered of committed ticks, as far as it is due, or all of it ``now``."""
        gathering = [stage for stage in self.stages.values() if stage.gathered is not None]
        if gathering and all([self._settled(stage, now=now) for stage in gathering]):  # noqa: C419 - each one
            self.checkpoint.published = entry["tick"]

    def _settled(self, stage: Stage, *, now: bool) -> bool:
        kept = stage.gathered
        assert kept is not None
        with offering(self.checkpoint.folder, kept.node, kept.tick, kept.staged), naming(kept.node):
            return stage.settle(self.spark, now=now)


def _apart(stage: Stage) -> str:
    """Return the table of a sink if it is in a store and its commits are independent; empty for every other sink."""
    sink = stage.sink
    if isinstance(sink, LakeSink) and sink.alone and isinstance(sink.path, ObjectPlace):
        return str(sink.path)
    return ""
