"""Rows and their writers: the rows of each, and data about writers joined to their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from rowtime.core.columns import POSITION, WRITER
from rowtime.frames.frame import Frame
from rowtime.kernels.identity import only_value
from rowtime.operators.contract import passed
from rowtime.sql.generate import literal

FEW = 64  # writers for which a literal is used


def beside(rows: Frame, times: Mapping[str, int], name: str) -> Frame:
    """Return the rows with a TIMESTAMP column: the time (µs UTC) of their writer in ``times``, NULL if it has none."""
    if len(times) <= FEW:
        shown = {writer: f"timestamp_micros({passed(at, POSITION)})" for writer, at in sorted(times.items())}
        tests = (f"WHEN {WRITER} = {literal(writer)} THEN {at}" for writer, at in shown.items())
        time = f"CASE {' '.join(tests)} END" if times else "CAST(NULL AS TIMESTAMP)"
        return rows.selectExpr("*", f"{time} AS {name}")
    return joined(rows, times, {name: pa.array(times.values(), pa.timestamp("us", "UTC"))})


def joined(rows: Frame, writers: Iterable[str], columns: Mapping[str, pa.Array]) -> Frame:
    """Return the rows with columns of their writer, in the order of ``writers``; NULL for other writers."""
    table = pa.table({"__who": pa.array(writers, pa.string()), **columns})
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - Spark

    fields = [(field.name, from_arrow_type(field.type).simpleString()) for field in table.schema]
    of_writers = Frame.of(rows.sparkSession, table, fields)
    return rows.joined(of_writers, f"{WRITER} = __who", "left").drop("__who")


def by_writer(items: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the items of each writer, in order."""
    if not items.num_rows:
        return
    if (only := only_value(items[WRITER])) is not None:
        yield only, items
        return
    codes = items[WRITER].combine_chunks().dictionary_encode()
    writers, numbers = codes.dictionary.to_pylist(), codes.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    sorted_items, ends = items.take(pa.array(order)), np.cumsum(np.bincount(numbers)).tolist()
    for writer, start, end in zip(writers, [0, *ends[:-1]], ends, strict=True):
        yield writer, sorted_items.slice(start, end - start)
