"""One query for each engine, over rows in order: rowtime, Spark's batch and streaming engines, and PyFlink.

Flink reads one file per table: of several it reads some at once, and rows that it reads too early make others late. Its
results go into its blackhole; those of the others are written to Parquet files.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import rowtime as rt
from benchmarks import flink
from benchmarks.data import BEGINNING, CACHE, table, write, write_csv
from benchmarks.measurement import Result, middle

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.engines import Engines

STREAM = "CREATE STREAM {name} ({columns}) USING {kind} OPTIONS (path '{source}', rowtime.column 'ev');"
OUTPUT = "CREATE STREAM o (t TIMESTAMP, {result}) USING parquet OPTIONS (path '{output}', ordered 'false');"
COLUMNS = {"parquet": "k BIGINT, v BIGINT", "csv": "ev TIMESTAMP, k BIGINT, v BIGINT"}
FLINK_COLUMNS = "ev TIMESTAMP(3), k BIGINT, v BIGINT"
TICK = 2  # files of a table
WARM = 2  # runs over few rows, until Java has compiled what a run takes


@dataclass(frozen=True)
class Ordered:
    """``files`` files of ``rows`` rows in order, one every ``step`` µs from ``shift`` on."""

    keys: int
    files: int
    rows: int = 500_000
    kind: str = "parquet"
    step: int = 1000
    shift: int = 0

    def folder(self) -> Path:
        steps = f"-{self.step}+{self.shift}" if (self.step, self.shift) != (1000, 0) else ""
        folder = CACHE / f"ordered-{self.kind}-{self.keys}-{self.files}x{self.rows}{steps}"
        done = folder.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for number in range(self.files):
                random = np.random.default_rng(number + self.shift)
                times = BEGINNING + (np.arange(self.rows) + number * self.rows) * self.step + self.shift
                rows = table(times, random.integers(0, self.keys, self.rows), random)
                (write if self.kind == "parquet" else write_csv)(folder, number, rows)
            done.touch()
        return folder


@dataclass(frozen=True)
class Work:
    """Tables, and the query over them for rowtime, for Spark and for Flink; its first column ``t`` is a time.

    ``result`` are the other columns, all BIGINT, as they are declared.
    """

    tables: Mapping[str, Ordered]
    rowtime: str
    spark: str
    flink: str
    result: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of rows of all tables."""
        return sum(rows.files * rows.rows for rows in self.tables.values())

    @property
    def declared(self) -> str:
        """The columns of the result after its time."""
        return ", ".join(f"{name} BIGINT" for name in self.result)


Run = Callable[["Engines", Work], "tuple[float, Path]"]


def rowtime(engines: Engines, work: Work) -> tuple[float, Path]:
    """Return milliseconds, and the folder of the output, as the following runs do."""
    place = engines.fresh("rowtime-work")
    streams = [
        STREAM.format(name=name, columns=COLUMNS[rows.kind], kind=rows.kind, source=rows.folder())
        for name, rows in work.tables.items()
    ]
    output = OUTPUT.format(result=work.declared, output=place / "out")
    text = "\n".join([*streams, output, f"CREATE PUMP p AS INSERT INTO o {work.rowtime};"])
    pipeline, began = rt.Pipeline(engines.spark, home=place / "home").sql(text), time.perf_counter()
    pipeline.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=TICK))
    return (time.perf_counter() - began) * 1000, place / "out"


def batch(engines: Engines, work: Work) -> tuple[float, Path]:
    """Run Spark's batch."""
    place, session = engines.fresh("batch-work") / "out", engines.derived({})
    began = time.perf_counter()
    for name, rows in work.tables.items():
        session.read.parquet(str(rows.folder())).createOrReplaceTempView(name)
    session.sql(work.spark).write.parquet(str(place))
    return (time.perf_counter() - began) * 1000, place


def native(engines: Engines, work: Work) -> tuple[float, Path]:
    """Run Spark's streaming engine in append mode, with a watermark of no delay."""
    place, session = engines.fresh("native-work"), engines.derived({})
    began = time.perf_counter()
    for name, rows in work.tables.items():
        files = session.readStream.schema("ev TIMESTAMP, k BIGINT, v BIGINT").option("maxFilesPerTrigger", TICK)
        files.parquet(str(rows.folder())).withWatermark("ev", "0 seconds").createOrReplaceTempView(name)
    writer = session.sql(work.spark).writeStream.format("parquet").option("path", str(place / "out"))
    running = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    running.awaitTermination()
    return (time.perf_counter() - began) * 1000, place / "out"


