"""Rows per second through a T-sort to an ordered sink and through the guard, at several shares of late rows.

Spark has neither: its line is its own aggregate by minute over the same Parquet files, which drops late rows and keeps
none of them. Flink sorts by rowtime, from the same CSV files; which rows are late there depends on the time of its
watermark. So all its rows are compared if none is late, and otherwise their number.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import rowtime as rt
from benchmarks import flink
from benchmarks.data import BEGINNING, CACHE, SECOND, table, write, write_csv
from benchmarks.measurement import Measurement, Result, against, middle
from benchmarks.memory import memory_of, resident

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.engines import Engines

FILE, STEP, TICK = 500_000, 1000, 2  # rows of a file, µs from row to row, files a tick
SHARES = (0, 1, 10, 50)  # % of the rows that lie behind, two thirds of them beyond the tolerance
QUICK = (0, 10)
TOLERANCE, BEHIND = 10, 30  # seconds
LEAST = 1_000_000  # rows a second with the ledger
WARM = 3  # runs until Java has compiled what a tick runs
WARM_LONG = 4  # long runs until Java compiles no more than it runs: half of the processor's time in the first
LONGER = 3  # times the files, for which memory must be the same

DECLARED = """CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING {kind} OPTIONS (path '{source}');
CREATE VIEW f AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '{within}' SECOND{guard};
"""
SORTED = DECLARED + "SELECT STREAM k, v FROM f"
GUARDED = DECLARED + "SELECT STREAM COUNT(*) AS c FROM f GROUP BY FLOOR(f.ROWTIME TO MINUTE)"
COLUMNS = "ev TIMESTAMP(3), k BIGINT, v BIGINT"  # of Flink
FLINK = "SELECT ev, k, v FROM {s} ORDER BY ev"
GUARD = " EARLY BEYOND INTERVAL '1' HOUR"


def source(share: int, files: int) -> Path:
    """Return files in which ``share`` % of the rows are late by up to half a minute."""
    return _made(f"disorder-{share}-{files}x{FILE}", files, share, write)


def source_csv(share: int, files: int) -> Path:
    """Return the same as CSV, with times in milliseconds, by which Flink sorts."""
    return _made(f"disorder-csv-{share}-{files}x{FILE}", files, share, write_csv)


def _made(name: str, files: int, share: int, written: Callable[[Path, int, pa.Table], None]) -> Path:
    folder = CACHE / name
    done = folder.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number in range(files):
            random = np.random.default_rng(number)
            behind = random.integers(0, BEHIND * SECOND, FILE) // STEP * STEP * (random.random(FILE) < share / 100)
            times = BEGINNING + (np.arange(FILE) + number * FILE) * STEP - behind
            written(folder, number, table(times, random.integers(0, 100, FILE), random))
        done.touch()
    return folder


class Run:
    """One run of rowtime: its seconds, what its function took, rows refused, the driver's greatest memory (MiB)."""

    def __init__(self, engines: Engines, text: str, files: Path, kind: str = "parquet", *, keep: bool = False) -> None:
        place = engines.fresh("disorder")
        sql = text.format(source=files, kind=kind, within=TOLERANCE, guard=GUARD if text == GUARDED else "")
        self.given, self.memory = 0, 0
        self.tables: list[pa.Table] = []
        self._keep, self._engines = keep, engines
        pipeline = rt.Pipeline(engines.spark, home=place / "home").sql(sql).sink("result", self._take)
        began = time.perf_counter()
        query = pipeline.run_available(
            place / "checkpoint", end=True, limits=rt.Limits(files=TICK), listener=self._look
        )
        self.seconds = time.perf_counter() - began
        gate = query.ledger["f"]
        self.refused = gate["in"] - gate["accepted"]

    def _take(self, batch: rt.Batch) -> None:
        if batch.count:
            self.given += batch.table().num_rows
            self.tables += [batch.table()] if self._keep else []

    def _look(self, progress: dict[str, Any]) -> None:  # noqa: ARG002
        self.memory = max(self.memory, resident("self"))


