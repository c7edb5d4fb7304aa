"""Panes that could fire again, against GROUP BY on the same minutes: the cost if no row is late."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from benchmarks.measurement import Measurement, Result, against, middle
from benchmarks.works import Ordered

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.engines import Engines

ROWS = Ordered(10_000, 4)
SQL = """
CREATE STREAM r (ev TIMESTAMP, k BIGINT, v BIGINT) {event}
  USING parquet OPTIONS (path '{source}', rowtime.column 'ev');
CREATE STREAM o (w TIMESTAMP, k BIGINT, c BIGINT, s BIGINT) USING parquet OPTIONS (path '{output}', ordered 'false');
CREATE PUMP p AS INSERT INTO o SELECT STREAM {start} AS w, k, COUNT(*) AS c, SUM(v) AS s FROM r GROUP BY {by}, k;
"""
MINUTES = {
    "group_by": {"event": "", "start": "FLOOR(r.ROWTIME TO MINUTE)", "by": "FLOOR(r.ROWTIME TO MINUTE)"},
    "panes": {
        "event": "EVENT TIME (ev)",
        "start": "PANE_START",
        "by": "PANES(ev, DURATION INTERVAL '1' MINUTE, DISCARD AGE INTERVAL '10' MINUTE)",
    },
}


def measure(engines: Engines, *, short: bool) -> Result:
    """Both once to warm up on few rows, then in turns; the groups must be equal."""
    rounds, source = 1 if short else 5, ROWS.folder()
    for way in MINUTES:
        _run(engines, way, Ordered(10_000, 2, 100_000).folder())
    spent: dict[str, list[float]] = {way: [] for way in MINUTES}
    for _ in range(rounds):
        outputs = {}
        for way, times in spent.items():
            milliseconds, outputs[way] = _run(engines, way, source)
            times.append(milliseconds)
    panes, groups = (_rows(outputs[way]) for way in ("panes", "group_by"))
    medians = {way: middle(times) for way, times in spent.items()}
    return {
        "keys": ROWS.keys,
        "rows": ROWS.files * ROWS.rows,
        "rounds": rounds,
        "median_ms": medians,
        "answers": {"group_by": "equal" if panes.equals(groups) else f"{panes.num_rows} against {groups.num_rows}"},
        "ratios": [against("group_by", medians["panes"] / medians["group_by"], 1.3, most=True)],
    }


def _run(engines: Engines, way: str, source: Path) -> tuple[float, Path]:
    place = engines.fresh(way)
    text = SQL.format(source=source, output=place / "out", **MINUTES[way])
    pipeline, began = rt.Pipeline(engines.spark, home=place / "home").sql(text), time.perf_counter()
    pipeline.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=1))
    return (time.perf_counter() - began) * 1000, place / "out"


def _rows(folder: Path) -> pa.Table:
    parts = [pq.read_table(path, columns=["w", "k", "c", "s"]) for path in folder.glob("*.parquet")]
    return pa.concat_tables(parts, promote_options="permissive").sort_by([("w", "ascending"), ("k", "ascending")])


PANES = Measurement("panes", "PANES without late rows, against GROUP BY of the same minutes, 10k keys", measure)
