"""Judges some rows of one writer, all of whose times are available.

The results go into one `Tally`: counts, and marks that do not follow from the rows alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import POSITION, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.kernels.blame import Past
from rowtime.kernels.guard import EARLY, OK, Items, Limits, guard
from rowtime.kernels.high_water import Scan, calm, scan
from rowtime.operators.contract.gates import READMITTED, Gate
from rowtime.operators.contract.lateness import Lateness

_NONE = np.empty(0, np.intp)


@dataclass
class Tally:
    """A gate's results so far: counts, the last times of a writer, the writers with rows that count for the guard."""

    gate: Gate
    counts: Counter[str] = field(default_factory=Counter)
    recent: dict[str, Sequence[int]] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    lateness: Lateness = field(default_factory=Lateness)

    def has_started(self, writer: str, mark: int) -> bool:
        """Return True if the writer's next row may be early."""
        if self.gate.resync and writer == READMITTED:
            return True
        return mark > BEGINNING if self.gate.started is None else writer in self.started


class Judged(NamedTuple):
    """Refused rows, the mark after all, the least and greatest time of the accepted ones; the number of judged rows.

    ``places``: where the refused rows are among these; ``mean``: of the times of the accepted ones. ``past``: what
    moved the mark; ``None`` if every row is accepted, and only the first may have raised the mark too far.
    """

    refused: pa.Table | None
    mark: int
    span: tuple[int, int]
    judged: int
    places: np.ndarray = _NONE
    accepted: int = 0
    mean: float = 0.0
    past: Past | None = None


@dataclass(frozen=True)
class _Columns:
    """The columns of one judgement: what moves the mark, what is compared with it, and which items are rows."""

    times: np.ndarray
    judged: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    guarded: np.ndarray
    raised: np.ndarray

    @classmethod
    def of(cls, part: pa.Table) -> _Columns:
        time, bound = numbers(part["t"]), numbers(part["b"])
        rows = ~bound[1]
        known = np.where(rows, time[1] & ~part["bad"].to_numpy(), bound[1])
        guarded = known & rows & part["g"].to_numpy()
        return cls(
            np.where(rows, time[0], bound[0]), numbers(part["j"])[0], known, rows, guarded, part["up"].to_numpy()
        )

    def first(self, count: int) -> _Columns:
        """Return the first ``count`` of them."""
        return _Columns(*(getattr(self, column.name)[:count] for column in fields(self)))


def judge_run(tally: Tally, writer: str, part: pa.Table, mark: int, *, ended: bool) -> Judged:
    """Judge some rows of one writer, in order, from ``mark`` on; ``ended``: no others follow."""
    gate, floor = tally.gate, tally.gate.floors.get(writer, BEGINNING)
    if _is_plain(part, gate) and (whole := _calm(tally, part, mark, floor)) is not None:
        return whole
    items = _Columns.of(part)
    early = np.zeros(part.num_rows, bool)
    if gate.early is None:
        scanned = _scanned(tally, writer, items, mark, floor)
        if gate.batched:
            scanned = _all_at_once(scanned, items, mark, gate)
    else:
        scanned, early = _guarded(tally, writer, items, mark, floor, ended=ended)
        part, items = part.slice(0, len(early)), items.first(len(early))
    bad, far = (part[name].to_numpy() & items.rows for name in ("bad", "far"))
    missing = items.rows & ~bad & ~items.known
    which = np.flatnonzero(items.rows & (scanned.refused | missing | bad))
    # A row below its writer's own clock is out of order, whatever the stream's clock when the writer came.
    below = scanned.below_floor & (gate.reason == "OUT_OF_ORDER") & (items.judged >= scanned.before)
    conditions = [far[which] | early[which], bad[which], missing[which], below[which]]
    names = ["EARLY", "MALFORMED", gate.missing, "LATE", gate.reason]
    reasons = np.select(conditions, range(4), 4)
    accepted = items.rows.copy()
    accepted[which] = False
    tally.counts.update({"in": int(items.rows.sum()), "accepted": int(accepted.sum())})
    for name, count in zip(names, np.bincount(reasons, minlength=5).tolist(), strict=True):
        tally.counts.update({name: count} if count else {})
    table = pa.table(
        {
            WRITER: pa.repeat(pa.scalar(writer, pa.string()), len(which)),
            POSITION: pa.array(part[POSITION].to_numpy()[which], pa.int64()),
            "reason": pa.array(names, pa.string()).take(pa.array(reasons)),
            "mark": pa.array(np.maximum(scanned.before[which], floor), pa.int64()),
        }
    )
    late = which[(reasons == 4) & (items.judged[which] + gate.within < scanned.before[which])]  # noqa: PLR2004 - the gate's
    if gate.of_time:
        tally.lateness += Lateness.of(scanned.before[late] - items.judged[late])
    times = items.times[accepted]
    spent = (_span(times), part.num_rows, which, len(times), _mean(times))
    return Judged(
        table, scanned.mark, *spent, _past(part, items, scanned.before, accepted, late[items.judged[late] >= floor])
    )


