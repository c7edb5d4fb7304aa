"""Peeking: columns of all rows of an edge, read where the rows lie, without a Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Peek:
    """What a source reads by itself: tables in pieces, each writer's rows in its order; or ``None``.

    ``times(column)``: ``__w``, ``__p``, ``t`` (BIGINT µs) of a column of timestamps.
    ``rows({name: column})``: columns by names of the reader's, each of the type that Spark gives it.
    """

    times: Callable[[str], Iterable[pa.Table] | None]
    rows: Callable[[Mapping[str, str]], Iterable[pa.Table] | None]

    def renamed(self, passed: Mapping[str, str]) -> Peek:
        """That of an edge above, whose columns are ``{name: column}`` of this one."""

        def rows(wanted: Mapping[str, str]) -> Iterable[pa.Table] | None:
            if not passed.keys() >= set(wanted.values()):
                return None
            return self.rows({name: passed[column] for name, column in wanted.items()})

        return Peek(lambda name: self.times(passed[name]) if name in passed else None, rows)
