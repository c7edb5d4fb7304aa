"""Rows that the driver sorts are in Spark's order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.operators.contract import Delta
from rowtime.runtime.session import derive
from rowtime.runtime.sinks import staging
from rowtime.runtime.sinks.staging import Stage, _sorted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.runtime.tick import RunningTick

pytestmark = pytest.mark.sampled(4)

WRITERS = ("", "a", "A", "ab", "z", "é", "ü", "zz", "\U0001f600", "\uffff")


def test_the_driver_sorts_by_time_writer_and_place_like_spark(spark: SparkSession) -> None:
    chance = random.Random(1)
    rows = [
        {"__n": chance.randrange(-3, 3), WRITER: chance.choice(WRITERS), POSITION: place - 100, "v": place}
        for place in range(300)
    ]
    chance.shuffle(rows)
    table = pa.Table.from_pylist(rows)
    theirs = spark.createDataFrame(table).sort("__n", WRITER, POSITION).toArrow()
    assert _sorted(table, (ROWTIME, WRITER, POSITION))["v"].to_pylist() == theirs["v"].to_pylist()
    assert _sorted(table, (POSITION,))["v"].to_pylist() == list(range(300))
    assert _sorted(table.slice(0, 0), (ROWTIME, WRITER, POSITION)).num_rows == 0


PAIRS = """
    CREATE STREAM l (k INT); CREATE STREAM r (k INT, v STRING);
    CREATE STREAM pairs (k INT, v STRING) USING {kind} OPTIONS (path '{path}');
    CREATE PUMP p AS INSERT INTO pairs SELECT STREAM l.k, r.v FROM l JOIN r
      ON l.k = r.k AND l.ROWTIME BETWEEN r.ROWTIME - INTERVAL '5' SECOND AND r.ROWTIME + INTERVAL '5' SECOND;
"""
FEW, SECOND = 20, 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_pairs_of_unknown_number_are_written_alike_however_many_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Few rows come to the driver; after too many, it tries again when there are half as many."""
    came: list[bool | None] = []
    few = Stage._few

    def noted(stage: Stage, rows: DataFrame, delta: Delta, tick: RunningTick) -> pa.Table | None:
        asked, found = delta.about is not None and delta.about <= stage._tried, few(stage, rows, delta, tick)
        came.append(found is not None if asked else None)
        return found

    monkeypatch.setattr(Stage, "_few", noted)
    ours = _pairs(derive(spark), tmp_path / "ours", kind)
    monkeypatch.setattr(staging, "SMALL", FEW)
    theirs = _pairs(derive(spark), tmp_path / "theirs", kind)
    assert ours == theirs
    assert len(ours) > 2 * FEW
    assert came[:3] == [True, True, True]
    assert came[3:] == [False, None, True]  # too many; as many again, not tried; few


def _pairs(spark: SparkSession, place: Path, kind: str) -> list[Any]:
    """The rows of three ticks, in the order of the files."""
    pipeline = rt.Pipeline(spark, home=place / "home").sql(PAIRS.format(kind=kind, path=place / "out"))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json())
    engine = pipeline._engine(place / "checkpoint", rt.Limits(), ends=False)
    for tick, count in enumerate((12, 12, 2)):
        for name in ("l", "r"):
            with rt.writer(name, home=place / "home") as out:
                rows = [
                    {"k": n % 2, "v": f"{tick} {n}", "rowtime": (100 * tick + n // 2) * SECOND} for n in range(count)
                ]
                out.insert([{key: row[key] for key in row if key != "v" or name == "r"} for row in rows])
                out.set_rowtime_bound((100 * tick + 50) * SECOND)
        engine.tick()
    engine.stop()
    files = sorted((place / "out").glob(f"*.{kind}"))
    if kind == "csv":
        return [line for file in files for line in file.read_text().splitlines()]
    return [row for file in files for row in pq.read_table(file).to_pylist()]
