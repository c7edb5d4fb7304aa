"""Graph: the operators of a plan, the rows between them, and the path to the writer that holds everything else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rowtime.core.clock import NOBODY, least
from rowtime.core.time import END, to_text
from rowtime.plan.holders import holder, slowest_of
from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.state.costs import left_in
from rowtime.state.journal import Entry
from rowtime.web.moments import Moment, held_by
from rowtime.web.views.passed import filtered_first, rows_out, since
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
