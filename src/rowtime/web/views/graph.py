"""Graph: the operators of a plan, the rows between them, and the path to the writer that holds everything else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rowtime.core.clock import NOBODY, least
from rowtime.core.time import END, to_text
from rowtime.plan.holders import holder, slowest_of
from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.state.costs import given_in, left_in
from rowtime.state.journal import Entry
from rowtime.web.moments import NOTHING, Moment, held_by
from rowtime.web.words import amount

LATELY: Final = 10  # ticks whose rows the edges show
FILTERED: Final = "The filter after an edge is applied before all its rows are computed."
UNTOLD: Final = "The count of one of the last ten ticks is missing."


@dataclass(frozen=True)
class Blame:
    """What holds an output: a sink, ``operator``, waits for a ``writer`` of a ``stream``; ``edges`` lead to it."""

    operator: str
    stream: str
    writer: str
    bound: int
    edges: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        who = f"writer {self.writer} of {self.stream}" if self.writer else f"the stream {self.stream}"
        return f"{who} holds the output {self.operator.removesuffix('.sink')} at {to_text(self.bound)}"


def graph(plan: StoredPlan, entry: Entry, moments: Sequence[Moment]) -> dict[str, Any]:
    """Return boxes and edges as plain values, sources first. Rows are those of the last ``LATELY`` ticks."""
    held, blamed = held_by(entry), blame(plan, entry)
    span = since(moments, LATELY)
    passed = rows_out(plan, span) if span else {}
    first = filtered_first(plan)
    totals, left = (
        entry["totals"],
        {name: amount(*operator) for name, operator in left_in(entry).items() if operator.amount},
    )
    return {
        "tick": entry["tick"],
        "blame": f"{str(blamed)[0].upper()}{str(blamed)[1:]}." if blamed else "",
        "nodes": [
            {**_node(name, operator, held, totals, blamed), "left": left.get(name, "")}
            for name, operator in plan.operators.items()
        ],
        "edges": [
            {**_edge(below, name, entry, passed, held, blamed), "uncounted": _why(below, passed, first)}
            for name, operator in plan.operators.items()
            for below in dict.fromkeys(operator.inputs)
        ],
    }


def blame(plan: StoredPlan, entry: Entry) -> Blame | None:
    """Return what holds the slowest output, if anything is held at all."""
    clocks = entry["clocks"]
    if not any(held_by(entry).values()):
        return None
    for name in sorted(plan.of_kind("sink"), key=lambda one: least(clocks.get(one, {}).values())):
        bound = least(clocks.get(name, {}).values())
        if name not in clocks or bound >= END:
            continue
        stream, writer = holder(plan, clocks, plan.operators[name].inputs[0])
        edges = frozenset(_way(plan, clocks, name, stream))
        return Blame(name, stream, "" if writer == NOBODY else writer, bound, edges)
    return None


def _way(
    plan: StoredPlan, clocks: Mapping[str, Mapping[str, int]], name: str, stream: str
) -> Iterator[tuple[str, str]]:
    """Yield the edges from an operator down to a stream, along the slowest inputs that lead there."""
    inputs = [child for child in plan.operators[name].inputs if child == stream or stream in _below(plan, child)]
    if inputs:
        child, _ = slowest_of(inputs, clocks)
        yield child, name
        yield from _way(plan, clocks, child, stream)


def _below(plan: StoredPlan, name: str) -> set[str]:
    names: set[str] = set()
    left = [*plan.operators[name].inputs]
    while left:
        name_below = left.pop()
        if name_below not in names:
            names.add(name_below)
            left += plan.operators[name_below].inputs
    return names


def _node(
    name: str, operator: StoredOperator, held: Mapping[str, int], totals: Mapping[str, Any], blamed: Blame | None
) -> dict[str, Any]:
    refused = sum(n for why, n in totals.get(name, {}).items() if why not in ("in", "accepted"))
    return {
        "name": name,
        "kind": operator.kind,
        "gate": name in totals,
        "held": held.get(name, 0),
        "refused": refused,
        "blame": blamed is not None and blamed.stream == name,
    }


def _why(below: str, passed: Mapping[str, int], filtered: Collection[str]) -> str:
    """Return why the number of rows is unknown; empty if it is known."""
    if below in passed:
        return ""
    return FILTERED if below in filtered else UNTOLD


def _edge(  # noqa: PLR0913 - facts about both of its ends
    below: str,
    above: str,
    entry: Entry,
    passed: Mapping[str, int],
    held: Mapping[str, int],
    blamed: Blame | None,
) -> dict[str, Any]:
    clocks = entry["clocks"].get(below, {})
    holds = blamed is not None and (below, above) in blamed.edges
    who = blamed.writer if holds and blamed is not None and below == blamed.stream else ""
    return {
        "from": below,
        "to": above,
        "bound": to_text(least(clocks.values())),
        "writers": len(clocks),
        "rows": passed.get(below),
        "held": held.get(above, 0),
        "holds": holds,
        "who": who,
    }


# Passed rows: how many went along each edge of a plan between two moments, as far as the journal tells.
#
# Gates and sinks count rows, and each tick records what other operators gave, if known. Counts of neighbours that pass
# on each row once follow from these: the output is the input minus the increase of held rows. So a count is exact, or
# unknown.


def since(moments: Sequence[Moment], ticks: int) -> Change | None:
    """Return the change in the last ``ticks`` ticks, or in as many as are known; ``None`` without any tick."""
    if not moments:
        return None
    recent = [moment for moment in moments if moment.tick >= moments[-1].tick - ticks]
    begins = recent[0].tick == 0 and recent[-1].tick < ticks
    return Change([NOTHING, *recent] if begins else recent)


def rows_out(plan: StoredPlan, change: Change) -> dict[str, int]:
    """Return the rows that came out of each operator meanwhile; unknown counts are omitted."""
    counts: dict[str, int] = {}
    above: dict[str, list[StoredOperator]] = {}
    for operator in plan.operators.values():
        for name in operator.inputs:
            above.setdefault(name, []).append(operator)
    before = -1
    while before < len(counts):  # counts above and below an operator may imply the next one
        before = len(counts)
        for name, operator in plan.operators.items():
            _note(counts, name, _by_itself(operator, change, counts))
        for name in reversed([*plan.operators]):
            for operator in above.get(name, ()):
                _note(counts, name, _by_consumer(operator, change, counts))
    return counts


def filtered_first(plan: StoredPlan) -> frozenset[str]:
    """Return the operators whose rows a filter reads, so that Spark may never compute all of them."""
    names: set[str] = set()
    for operator in reversed([*plan.operators.values()]):
        if operator.answers.drops_rows(operator.fields) or (
            operator.name in names and operator.answers.passes_each(operator.fields)
        ):
            names.update(operator.inputs)
    return frozenset(names)


class Change:
    """The change from the first of some moments to the last one; ``moments`` are in the order of their ticks."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._before, self._after = moments[0], moments[-1]
        self._given = [given_in(moment.stored) for moment in moments[1:]]

    @property
    def ticks(self) -> tuple[int, int]:
        """Return the tick of the first moment, and that of the last."""
        return self._before.tick, self._after.tick

    def counted(self, gate: str, what: str) -> int | None:
        """Return the rows that a gate got or accepted; ``None`` for an operator that does not count."""
        if gate not in self._after.totals:
            return None
        return self._after.count(gate, what) - self._before.count(gate, what)

    def written(self, sink: str) -> int:
        """Return the rows that a sink got."""
        return self._after.written.get(sink, 0) - self._before.written.get(sink, 0)

    def given(self, name: str) -> int | None:
        """Return the rows that an operator gave, if each tick has them."""
        counts = [given[name] for given in self._given if name in given]
        return sum(counts) if len(counts) == self.ticks[1] - self.ticks[0] else None

    def held(self, name: str) -> int:
        """Return the increase of an operator's held rows."""
        return self._after.held.get(name, 0) - self._before.held.get(name, 0)


def _note(counts: dict[str, int], name: str, rows: int | None) -> None:
    if rows is not None:
        counts.setdefault(name, max(0, rows))


def _by_itself(operator: StoredOperator, change: Change, counts: Mapping[str, int]) -> int | None:
    """Return the rows that come out of an operator, by its own count or by its input."""
    rows = None
    if operator.answers.passes_each(operator.fields):
        rows = change.counted(operator.name, "accepted")
        if rows is None and operator.inputs and all(name in counts for name in operator.inputs):
            rows = sum(counts[name] for name in operator.inputs)
    return change.given(operator.name) if rows is None else rows - change.held(operator.name)


def _by_consumer(operator: StoredOperator, change: Change, counts: Mapping[str, int]) -> int | None:
    """Return the rows that come out of an operator's one input, by its count or by its output."""
    if len(operator.inputs) != 1:
        return None
    rows = change.counted(operator.name, "in")
    if rows is None and operator.name in counts and operator.answers.passes_each(operator.fields):
        return counts[operator.name] + change.held(operator.name)
    return change.written(operator.name) if rows is None and operator.kind == "sink" else rows
