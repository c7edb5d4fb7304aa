"""Joins of files over event columns: the hint gives the pairs, whenever files were copied and however they are cut."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.core.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.contract import Batch

ORDERS = [(1, "10:00:00"), (2, "10:05:00"), (3, "10:30:00"), (4, "12:00:00")]
PAYMENTS = [(2, "10:06:00"), (1, "10:20:00"), (3, "11:30:01"), (4, "13:00:00")]
"""Order 3 is paid a second too late."""
CONDITION = "b.paid_at BETWEEN a.ordered_at AND a.ordered_at + INTERVAL 1 HOUR"
JOIN = f"SELECT STREAM a.order_id FROM orders AS a JOIN payments AS b ON a.order_id = b.order_id AND {CONDITION}"


def written(folder: Path, column: str, rows: list[tuple[int, str]], copied: int) -> None:
    """Write two rows a file; ``copied``: when the files were copied (s after some day)."""
    folder.mkdir(parents=True)
    for number in range(0, len(rows), 2):
        lines = (f"{order},2026-05-04 {at}\n" for order, at in rows[number : number + 2])
        path = folder / f"{number}.csv"
        path.write_text(f"order_id,{column}\n{''.join(lines)}")
        os.utime(path, (1_777_900_000 + copied + number,) * 2)


def pairs(spark: SparkSession, place: Path, sql: str, files: int) -> list[int]:
    got: list[int] = []

    def take(batch: Batch) -> None:
        got.extend(batch.table()["order_id"].to_pylist() if batch.count else [])

    made = rt.Pipeline(spark, home=place / f"home{files}").sql(sql).sink("result", take)
    made.run_available(place / f"check{files}", end=True, limits=rt.Limits(files=files))
    return got


@pytest.mark.parametrize("copied", [0, 30, -3600])
@pytest.mark.parametrize("declared", [False, True])
def test_the_hint_gives_the_pairs_whenever_the_files_were_copied(
    spark: SparkSession, tmp_path: Path, copied: int, declared: bool
) -> None:
    written(tmp_path / "o", "ordered_at", ORDERS, 0)
    written(tmp_path / "p", "paid_at", PAYMENTS, copied)
    order = " ASCENDING WITHIN INTERVAL '1' MINUTE" if declared else ""
    given = "".join(
        f"CREATE STREAM {name} (order_id BIGINT, {column} TIMESTAMP{order}) "
        f"USING csv OPTIONS (path '{tmp_path / path}', header 'true');\n"
        for name, column, path in (("orders", "ordered_at", "o"), ("payments", "paid_at", "p"))
    )
    query = JOIN
    if not declared:
        with pytest.raises(Refused, match="R225") as refused:
            rt.Pipeline(spark, home=tmp_path / "home").sql(given + JOIN).compile()
        query = refused.value.problems[0].hint.split("so that ON compares them: ")[1].rstrip(".")
    for files in (1, 10):
        assert pairs(spark, tmp_path, given + query, files) == [2, 1, 4]
