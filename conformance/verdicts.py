"""The outcome of one case of a suite: right, refused, different on purpose, or wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

RIGHT, REFUSED, DIFFERENT, WRONG = "right", "refused", "different on purpose", "wrong"
OUTCOMES: Final = (RIGHT, REFUSED, DIFFERENT, WRONG)


@dataclass(frozen=True)
class Verdict:
    """One case. ``why``: the reason of a refusal, the rule by which it is different, or what is wrong."""

    case: str
    outcome: str
    why: str = ""


@dataclass(frozen=True)
class Suite:
    """The verdicts of one suite; ``source`` says where its cases come from. ``missing``: why it did not run."""

    name: str
    source: str
    verdicts: Sequence[Verdict] = field(default=())
    missing: str = ""

    def count(self, outcome: str) -> int:
        """Return how many cases have this outcome."""
        return sum(one.outcome == outcome for one in self.verdicts)

    def reasons(self, outcome: str) -> list[tuple[str, int]]:
        """Return why cases have this outcome, and how many."""
        return sorted(Counter(one.why for one in self.verdicts if one.outcome == outcome).items())


def wrong(suites: Iterable[Suite]) -> list[str]:
    """Return the cases that are wrong."""
    return [
        f"{suite.name}: {one.case}: {one.why}" for suite in suites for one in suite.verdicts if one.outcome == WRONG
    ]