def _calm(tally: Tally, part: pa.Table, mark: int, floor: int) -> Judged | None:
    """Return the judgement on plain rows if every one is accepted."""
    times, many, within = part["t"].to_numpy(), part.num_rows, tally.gate.within
    judged = calm(times, mark, within, floor)
    if judged is None:
        return None
    tally.counts.update({"in": many, "accepted": many})
    past = None
    if tally.gate.reason == "LATE" and (np.diff(times) > within).any():
        running = np.maximum.accumulate(np.concatenate(([max(mark, BEGINNING)], times)))[:-1]
        flags = np.ones(many, bool)
        past = Past(part[POSITION].to_numpy(), times, times, flags, ~flags, running)
    span = (judged.lowest, judged.highest)
    return Judged(None, judged.mark, span, many, accepted=many, mean=_mean(times), past=past)


def _past(part: pa.Table, items: _Columns, before: np.ndarray, accepted: np.ndarray, late: np.ndarray) -> Past:
    """Return what moved the mark: accepted rows, bounds, and rows that are late because of the mark."""
    is_late = np.zeros(len(items.times), bool)
    is_late[late] = True
    moves = items.known & (accepted | ~items.rows | is_late)
    times = np.where(moves, items.times, BEGINNING)
    return Past(part[POSITION].to_numpy(), times, items.judged, items.rows, is_late, before)


def numbers(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return a column of whole numbers, and where it is not null."""
    if column.null_count == 0:
        return column.to_numpy(), np.ones(len(column), bool)
    if column.null_count == len(column):
        return np.full(len(column), BEGINNING), np.zeros(len(column), bool)
    known = pc.is_valid(column).to_numpy()
    return pc.fill_null(column, BEGINNING).to_numpy(), known


def _is_plain(part: pa.Table, gate: Gate) -> bool:
    """Return True for plain rows that have a time, decode, and are judged by it in order."""
    if gate.batched:
        return False
    no_nulls = part["t"].null_count == 0 and part["b"].null_count == part.num_rows
    in_sequence = gate.behind or gate.early is not None
    return no_nulls and gate.judged is None and not in_sequence and not pc.any(part["bad"]).as_py()


def _scanned(tally: Tally, writer: str, items: _Columns, mark: int, floor: int) -> Scan:
    """Judge by the high-water mark, which may not include the last rows yet."""
    gate, recent = tally.gate, tally.recent.get(writer, ())
    held = [BEGINNING] * gate.behind
    held[max(0, gate.behind - len(recent)) :] = recent
    scanned = scan(
        items.times, items.judged, items.known, items.rows, mark, gate.within, floor, np.array(held, np.int64)
    )
    if gate.behind:
        tally.recent[writer] = scanned.recent.tolist()
    return scanned


def _guarded(  # noqa: PLR0913 - the state of the writer
    tally: Tally, writer: str, items: _Columns, mark: int, floor: int, *, ended: bool
) -> tuple[Scan, np.ndarray]:
    """Judge by the guard, and return which rows are early; without the last rows, if they are undecided."""
    gate = tally.gate
    assert gate.early is not None
    started = tally.has_started(writer, mark)
    below = items.known & items.rows & ~items.raised & (items.times < floor)
    if gate.batched:
        started = writer in gate.started if gate.started is not None else started
        return _guarded_at_once(tally, writer, items, (mark, floor), below, started=started)
    listed = Items(items.times, items.known, items.rows, items.guarded, items.raised)
    limits = Limits(gate.within, gate.early, gate.resync, floor)
    guarded = guard(listed, mark, limits, started=started, ended=ended)
    below = below[: len(guarded.result)]
    if guarded.started:
        tally.started.add(writer)
    refused = (guarded.result != OK) | below
    return Scan(refused, below, guarded.before, guarded.mark, items.times[:0]), guarded.result == EARLY


def _guarded_at_once(  # noqa: PLR0913 - the state of the writer
    tally: Tally, writer: str, items: _Columns, marks: tuple[int, int], below: np.ndarray, *, started: bool
) -> tuple[Scan, np.ndarray]:
    """Judge a set without order by the guard: every row is compared with the mark before the set."""
    gate = tally.gate
    assert gate.early is not None
    mark, floor = marks
    before = np.full(len(items.times), max(mark, floor, BEGINNING))
    late = items.known & items.rows & (items.times < mark - gate.within) & (~items.raised | (before >= END))
    early = items.guarded & started & ~late & (items.times - gate.early > before)
    refused = late | below | early
    counted = items.known & ~refused
    if (counted & items.guarded).any():
        tally.started.add(writer)
    after = max(mark, int(items.times[counted].max())) if counted.any() else mark
    return Scan(refused, below, before, after, items.times[:0]), early


def _all_at_once(scanned: Scan, items: _Columns, mark: int, gate: Gate) -> Scan:
    """Judge a set without order: every row is compared with the mark before the set."""
    before = np.full(len(items.judged), max(mark, BEGINNING))
    refused = (items.known & (items.judged < before - gate.within)) | scanned.below_floor
    return replace(scanned, refused=refused, before=before)


def _mean(times: np.ndarray) -> float:
    return float(times.mean()) if len(times) else 0.0


def _span(times: np.ndarray) -> tuple[int, int]:
    return (int(times.min()), int(times.max())) if len(times) else (END, BEGINNING)
