"""What an OVER keeps from tick to tick: rows that later rows may need, accumulators, and how many these are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowtime.core.columns import AT, DUE, KEY_HASH, POSITION, RANGE_VALUE
from rowtime.core.time import BEGINNING, END
from rowtime.kernels.frames import Ints
from rowtime.kernels.windowed import Answer, lasting, newest, ranks, standing, whole
from rowtime.operators.contract import Tick
from rowtime.operators.over.over_rows import alive, of_keys

if TYPE_CHECKING:
    from rowtime.operators.over.over import Over

ROWS, HEADS = "rows", "heads"


@dataclass
class Memory:
    """The state of ``node`` in a tick, after which no row is needed whose end is at or before ``clock``.

    What it holds is counted by the keys that the tick touches, and by those that end in it: a key has its last rows and
    at most one accumulator, however many ticks wrote them. All files are read for this only once, if an older version
    wrote them.
    """

    tick: Tick
    node: Over
    clock: int
    _counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        control = self.tick.control(self.node)
        known, before = {ROWS: control.held_rows, HEADS: control.held_heads}, control.held_at
        self._counts = {ROWS: 0, HEADS: 0}
        for what in () if self.node.windows.timed else (ROWS, HEADS):
            count = known[what]
            self._counts[what] = self._between(what, before, END) if count is None else count
            if before < self.clock < END and self._ends:
                self._counts[what] -= self._between(what, before, self.clock)

    def read(self, what: str, fresh: pa.Table) -> pa.Table | None:
        """Return the kept rows of the new rows' keys, in stream order."""
        low, windows = BEGINNING, self.node.windows
        if windows.timed:
            low = int(np.asarray(fresh[RANGE_VALUE if RANGE_VALUE in fresh.column_names else AT].combine_chunks())[0])
        return self._of(what, np.unique(np.asarray(fresh[KEY_HASH])) if self.node.keys else None, low)

    def keep(self, answer: Answer, clock: int) -> None:
        """Keep what later rows may need at a clock, and count it."""
        windows = self.node.windows
        if windows.rows_kept or windows.span is not None:
            self._add(ROWS, answer.kept, clock)
        if answer.heads is not None:
            self._add(HEADS, answer.heads, clock)
        stocks = (answer.after.past(self.clock), answer.before.past(self.clock))
        for what, after, before in zip(self._counts, *stocks, strict=True):
            self._counts[what] += after - before

    def finish(self) -> None:
        """Drop what is no longer needed, merge small files, and note how much is held."""
        for what in (ROWS, HEADS):
            self.tick.segments(self.node, what).forget(self.clock)
            self._compact(what)
        if not self.node.windows.timed:
            rows, heads = (self._counts[what] if self.clock < END else 0 for what in (ROWS, HEADS))
            at = self.clock if self._ends else BEGINNING
            self.tick.remember(self.node, held_rows=rows, held_heads=heads, held_at=at)

    @property
    def _ends(self) -> bool:
        """Return True if keys end before the stream does."""
        return bool(self.node.closers) or self.node.expires is not None

    def _between(self, what: str, low: int, high: int) -> int:
        """Return how many rows or heads the keys have that end in (low, high]."""
        hashes = None
        if self.node.keys and high < END:
            segments = self.tick.segments(self.node, what)
            tables = segments.tables(segments.overlapping(low, high))
            ending = [_column(table, KEY_HASH)[_within(_column(table, DUE), low, high)] for table in tables]
            hashes = np.unique(np.concatenate(ending)) if ending else np.zeros(0, np.int64)
            if not len(hashes):
                return 0
        rows = self._of(what, hashes, low)
        if rows is None:
            return 0
        windows = self.node.windows
        codes, dues = ranks([[rows[key]] for key in windows.keys], rows.num_rows), _column(rows, DUE)
        last = np.full(int(codes.max()) + 1, BEGINNING)
        np.maximum.at(last, codes, dues)
        chosen = (dues == last[codes]) & _within(dues, low, high)
        if what == HEADS:
            return len(np.unique(codes[chosen & standing(windows, rows, rows.num_rows)]))
        return len(lasting(windows.keys, rows.filter(pa.array(chosen)), windows.rows_kept, windows.span))

    # -- files ----------------------------------------------------------------------------

    def _of(self, what: str, hashes: Ints | None, low: int) -> pa.Table | None:
        """Return the rows of some keys, all if ``None``, from files with later ends than ``low``; in stream order."""
        segments = self.tick.segments(self.node, what)
        tables = segments.tables(segments.overlapping(low, END))
        if hashes is not None:
            tables = [of_keys(table, hashes) for table in tables]
        tables = [table for table in tables if table.num_rows]
        return self._newest(pa.concat_tables(tables, promote_options="default")) if tables else None

    def _add(self, what: str, rows: pa.Table, clock: int) -> None:
        written = self.tick.keep(self.node, what, self._by_hash(alive(rows, clock)), DUE)
        self.tick.segments(self.node, what).add(written)

    def _by_hash(self, rows: pa.Table) -> pa.Table:
        """Return rows sorted by the hash of the key, so that the rows of a few keys are found quickly."""
        if not self.node.keys:
            return rows
        return rows.take(pa.array(np.argsort(np.asarray(rows[KEY_HASH]), kind="stable")))

    def _newest(self, rows: pa.Table) -> pa.Table:
        """Return rows in stream order; a row that was kept again because its key lives on comes once."""
        return newest(rows) if self.node.expires is not None else rows.sort_by(POSITION)

    def _compact(self, what: str) -> None:
        segments, windows = self.tick.segments(self.node, what), self.node.windows
        crowded = segments.crowded()
        if not crowded:
            return
        rows = self._newest(alive(pa.concat_tables(segments.tables(crowded), promote_options="default"), self.clock))
        if what == HEADS:
            rows = lasting(windows.keys, rows, 1, None)
        elif not windows.timed:
            rows = lasting(windows.keys, rows, windows.rows_kept, windows.span)
        segments.replace(crowded, self.tick.keep(self.node, what, self._by_hash(rows), DUE))


def _column(rows: pa.Table, name: str) -> Ints:
    return np.asarray(whole(rows[name]))


def _within(times: Ints, low: int, high: int) -> Ints:
    return np.asarray((times > low) & (times <= high))
