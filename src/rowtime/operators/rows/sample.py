"""Sample: all rows of a share of the keys, the same keys in every run and in every stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rowtime.operators.contract import Delta, Link, Tick, Unary, quoted

WHOLE = 1_000_000


@dataclass(frozen=True)
class Sample(Unary):
    """``SAMPLE(TABLE s PARTITION BY keys, percent)``; ``share``: of a million keys, about so many.

    Which keys these are follows from Spark's ``xxhash64`` of them alone; texts with a collation count by their bytes.
    """

    keys: tuple[str, ...]
    share: int

    kind: ClassVar[str] = "sample"

    def link(self, n: int) -> Link:
        """The row itself, if its key is one of the sample."""
        return replace(self.unchanged(n), where=self._sampled)

    @property
    def _sampled(self) -> str:
        return f"pmod(xxhash64({', '.join(map(quoted, self.keys))}), {WHOLE}L) < {self.share}L"

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002 - lazily, without a job
        """The new rows whose keys are of the sample."""
        delta = deltas[0]
        if delta.rows is None:
            return delta
        return replace(delta, rows=delta.rows.where(self._sampled), peek=None, files=None, timeline=None)
