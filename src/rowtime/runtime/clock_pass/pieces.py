"""A gate whose rows are in several tasks: each judges its own, and the one that has all of them judges by their items.

A task does not know the marks that rows before its own have raised, so it judges from those before the tick, and
passes the items of its gates on: the facts about a few thousand rows that certainly are accepted (`Calm`), else their
times. With these, the gate is judged exactly as in one task. Mostly the tasks have refused the same rows; otherwise
they are run again from the marks that are known now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import POSITION, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.runtime.clock_pass.gate_items import columns_of_gate, filled, plain, runs, with_bounds
from rowtime.runtime.clock_pass.gate_verdicts import Judging

ROWS: Final = 8192  # of one piece; of more, fewer are within the tolerance of one another
_NUMBERS: Final = {name: pa.array([], pa.int64()) for name in (POSITION, "t")}
_NONE: Final = filled(pa.table({WRITER: pa.array([], pa.string()), **_NUMBERS}))
_PLACE: Final = [(WRITER, "ascending"), (POSITION, "ascending")]


@dataclass(frozen=True)
class Calm:
    """Rows of one writer, in order, of which none is late because of another one of them (µs).

    ``span``: their least and greatest time; ``first``: position and time of the first one; ``second``: the time of the
    next one; ``last``: the position of the last one; ``mean``: of their times. ``ordered``: their times do not go back;
    else they are within the tolerance of one another.
    """

    writer: str
    rows: int
    span: tuple[int, int]
    first: tuple[int, int]
    second: int
    last: int
    mean: float
    ordered: bool


Piece: TypeAlias = "Calm | pa.Table"
Marks = dict[str, int]


@dataclass(frozen=True)
class Judged:
    """The judgement of one gate on the rows of one task: their items in order, and the refused ones."""

    items: Sequence[Piece]
    refused: pa.Table | None


class MisjudgedError(Exception):
    """A task has refused other rows than the gate does."""


class InterleavedError(Exception):
    """Rows of a writer in one task are between those in another one, so the pieces have no order."""


def judged_apart(items: pa.Table, gate: Gate) -> tuple[Verdict, Judged]:
    """Judge the items of one task; return the verdict, and what the task that has all of them needs to know."""
    judging = Judging(gate)
    for (writer,), run in runs(with_bounds(items, gate), [WRITER]):
        judging.run(writer, run)
    verdict = judging.verdict()
    return verdict, Judged([*_pieces(items, gate)], verdict.refused)


def folded(gate: Gate, parts: Sequence[Judged]) -> Verdict:
    """Return the gate's verdict on the rows of all tasks; raises ``MisjudgedError`` if one has refused other rows."""
    judging = Judging(gate)
    try:
        for writer, piece in _in_order(gate, parts):
            if isinstance(piece, pa.Table):
                judging.run(writer, piece)
            else:
                _skip(judging, piece)
    except _NotCalmError as late:
        raise MisjudgedError from late
    verdict = judging.verdict()
    if _refusals([verdict.refused]) != _refusals([part.refused for part in parts]):
        raise MisjudgedError
    return verdict


def starts_of(parts: Sequence[Judged]) -> list[Marks]:
    """Return the mark that rows of other tasks, and bounds among them, have raised before those of each task."""
    raised: dict[str, list[tuple[int, int]]] = {}
    for (writer, position), piece in _placed(parts):
        raised.setdefault(writer, []).append((position, _highest(piece)))
    starts = []
    for part in parts:
        first: dict[str, int] = {}
        for (writer, position), _ in _placed([part]):
            first[writer] = min(position, first.get(writer, position))
        marks = {w: [high for position, high in raised[w] if position < at] for w, at in first.items()}
        starts.append({writer: max(before) for writer, before in marks.items() if before})
    return starts


class _NotCalmError(Exception):
    """Rows of which only the facts are known may be refused."""


def _pieces(items: pa.Table, gate: Gate) -> Iterator[Piece]:
    """Yield what has to be known of the items, in pieces of one writer, in order."""
    wanted = [WRITER, POSITION, *columns_of_gate(gate)]
    for (writer,), run in runs(with_bounds(items, replace(gate, bounds=())), [WRITER]):
        if not _may_be_calm(run, gate):
            yield _narrow(run, wanted)
            continue
        listed, mark = 0, gate.marks.get(writer, BEGINNING)  # the first row that is in no piece; the mark before it
        for start in range(0, run.num_rows, ROWS):
            calm = _calm(writer, run.slice(start, ROWS), gate)
            if calm is not None and _is_accepted(calm, gate, mark):
                if listed < start:
                    yield _narrow(run.slice(listed, start - listed), wanted)
                yield calm
                listed = start + calm.rows
            mark = max(mark, pc.max(run.slice(start, ROWS)["t"]).as_py())
        if listed < run.num_rows:
            yield _narrow(run.slice(listed), wanted)