def in_turns(engines: Engines, work: Work, few: Work, runs: Mapping[str, Run], rounds: int) -> Result:
    """Return medians of each engine, in turns after a warm-up over ``few``; every answer must be that of ``batch``."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    used: dict[str, list[float]] = {name: [] for name in runs}
    places: dict[str, Path] = {}
    for number in range(rounds + 1):
        for name, run in runs.items():
            began = engines.processor()
            took, places[name] = run(engines, work if number else few)
            spent[name] += [took] if number else []
            used[name] += [engines.processor() - began] if number else []
    expected = rows_of(places["batch"], work)
    return {
        **told(work, {name: middle(times) for name, times in spent.items()}),
        "rounds": rounds,
        "median_processor_s": {name: middle(seconds) for name, seconds in used.items()},
        "answers": {
            name: same(rows_of(place, work), expected, whole=name != "native")
            for name, place in places.items()
            if name != "batch"
        },
    }


def beside_flink(engines: Engines, work: Work, few: Work, rounds: int) -> Result:
    """Return medians from one CSV file per table; Flink's rounds follow ours, for it runs in a process of its own."""
    for _ in range(WARM):
        rowtime(engines, few)
    ours, used = [], []
    for _ in range(rounds):
        began = engines.processor()
        took, output = rowtime(engines, work)
        used.append(engines.processor() - began)
        ours.append(took)
    kept = engines.fresh("flink") / "rows"
    folders = {
        name: {"few": str(few.tables[name].folder()), "many": str(rows.folder()), "columns": FLINK_COLUMNS, "lag": 0}
        for name, rows in work.tables.items()
    }
    columns = f"t TIMESTAMP(3), {work.declared}"
    theirs = flink.query(
        tables=folders, query=work.flink, result=columns, warm=WARM, rounds=rounds, folder=str(kept)
    )  # fmt: skip
    medians = {"rowtime": middle(ours), "pyflink": middle([seconds * 1000 for seconds in theirs["seconds"]])}
    return {
        **told(work, medians),
        "rounds": rounds,
        "median_processor_s": {"rowtime": middle(used), "pyflink": middle(theirs["processor"])},
        "answers": {"pyflink": same(rows_of(output, work), _flink_rows(kept, work))},
    }


def told(work: Work, medians: Mapping[str, float]) -> Result:
    """Return rows, times and rates of each engine."""
    return {
        "rows": work.count,
        "median_ms": dict(medians),
        "rows_a_second": {name: int(work.count / value * 1000) for name, value in medians.items()},
    }


def same(mine: pa.Table, other: pa.Table, *, whole: bool = True) -> str:
    """Return ``equal``, or what differs; an engine that keeps its last windows (not ``whole``) may lack rows."""
    if not whole:
        missing = _counted(mine).join(_counted(other), [*mine.column_names, "n"], join_type="left anti")
        return "equal" if mine.num_rows and not missing.num_rows else f"{missing.num_rows} rows are not in the batch"
    return "equal" if mine.equals(other) else f"{mine.num_rows} rows against {other.num_rows}, or values differ"


def _counted(rows: pa.Table) -> pa.Table:
    """Return each distinct row once, with its number of copies."""
    counted = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    return counted.rename_columns([*rows.column_names, "n"])


def rows_of(folder: Path, work: Work) -> pa.Table:
    """Return the rows of Parquet files, their times as µs, sorted."""
    files = [path for path in folder.glob("*.parquet") if not path.name.startswith((".", "_"))]
    parts = [pq.read_table(path, columns=["t", *work.result], partitioning=None) for path in files]
    # Spark writes its timestamps as INT96, which are read as nanoseconds.
    return _sorted(pa.concat_tables(parts, promote_options="permissive"), pa.timestamp("us", "UTC"))


def _flink_rows(folder: Path, work: Work) -> pa.Table:
    read = pa_csv.ReadOptions(column_names=["t", *work.result])
    return _sorted(pa.concat_tables([pa_csv.read_csv(path, read) for path in folder.iterdir()]), pa.timestamp("us"))


def _sorted(rows: pa.Table, time_: pa.DataType) -> pa.Table:
    rows = rows.set_column(0, "t", rows["t"].cast(time_, safe=False))
    rows = pa.table({name: rows[name].cast(pa.int64()) for name in rows.column_names})
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()
