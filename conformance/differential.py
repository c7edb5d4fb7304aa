"""Runs random pipelines in rowtime and in another system over the same rows, and compares rows and rowtimes."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from conformance import pipelines
from conformance.pipelines import Pipeline
from rowtime.core.errors import RowtimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOGETHER: Final = 20  # pipelines over the same rows, in one run
MICROSECOND: Final = dt.timedelta(microseconds=1)
BEGIN: Final = dt.datetime(2024, 1, 1, 22, 30, tzinfo=dt.UTC)
NAMES: Final = ("k", "v", "n", "c", "d", "f", "day", "ts")
SCHEMA: Final = pa.schema({
    "rowtime": pa.timestamp("us", "UTC"), "k": pa.string(), "v": pa.int32(), "n": pa.int64(), "c": pa.decimal128(10, 2),
    "d": pa.float64(), "f": pa.bool_(), "day": pa.date32(), "ts": pa.timestamp("us", "UTC"),
})  # fmt: skip
DECLARED: Final = "k STRING, v INT, n BIGINT, c DECIMAL(10, 2), d DOUBLE, f BOOLEAN, day DATE, ts TIMESTAMP"
SORTED: Final = 600  # seconds by which rows of a stream that is sorted may be late
TABLE: Final = pa.table({
    "k": ["x", "yy", "y", "z", "X", None], "name": ["one", None, "three", "four", "five", "none"],
    "rank": pa.array([1, 2, None, 4, 5, 6], pa.int32()),
})  # fmt: skip
Row = tuple[Any, ...]
_RENAMED: Final = re.compile(r"\b(?:[rwu]\d*[xgoklnseh]\d*|[lr]\d|k)\b")


@dataclass(frozen=True)
class Inputs:
    """The rows of both streams, in the order in which they come, divided into files, one per tick.

    Rows of a stream that is ``mixed`` come in disorder, and are sorted.
    """

    streams: Mapping[str, pa.Table]
    mixed: frozenset[str]
    files: int

    @classmethod
    def of(cls, seed: str, unit: dt.timedelta = MICROSECOND) -> Inputs:
        """Return the rows of a seed; ``unit``: of their times."""
        chance = Random(f"rows {seed}")
        mixed = frozenset(name for name in ("a", "b") if chance.random() < 0.4)
        files = chance.randint(1, 3)
        rows = {name: _in_disorder(chance, _rows(chance, name, unit), mixed=name in mixed) for name in ("a", "b")}
        return cls(rows, mixed, files)

    def fewer(self, kept: Callable[[int], bool]) -> Inputs:
        """Return some of the rows, by their numbers over both streams."""
        parts, number = {}, 0
        for name, rows in self.streams.items():
            parts[name] = rows.filter(pa.array([kept(number + place) for place in range(rows.num_rows)], pa.bool_()))
            number += rows.num_rows
        return Inputs(parts, self.mixed, self.files)

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(rows.num_rows for rows in self.streams.values())


def _rows(chance: Random, stream: str, unit: dt.timedelta) -> list[dict[str, Any]]:
    at, rows = BEGIN, []
    for _ in range(chance.choice((20, 60, 60, 120))):
        at += dt.timedelta(seconds=chance.choice((1, 7, 31, 60, 95, 400))) + unit * 2 * chance.randint(0, 499)
        rows.append({
            "rowtime": at + unit * (stream == "b"),  # no two rows of both have one time
            "k": chance.choice(("x", "y", "yy", "Xx", "", None)), "v": chance.choice((None, *range(-5, 6))),
            "n": chance.choice((None, 0, 1, -1, 2**40, -(2**33), 7)),
            "c": chance.choice((None, Decimal("0.00"), Decimal("1.25"), Decimal("-99999.99"), Decimal("2.50"))),
            "d": chance.choice((None, 0.5, -1.25, 3.0, 0.0, 1e6)), "f": chance.choice((True, False, None)),
            "day": chance.choice((None, dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31))),
            "ts": chance.choice((None, at, at - dt.timedelta(days=3), dt.datetime(1960, 5, 6, 7, tzinfo=dt.UTC))),
        })  # fmt: skip
    return rows


def _in_disorder(chance: Random, rows: list[dict[str, Any]], *, mixed: bool) -> pa.Table:
    if mixed:
        most = dt.timedelta(seconds=SORTED - 1)
        rows = sorted(rows, key=lambda row: row["rowtime"] + chance.random() * most)
    return pa.Table.from_pylist(rows, SCHEMA)


class Other(Protocol):
    """Another system; ``unit``: of its times."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def unit(self) -> dt.timedelta:
        """The unit of its times."""
        ...

    def drawn(self, seed: str) -> Pipeline:
        """Return the pipeline of a seed, which both systems have."""
        ...

    def answer(self, inputs: Inputs, pipeline: Pipeline) -> Sequence[Row] | str:
        """Return its rows, rowtimes first; or its error, if it fails."""
        ...

    def shown(self, pipeline: Pipeline) -> str:
        """Return the text of its query."""
        ...


