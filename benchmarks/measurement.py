"""A measurement and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Result = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """A name, a sentence, and the function that measures: ``measure(engines, short=…)``."""

    name: str
    says: str
    measure: Callable[..., Result]


def against(name: str, ratio: float, required: float, *, most: bool = False) -> Result:
    """Return a ratio beside its requirement: at least, or (``most``) at most ``required``."""
    met = ratio <= required if most else ratio >= required
    return {"against": name, "ratio": round(ratio, 2), "required": f"{'<=' if most else '>='} {required}", "met": met}


def answers_of(result: Result) -> list[str]:
    """Return the results of comparing answers: ``equal``, or what differs."""
    return list(result.get("answers", {}).values())


def summary(results: Sequence[Result]) -> str:
    """Count measurements, met requirements and equal answers; name missed ones and those that could not be measured."""
    required = [(result["name"], ratio) for result in results for ratio in result.get("ratios", ())]
    answers = [answer for result in results for answer in answers_of(result)]
    missed = [
        f"{name} against {one['against']} {one['ratio']}, required {one['required']}"
        for name, one in required
        if not one["met"]
    ]
    met = f"{len(required) - len(missed)} of {len(required)} requirements met"
    equal = f"{answers.count('equal')} of {len(answers)} answers equal"
    skipped = sum("skipped" in result for result in results)
    line = f"{len(results) - skipped} measurements, {met}{''.join(f'; missed: {one}' for one in missed)}, {equal}"
    return f"{line}, {skipped} skipped" if skipped else line


def settled(ticks: Sequence[float]) -> Sequence[float]:
    """Return the ticks without the first, which starts a query, and the last, in which rowtime ends its stream."""
    return ticks[1:-1]


def middle(values: Sequence[float]) -> float:
    """Return the median, rounded to a tenth."""
    return round(median(values), 1)
