"""The clock pass: decides at a gate, exactly, which rows of a tick are refused.

A small tick is judged whole. In a large one, a first job takes the least and greatest time
of each *block*, a run of positions of one writer; the driver folds them in the writer's
order and so knows the mark after each. A block whose least time + tolerance is not below
the mark after it holds no refused row. Only the times of the other blocks are fetched and
scanned row by row (`kernels.high_water`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import P, W
from rowtime.operators.gates import Gate, Raise, Verdict
from rowtime.runtime.judgement import Tally, judge_run, numbers
from rowtime.runtime.segment_writer import SMALL
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK = 8192
PIECE = 65_536  # rows that are judged at once, so that what the kernel makes of them stays in the cache
ROUNDS = 8  # of looking at blocks that may hold early rows; then at everything behind them
_LISTED = 400  # blocks that are named one by one in a filter


def judge(rows: DataFrame, gate: Gate, count: int | None, peeked: Iterable[pa.Table] | None = None) -> Verdict:
    """The verdict of a gate over the rows of one tick; one Spark job, or two.

    None at all where the times are known already: ``peeked`` are tables of ``__w``, ``__p``,
    ``t``, each writer's rows in its order from the first to the last.
    """
    if peeked is not None:
        tables = peeked if not gate.bounds else [pa.concat_tables(peeked, promote_options="permissive")]
        return _verdict(map(_as_items, tables), gate)
    if gate.batched or not _folds(gate) or (count is not None and count <= SMALL):
        return _verdict([_items(rows, gate)], gate)
    blocks = _blocks(rows, gate)
    judged = _Blocks(rows, gate)
    folded = _fold(blocks, gate, judged.marks)
    for left in reversed(range(ROUNDS)):
        if folded.stopped:
            judged.judge(folded.stopped, to_the_end=not left)
            folded = _fold(blocks, gate, judged.marks)
    counts = folded.counts + judged.tally.counts
    lowest, highest = _range(blocks)
    if not folded.open:
        return Verdict(_together(judged.refused), counts, folded.marks, lowest, highest)
    listed = rows if len(folded.open) > _LISTED else rows.where(_one_of(folded.open))
    after = replace(gate, marks=folded.marks)
    return _scan_open(_items(listed, gate), after, folded.open, counts, judged.refused, (lowest, highest))


def _folds(gate: Gate) -> bool:
    """True if the greatest times of blocks say where the mark is, at least where no row can be early."""
    plain = gate.lifted == "false" and gate.started is None and not gate.resync and not gate.bounds
    return not gate.behind and (gate.early is None or plain)


# -- the blocks -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    writer: str
    number: int
    least: int | None  # of what is judged
    greatest: int
    lowest: int | None
    rows: int
    odd: bool  # holds a null time or a record that does not decode


def _blocks(rows: DataFrame, gate: Gate) -> list[_Block]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    time = f"unix_micros({gate.time})"
    bound = f"unix_micros({gate.bound_column})" if gate.bound_column else "CAST(NULL AS BIGINT)"
    bad = f"{gate.malformed_column} IS NOT NULL" if gate.malformed_column else "false"
    is_row = f"{gate.bound_column} IS NULL" if gate.bound_column else "true"
    good = f"CASE WHEN {is_row} AND NOT ({bad}) THEN {time} END"
    judged = f"unix_micros({gate.judged or gate.time})"
    items = rows.selectExpr(
        W, f"{P} DIV {BLOCK} AS blk", f"{good} AS t", f"{judged} AS j", f"{bound} AS b", f"{is_row} AS r"
    )
    folded = items.groupBy(W, "blk").agg(
        F.expr("min(CASE WHEN t IS NOT NULL THEN j END) AS lo"), F.expr("greatest(max(t), max(b)) AS hi"),
        F.expr("min(t) AS low"), F.expr("count_if(r) AS n"), F.expr("count(t) AS k"),
    )  # fmt: skip
    table = folded.toArrow().sort_by([(W, "ascending"), ("blk", "ascending")])
    return [
        _Block(r[W], r["blk"], r["lo"], BEGINNING if r["hi"] is None else r["hi"], r["low"], r["n"], r["n"] != r["k"])
        for r in table.to_pylist()
    ]


Key = tuple[str, int]  # writer and number of a block


@dataclass(frozen=True)
class _Folded:
    """Blocks that may hold a late row, with the mark before each; the marks after all; counts of the others.

    ``stopped``: the first block of a writer that may hold an early row, with the mark before it.
    """

    open: Mapping[Key, int]
    marks: Mapping[str, int]
    counts: Counter[str]
    stopped: Mapping[Key, int]


def _fold(blocks: Iterable[_Block], gate: Gate, judged: Mapping[Key, int]) -> _Folded:
    """Fold the blocks of each writer in its order; ``judged`` has the marks behind those that were looked at."""
    marks, counts = dict(gate.marks), Counter[str]()
    bounds = _bounds_by_block(gate)
    uncertain: dict[Key, int] = {}
    stopped: dict[str, tuple[Key, int]] = {}
    there = {(block.writer, block.number): block for block in blocks}
    # A block may hold bounds alone; they raise the mark for the blocks behind it.
    for key in sorted({*there, *bounds}):
        block = there.get(key) or _Block(*key, None, BEGINNING, None, 0, odd=False)
        if key in judged:
            marks[block.writer] = judged[key]
            continue
        before = marks.get(block.writer, BEGINNING)
        # An early row would not move the mark: nothing is known behind a block that may hold one.
        if block.writer in stopped or _may_be_early(block, before, gate):
            stopped.setdefault(block.writer, (key, before))
            continue
        after = max(before, block.greatest, bounds.get(key, BEGINNING))
        least = END if block.least is None else block.least
        if block.odd or least + gate.within < after or least < gate.floors.get(block.writer, BEGINNING):
            uncertain[key] = before
        else:
            counts.update({"in": block.rows, "accepted": block.rows})
        marks[block.writer] = after
    return _Folded(uncertain, marks, counts, dict(stopped.values()))


def _may_be_early(block: _Block, mark: int, gate: Gate) -> bool:
    if gate.early is None:
        return False
    return mark <= BEGINNING or block.greatest > max(mark, gate.floors.get(block.writer, BEGINNING)) + gate.early


class _Blocks:
    """Blocks that were judged row by row, because the guard may have refused rows of theirs."""

    def __init__(self, rows: DataFrame, gate: Gate) -> None:
        self.rows, self.gate, self.tally = rows, gate, Tally(gate)
        self.marks: dict[Key, int] = {}
        self.refused: list[pa.Table | None] = []

    def judge(self, blocks: Mapping[Key, int], *, to_the_end: bool) -> None:
        """Judge some blocks of different writers, or all from these on."""
        which = _from_on(blocks) if to_the_end else _one_of(blocks)
        items = _with_bounds(_items(self.rows.where(which), self.gate), self.gate, {})
        items = items.append_column("blk", pc.divide(items[P], BLOCK))
        marks = {writer: mark for (writer, _), mark in blocks.items()}
        for (writer, number), part in _runs(items, [W, "blk"]):
            found = judge_run(self.tally, writer, part, marks[writer])
            self.marks[writer, number] = marks[writer] = max(marks[writer], found.mark)
            self.refused.append(found.refused)


def _from_on(blocks: Iterable[Key]) -> str:
    return " OR ".join(f"({W} = {literal(writer)} AND {P} DIV {BLOCK} >= {number})" for writer, number in blocks)


def _bounds_by_block(gate: Gate) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for writer, position, at in gate.bounds:
        key = (writer, position // BLOCK)
        found[key] = max(at, found.get(key, BEGINNING))
    return found


def _range(blocks: Iterable[_Block]) -> tuple[int, int]:
    leasts = [block.lowest for block in blocks if block.lowest is not None]
    return min(leasts, default=BEGINNING), max((block.greatest for block in blocks), default=END)


def _one_of(blocks: Iterable[tuple[str, int]]) -> str:
    by_writer: dict[str, list[int]] = {}
    for writer, number in blocks:
        by_writer.setdefault(writer, []).append(number)
    tests = []
    for writer, listed in by_writer.items():
        tests.append(f"({W} = {literal(writer)} AND {P} DIV {BLOCK} IN ({', '.join(map(str, listed))}))")
    return " OR ".join(tests)


# -- row by row -----------------------------------------------------------------------


def _items(rows: DataFrame, gate: Gate) -> pa.Table:
    bound = f"unix_micros({gate.bound_column})" if gate.bound_column else "CAST(NULL AS BIGINT)"
    bad = f"{gate.malformed_column} IS NOT NULL" if gate.malformed_column else "false"
    judged = f"unix_micros({gate.judged or gate.time}) AS j"
    columns = [f"unix_micros({gate.time}) AS t", judged, f"{bound} AS b", f"{bad} AS bad"]
    columns += [f"{gate.guarded} AS g", f"{gate.lifted} AS up"]
    return rows.selectExpr(W, P, *columns).toArrow()


def _as_items(peeked: pa.Table) -> pa.Table:
    """Times that the source gave: rows only, all of which decode."""
    count = peeked.num_rows
    items = peeked.append_column("j", peeked["t"])
    items = items.append_column("b", pa.nulls(count, pa.int64()))
    items = items.append_column("bad", pa.repeat(pa.scalar(False), count))  # noqa: FBT003
    items = items.append_column("g", pa.repeat(pa.scalar(True), count))  # noqa: FBT003
    return items.append_column("up", pa.repeat(pa.scalar(False), count))  # noqa: FBT003


def _with_bounds(items: pa.Table, gate: Gate, wanted: Mapping[tuple[str, int], int] | None) -> pa.Table:
    chosen = [b for b in gate.bounds if wanted is None or (b[0], b[1] // BLOCK) in wanted]
    if chosen:
        extra = pa.table(
            {
                W: pa.array([b[0] for b in chosen], pa.string()),
                P: pa.array([b[1] for b in chosen], pa.int64()),
                "t": pa.array([None] * len(chosen), pa.int64()),
                "j": pa.array([None] * len(chosen), pa.int64()),
                "b": pa.array([b[2] for b in chosen], pa.int64()),
                "bad": pa.array([False] * len(chosen)),
                "g": pa.array([False] * len(chosen)),
                "up": pa.array([False] * len(chosen)),
            }
        )
        items = pa.concat_tables([items.select(extra.column_names).cast(extra.schema), extra])
    return (
        items
        if _in_order(items)
        else items.set_column(items.column_names.index(W), W, items[W].cast(pa.string())).sort_by(
            [(W, "ascending"), (P, "ascending")]
        )
    )


def _in_order(items: pa.Table) -> bool:
    """True if the rows of each writer stand together and their positions ascend already."""
    if not items.num_rows:
        return True
    writers = len(items[W].unique())
    change = _changes(items, W)[1:] if writers > 1 else np.zeros(items.num_rows - 1, bool)
    positions = items[P].to_numpy()
    return bool(change.sum() + 1 == writers and (change | (positions[1:] > positions[:-1])).all())


def _verdict(tables: Iterable[pa.Table], gate: Gate) -> Verdict:
    judging = _Judging(gate)
    for items in tables:
        for (writer,), run in _runs(_with_bounds(items, gate, None), [W]):
            judging.run(writer, run)
    return judging.verdict()


class _Judging:
    """Judges the rows of some writers piece by piece; what is open goes before the next piece of its writer."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.tally = Tally(gate, recent=dict(gate.recent), started=set(gate.started or ()))
        self.marks, self.raised = dict(gate.marks), dict(gate.raised)
        self.open: dict[str, pa.Table] = {}
        self.refused: list[pa.Table | None] = []
        self.span = (END, BEGINNING)

    def run(self, writer: str, items: pa.Table) -> None:
        """All items of a writer that are at hand."""
        first = self.marks.get(writer, BEGINNING)
        for start in range(0, items.num_rows, PIECE):
            part = items.slice(start, PIECE)
            if writer in self.open:
                part = _behind(self.open.pop(writer), part)
            # A set without order meets the mark before it as a whole.
            self._part(writer, part, first if self.gate.batched else self.marks.get(writer, BEGINNING), ended=False)

    def verdict(self) -> Verdict:
        """The verdict over everything; what is open of writers that have gone is decided."""
        for writer in [writer for writer in self.open if writer not in self.gate.present]:
            self._part(writer, self.open.pop(writer), self.marks.get(writer, BEGINNING), ended=True)
        last = {writer: list(many) for writer, many in self.tally.recent.items()}
        held = {writer: items[P].to_pylist() for writer, items in self.open.items()}
        refused, counts = _together(self.refused), self.tally.counts
        return Verdict(refused, counts, self.marks, *self.span, last, self.raised, self.tally.started, held)

    def _part(self, writer: str, part: pa.Table, mark: int, *, ended: bool) -> None:
        found = judge_run(self.tally, writer, part, mark, ended=ended)
        if found.judged < part.num_rows:
            self.open[writer] = part.slice(found.judged)
            part = part.slice(0, found.judged)
        before = self.marks.get(writer, BEGINNING)
        self.marks[writer] = after = max(before, found.mark)
        if self.gate.reason == "LATE" and part.num_rows:
            raised = _raised(self.raised.get(writer), part, self.gate, (before, after), found.refused)
            self.raised |= {} if raised is None else {writer: raised}
        self.span = (min(self.span[0], found.span[0]), max(self.span[1], found.span[1]))
        self.refused.append(found.refused)