@dataclass
class Compared:
    """Results: the compared pipelines by kind of their last step, those refused by check by code, and differences."""

    right: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    wrong: list[str] = field(default_factory=list)
    beside: str = "DuckDB"

    @property
    def count(self) -> int:
        """The number of pipelines that ran."""
        return self.right.total() + len(self.wrong)

    def line(self, seed: int) -> str:
        """Return the result in one line."""
        refused = self.refused.total()
        return (
            f"Seed {seed}: {self.count:,} random pipelines with {self.rows:,} rows beside {self.beside}, "
            f"{len(self.wrong)} wrong; {refused:,} more were refused."
        )

    def add(self, other: Compared) -> None:
        """Add the results of others."""
        self.right += other.right
        self.refused += other.refused
        self.rows += other.rows
        self.wrong += other.wrong


def compare(  # noqa: PLR0913 - what is compared, and where it is told and noted
    spark: SparkSession,
    seed: int,
    count: int,
    told: Callable[[str], None] = print,
    noted: Path | None = None,
    other: Other | None = None,
) -> Compared:
    """Draw pipelines until ``count`` have been compared; ``noted``: a folder with what earlier runs have compared."""
    other = other or DuckDB()
    done, number, size = Compared(beside=other.name), 0, min(TOGETHER, count)
    while done.count < count:
        name, note = f"{seed}/{number}", None if noted is None else noted / f"{other.name}-{seed}-{number}-{size}.json"
        if note is not None and note.exists():
            done.add(_read(note))
        else:
            batch = Compared()
            drawn = [other.drawn(f"{name}/{place}") for place in range(size)]
            for line in _compared(spark, other, Inputs.of(name, other.unit), drawn, batch):
                told(line)
            if note is not None and not batch.wrong:
                _note(note, batch)
            done.add(batch)
        number += 1
        told(done.line(seed))
    return done


def _note(note: Path, batch: Compared) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    part = note.with_suffix(".part")
    part.write_text(json.dumps({"right": batch.right, "refused": batch.refused, "rows": batch.rows}))
    part.replace(note)


def _read(note: Path) -> Compared:
    found = json.loads(note.read_text())
    return Compared(Counter(found["right"]), Counter(found["refused"]), found["rows"])


def _compared(
    spark: SparkSession, other: Other, inputs: Inputs, drawn: Sequence[Pipeline], done: Compared
) -> Iterator[str]:
    accepted = []
    for pipeline in drawn:
        codes = problems(inputs, pipeline)
        if codes:
            done.refused[_RENAMED.sub("…", codes[0])] += 1
        else:
            accepted.append(pipeline)
    found, rows = _both(spark, other, inputs, accepted)
    done.rows += rows
    for pipeline, differs in zip(accepted, found, strict=True):
        if differs is None:
            done.right[pipeline.views[-1].kind] += 1
            continue
        told = f"seed {pipeline.seed}: {pipeline.kind}\n{_shrunk(spark, other, inputs, pipeline, differs)}"
        done.wrong.append(told)
        yield told


def problems(inputs: Inputs, pipeline: Pipeline) -> list[str]:
    """Return why ``rowtime check`` refuses a pipeline: codes with messages."""
    script = _definitions(inputs, Path("/nowhere")) + pipeline.ours(0).replace("CREATE PUMP p0 AS INSERT INTO o0 ", "")
    return [f"{one.code} {one.message}" for one in rt.check(script) if not one.warns]


def _both(spark: SparkSession, other: Other, inputs: Inputs, drawn: Sequence[Pipeline]) -> tuple[list[str | None], int]:
    """Return the difference of each pipeline, or None; and how many rows there are."""
    expected = [other.answer(inputs, pipeline) for pipeline in drawn]
    found = in_rowtime(spark, inputs, drawn)
    said = [difference(*each, other.name) for each in zip(found, expected, strict=True)]
    return said, sum(len(rows) for rows in expected if not isinstance(rows, str))


def difference(found: Sequence[Row] | str, expected: Sequence[Row] | str, other: str = "DuckDB") -> str | None:
    """Return the difference in words; None if there is none."""
    if isinstance(found, str) or isinstance(expected, str):
        return f"rowtime: {found if isinstance(found, str) else 'rows'}; {other}: {expected}"
    times = [row[0] for row in found]
    if times != sorted(times):
        return "the rows are not in the order of rowtime"
    left = Counter(map(_plain, expected))
    extra = Counter(map(_plain, found))
    missing, more = left - extra, extra - left
    if not missing and not more:
        return None
    return f"only in {other} {_shown(missing)}; only in rowtime {_shown(more)}"


def _shown(rows: Counter[Row]) -> str:
    return f"{rows.total()}: {[*rows.elements()][:3]}"


