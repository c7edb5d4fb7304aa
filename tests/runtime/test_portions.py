"""A tick over many files takes about as many rows as the driver computes; the result is that of one tick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.runtime import engine

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 40  # of a file
FILES = 6
DAY = 1_704_067_200_000_000
SQL = """
CREATE STREAM clicks (page STRING, at TIMESTAMP) USING parquet OPTIONS (path '{folder}', ends 'true');
SELECT STREAM {page} AS page, COUNT(*) AS n FROM clicks
GROUP BY FLOOR(at TO MINUTE) WITHIN INTERVAL '10' SECOND, {page};
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of 40 rows, and a large one; every tenth row is 15 seconds behind."""
    made = tmp_path / "clicks"
    made.mkdir()
    first = 0
    for number, count in enumerate([*[ROWS] * FILES, 5 * ROWS, ROWS]):
        rows = range(first, first + count)
        times = pa.array(
            [DAY + row * 2_000_000 - (row % 10 == 0) * 15_000_000 for row in rows], pa.timestamp("us", "UTC")
        )
        pq.write_table(pa.table({"page": [f"p{row % 3}" for row in rows], "at": times}), made / f"{number}.parquet")
        first += count
    return made


def run(
    spark: SparkSession, folder: Path, place: Path, page: str = "page", **limits: Any
) -> tuple[list[Any], list[int]]:
    """Return the rows and how many rows each tick has read."""
    rows, read = list[Any](), list[int]()
    pipeline = rt.Pipeline(spark, home=place / "home").sql(SQL.format(folder=folder, page=page))
    pipeline.python_function(shout, "STRING", "shout")
    pipeline.sink("result", lambda batch: rows.extend(batch.table().to_pylist()))
    pipeline.run_available(
        place / "check", limits=rt.Limits(**limits), listener=lambda progress: read.append(progress["numInputRows"])
    )
    return rows, [count for count in read if count]


def test_a_tick_takes_as_many_files_as_the_driver_computes(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, of_one = run(spark, folder, tmp_path / "one")
    assert of_one == [(FILES + 6) * ROWS]
    monkeypatch.setattr(engine, "MOST", 2 * ROWS + 1)
    rows, read = run(spark, folder, tmp_path / "several")
    assert read == [ROWS, 2 * ROWS, 2 * ROWS, ROWS, 5 * ROWS, ROWS]
    assert rows == whole


def test_a_lower_limit_of_the_user_holds(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST", 2 * ROWS)
    assert run(spark, folder, tmp_path, files=1)[1] == [*[ROWS] * FILES, 5 * ROWS, ROWS]


def test_a_tick_over_a_log_takes_as_many_rows_as_the_driver_computes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST", 2 * ROWS)
    read = list[int]()
    pipeline = rt.Pipeline(spark, home=tmp_path / "home")
    pipeline.sql("CREATE STREAM clicks (n INT); SELECT STREAM n FROM clicks;").sink("result", lambda _: None)
    pipeline.run_available(tmp_path / "check")
    with rt.writer("clicks", home=tmp_path / "home", writer="w") as log:
        for number in range(5):
            log.insert([{"rowtime": DAY + number * ROWS + row, "n": row} for row in range(ROWS)])
    pipeline.run_available(tmp_path / "check", listener=lambda progress: read.append(progress["numInputRows"]))
    assert [count for count in read if count] == [2 * ROWS, 2 * ROWS, ROWS]


def shout(word: str) -> str:
    return word.upper()
