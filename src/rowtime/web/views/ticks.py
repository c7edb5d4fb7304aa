"""Ticks: how long they took and in which part, what they read and wrote, and the slowest ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from rowtime.state.costs import GOES_ON, PARTS, TickCost, costs_of
from rowtime.web.moments import NOTHING, Moment

POINTS: Final = 300  # of a chart
SLOWEST: Final = 20
NAMES: Final[Mapping[str, str]] = {
    "input": "input",
    "plan": "planning",
    "clock": "clock pass",
    "jobs": "Spark jobs",
    "driver": "driver",
    "sinks": "sinks",
    "journal": "journal",
}


def costs(moments: Sequence[Moment]) -> list[TickCost]:
    """Return the known costs of the ticks, oldest first; entries of upgrades have none."""
    return [*costs_of(moment.stored for moment in moments)]


def summary(moments: Sequence[Moment]) -> dict[str, Any]:
    """Return the summary: how many ticks, how long they take, and the slowest ones."""
    known_costs = costs(moments)
    totals = sorted(cost.total for cost in known_costs)
    return {
        "known": len(known_costs),
        "ticks": len(moments),
        "median": median(totals) if totals else None,
        "high": totals[int(len(totals) * 0.95)] if totals else None,
        "slowest": sorted(known_costs, key=lambda cost: -cost.total)[:SLOWEST],
        "newest": known_costs[-1] if known_costs else None,
        "parts": [(part, name, PARTS[part]) for part, name in NAMES.items()],
    }


def durations(moments: Sequence[Moment]) -> dict[str, Any]:
    """Return milliseconds by part, for a chart: the mean of stretches of ticks."""
    known_costs = costs(moments)
    series = [(f"{name}, ms", [_known(cost, part) for cost in known_costs]) for part, name in NAMES.items()]
    return _chart([cost.tick for cost in known_costs], series, _mean)


def rows(moments: Sequence[Moment], streams: Sequence[str]) -> dict[str, Any]:
    """Return rows in, out and refused by tick, for a chart; exact also if not every entry is known."""
    shown = [NOTHING, *moments] if moments and moments[0].tick == 0 else moments
    pairs = [*pairwise(shown)]
    ticks = [after.tick for _, after in pairs]

    def grown(count: Callable[[Moment], int]) -> list[float]:
        return [(count(after) - count(before)) / (after.tick - before.tick) for before, after in pairs]

    series = [
        ("rows in", grown(lambda moment: sum(moment.count(name, "in") for name in streams))),
        ("rows out", grown(lambda moment: sum(moment.written.values()))),
        ("refused", grown(lambda moment: sum(moment.refused(gate) for gate in moment.totals))),
    ]
    return _chart(ticks, series, _mean)


def _known(cost: TickCost, part: str) -> float | None:
    """Return the milliseconds of a part; for parts after the entry, once the next entry has them."""
    return None if part in GOES_ON and not cost.complete else cost.milliseconds.get(part, 0.0)


def _chart(
    ticks: Sequence[int],
    series: Sequence[tuple[str, Sequence[float | None]]],
    over: Callable[[Sequence[float]], float],
) -> dict[str, Any]:
    step = max(1, -(-len(ticks) // POINTS))
    parts = range(0, len(ticks), step)
    return {
        "x": [ticks[min(at + step, len(ticks)) - 1] for at in parts],
        "series": [
            {"label": label, "values": [_of_stretch(values[at : at + step], over) for at in parts]}
            for label, values in series
        ],
    }


def _of_stretch(values: Sequence[float | None], over: Callable[[Sequence[float]], float]) -> float | None:
    present = [value for value in values if value is not None]
    return round(over(present), 1) if present else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
