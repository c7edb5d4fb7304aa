"""Random queries over finite inputs have the rows of Spark's batch, however the inputs are cut."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.operators.over import over_memory
from tests.queries.agreement import differences, same_stream
from tests.queries.random_queries import KINDS, Case, drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMS = ("a", "b")
ROWS, FILES = 60, 3
BEGIN = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
SCHEMA = pa.schema(
    {"rowtime": pa.timestamp("us", "UTC"), "k": pa.string(), "v": pa.int32(), "d": pa.float64(), "f": pa.bool_()}
)


def input_of(chance: Random, stream: str) -> pa.Table:
    """Rows seconds to minutes apart; one stream has even and the other odd µs, so no two rows have one time."""
    at, rows = BEGIN, []
    for _ in range(ROWS):
        at += dt.timedelta(seconds=chance.choice((1, 7, 31, 95, 400)), microseconds=2 * chance.randint(0, 499))
        values = {
            "k": chance.choice(("x", "y", "z", None)),
            "v": chance.choice((None, *range(-5, 6))),
            "d": chance.choice((None, 0.5, -1.25, 3.0)),
            "f": chance.choice((True, False, None)),
        }
        rows.append({"rowtime": at + dt.timedelta(microseconds=STREAMS.index(stream)), **values})
    return pa.Table.from_pylist(rows, SCHEMA)


@contextmanager
def inputs(spark: SparkSession, folder: Path, chance: Random) -> Iterator[str]:
    """The streams as files with random cuts, and as views for batch; yields their definitions."""
    for stream in STREAMS:
        rows, parts = input_of(chance, stream), folder / "in" / stream
        parts.mkdir(parents=True)
        cuts = [0, *sorted(chance.sample(range(1, ROWS), FILES - 1)), ROWS]
        for number, (start, end) in enumerate(zip(cuts, cuts[1:], strict=False)):
            pq.write_table(rows.slice(start, end - start), parts / f"{number}.parquet")
        spark.createDataFrame(rows).createOrReplaceTempView(stream)
    try:
        yield "".join(
            f"CREATE STREAM {stream} (k STRING, v INT, d DOUBLE, f BOOLEAN) USING parquet "
            f"OPTIONS (path '{folder}/in/{stream}', rowtime.column 'rowtime');\n"
            for stream in STREAMS
        )
    finally:
        for stream in STREAMS:
            spark.catalog.dropTempView(stream)


def streamed(
    spark: SparkSession, folder: Path, streams: str, cases: Sequence[Case], limits: rt.Limits
) -> tuple[list[pa.Table], int]:
    """The rows of each query, all of them in one pipeline, and the number of ticks."""
    pumps = [f"CREATE PUMP p{n} AS INSERT INTO o{n} {case.streaming};" for n, case in enumerate(cases)]
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(streams + "\n".join(pumps))
    got: list[list[pa.Table]] = [[] for _ in cases]
    ticks: set[int] = set()

    def sink(number: int) -> Callable[[Any], None]:
        def take(batch: Any) -> None:
            ticks.add(batch.tick)
            if batch.count:
                got[number].append(batch.table())

        return take

    for number in range(len(cases)):
        pipeline.sink(f"o{number}", sink(number))
    pipeline.run_available(folder / "check", end=True, limits=limits)
    return [pa.concat_tables(tables) if tables else pa.table({}) for tables in got], len(ticks)


def disagreements(case: Case, by_file: pa.Table, at_once: pa.Table, batch: pa.Table) -> list[str]:
    said = [f"cut at files: {text}" for text in differences(by_file, batch)]
    said += [f"in one tick: {text}" for text in differences(at_once, batch)]
    if not same_stream(by_file, at_once):
        said.append("the streams of the two cuts differ")
    return ["\n  ".join((case.kind, *said, case.streaming, case.batch))] if said else []


def search(spark: SparkSession, folder: Path, seed: int, count: int) -> list[Case]:
    """Draw queries, and compare their rows with batch, with a cut at every file and in one tick."""
    chance = Random(seed)
    cases = drawn(chance, count)
    with inputs(spark, folder, chance) as streams:
        for case in cases:
            assert [str(p) for p in rt.check(streams + case.streaming) if not p.warns] == [], case.streaming
        by_file, ticks = streamed(spark, folder / "by_file", streams, cases, rt.Limits(files=1))
        assert ticks >= FILES
        at_once, ticks = streamed(spark, folder / "at_once", streams, cases, rt.Limits())
        assert ticks == 1
        batch = [spark.sql(case.batch).toArrow() for case in cases]
    assert 2 * sum(table.num_rows > 0 for table in batch) > count, "answers without rows agree too easily"
    found = [text for each in zip(cases, by_file, at_once, batch, strict=True) for text in disagreements(*each)]
    if found:
        pytest.fail("\n".join(found))
    return cases


@pytest.mark.slow
def test_random_queries_have_the_rows_of_batch(spark: SparkSession, tmp_path: Path) -> None:
    search(spark, tmp_path, seed=151, count=2)


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
def test_the_search_finds_a_fault_between_two_ticks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_memory, "alive", lambda rows, _: rows.slice(0, 0))
    with pytest.raises(pytest.fail.Exception, match="cut at files: only in batch") as failed:
        search(spark, tmp_path, seed=151, count=6)
    assert "in one tick" not in str(failed.value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_random_queries_of_every_kind_have_the_rows_of_batch(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    cases = search(spark, tmp_path, seed, count=20)
    assert {case.kind for case in cases} == {kind.__name__ for kind in KINDS}
