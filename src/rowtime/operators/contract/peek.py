"""Peeking: reads columns of all rows of an edge from their source, without the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.core.columns import POSITION, WRITER

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


@dataclass(frozen=True)
class Peek:
    """The source's own reader: tables in pieces, each writer's rows in order; or ``None``.

    ``times(column)``: ``__w``, ``__p``, ``t`` (BIGINT µs) of a timestamp column. ``rows({name: column})``: columns
    under other names, with the types that Spark gives them.
    """

    times: Callable[[str], Iterable[pa.Table] | None]
    rows: Callable[[Mapping[str, str]], Iterable[pa.Table] | None]

    def renamed(self, passed: Mapping[str, str]) -> Peek:
        """Return the reader for an edge above, whose columns are ``{name: column}`` of this one."""

        def rows(wanted: Mapping[str, str]) -> Iterable[pa.Table] | None:
            if not passed.keys() >= set(wanted.values()):
                return None
            return self.rows({name: passed[column] for name, column in wanted.items()})

        return Peek(lambda name: self.times(passed[name]) if name in passed else None, rows)


def times_of(rows: Frame | None, peek: Peek | None, name: str) -> pa.Table | None:
    """Return writer, position and a time (``t``, BIGINT µs) of each row; ``None`` if that needs a query."""
    if rows is not None and rows.known is not None and WRITER in rows.columns:
        times = rows.column(name).cast("int64")
        return pa.table({WRITER: rows.column(WRITER), POSITION: rows.column(POSITION), "t": times})
    pieces = None if peek is None else peek.times(name)
    return None if pieces is None else pa.concat_tables(pieces)
