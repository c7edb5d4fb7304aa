"""Sample: all rows of a fraction of the keys, the same keys in every run and in every stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rowtime.operators.contract import Delta, Link, Tick, Unary, quoted

WHOLE = 1_000_000


@dataclass(frozen=True)
class Sample(Unary):
    """``SAMPLE(TABLE s PARTITION BY keys, percent)``; ``share``: about so many of a million keys.

    The choice depends only on Spark's ``xxhash64`` of the keys; texts with a collation are hashed by their bytes.
    """

    keys: tuple[str, ...]
    share: int

    kind: ClassVar[str] = "sample"

    def link(self, n: int) -> Link:
        """Return the row itself, if its key is in the sample."""
        return replace(self.unchanged(n), where=self._sampled)

    @property
    def _sampled(self) -> str:
        return f"pmod(xxhash64({', '.join(map(quoted, self.keys))}), {WHOLE}L) < {self.share}L"

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002 - lazily
        """Return the new rows whose keys are in the sample."""
        delta = deltas[0]
        if delta.rows is None:
            return delta
        return replace(delta, rows=delta.rows.where(self._sampled), files=None, timeline=None)
