"""Every example, run in ticks, writes the result of one batch over its recorded input (`rowtime verify`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import rowtime as rt
from examples.flights.__main__ import Places, run
from examples.flights.feed import feed
from examples.nexmark.events import write
from examples.nexmark.queries import QUERIES, pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = ("q11",)


def nexmark(query: str, spark: SparkSession, place: Path) -> None:
    found: list[pa.Table] = []
    made = pipeline(query, place, place / "home", spark).sink("result", lambda batch: found.append(batch.table()))
    ran = made.run_available(place / query, end=True, limits=rt.Limits(files=1))
    (sink,) = ran.engine.program.sinks
    rows = pa.concat_tables([table for table in found if table.num_rows])
    verified = rt.verify(place / query, made, received={sink.name: rows})
    assert verified.equal, verified
    assert verified.outputs[0].rows == rows.num_rows > 0
    assert (verified.tick, verified.batches) == (2, 1)
    assert not rt.verify(place / query, made, received={sink.name: rows.slice(1)}).equal


@pytest.mark.slow
@pytest.mark.parametrize("query", QUICK)
def test_nexmark(query: str, spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 9_000, 3)
    nexmark(query, spark, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("query", [query for query in QUERIES if query not in QUICK])
def test_the_others_of_nexmark(query: str, spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 9_000, 3)
    nexmark(query, spark, tmp_path)


@pytest.mark.slow
def test_the_flights(spark: SparkSession, tmp_path: Path) -> None:
    places = Places(tmp_path / "home", tmp_path / "checkpoint", tmp_path / "hourly")
    feed(places.home)
    run(places, spark)
    found = rt.verify(places.checkpoint, spark=spark, home=places.home, variables={"output": str(places.output)})
    assert found.equal, found
    assert found.tick > 3
    assert sum(output.rows for output in found.outputs) > 10_000