def measure(engines: Engines, *, short: bool, text: str) -> Result:
    """Measure each share of late rows against Spark's aggregate, and memory over a longer stream."""
    files, rounds = (4, 1) if short else (10, 5)
    rows, lines, ratios = files * FILE, {}, []
    for _ in range(WARM if short else WARM_LONG):
        Run(engines, text, source(QUICK[-1], TICK if short else files))  # with late rows, which have code of their own
    for share in QUICK if short else SHARES:
        place = source(share, files)
        pairs = [(Run(engines, text, place), engines.native(place, TICK).total / 1000) for _ in range(rounds)]
        speed = int(rows / middle([run.seconds for run, _ in pairs]))
        native = int(rows / middle([seconds for _, seconds in pairs]))
        lines[f"{share} %"] = {"rows_a_second": speed, "spark_aggregate": native, "refused": pairs[0][0].refused}
        if text == GUARDED:
            ratios.append(against(f"a million rows a second, {share} % late", speed / LEAST, 1.0))
    memory, ratio = _memory(engines, text, files)
    return {"rows": rows, "rounds": rounds, "late": lines, "memory_mib": memory, "ratios": [*ratios, ratio]}


def _memory(engines: Engines, text: str, files: int) -> tuple[Result, Result]:
    """Measure the greatest memory of the driver's Python and of Java, over a stream and one three times as long."""
    found = {}
    for length in (files, LONGER * files):
        run = Run(engines, text, source(QUICK[-1], length))
        found[f"{length * FILE:,} rows"] = {"python": run.memory, "java_heap": memory_of(engines)["java_heap_mib"]}
    shorter, longer = (sum(one.values()) for one in found.values())
    return found, against("the memory of a third of the rows", longer / shorter, 1.2, most=True)


def measure_flink(engines: Engines, *, short: bool) -> Result:
    """The T-sort into a function against PyFlink's ORDER BY rowtime into its blackhole, from the same CSV files."""
    if not flink.is_there():
        return {"skipped": flink.MISSING, "ratios": []}
    files, rounds = (2, 1) if short else (4, 3)
    rows, lines, ratios, answers = files * FILE, {}, [], {}
    few = source_csv(QUICK[-1], 1)
    for _ in range(WARM):
        Run(engines, SORTED, few, "csv")
    for share in QUICK if short else SHARES:
        place, output = source_csv(share, files), engines.fresh("flink")
        ours = [Run(engines, SORTED, place, "csv") for _ in range(rounds)]
        tables = {"s": {"few": str(few), "many": str(_in_one_file(place)), "columns": COLUMNS, "lag": TOLERANCE}}
        folder = "" if share else str(output / "rows")
        theirs = flink.query(tables=tables, query=FLINK, result=COLUMNS, warm=WARM, rounds=rounds, folder=folder)
        speed, other = (int(rows / middle(s)) for s in ([run.seconds for run in ours], theirs["seconds"]))
        lines[f"{share} %"] = {"rows_a_second": speed, "pyflink": other, "refused": ours[0].refused}
        ratios.append(against(f"PyFlink's ORDER BY rowtime, {share} % late", speed / other, 1.0))
        if not share:
            answers["pyflink, 0 %"] = _compared(Run(engines, SORTED, place, "csv", keep=True), output / "rows")
    return {"rows": rows, "rounds": rounds, "late": lines, "answers": answers, "ratios": ratios}


def _in_one_file(place: Path) -> Path:
    """Return the rows of a folder in one file: otherwise Flink opens files in any order and drops late rows."""
    whole = place.with_name(f"{place.name}-whole")
    if not whole.exists():
        made = Path(tempfile.mkdtemp(dir=place.parent))
        with (made / "rows.csv").open("wb") as out:
            for path in sorted(place.iterdir()):
                out.write(path.read_bytes())
        made.rename(whole)
    return whole


def _compared(ours: Run, theirs: Path) -> str:
    """Return ``equal`` if both gave the same rows in the same order, or what differs."""
    read = pa_csv.ReadOptions(column_names=["ev", "k", "v"])
    # Flink may read several files at once, but what it writes last it has sorted last.
    parts = sorted(theirs.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    other = pa.concat_tables([pa_csv.read_csv(path, read) for path in parts]).select(["k", "v"])
    mine = pa.concat_tables(ours.tables).select(["k", "v"])
    same = mine.combine_chunks().equals(other.combine_chunks())
    return "equal" if same else f"{mine.num_rows} rows against {other.num_rows}, or another order"


TSORT = Measurement("tsort", "T-sort within 10 s, every row to a function in order", partial(measure, text=SORTED))
TSORT_FLINK = Measurement("tsort_flink", "the same from CSV, against PyFlink's ORDER BY rowtime", measure_flink)
GUARD_LEDGER = Measurement(
    "guard", "guard of an hour with its ledger, groups of a minute", partial(measure, text=GUARDED)
)
