"""Groups of a minute over rows out of order, some of them late, against Spark's streaming engine: Parquet to Parquet.

A row is up to 50 seconds behind, and the groups wait for 60. A share of the rows is five to ten minutes behind, so they
are late, whatever the ticks are; rowtime keeps them. Spark drops late rows by micro-batch, so it counts some that are
late. So the answer is compared with one that Arrow computes: the groups of the rows that are not late by the rule of
rowtime, the number of rows that were refused, and of those in the files of refused rows.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from benchmarks.answers import COLUMNS, rows_of, sorted_rows
from benchmarks.data import BEGINNING, CACHE, MINUTE, SECOND, table, write
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from benchmarks.engines import Engines

FILE, STEP, TICK = 500_000, 1000, 2  # rows of a file, µs from row to row, files a tick
DISORDER, TOLERANCE = 50, 60  # seconds
LEAST_LATE, MOST_LATE = 300, 600  # seconds that a late row is behind
SHARES = (0.1, 10.0)  # % of the rows that are late
SQL = """
CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}');
CREATE STREAM o (w TIMESTAMP, k BIGINT, c BIGINT, sv BIGINT) USING parquet OPTIONS (path '{output}', ordered 'false');
CREATE PUMP p AS INSERT INTO o
SELECT STREAM FLOOR(ev TO MINUTE) AS w, k, COUNT(*) AS c, SUM(v) AS sv
FROM s GROUP BY FLOOR(ev TO MINUTE) WITHIN INTERVAL '{within}' SECOND, k;
"""


@dataclass(frozen=True)
class LateRows:
    """``files`` files of rows with ``keys`` keys; ``share`` % of the rows are late."""

    keys: int
    share: float
    files: int

    @property
    def count(self) -> int:
        return self.files * FILE

    def folder(self) -> Path:
        folder = CACHE / f"late-{self.keys}-{round(self.share * 10)}-{self.files}x{FILE}"
        done = folder.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for number in range(self.files):
                write(folder, number, self._table(number))
            done.touch()
        return folder

    def _table(self, number: int) -> pa.Table:
        random = np.random.default_rng([number, self.keys])
        late = random.random(FILE) < self.share / 100
        behind = np.where(
            late,
            random.integers(LEAST_LATE * SECOND, MOST_LATE * SECOND, FILE),
            random.integers(0, DISORDER * SECOND, FILE),
        )
        times = BEGINNING + (np.arange(FILE) + number * FILE) * STEP - behind
        return table(times, random.integers(0, self.keys, FILE), random)

    def accepted(self) -> Iterator[pa.Table]:
        """Yield the rows whose group was open when they came: it ends above the greatest time minus the tolerance."""
        greatest = np.int64(0)
        for path in sorted(self.folder().iterdir()):
            rows = pq.read_table(path)
            times = rows["ev"].cast(pa.int64()).to_numpy()
            marks = np.maximum.accumulate(np.maximum(times, greatest))
            greatest = marks[-1]
            yield rows.filter(pa.array(times // MINUTE * MINUTE + MINUTE > marks - TOLERANCE * SECOND))

    def answer(self) -> tuple[pa.Table, int]:
        """Return the groups, and how many rows are late."""
        parts, count = [], 0
        for rows in self.accepted():
            count += rows.num_rows
            starts = pa.array(rows["ev"].cast(pa.int64()).to_numpy() // MINUTE * MINUTE)
            groups = pa.table({"w": starts, "k": rows["k"], "v": rows["v"]}).group_by(["w", "k"])
            parts.append(groups.aggregate([([], "count_all"), ("v", "sum")]))
        whole = pa.concat_tables(parts).group_by(["w", "k"]).aggregate([("count_all", "sum"), ("v_sum", "sum")])
        return whole.rename_columns(COLUMNS), self.count - count


@dataclass
class Run:
    """One run of rowtime: its files, the milliseconds of each tick and of all, rows refused and kept."""

    output: Path
    ticks: list[float] = field(default_factory=list)
    total: float = 0.0
    refused: int = 0
    kept: int = 0


def run(engines: Engines, rows: LateRows) -> Run:
    place = engines.fresh("late")
    found = Run(place / "out")
    text = SQL.format(source=rows.folder(), output=found.output, within=TOLERANCE)
    pipeline, began = rt.Pipeline(engines.spark, home=place / "home").sql(text), time.perf_counter()

    def listener(progress: dict[str, Any]) -> None:
        found.ticks.append(progress["durationMs"]["triggerExecution"])

    query = pipeline.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=TICK), listener=listener)
    found.total = (time.perf_counter() - began) * 1000
    found.refused = sum(counts["in"] - counts["accepted"] for counts in query.ledger.values())
    kept = (path for gate in query.ledger for path in query.rejected(gate))
    found.kept = sum(pq.ParquetFile(str(path)).metadata.num_rows for path in kept)
    return found


def measure(engines: Engines, *, short: bool, keys: int, required: float) -> Result:
    """Measure each share of late rows; both engines in turns after a warm-up over one tick."""
    lines, answers, ratios = {}, {}, []
    for share in SHARES:
        name = f"{share:g} % late"
        lines[name], answers[name] = _measured(engines, LateRows(keys, share, 4 if short else 20), 1 if short else 3)
        ratios.append(against(f"default, {name}", lines[name]["ratio"], required))
    return {"keys": keys, "late": lines, "answers": answers, "ratios": ratios}


def _measured(engines: Engines, rows: LateRows, rounds: int) -> tuple[Result, str]:
    spent: dict[str, list[float]] = {"rowtime": [], "default": []}
    later: dict[str, list[float]] = {"rowtime": [], "default": []}
    for number in range(rounds + 1):
        given = rows if number else LateRows(rows.keys, rows.share, TICK)
        mine, other = run(engines, given), engines.native(given.folder(), TICK, within=TOLERANCE)
        for name, one in (("rowtime", mine), ("default", other)) if number else ():
            spent[name].append(one.total)
            later[name].append(sum(one.ticks[rows.files // TICK // 2 : rows.files // TICK]))
    medians = {name: middle(times) for name, times in spent.items()}
    half = rows.count - rows.files // TICK // 2 * TICK * FILE
    line = {
        "rows": rows.count,
        "rounds": rounds,
        "median_ms": medians,
        "rows_a_second": {name: int(rows.count / median * 1000) for name, median in medians.items()},
        "rows_a_second_of_the_second_half": {name: int(half / middle(ms) * 1000) for name, ms in later.items()},
        "ratio": round(medians["default"] / medians["rowtime"], 3),
        "late": {"rowtime": mine.refused, "default": other.refused},
    }
    return line, _compared(mine, rows)


def _compared(mine: Run, rows: LateRows) -> str:
    expected, late = rows.answer()
    if not mine.refused == mine.kept == late:
        return f"{mine.refused} rows refused and {mine.kept} kept of {late} that are late"
    found = rows_of(mine.output)
    return (
        "equal" if sorted_rows(found).equals(sorted_rows(expected)) else f"{found.num_rows}, {expected.num_rows} groups"
    )


def _measurement(name: str, keys: int, required: float) -> Measurement:
    says = f"GROUP BY minute and {keys} keys WITHIN 60 s, rows up to 50 s out of order, late rows kept, against Spark"
    return Measurement(name, says, partial(measure, keys=keys, required=required))


LATE_10K = _measurement("late_10k", 10_000, 1.2)
LATE_1M = _measurement("late_1m", 1_000_000, 2.0)
