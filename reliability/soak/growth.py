"""Whether something grows: compares the last fifth of a run with its second fifth; the first is warm-up.

A machine is noisy, so medians are compared. Steady growth is also seen in the fourth fifth, a disturbance of the last
fifth is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

FIFTHS = 5
Sample = Mapping[str, float]


@dataclass(frozen=True)
class Tolerance:
    """How much more the last fifth may have than the second: a share of it, and an amount in its unit.

    ``of``: what represents a fifth; its minimum, if the gauge varies above a steady value.
    """

    unit: str
    share: float
    amount: float
    of: Callable[[Iterable[float]], float] = median

    def allowed(self, before: float) -> float:
        """Return by how much a gauge of this value may have grown."""
        return before * self.share + self.amount


@dataclass(frozen=True)
class Trend:
    """One gauge: its value for each fifth of the run."""

    gauge: str
    tolerance: Tolerance
    fifths: Sequence[float]

    @property
    def grows(self) -> bool:
        """Return True if the last fifth is beyond the tolerance, and the fourth beyond a third of it.

        In steady growth the fourth has two thirds.
        """
        _, before, _, fourth, last = self.fifths
        allowed = self.tolerance.allowed(before)
        return last - before > allowed and fourth - before > allowed / 3

    def __str__(self) -> str:
        return f"{self.gauge} {self.fifths[1]:,.0f} → {self.fifths[-1]:,.0f}{self.tolerance.unit}"


def growing(found: Iterable[Trend], together: Sequence[str]) -> list[Trend]:
    """Return the trends of what grows; those of ``together`` only if all of them do.

    The time of a tick is longer beside other programs, and shorter than alone without their share: if that share
    changes, one of the two increases and the other decreases.
    """
    grown = [trend for trend in found if trend.grows]
    all_do = {trend.gauge for trend in grown} >= {*together}
    return [trend for trend in grown if all_do or trend.gauge not in together]


def trends(samples: Sequence[Sample], tolerances: Mapping[str, Tolerance]) -> list[Trend]:
    """Return the trend of each gauge; the samples are evenly spaced over the whole run, at least two in each fifth."""
    if len(samples) < 2 * FIFTHS:
        raise ValueError(f"{len(samples)} samples are too few")
    ends = [len(samples) * number // FIFTHS for number in range(FIFTHS + 1)]
    fifths = [samples[start:end] for start, end in zip(ends, ends[1:], strict=False)]
    return [
        Trend(name, tolerance, [tolerance.of(sample[name] for sample in fifth) for fifth in fifths])
        for name, tolerance in tolerances.items()
    ]
