"""A source whose rows Spark has read: what the task that computes a tick has in the place of the source itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, Self

import pyarrow as pa

from rowtime.core.columns import MALFORMED
from rowtime.frames.kinds import arrow_of
from rowtime.frames.tables import Column
from rowtime.runtime.late_session import NeedsSparkError
from rowtime.runtime.sources.contract import Limits, Offsets, Slice, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Scanned(Source):
    """The rows of a source in one tick, with columns ``fields``, and what the contract says about them."""

    in_band: bool
    may_fail: bool
    gives_rowtime: bool
    steady: bool
    fields: Sequence[Column]
    tables: Sequence[pa.Table] = ()
    together: bool = False

    @classmethod
    def of(cls, source: Source, fields: Sequence[Column]) -> Self:
        """Return a source in whose place Spark reads."""
        may_fail = any(name == MALFORMED for name, _ in fields)
        facts = source.in_band, may_fail, source.gives_rowtime, source.steady, fields
        return cls(*facts, together=source.keeps_writers_together)

    @property
    def decodes(self) -> bool:
        """True if records of the source may fail to decode."""
        return self.may_fail

    @property
    def keeps_writers_together(self) -> bool:
        """As the source."""
        return self.together

    def holding(self, tables: Sequence[pa.Table]) -> Scanned:
        """Return it with the rows that were read."""
        return replace(self, tables=tables)

    def given(
        self,
        part: Slice,  # noqa: ARG002 - there is one
        columns: Collection[str] | None = None,  # noqa: ARG002 - they have been read
    ) -> tuple[Sequence[Column], Iterator[pa.Table]]:
        """Return the rows, and the types of their columns."""
        empty = pa.table({name: pa.array([], arrow_of(kind)) for name, kind in self.fields})
        return self.fields, iter(self.tables or [empty])

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, object]) -> NoReturn:  # noqa: ARG002
        """The driver has chosen the range."""
        raise NeedsSparkError("a range of a source")

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:  # noqa: ARG002 - the contract's
        """They are too many for one process."""
        raise NeedsSparkError("more rows than a process holds")

    def finished(self, at: Offsets) -> bool:  # noqa: ARG002 - the contract's
        """Return False: only the source knows it."""
        return False