def _may_be_calm(run: pa.Table, gate: Gate) -> bool:
    """Return True for rows with a time that decode, and are compared with the mark by that time alone."""
    if gate.bounds or gate.judged is not None or gate.early is not None or gate.behind or gate.batched:
        return False
    return run["t"].null_count == 0 and run["b"].null_count == run.num_rows and not pc.any(run["bad"]).as_py()


def _calm(writer: str, run: pa.Table, gate: Gate) -> Calm | None:
    """Return the facts about rows; ``None`` if one may be late, or a later one may be to blame for that (`Raise`)."""
    times = run["t"].to_numpy()
    span = int(times.min()), int(times.max())
    ordered = gate.reason != "LATE" and bool((times[1:] >= times[:-1]).all())
    if span[0] + gate.within < span[1] and not ordered:
        return None
    first, second = (run[POSITION][0].as_py(), int(times[0])), int(times[1]) if len(times) > 1 else BEGINNING
    return Calm(writer, len(times), span, first, second, run[POSITION][-1].as_py(), float(times.mean()), ordered)


def _narrow(run: pa.Table, wanted: Sequence[str]) -> pa.Table:
    """Return only the columns that `filled` does not add."""
    narrow = run.select([name for name in wanted if name in run.column_names])
    at = narrow.column_names.index(WRITER)
    return narrow.set_column(at, WRITER, narrow[WRITER].cast(pa.string()).dictionary_encode())


def _placed(parts: Sequence[Judged]) -> list[tuple[tuple[str, int], Piece]]:
    """Return the pieces in the order of their places, with the writer and the first position of each.

    Raises ``InterleavedError`` if one has rows between those of another one.
    """
    placed = sorted(((_place(piece), piece) for part in parts for piece in part.items), key=itemgetter(0))
    for ((writer, _), piece), ((following, first), _) in pairwise(placed):
        if writer == following and first < _last(piece):
            raise InterleavedError(f"rows of {writer} in several tasks")
    return placed


def _place(piece: Piece) -> tuple[str, int]:
    if isinstance(piece, Calm):
        return piece.writer, piece.first[0]
    return piece[WRITER][0].as_py(), piece[POSITION][0].as_py()


def _last(piece: Piece) -> int:
    last: int = piece.last if isinstance(piece, Calm) else piece[POSITION][-1].as_py()
    return last


def _in_order(gate: Gate, parts: Sequence[Judged]) -> Iterator[tuple[str, Piece]]:
    """Yield the pieces with their writers; tables also have the bounds beside the rows."""
    placed = _placed(parts)
    if not gate.bounds:
        yield from ((writer, piece if isinstance(piece, Calm) else filled(piece)) for (writer, _), piece in placed)
        return
    tables = [plain(filled(piece)) for _, piece in placed if isinstance(piece, pa.Table)]
    whole = pa.concat_tables([_NONE, *tables], promote_options="permissive")
    yield from ((writer, run) for (writer,), run in runs(with_bounds(whole, gate), [WRITER]))


def _skip(judging: Judging, calm: Calm) -> None:
    """Accept rows of which only the facts are known; raises ``_NotCalmError`` if the mark before them is too high."""
    mark = judging.mark(calm.writer)
    if not _is_accepted(calm, judging.gate, mark):
        raise _NotCalmError
    facts = calm.writer, calm.rows, max(mark, calm.span[1]), calm.span, calm.first
    judging.skip(*facts, second=calm.second, started=False)
    judging.weigh(calm.rows, calm.mean)


def _is_accepted(calm: Calm, gate: Gate, mark: int) -> bool:
    """Return True if none of the rows is refused after a mark."""
    low, after = calm.span[0], max(mark, calm.span[1])
    is_late = low + gate.within < (mark if calm.ordered else after)
    return not is_late and low >= gate.floors.get(calm.writer, BEGINNING) and after < END


def _highest(piece: Piece) -> int:
    """Return the greatest time of rows that decode, or the strongest bound, if that is greater."""
    if isinstance(piece, Calm):
        return piece.span[1]
    items = filled(piece)
    times = [pc.max(items.filter(pc.invert(items["bad"]))["t"]).as_py(), pc.max(items["b"]).as_py()]
    return max((at for at in times if at is not None), default=BEGINNING)


def _refusals(tables: Sequence[pa.Table | None]) -> list[tuple[object, ...]]:
    """Return refused rows in the order of their places."""
    rows = [table for table in tables if table is not None and table.num_rows]
    if not rows:
        return []
    whole = pa.concat_tables(rows).sort_by(_PLACE)
    return [*zip(*(whole[name].to_pylist() for name in whole.column_names), strict=True)]
