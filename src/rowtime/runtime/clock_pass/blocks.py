"""The clock pass over blocks: most rows of a large tick are judged without fetching them.

A *block* is a run of positions of one writer. One Spark job computes its extremes. Folded in the writer's order, with
the bounds beside the rows, they give the mark after the block, and show for most blocks that no row is refused and none
raised the mark too far. Only the times of the other blocks are fetched. If a row may be early, the mark after its block
is unknown until the block is fetched: so a round fetches, for each writer, the blocks up to the first such one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowtime.core.columns import POSITION, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.operators.rows.collations import grouped
from rowtime.runtime.clock_pass.gate_items import Key, by_block, columns_of_gate, items_of, with_bounds
from rowtime.runtime.clock_pass.gate_verdicts import Judging
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

BLOCK = 8192
ROUNDS = 8  # of fetching blocks that may contain early rows; then everything after them
LISTED = 400  # blocks that are listed one by one in a filter


def judge_by_blocks(rows: DataFrame, gate: Gate) -> Verdict:
    """Return a gate's verdict on the rows of a large tick; one Spark job, and one for each round of fetching."""
    judging, todo = Judging(gate), _by_writer(_blocks(rows, gate), gate)
    for left in reversed(range(ROUNDS)):
        wanted = [key for blocks in todo.values() for key in _wanted(blocks, judging, to_the_end=not left)]
        have = _fetched(rows, gate, wanted)
        todo = {writer: _judged(blocks, have, judging) for writer, blocks in todo.items()}
        if not any(todo.values()):
            break
    return judging.verdict()


@dataclass(frozen=True)
class Block:
    """The facts about a block (µs).

    ``least`` of the values that are compared with the mark, ``lowest`` and ``highest`` of the times, ``top`` of those
    that may be early, each ``None`` if there is none; ``bound``: the strongest bound in it or beside it. ``odd``: it
    contains a row that is refused whatever the mark; ``first``: position and time of its first row; ``mean``: of the
    times.
    """

    writer: str
    number: int
    least: int | None = None
    lowest: int | None = None
    highest: int | None = None
    top: int | None = None
    bound: int = BEGINNING
    rows: int = 0
    odd: bool = False
    first: tuple[int, int | None] = (0, None)
    mean: float = 0.0

    @property
    def key(self) -> Key:
        """Return its key among all blocks."""
        return self.writer, self.number

    @property
    def span(self) -> tuple[int, int]:
        """Return the least and greatest time; an empty span if there are no rows."""
        return (END if self.lowest is None else self.lowest, BEGINNING if self.highest is None else self.highest)

    def after(self, mark: int) -> int:
        """Return the mark after it, if no row of it is early."""
        return max(mark, self.span[1], self.bound)

    def may_be_early(self, mark: int, gate: Gate, *, started: bool) -> bool:
        """Return True if a row may be early, and then would not move the mark."""
        if gate.early is None or self.top is None:
            return False
        floor = gate.floors.get(self.writer, BEGINNING)
        if not started:  # without re-sync a first row counts, and rows far above it are early
            first = self.first[1]
            if gate.resync or gate.guarded != "true" or first is None:
                return True
            mark = max(mark, first)
        return self.top > max(mark, floor) + gate.early

    def is_calm(self, mark: int, gate: Gate, *, started: bool) -> bool:
        """Return True if every row is accepted."""
        if not self.rows:
            return True
        after, least = self.after(mark), END if self.least is None else self.least
        late = least + gate.within < after or least < gate.floors.get(self.writer, BEGINNING) or after >= END
        return not (self.odd or late or self.may_be_early(mark, gate, started=started))


Blocks = Mapping[str, Sequence[Block]]  # of each writer, in its order