def _behind(first: pa.Table, second: pa.Table) -> pa.Table:
    """Two tables of one writer's items as one, whatever form the writer's name has in them."""
    plain = [table.set_column(table.column_names.index(W), W, table[W].cast(pa.string())) for table in (first, second)]
    return pa.concat_tables([plain[0], plain[1].select(plain[0].column_names)], promote_options="permissive")


def _raised(
    found: Raise | None, part: pa.Table, gate: Gate, marks: tuple[int, int], refused: pa.Table | None
) -> Raise | None:
    """The last row that raised the mark by more than the tolerance, with what became of the rows since.

    A late row counts if it would not be late without that raise. A row to which most of
    the rows since are lost stays, whatever raises the mark once more.
    """
    mark, after = marks
    times, known = numbers(part["t"])
    known = known & ~part["bad"].to_numpy()
    late = np.zeros(part.num_rows, bool)
    if refused is not None and refused.num_rows:
        late = np.isin(part[P].to_numpy(), refused.filter(pc.equal(refused["reason"], "LATE"))[P].to_numpy())
    lost = found is not None and found.poisons
    steps = after > mark + gate.within and (np.diff(times, prepend=max(mark, BEGINNING)) > gate.within).any()
    if mark < END and steps and not lost:
        running = np.maximum.accumulate(np.concatenate(([mark], np.where(known & (times <= after), times, BEGINNING))))
        jumps = np.flatnonzero(np.diff(running) > gate.within)
        if len(jumps):
            last = int(jumps[-1])
            before, behind = int(running[last]), slice(last + 1, None)
            blamed = late[behind] & (times[behind] + gate.within >= before)
            place = part[P][last].as_py()
            return Raise(place, before, int(running[last + 1]), len(blamed), int(blamed.sum()))
    if found is None:
        return None
    blamed = late & (times + gate.within >= found.before)
    return found._replace(rows=found.rows + len(blamed), late=found.late + int(blamed.sum()))


