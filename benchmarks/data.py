"""The files that the benchmarks read: rows in Parquet, made once, kept with the temporary files."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

CACHE = Path(tempfile.gettempdir()) / "rowtime-benchmarks"
ROW_GROUP = 131_072
BEGINNING = 1_700_000_000_000_000  # µs; the first instant of a minute and of no day
DISORDER = 10_000_000  # µs: no row lies further behind an earlier one, so none is late
SECOND, MINUTE = 1_000_000, 60_000_000


@dataclass(frozen=True)
class Rows:
    """``ticks`` times ``files`` files of ``rows`` rows with ``keys`` keys, one row every ``step`` µs."""

    keys: int
    ticks: int
    files: int = 2
    rows: int = 500_000
    step: int = 1000

    @property
    def count(self) -> int:
        return self.ticks * self.files * self.rows

    def folder(self) -> Path:
        """The folder with the files, which are made if they do not exist."""
        folder = CACHE / f"{self.keys}-{self.ticks}x{self.files}x{self.rows}-{self.step}"
        done = folder.with_suffix(".done")
        if not done.exists():
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(self.ticks * self.files):
                write(folder, number, self._table(number))
            done.touch()
        return folder

    def _table(self, number: int) -> pa.Table:
        random = np.random.default_rng(number)
        steps = (np.arange(self.rows) + number * self.rows) * self.step
        times = BEGINNING + steps + random.integers(0, DISORDER, self.rows)
        return table(times, random.integers(0, self.keys, self.rows), random)


def table(times: np.ndarray, keys: np.ndarray, random: np.random.Generator) -> pa.Table:
    """Return rows of the one schema that all benchmarks use."""
    return pa.table(
        {
            "ev": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(keys, pa.int64()),
            "v": pa.array(random.integers(0, 1000, len(times)), pa.int64()),
        }
    )


def write(folder: Path, number: int, rows: pa.Table) -> None:
    """Write one file; its modification time determines its place, because both engines order files by it."""
    draft, path = folder / f".{number:06d}", folder / f"{number:06d}.parquet"
    pq.write_table(rows, draft, row_group_size=ROW_GROUP)
    os.utime(draft, (1_600_000_000 + number, 1_600_000_000 + number))
    draft.rename(path)


def write_csv(folder: Path, number: int, rows: pa.Table) -> None:
    """Write the same as CSV, with times in milliseconds, as Flink uses them."""
    text = pc.strftime(rows["ev"].cast(pa.timestamp("ms")), format="%Y-%m-%d %H:%M:%S")
    plain = pa_csv.WriteOptions(include_header=False, quoting_style="none")
    pa_csv.write_csv(rows.set_column(0, "ev", text), folder / f"{number:06d}.csv", plain)
