"""The bound at the gate of events when each row came, by its writer and position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from rowtime.core.columns import MET, POSITION, WRITER
from rowtime.core.time import BEGINNING
from rowtime.frames.frame import Frame
from rowtime.kernels.events import Judgement
from rowtime.kernels.identity import only_value
from rowtime.kernels.timeline import values_at


def steps_of(rows: pa.Table, judgement: Judgement) -> list[tuple[int, int]]:
    """Return from which position on rows came at which bound."""
    if not rows.num_rows:
        return []
    bounds = judgement.bounds
    first = np.concatenate([[0], np.flatnonzero(bounds[1:] != bounds[:-1]) + 1])
    return list(zip(rows[POSITION].to_numpy()[first].tolist(), bounds[first].tolist(), strict=True))


def with_met(rows: Frame, steps: Mapping[str, Sequence[tuple[int, int]]]) -> Frame:
    """Return the rows with the bound when each came, by its writer and position."""
    by_writer = {writer: of_writer for writer, of_writer in steps.items() if of_writer}
    rows.share()  # computed once, so that its rows keep their order
    return rows.with_column(MET, "bigint", _met_here(rows.select(WRITER, POSITION).toArrow(), by_writer))


def _met_here(rows: pa.Table, steps: Mapping[str, Sequence[tuple[int, int]]]) -> pa.Array:
    """Return the bound of each row: its place and those of the steps are sorted together.

    The first step of a writer is before all of its rows; NULL for a writer about which nothing is known.
    """
    if not steps:
        return pa.array(np.full(rows.num_rows, BEGINNING))
    if len(steps) == 1 and only_value(rows[WRITER]) in steps:
        [of_writer] = steps.values()
        [at, bounds] = np.array(of_writer, dtype=np.int64).T
        return pa.array(values_at(rows[POSITION].to_numpy(), at[1:] - 1, bounds))
    numbers = {writer: number for number, writer in enumerate(steps)}
    codes = rows[WRITER].combine_chunks().dictionary_encode()
    writers = np.array([numbers.get(writer, -1) for writer in codes.dictionary.to_pylist()], dtype=np.int64)
    of_rows = writers[codes.indices.to_numpy()] if len(writers) else np.zeros(0, np.int64)
    of_steps = np.repeat(np.arange(len(steps)), [len(of_writer) for of_writer in steps.values()])
    first = np.concatenate([[True], of_steps[1:] != of_steps[:-1]])
    at, bounds = np.array([step for of_writer in steps.values() for step in of_writer], dtype=np.int64).T
    places = np.concatenate([np.where(first, np.iinfo(np.int64).min, at), rows[POSITION].to_numpy()])
    count = len(at)
    order = np.lexsort((np.arange(len(places)) >= count, places, np.concatenate([of_steps, of_rows])))
    last = np.empty(len(order), np.int64)
    last[order] = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    mine = order[np.maximum(last[count:], 0)]
    return pa.array(bounds[np.minimum(mine, count - 1)], mask=of_rows < 0)
