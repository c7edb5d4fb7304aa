"""Marked rows: how many rows passed a place in Spark's queries, from the metrics that it keeps anyway.

A mark is a filter that every row passes. It has a unique number, by which it is found in the plan that Spark ran, and
Spark counts the output of each filter. So a mark needs no job. Its condition is not deterministic, so Spark keeps it,
and moves no other filter below it.

Law: a reported count is that of all rows of the place. If Spark may have read only some of them, or read them twice for
one result, no count is reported.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE: Final = 0.02  # seconds in which Spark may still record that a query has begun
PATIENCE: Final = 0.2  # seconds in which it may still record that one has ended
_FEW: Final = 200  # queries of one tick that are examined
_NUMBERS: Final = count(10**12)
_MARK: Final = re.compile(r"^Filter \(monotonically_increasing_id\(\) >= -(\d{13,})\)$")
_NODE: Final = re.compile(r'^\s*(\d+) \[.*\btooltip="(.*)"\];', re.MULTILINE)
_EDGE: Final = re.compile(r"^\s*(\d+)->(\d+)\b", re.MULTILINE)
_ENDS_EARLY: Final = re.compile(r"\w*Limit|TakeOrdered|(SortMerge|ShuffledHash)Join|CartesianProduct")
_LIMIT: Final = re.compile(r"(?:\w*Limit |TakeOrderedAndProject\(limit=)(\d+)\b")
_ROWS: Final = "number of output rows"


class Marks:
    """The marks of one tick."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._store: Any = None
        self._last = -1  # the query before the first mark
        self._limits: dict[int, bool] = {}  # whether all results with this limit had fewer rows

    def put(self, spark: SparkSession, name: str, rows: DataFrame) -> DataFrame:
        """Return the same rows, counted under a name when Spark computes them."""
        try:
            if self._store is None:
                self._store = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001 - PySpark has no public way
                self._last = max((number for number, _ in self._newest(1)), default=-1)
        except (Py4JError, AttributeError, TypeError):  # another Spark, which does not provide it
            return rows
        number = next(_NUMBERS)
        self._names[number] = name
        return rows.where(f"monotonically_increasing_id() >= -{number}L")

    def limited(self, most: int, *, whole: bool) -> None:
        """Note a result with LIMIT ``most``; ``whole``: it had fewer rows, so that all were read."""
        self._limits[most] = self._limits.get(most, True) and whole

    def counts(self) -> dict[str, int]:
        """Return the rows that passed each mark; those that no query has read completely are omitted.

        The queries of the tick have ended, but Spark may still have to record that. Others in the same application may
        run for hours.
        """
        if not self._names:
            return {}
        seen: dict[int, dict[str, set[int | None]]] = {}
        began = time.monotonic()
        with suppress(Py4JError, AttributeError, TypeError, ValueError):
            while True:
                under_way = self._look(seen)
                complete = {name for by_name in seen.values() for name in by_name} >= {*self._names.values()}
                if complete or time.monotonic() - began > (PATIENCE if under_way else LATE):
                    return _agreed(seen)
                time.sleep(LATE / 10)
        return {}

    def _look(self, seen: dict[int, dict[str, set[int | None]]]) -> bool:
        """Note the counts of queries that have ended; return True if one is running."""
        under_way = False
        for number, execution in self._newest(_FEW):
            if number <= self._last:
                break
            if number in seen:
                continue
            if execution.completionTime().isDefined():
                seen[number] = self._in_query(number)
            else:
                under_way = True
        return under_way

    def _newest(self, most: int) -> Iterator[tuple[int, Any]]:
        """Yield the newest queries with their numbers, newest first."""
        executions = self._store.executionsList(max(0, self._store.executionsCount() - most), most)
        for n in reversed(range(executions.size())):
            execution = executions.apply(n)
            yield execution.executionId(), execution

    def _in_query(self, number: int) -> dict[str, set[int | None]]:
        """Return the rows that passed each mark in a query; ``None`` if that is not reliable."""
        graph, values = self._store.planGraph(number), self._store.executionMetrics(number)
        text = graph.makeDotFile(values)
        nodes = {int(node): label for node, label in _NODE.findall(text)}
        above = {int(child): int(parent) for child, parent in _EDGE.findall(text)}
        metrics: dict[str, set[int | None]] = defaultdict(set)
        for node, label in nodes.items():
            mark = _MARK.match(label)
            if mark and int(mark[1]) in self._names:
                whole = self._reads_all(node, nodes, above)
                metrics[self._names[int(mark[1])]].add(_metric(graph, values, node) if whole else None)
        return metrics

    def _reads_all(self, node: int, nodes: dict[int, str], above: dict[int, int]) -> bool:
        """Return True if the plan above a node reads all its rows, and once; up to the exchange."""
        while (node := above.get(node, -1)) >= 0:
            label = nodes.get(node, "")
            if label.startswith(("Exchange", "BroadcastExchange")):
                return "rangepartitioning" not in label  # it reads its input twice
            limit = _LIMIT.match(label)
            if _ENDS_EARLY.match(label) and not (limit and self._limits.get(int(limit[1]), False)):
                return False
        return True


def _metric(graph: Any, values: Any, number: int) -> int | None:
    nodes = graph.allNodes()
    nearest = sorted(range(nodes.size()), key=lambda n: abs(n - number))  # each call takes time
    node = next(candidate for candidate in map(nodes.apply, nearest) if candidate.id() == number)
    metrics = node.metrics()
    metric = next(
        candidate for candidate in (metrics.apply(n) for n in range(metrics.size())) if candidate.name() == _ROWS
    )
    text = values.get(metric.accumulatorId())
    return int(text.get().replace(",", "")) if text.isDefined() else None


def _agreed(seen: dict[int, dict[str, set[int | None]]]) -> dict[str, int]:
    """Return the counts on which all queries agree that have read a place completely."""
    counts_by_place: dict[str, set[int]] = defaultdict(set)
    for by_name in seen.values():
        for name, counts in by_name.items():
            counts_by_place[name] |= {n for n in counts if n is not None}
    return {name: min(counts) for name, counts in counts_by_place.items() if len(counts) == 1}
