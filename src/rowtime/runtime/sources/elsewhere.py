"""A source whose rows other tasks read: what the task that has their results has in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rowtime.frames.tables import Column
from rowtime.runtime.sources.contract import Slice, Source
from rowtime.runtime.sources.scanned import Scanned


@dataclass
class Elsewhere(Scanned):
    """No rows, but the number of them, and the same facts about them."""

    number: int | None = None

    @classmethod
    def reading(cls, source: Source, fields: Sequence[Column], number: int | None) -> Elsewhere:
        """Return what is in the place of a source whose columns are ``fields``."""
        return replace(cls.of(source, fields), number=number)

    def count(self, part: Slice) -> int | None:  # noqa: ARG002 - there is one
        """Return the number of rows that were read."""
        return self.number
