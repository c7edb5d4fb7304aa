"""The cost of a writer for the driver: a small tick of the same rows from 10, 100, 1,000 and 10,000 writers.

Kafka's partitions are such writers. The rows come as one DataFrame, with the writer of each row, so that only the
driver's work differs: clocks, marks, promises and positions of every writer, and the entry of the journal that holds
them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import rowtime as rt
from benchmarks.data import BEGINNING, MINUTE
from benchmarks.measurement import Measurement, Result, middle, settled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from benchmarks.engines import Engines
    from rowtime.runtime.engine import Engine

WRITERS = (10, 100, 1_000, 10_000)
ROWS = 10_000
SQL = """
CREATE VIEW f AS SELECT STREAM ev AS ROWTIME, v FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE STREAM o (m TIMESTAMP, c BIGINT, t BIGINT) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO o
SELECT STREAM FLOOR(f.ROWTIME TO MINUTE) AS m, COUNT(*) AS c, SUM(v) AS t FROM f GROUP BY FLOOR(f.ROWTIME TO MINUTE);
"""


def measure(engines: Engines, *, short: bool) -> Result:
    ticks = 6 if short else 14
    found = {str(writers): _measured(engines, writers, ticks) for writers in (WRITERS[0], *WRITERS)}
    least, most = found[str(WRITERS[0])], found[str(WRITERS[-1])]
    added = {kind: most[kind] - least[kind] for kind in ("tick_ms", "processor_ms", "python_ms", "entry_bytes")}
    each = WRITERS[-1] - WRITERS[0]
    return {
        "rows_a_tick": ROWS,
        "ticks_measured": ticks - 2,
        "writers": found,
        "of_each_further_writer": {kind: round(more / each, 4) for kind, more in added.items()},
    }


def _measured(engines: Engines, writers: int, ticks: int) -> dict[str, float]:
    """Medians of a tick: milliseconds of the clock, of the processor and of Python alone; bytes of its entry."""
    place = engines.fresh(f"writers-{writers}")
    engine = _engine(engines, place)
    spent: dict[str, list[float]] = {"tick_ms": [], "processor_ms": [], "python_ms": []}
    for number in range(ticks):
        rows = _rows(engines, writers, number).persist()
        engine.sources["s"].hand(number, rows)  # type: ignore[attr-defined] - a BatchSource
        before = time.perf_counter(), engines.processor(), time.process_time()
        engine.tick()
        after = time.perf_counter(), engines.processor(), time.process_time()
        for kind, start, end in zip(spent, before, after, strict=True):
            spent[kind].append((end - start) * 1000)
        rows.unpersist()
    engine.close()
    engine.stop()
    entry = max((place / "check" / "journal").glob("*.json")).stat().st_size
    return {kind: middle(settled(values)) for kind, values in spent.items()} | {"entry_bytes": entry}


def _engine(engines: Engines, place: Path) -> Engine:
    """Return a pipeline over a DataFrame that is delivered here, and not by a streaming query."""
    (place / "in").mkdir()
    frame = engines.spark.readStream.schema("w STRING, p BIGINT, ev TIMESTAMP, v BIGINT").parquet(str(place / "in"))
    made = rt.Pipeline(engines.spark, home=place / "home").source("s", frame, writer="w", position="p")
    made.sql(SQL.format(out=place / "out"))
    return made._engine(place / "check", rt.Limits(), ends=False)  # noqa: SLF001 - tick by tick


def _rows(engines: Engines, writers: int, number: int) -> DataFrame:
    """Return a minute of rows, dealt out to the writers; those of each writer are in order."""
    each = ROWS // writers
    places = np.arange(ROWS) // writers
    columns = {
        "w": pa.array([f"topic-{n}" for n in np.arange(ROWS) % writers]),
        "p": places + number * each,
        "ev": pa.array(BEGINNING + number * MINUTE + places * (MINUTE // each), pa.timestamp("us", "UTC")),
        "v": np.arange(ROWS),
    }
    return engines.spark.createDataFrame(pa.table(columns))


MANY_WRITERS = Measurement("many_writers", "a tick of 10,000 rows from 10 to 10,000 writers", measure)
