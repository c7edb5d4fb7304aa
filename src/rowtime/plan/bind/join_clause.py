"""One JOIN with both of its inputs, as `joins` and `as_of` bind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowtime.plan.bind.join_range import Range
from rowtime.plan.bind.scope import From, Input

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Clause:
    """One JOIN with both of its inputs, under names that are unique among them.

    ``outer``: whose rows go out without a match. ``same``: columns that are the rowtime itself. ``alone``: only rows of
    the left go out, those with a match (``left_semi``) or those without (``left_anti``).
    """

    node: exp.Join
    sources: tuple[From, From]
    inputs: tuple[tuple[Input, ...], tuple[Input, ...]]
    columns: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    outer: tuple[bool, bool]
    same: Mapping[str, str]
    tabled: bool = False
    alone: str = ""

    @property
    def both(self) -> From:
        """What ON sees."""
        left, right = self.inputs
        return From(self.sources[0].node, (*left, *right), merged=self.sources[0].merged)

    @property
    def timed(self) -> tuple[list[Input], list[Input]]:
        """The inputs of each side that are streams."""
        left, right = self.inputs
        return [one for one in left if one.rowtime], [one for one in right if one.rowtime]

    def windowed(self, found: Range) -> bool:
        """True if windows say which rows meet; behind an earlier join an interval in ON may say it instead."""
        left, [right] = self.timed
        open_end = found.low is None or found.high is None
        return right.window is not None or (
            any(one.window is not None for one in left) and (len(left) == 1 or open_end)
        )
