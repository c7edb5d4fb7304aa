"""A backfill in a few large ticks, against the same groups as one plain Spark batch query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.answers import compare
from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from benchmarks.engines import Engines

FILES = 8  # a tick: 4 M rows
WARM = 2  # runs of both until Java has compiled what they run


def measure(engines: Engines, *, short: bool) -> Result:
    rows, rounds = Rows(10_000, 12), 1 if short else 5
    source = rows.folder()
    ours, theirs = [], []
    warm = Rows(10_000, 4).folder()
    for number in range(-WARM, rounds):
        place = source if number >= 0 else warm
        run, batch = engines.rowtime(place, FILES), engines.batch(place)
        if number >= 0:
            ours.append(run.total)
            theirs.append(batch.total)
    return {
        "rows": rows.count,
        "rows_a_tick": FILES * rows.rows,
        "rounds": rounds,
        "median_ms": {"rowtime": middle(ours), "batch": middle(theirs)},
        "rows_a_second": {
            "rowtime": int(rows.count / middle(ours) * 1000),
            "batch": int(rows.count / middle(theirs) * 1000),
        },
        "last_ticks_ms": run.ticks,
        "answers": {"batch": compare(run.output, batch.output, rows.count)},
        "ratios": [against("batch", middle(theirs) / middle(ours), 0.7)],
    }


BACKFILL = Measurement("backfill", "the same in few ticks of 4 M rows, against one Spark batch query", measure)
