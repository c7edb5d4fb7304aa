"""A number that is too large for a time refuses its row, wherever it becomes one; PySpark names that error itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = [1_740_816_005_000, 9_223_372_036_854_775_807, 1_740_816_006_000]
STREAM = "CREATE STREAM s (i INT, n BIGINT) USING json OPTIONS (path '{path}');"
QUERIES = {
    "select list": "SELECT STREAM i, timestamp_millis(n) AS x FROM s",
    "seconds": "SELECT STREAM i, timestamp_seconds(n * 1) AS x FROM s",
    "where": "SELECT STREAM i FROM s WHERE timestamp_millis(n) > TIMESTAMP '2000-01-01 00:00:00'",
    "condition": "SELECT STREAM CASE WHEN i > 0 THEN YEAR(timestamp_millis(n)) END AS y FROM s",
    "sort": (
        "SELECT STREAM timestamp_millis(n) AS ROWTIME, i FROM s ORDER BY timestamp_millis(n) WITHIN INTERVAL '1' HOUR"
    ),
    "group": (
        "SELECT STREAM FLOOR(timestamp_millis(n) TO MINUTE) AS m, COUNT(*) AS c FROM s "
        "GROUP BY FLOOR(timestamp_millis(n) TO MINUTE) WITHIN INTERVAL '1' HOUR"
    ),
}


@pytest.mark.parametrize("place", QUERIES)
def test_its_row_is_refused_and_the_others_go_on(spark: SparkSession, tmp_path: Path, place: str) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        rows = "".join(json.dumps({"i": i, "n": n}) + "\n" for i, n in enumerate(NUMBERS, 1 + 3 * number))
        (tmp_path / "in" / f"{number}.json").write_text(rows)
    got: list[int] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(STREAM.format(path=tmp_path / "in") + QUERIES[place])
    pipeline.sink("result", lambda batch: got.append(batch.count))
    query = pipeline.run_available(tmp_path / "check", end=True, limits=rt.Limits(files=1))
    reason = "NULL_ROWTIME" if place in ("sort", "group") else "MALFORMED"
    assert sum(gate.get(reason, 0) for gate in query.ledger.values()) == 2, query.ledger
    assert sum(got) == (1 if place == "group" else 4)