def _blocks(rows: DataFrame, gate: Gate) -> Iterator[Block]:
    sql = {"j": "t", "b": "CAST(NULL AS BIGINT)", "bad": "false", "g": "true", "up": "false", **columns_of_gate(gate)}
    good = f"CASE WHEN {gate.bound_column or 'NULL'} IS NULL AND NOT ({sql['bad']}) THEN {sql['t']} END"
    judged = sql["j"] if gate.judged is not None else sql["t"]
    flags = f"{gate.bound_column or 'NULL'} IS NULL AS r", f"{sql['g']} AS g", f"{sql['up']} AS up"
    items = rows.selectExpr(
        WRITER, POSITION, f"{POSITION} DIV {BLOCK} AS blk", f"{good} AS t", f"{judged} AS j", f"{sql['b']} AS b", *flags
    )  # fmt: skip
    folded = grouped(items, [WRITER, "blk"], [
        "min(CASE WHEN t IS NOT NULL AND NOT up THEN j END) AS least",
        "min(t) AS lowest", "max(t) AS highest", "max(CASE WHEN g THEN t END) AS top",
        "max(b) AS bound", "count_if(r) AS rows", "count(t) AS times", "sum(CAST(t AS DOUBLE)) AS total",
        f"min(CASE WHEN r THEN {POSITION} END) AS p", f"min_by(t, CASE WHEN r THEN {POSITION} END) AS at",
    ])  # fmt: skip
    for row in folded.toArrow().to_pylist():
        facts = {name: row[name] for name in ("least", "lowest", "highest", "top", "rows")}
        facts["mean"] = (row["total"] or 0.0) / max(row["times"], 1)
        bound = BEGINNING if row["bound"] is None else row["bound"]
        first = (row["p"], row["at"]) if row["rows"] else (0, None)
        yield Block(row[WRITER], row["blk"], **facts, bound=bound, odd=row["rows"] != row["times"], first=first)


def _by_writer(blocks: Iterator[Block], gate: Gate) -> Blocks:
    """Add the bounds beside the rows; a block may have only bounds."""
    by_key = {block.key: block for block in blocks}
    for writer, position, at in gate.bounds:
        key = (writer, position // BLOCK)
        block = by_key.get(key, Block(*key))
        by_key[key] = replace(block, bound=max(at, block.bound))
    todo: dict[str, list[Block]] = {}
    for key in sorted(by_key):
        todo.setdefault(key[0], []).append(by_key[key])
    return todo


def _wanted(blocks: Sequence[Block], judging: Judging, *, to_the_end: bool) -> Iterator[Key]:
    """Yield the blocks of one writer that have to be fetched, as far as known."""
    if not blocks:
        return
    gate, writer = judging.gate, blocks[0].writer
    mark, started, voters = judging.mark(writer), judging.has_started(writer), 0
    deciding = writer in judging.open
    for block in blocks:
        if deciding:
            yield block.key
            voters += block.rows
            # After a jump in its last row, this many later rows decide about it.
            if voters >= 2 * gate.resync and not to_the_end:
                return
        elif block.is_calm(mark, gate, started=started):
            mark, started = block.after(mark), started or block.top is not None
        else:
            yield block.key
            deciding = block.may_be_early(mark, gate, started=started)
            started = started or block.top is not None
            if deciding and not gate.resync and not to_the_end:
                return
            mark = block.after(mark)


def _fetched(rows: DataFrame, gate: Gate, wanted: Sequence[Key]) -> Mapping[Key, pa.Table]:
    if not wanted:
        return {}
    named = rows if len(wanted) > LISTED else rows.where(_one_of(wanted))
    return by_block(with_bounds(items_of(named, gate), gate, set(wanted), BLOCK), BLOCK)


def _judged(blocks: Sequence[Block], have: Mapping[Key, pa.Table], judging: Judging) -> Sequence[Block]:
    """Judge as many blocks as possible; return the writer's remaining blocks."""
    for place, block in enumerate(blocks):
        writer = block.writer
        settled, mark, gate = writer not in judging.open, judging.mark(writer), judging.gate
        if settled and block.is_calm(mark, gate, started=judging.has_started(writer)):
            started = block.top is not None and gate.early is not None
            judging.skip(writer, block.rows, block.after(mark), block.span, block.first, started=started)
            judging.weigh(block.rows, block.mean)
        elif block.key in have:
            judging.run(writer, have[block.key])
        else:
            return blocks[place:]
    return ()


def _one_of(blocks: Sequence[Key]) -> str:
    by_writer: dict[str, list[int]] = {}
    for writer, number in blocks:
        by_writer.setdefault(writer, []).append(number)
    tests = []
    for writer, listed in by_writer.items():
        tests.append(f"({WRITER} = {literal(writer)} AND {POSITION} DIV {BLOCK} IN ({', '.join(map(str, listed))}))")
    return " OR ".join(tests)
