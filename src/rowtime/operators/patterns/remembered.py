"""The state of MATCH_RECOGNIZE from tick to tick: rows that may still be read, and the state of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowtime.core.columns import AT, DUE, KEY_HASH, POSITION
from rowtime.core.time import BEGINNING, END
from rowtime.kernels.frames import Ints
from rowtime.kernels.matching.matcher import Matches
from rowtime.kernels.windowed import ranks
from rowtime.operators.contract import Operator, Tick
from rowtime.operators.contract.state import Kept, Segment, Segments
from rowtime.operators.over.over_rows import alive, of_keys
from rowtime.operators.patterns.partitions import (
    DECIDED,
    FIRST_ROW,
    KEPT_FROM,
    LEAST,
    MATCHED_TO,
    MATCHES,
    OPENED,
    START_FROM,
    TURN,
    WAITING,
    Laid,
    column,
    newest,
)


@dataclass(frozen=True)
class Span:
    """How long (µs) state is needed after a row; END: forever.

    ``row``: the row itself; ``partition``: the state of the partition, after its last row.
    """

    row: int
    partition: int


@dataclass(frozen=True)
class Stand:
    """The result of a tick: for each partition the number of its matches, and the position up to which they reach."""

    matches: Matches
    counts: Ints
    covered: Ints


@dataclass(frozen=True)
class Memory:
    """The rows and partitions that ``node`` keeps for ``keys``; ``reach``: how many rows back PREV reads.

    ``gap`` (µs): after the last row of a partition, the bound that ends it.
    """

    tick: Tick
    node: Operator
    keys: tuple[str, ...]
    rows: Kept
    partitions: Kept
    span: Span
    reach: int
    gap: int | None

    def due(self, before: int, clock: int) -> Ints:
        """Return the hashes of the keys for which the clock decides something."""
        segments = self._of(self.partitions)
        tables = segments.tables(segments.overlapping(BEGINNING, clock))
        hashes = [column(table, KEY_HASH)[_between(column(table, DUE), before, clock)] for table in tables]
        return np.unique(np.concatenate(hashes)) if hashes else np.zeros(0, np.int64)

    def kept(self, hashes: Ints, before: int) -> pa.Table | None:
        """Return the kept rows of some keys, in stream order; ``None`` for none."""
        rows = self._rows_of(self.rows, hashes, before)
        return None if rows is None else rows.drop_columns([DUE]).sort_by(POSITION)

    def known(self, hashes: Ints, before: int, like: pa.Table) -> pa.Table:
        """Return the state of some keys; ``like``: rows with the same columns."""
        heads = self._rows_of(self.partitions, hashes, before)
        if heads is not None:
            return newest(self.keys, heads)
        kinds = {name: like[name].type if name in self.keys else pa.int64() for name in self.partitions.columns}
        return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})

    def _rows_of(self, kept: Kept, hashes: Ints, before: int) -> pa.Table | None:
        segments = self._of(kept)
        tables = segments.tables(segments.overlapping(before, END))
        parts = [alive(of_keys(table, hashes), before) for table in tables]
        parts = [table for table in parts if table.num_rows]
        return pa.concat_tables(parts, promote_options="default") if parts else None

    def _of(self, kept: Kept) -> Segments:
        return self.tick.segments(self.node, kept.name)

    # -- writing --------------------------------------------------------------------------------

    def keep(self, laid: Laid, stand: Stand, clock: int, turn: int) -> None:
        """Keep what may still be needed."""
        rows, positions, matches = laid.rows, laid.positions, stand.matches
        last = rows.times[rows.ends - 1]
        until = np.full(len(last), END) if self.span.partition >= END else last + self.span.partition
        lives = laid.last & (until > clock)
        since = np.maximum(rows.begins, matches.next - self.reach)
        mine = laid.fresh & lives[rows.partition] & (np.arange(len(positions)) >= since[rows.partition])
        if mine.any():
            kept = laid.table.filter(pa.array(mine))
            due = np.full(kept.num_rows, END) if self.span.row >= END else column(kept, AT) + self.span.row
            self._add(self.rows, alive(kept.append_column(DUE, pa.array(due)), clock))
        if not lives.any():
            return
        behind = positions[rows.ends - 1] + 1
        first = laid.of_heads(FIRST_ROW, positions[rows.begins])
        opened = rows.times[np.minimum(matches.next, rows.ends - 1)]
        decided = np.minimum(matches.until, END if self.gap is None else last + self.gap)
        state = {
            OPENED: np.where(matches.next < rows.ends, opened, END),
            DECIDED: decided,
            AT: last,
            DUE: np.minimum(matches.until, until),
            FIRST_ROW: np.where(laid.head >= 0, first, positions[rows.begins]),
            KEPT_FROM: np.where(since < rows.ends, positions[np.minimum(since, rows.ends - 1)], behind),
            START_FROM: np.where(matches.next < rows.ends, positions[np.minimum(matches.next, rows.ends - 1)], behind),
            MATCHED_TO: stand.covered,
            MATCHES: stand.counts,
            LEAST: matches.least,
            TURN: np.full(len(last), turn),
            WAITING: rows.ends - np.minimum(matches.next, rows.ends),
        }
        heads = laid.table.select([*self.keys, KEY_HASH]).take(pa.array(rows.begins))
        for name, values in state.items():
            heads = heads.append_column(name, pa.array(values))
        self._add(self.partitions, heads.filter(pa.array(lives)))

    def _add(self, kept: Kept, rows: pa.Table) -> None:
        if rows.num_rows:
            self._of(kept).add(self._written(kept, rows))

    def _written(self, kept: Kept, rows: pa.Table) -> Sequence[Segment]:
        order = np.argsort(column(rows, KEY_HASH), kind="stable")  # so that the rows of a few keys are found quickly
        rows = rows.select(list(kept.columns)).take(pa.array(order))
        return self.tick.keep(self.node, kept.name, rows, DUE)

    # -- all keys -------------------------------------------------------------------------------

    def standing(self, clock: int) -> tuple[int, dict[str, object], int]:
        """Return the least row time (µs) that may still be emitted, END for none; and the oldest open match.

        The match has the key as text, its first row and the bound that decides it (both µs). And the number of rows
        that can still match.
        """
        heads = self._heads(clock)
        if not heads.num_rows:
            return END, {}, 0
        opened, decided = column(heads, OPENED), column(heads, DECIDED)
        first = int(opened.argmin())
        if opened[first] >= END:
            return END, {}, 0
        key = ", ".join(str(heads[name][first].as_py()) for name in self.keys)
        oldest = {"key": key, "since": int(opened[first]), "until": int(decided[first])}
        return int(column(heads, LEAST).min()), oldest, int(column(heads, WAITING).sum())

    def _heads(self, clock: int) -> pa.Table:
        """Return the state of all keys that may be needed at a clock."""
        segments = self._of(self.partitions)
        tables = [alive(table, clock) for table in segments.tables(segments.overlapping(clock, END))]
        tables = [table for table in tables if table.num_rows]
        return newest(self.keys, pa.concat_tables(tables, promote_options="default")) if tables else pa.table({})

    def forget(self, clock: int) -> None:
        """Drop what is no longer needed, and merge small files."""
        for kept in (self.rows, self.partitions):
            segments = self._of(kept)
            segments.forget(clock)
            crowded = segments.crowded()
            if not crowded:
                continue
            rows = alive(pa.concat_tables(segments.tables(crowded), promote_options="default"), clock)
            rows = newest(self.keys, rows) if kept is self.partitions else self._spoken_of(rows, clock)
            segments.replace(crowded, self._written(kept, rows))

    def _spoken_of(self, rows: pa.Table, clock: int) -> pa.Table:
        """Return the kept rows that a partition still refers to."""
        heads = self._heads(clock)
        if not heads.num_rows:
            return rows.slice(0, 0)
        codes = ranks([[heads[key], rows[key]] for key in self.keys], heads.num_rows + rows.num_rows)
        since = np.full(int(codes.max(initial=0)) + 1, END)
        since[codes[: heads.num_rows]] = column(heads, KEPT_FROM)
        return rows.filter(pa.array(column(rows, POSITION) >= since[codes[heads.num_rows :]]))


def _between(times: Ints, low: int, high: int) -> Ints:
    return np.asarray((times > low) & (times <= high))
