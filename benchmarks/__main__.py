"""Measures rowtime beside Spark's own engine: ``python -m benchmarks [--short] [--only NAME] [--out FILE]``.

Both run in one process, on the same files, with the same settings, in turns. Each measurement prints a line of JSON
with medians and their ratio; a last line sums up all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.backfill import BACKFILL
from benchmarks.check_script import CHECK_SCRIPT
from benchmarks.cold_start import COLD_START
from benchmarks.cost_over_size import COST_OVER_SIZE
from benchmarks.disorder import GUARD_LEDGER, TSORT, TSORT_FLINK
from benchmarks.disorder_profile import PROFILE
from benchmarks.edges import EDGES_INTERVALS
from benchmarks.engines import Engines, session
from benchmarks.first_tick import FIRST_TICK
from benchmarks.flat_state import FLAT_STATE
from benchmarks.flat_ticks import FLAT_TICKS
from benchmarks.lake import DELTA, DELTA_DELAY, DELTA_SPARK
from benchmarks.late import LATE_1M, LATE_10K
from benchmarks.latency import LATENCY
from benchmarks.lifetimes import LIFETIMES
from benchmarks.many_writers import MANY_WRITERS
from benchmarks.matches import MATCHES
from benchmarks.measurement import Measurement, Result, answers_of, summary
from benchmarks.nexmark import NEXMARK
from benchmarks.nexmark_flink import NEXMARK_FLINK
from benchmarks.over import OVER, OVER_FLINK
from benchmarks.over_state import OVER_STATE
from benchmarks.panes import PANES
from benchmarks.peak_memory import MEMORY
from benchmarks.pipeline_tick import PIPELINE_TICK
from benchmarks.sessions_joins import SESSIONS_JOINS, SESSIONS_JOINS_FLINK
from benchmarks.small_tick import SMALL_TICK
from benchmarks.throughput import GROUP_1M, GROUP_10K

MEASUREMENTS: tuple[Measurement, ...] = (
    GROUP_10K,
    GROUP_1M,
    DELTA,
    DELTA_DELAY,
    DELTA_SPARK,
    BACKFILL,
    SMALL_TICK,
    FLAT_STATE,
    FLAT_TICKS,
    MANY_WRITERS,
    PROFILE,
    *OVER,
    *OVER_FLINK,
    *MATCHES,
    OVER_STATE,
    *SESSIONS_JOINS,
    *SESSIONS_JOINS_FLINK,
    PANES,
    GUARD_LEDGER,
    TSORT,
    TSORT_FLINK,
    CHECK_SCRIPT,
    *LIFETIMES,
    *NEXMARK,
    NEXMARK_FLINK,
    LATE_10K,
    LATE_1M,
    PIPELINE_TICK,
    LATENCY,
    FIRST_TICK,
    COLD_START,
    EDGES_INTERVALS,
    MEMORY,
    COST_OVER_SIZE,
)
LONG_ONLY = (
    DELTA_SPARK,
    TSORT,
    *OVER_FLINK,
    *MATCHES,
    *SESSIONS_JOINS,
    *SESSIONS_JOINS_FLINK,
    *NEXMARK,
    NEXMARK_FLINK,
    LATE_1M,
    COST_OVER_SIZE,
    COLD_START,
)
"""Omitted from the short form unless they are named."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    chosen = [m for m in MEASUREMENTS if m.name in (options.only or [m.name])]
    if options.short and not options.only:
        chosen = [m for m in chosen if m not in LONG_ONLY]
    results, began = [], time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="rowtime-benchmarks-") as folder:
        engines = Engines(session(Path(folder)), Path(folder))
        for measurement in chosen:
            results.append(_measured(measurement, engines, short=options.short))
            _tell(results[-1], options.out)
        engines.spark.stop()
    print(f"{summary(results)}; {time.perf_counter() - began:.0f} s")
    return 1 if any(answer != "equal" for result in results for answer in answers_of(result)) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer ticks and rounds: about ten minutes")
    parser.add_argument("--only", action="append", choices=[m.name for m in MEASUREMENTS], help="may be given again")
    parser.add_argument("--out", type=Path, help="append the lines to this file too")
    return parser.parse_args(arguments)


def _measured(measurement: Measurement, engines: Engines, *, short: bool) -> Result:
    began = time.perf_counter()
    result = measurement.measure(engines, short=short)
    seconds = round(time.perf_counter() - began)
    return {"name": measurement.name, "what": measurement.says, "short": short, **result, "seconds": seconds}


def _tell(result: Result, out: Path | None) -> None:
    line = json.dumps(result)
    print(line, flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