def _plain(row: Row) -> Row:
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    """Return a value without its width: numbers are equal if their first nine digits are."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return number if math.isnan(number) or math.isinf(number) else float(f"{number:.9g}") + 0.0
    return value


# -- the two systems -----------------------------------------------------------------------


class DuckDB:
    """DuckDB, which also computes the rowtimes."""

    name: Final = "DuckDB"
    unit: Final = MICROSECOND

    def drawn(self, seed: str) -> Pipeline:
        """Return the pipeline of a seed."""
        return pipelines.drawn(seed)

    def shown(self, pipeline: Pipeline) -> str:
        """Return the text of its query."""
        return pipeline.theirs()

    def answer(self, inputs: Inputs, pipeline: Pipeline) -> Sequence[Row] | str:
        """Return its rows, rowtimes first; or its error, if it fails."""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("CREATE MACRO count_true(x) AS COUNT(*) FILTER (WHERE x)")
            for name, rows in inputs.streams.items():
                plain = rows.set_column(0, "rowtime", rows["rowtime"].cast(pa.timestamp("us")))
                plain = plain.set_column(8, "ts", plain["ts"].cast(pa.timestamp("us")))
                connection.register(name, plain)
            connection.register("t", TABLE)
            try:
                found: list[Row] = connection.execute(pipeline.theirs()).fetchall()
            except duckdb.Error as error:
                return f"{error}"
        return found


def in_rowtime(spark: SparkSession, inputs: Inputs, drawn: Sequence[Pipeline]) -> list[list[Row] | str]:
    """Return the rows of each pipeline, rowtimes first, or its error, if it fails."""
    got: list[list[Row]] = [[] for _ in drawn]
    with tempfile.TemporaryDirectory(prefix="rowtime-conformance-") as work:
        folder = Path(work)
        _write(inputs, folder)
        script = _definitions(inputs, folder) + "\n".join(one.ours(number) for number, one in enumerate(drawn))
        pipeline = rt.Pipeline(spark, home=folder / "home").sql(script)
        for number in range(len(drawn)):
            pipeline.sink(f"o{number}", _taking(got[number]))
        try:
            pipeline.run_available(folder / "check", end=True, limits=rt.Limits(files=1))
        except RowtimeError as error:
            return [str(error) for _ in drawn]
    return [*got]


def _taking(rows: list[Row]) -> Callable[[rt.Batch], None]:
    def take(batch: rt.Batch) -> None:
        if batch.count:
            rows.extend(tuple(row.values()) for row in batch.table().to_pylist())

    return take


def _write(inputs: Inputs, folder: Path) -> None:
    pq.write_table(TABLE, folder / "t.parquet")
    for name, rows in inputs.streams.items():
        parts = folder / "in" / name
        parts.mkdir(parents=True)
        size = max(1, -(-rows.num_rows // inputs.files))
        for number, start in enumerate(range(0, max(rows.num_rows, 1), size)):
            part = rows.slice(start, size)
            if name in inputs.mixed:
                part = part.rename_columns(["at", *NAMES])
            pq.write_table(part, parts / f"{number}.parquet")


def _definitions(inputs: Inputs, folder: Path) -> str:
    text = f"CREATE TABLE t (k STRING, name STRING, rank INT) USING parquet OPTIONS (path '{folder}/t.parquet');\n"
    for name in inputs.streams:
        if name in inputs.mixed:
            text += (
                f"CREATE STREAM raw_{name} (at TIMESTAMP, {DECLARED}) USING parquet "
                f"OPTIONS (path '{folder}/in/{name}');\n"
                f"CREATE VIEW {name} AS SELECT STREAM at AS ROWTIME, {', '.join(NAMES)} FROM raw_{name} "
                f"ORDER BY at WITHIN INTERVAL '{SORTED}' SECOND;\n"
            )
        else:
            text += (
                f"CREATE STREAM {name} ({DECLARED}) USING parquet "
                f"OPTIONS (path '{folder}/in/{name}', rowtime.column 'rowtime');\n"
            )
    return text


# -- smaller ------------------------------------------------------------------------------


def _shrunk(spark: SparkSession, other: Other, inputs: Inputs, pipeline: Pipeline, differs: str) -> str:
    """Return the mismatch with as few rows as halving finds, and both queries."""
    kept = set(range(inputs.count))
    size = len(kept) // 2
    while size:
        for start in range(0, len(kept), size):
            without = kept - set(sorted(kept)[start : start + size])
            smaller = inputs.fewer(without.__contains__)
            whole = all(rows.num_rows for rows in smaller.streams.values())
            said = _both(spark, other, smaller, [pipeline])[0][0] if whole else None
            if said is not None:
                kept, differs = without, said
                break
        else:
            size //= 2
            continue
        size = min(size, len(kept) // 2)
    fewest = inputs.fewer(kept.__contains__)
    rows = "\n".join(f"  {name}: {row}" for name, rows in fewest.streams.items() for row in rows.to_pylist())
    return f"{differs}\n{pipeline.ours(0)}\n-- {other.name}:\n{other.shown(pipeline)}\n{rows}"