def _scan_open(  # noqa: PLR0913 - the fold's results belong together
    items: pa.Table,
    gate: Gate,
    open_blocks: Mapping[Key, int],
    counts: Counter[str],
    refused: Iterable[pa.Table | None],
    span: tuple[int, int],
) -> Verdict:
    items = _with_bounds(items, gate, open_blocks)
    items = items.append_column("blk", pc.divide(items[P], BLOCK))
    tally, parts = Tally(gate, counts), list(refused)
    for (writer, number), part in _runs(items, [W, "blk"]):
        if (writer, number) in open_blocks:
            parts.append(judge_run(tally, writer, part, open_blocks[writer, number]).refused)
    return Verdict(_together(parts), counts, gate.marks, *span)


def _runs(items: pa.Table, keys: list[str]) -> Iterable[tuple[tuple, pa.Table]]:  # type: ignore[type-arg]
    """The stretches of equal keys of a sorted table."""
    if not items.num_rows:
        return
    if keys == [W] and len(items[W].unique()) == 1:
        yield (items[W][0].as_py(),), items
        return
    change = np.logical_or.reduce([_changes(items, key) for key in keys])
    starts = [*np.flatnonzero(change).tolist(), items.num_rows]
    for start, stop in zip(starts, starts[1:], strict=False):
        part = items.slice(start, stop - start)
        yield tuple(part[key][0].as_py() for key in keys), part


def _changes(items: pa.Table, key: str) -> np.ndarray:
    """True where a column has another value than in the row before, and in the first row."""
    column = items[key].combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = (encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded).indices.to_numpy()
    return np.concatenate(([True], codes[1:] != codes[:-1]))


def _together(parts: list[pa.Table | None]) -> pa.Table | None:
    found = [part for part in parts if part is not None and part.num_rows]
    return pa.concat_tables(found) if found else None
