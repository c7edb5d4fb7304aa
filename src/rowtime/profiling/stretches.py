"""Stretches: the rows of one writer that a task has in order, and what it counts of them.

The rows come as Arrow tables with columns ``p``, the position, and ``t``, the time (BIGINT µs, null if there is none);
if they are needed also ``w``, the writer, ``j``, what is compared with the mark instead of the time, ``a``, the arrival
time, ``k``, the name of a clock of its own, ``h``, a hash of the row's key, and ``bad``, true for a row that an earlier
gate refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import MAX_MICROS, MIN_MICROS, to_micros
from rowtime.profiling.clocks import FREE, Clock
from rowtime.profiling.counts import Durations
from rowtime.profiling.guarded import GuardedMark
from rowtime.profiling.lone_rows import LoneRows
from rowtime.profiling.samples import HashSample

MOST_KEYS: Final = 10_000
NO_NAME: Final = "NULL"
_ODD: Final = (to_micros("1971-01-01"), to_micros("2100-01-01"))
_LEAST_FREE: Final = 1024
Times = np.ndarray


@dataclass(frozen=True)
class Reading:
    """How rows are read.

    ``writer``: the only one, if there is no column ``w``. ``bits``: a position shifted right by so many is the number
    of its file; 0 without files. ``gapless``: rows of several files follow each other in a task; else a stretch ends
    with its file. ``ordered``: a task has all rows of its writers in order. ``early``: the guard (µs), only if
    ``ordered``. ``free``: how many first rows of a task are judged where all stretches are known (`clocks`).
    """

    writer: str = ""
    bits: int = 0
    gapless: bool = False
    ordered: bool = False
    early: int | None = None
    free: int = FREE


@dataclass
class Stretch:
    """What a task counts of some rows of one writer, in order: positions from ``first`` to ``last``.

    ``rows``: all; of these ``bad``, refused by an earlier gate, ``nulls``, without a time, and ``outside`` the years
    0001 to 9999; ``odd``: before 1971 or after 2099; ``ties``: rows with the time of the row before. ``times``: of the
    first and the last row (µs), ``arrivals`` likewise. ``ahead``: how far times are above their arrival, ``silences``:
    the time between two arrivals. ``clock``: of the writer; ``own``: by the names ``k``, or by file. ``early``: rows
    that the guard refuses.
    """

    writer: str
    first: int
    last: int
    clock: Clock
    own: Clock | None = None
    names: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    bad: int = 0
    nulls: int = 0
    outside: int = 0
    odd: int = 0
    ties: int = 0
    early: int = 0
    times: tuple[int, int] | None = None
    arrivals: tuple[int, int] | None = None
    ahead: Durations = field(default_factory=Durations)
    silences: Durations = field(default_factory=Durations)
    lone: LoneRows = field(default_factory=LoneRows)
    mark: GuardedMark | None = None


@dataclass
class Counted:
    """What a task counts; ``newest``: the last stretch by writer.

    ``crowded``: there are more than 10,000 names of clocks.
    """

    stretches: list[Stretch] = field(default_factory=list)
    newest: dict[str, Stretch] = field(default_factory=dict)
    sample: HashSample = field(default_factory=HashSample)
    crowded: bool = False


def counted(batches: Iterable[pa.RecordBatch | pa.Table], reading: Reading) -> Counted:
    """Count the rows of a task."""
    result = Counted()
    for batch in batches:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if not table.num_rows:
            continue
        for writer, run in _runs(table, reading):
            _take(_stretch(result, writer, run, reading), run, reading, result)
            if result.crowded:
                return Counted(crowded=True)
    for stretch in result.stretches:
        stretch.lone.close()
    return result


def _runs(table: pa.Table, reading: Reading) -> Iterator[tuple[str, pa.Table]]:
    """Yield runs of rows of one writer with ascending positions, and of one file unless rows are gapless."""
    positions = table["p"].to_numpy()
    change = positions[1:] <= positions[:-1]
    if reading.bits and not (reading.gapless or reading.ordered):
        files = positions >> reading.bits
        change = change | (files[1:] != files[:-1])
    writers: list[str] | None = None
    if "w" in table.column_names:
        encoded = _encoded(table["w"])
        codes, writers = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        change = change | (codes[1:] != codes[:-1])
    starts = [0, *(np.flatnonzero(change) + 1).tolist(), table.num_rows]
    for start, stop in zip(starts, starts[1:], strict=False):
        yield reading.writer if writers is None else writers[codes[start]], table.slice(start, stop - start)


def _encoded(values: pa.ChunkedArray) -> pa.DictionaryArray:
    column = values.combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def _stretch(result: Counted, writer: str, run: pa.Table, reading: Reading) -> Stretch:
    """Return the stretch that a run goes on with, or a new one."""
    first, last = run["p"][0].as_py(), run["p"][-1].as_py()
    before = result.newest.get(writer)
    if before is not None and first > before.last:
        same = reading.gapless or reading.ordered or first >> reading.bits == before.last >> reading.bits
        if same or not reading.bits:
            before.last = last
            return before
    free = 0 if reading.ordered else max(min(reading.free, _LEAST_FREE), reading.free // (len(result.stretches) + 1))
    stretch = Stretch(writer, first, last, Clock(free, 0))
    if "k" in run.column_names:
        stretch.own = Clock(free, 0 if reading.ordered else Clock.few)
    elif reading.bits:
        starts_file = first & ((1 << reading.bits) - 1) == 0
        stretch.own = Clock(0 if reading.ordered or starts_file else free, 0)
    if reading.early is not None:
        stretch.mark = GuardedMark(reading.early)
    result.stretches.append(stretch)
    result.newest[writer] = stretch
    return stretch


def _take(stretch: Stretch, run: pa.Table, reading: Reading, result: Counted) -> None:
    """Count a run of rows."""
    stretch.rows += run.num_rows
    run = _with_times(stretch, run)
    if not run.num_rows:
        return
    times = run["t"].to_numpy()
    judged = run["j"].to_numpy() if "j" in run.column_names else times
    _note(stretch, run, times)
    keys = _keys(stretch, run, reading)
    result.crowded = len(stretch.names) > MOST_KEYS
    if result.crowded:
        return
    if "h" in run.column_names:
        result.sample.add(run["h"].to_numpy())
    if stretch.own is not None and keys is not None:
        stretch.own.facts.grow(len(stretch.names))
        some = keys >= 0
        if some.all():
            stretch.own.take(times, judged, keys)
        elif some.any():
            stretch.own.take(times[some], judged[some], keys[some])
    if stretch.mark is None:
        before = stretch.clock.take(times, judged)
        stretch.lone.take(run["p"].to_numpy(), times, before)
        return
    before, accepted = stretch.mark.take(times)
    stretch.early += int((~accepted).sum())
    if accepted.any():
        same = judged is times
        times = times[accepted]
        stretch.clock.take(times, times if same else judged[accepted], before=before[accepted])


def _with_times(stretch: Stretch, run: pa.Table) -> pa.Table:
    """Return the rows with a time that a gate accepts as one, and count the others."""
    if "bad" in run.column_names and pc.any(run["bad"]).as_py():
        good = run.filter(pc.invert(run["bad"]))
        stretch.bad += run.num_rows - good.num_rows
        run = good
    if run["t"].null_count:
        known = run.filter(pc.is_valid(run["t"]))
        stretch.nulls += run.num_rows - known.num_rows
        run = known
    if not run.num_rows:
        return run
    edges = pc.min_max(run["t"]).as_py()
    if edges["min"] < MIN_MICROS or edges["max"] > MAX_MICROS:
        inside = pc.and_(pc.greater_equal(run["t"], MIN_MICROS), pc.less_equal(run["t"], MAX_MICROS))
        stretch.outside += run.num_rows - (run := run.filter(inside)).num_rows
    if edges["min"] < _ODD[0] or edges["max"] >= _ODD[1]:
        times = run["t"].to_numpy()
        stretch.odd += int(((times < _ODD[0]) | (times >= _ODD[1])).sum())
    return run


def _note(stretch: Stretch, run: pa.Table, times: Times) -> None:
    """Note ties, and what the arrival says."""
    stretch.ties += int((times[1:] == times[:-1]).sum())
    if stretch.times is not None:
        stretch.ties += int(times[0] == stretch.times[1])
    first = times[0] if stretch.times is None else stretch.times[0]
    stretch.times = (int(first), int(times[-1]))
    if "a" not in run.column_names or run["a"].null_count:
        return
    arrivals = run["a"].to_numpy()
    ahead = times - arrivals
    stretch.ahead.add(ahead[ahead > 0])
    silent = np.diff(arrivals, prepend=arrivals[0] if stretch.arrivals is None else stretch.arrivals[1])
    stretch.silences.add(silent[silent > 0])
    first = arrivals[0] if stretch.arrivals is None else stretch.arrivals[0]
    stretch.arrivals = (int(first), int(arrivals[-1]))


def _keys(stretch: Stretch, run: pa.Table, reading: Reading) -> np.ndarray | None:
    """Return the places of the names of each row; -1 for files beyond 10,000."""
    if "k" in run.column_names:
        encoded = _encoded(pc.fill_null(run["k"].cast(pa.string()), NO_NAME))
        places = [stretch.names.setdefault(name, len(stretch.names)) for name in encoded.dictionary.to_pylist()]
        of_rows: np.ndarray = np.array(places, np.int32)[encoded.indices.to_numpy()]
        return of_rows
    if not reading.bits:
        return None
    files = run["p"].to_numpy() >> reading.bits
    if files[0] == files[-1]:
        place = _place(stretch, int(files[0]))
        return np.full(len(files), place, np.int32)
    numbers, which = np.unique(files, return_inverse=True)
    return np.array([_place(stretch, number) for number in numbers.tolist()], np.int32)[which]


def _place(stretch: Stretch, file: int) -> int:
    return stretch.names.setdefault(str(file), len(stretch.names)) if file < MOST_KEYS else -1
