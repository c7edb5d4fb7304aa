"""The batches of a query have one schema in every tick, at every depth, however the rows were computed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "projected": "SELECT STREAM array(named_struct('x', v)) AS l, map('k', v) AS m, named_struct('y', array(s)) AS y, s"
    " FROM a",
    "merged": "SELECT STREAM array(named_struct('x', v)) AS l FROM a"
    " UNION ALL SELECT STREAM array(named_struct('x', CAST(NULL AS INT))) FROM a",
    "sorted": "SELECT STREAM array(named_struct('x', v)) AS l, v FROM a ORDER BY FLOOR(a.ROWTIME TO MINUTE), v",
    "grouped": "SELECT STREAM FLOOR(a.ROWTIME TO MINUTE) AS n, COLLECT_LIST(s) AS l, max_by(map('k', v), v) AS m,"
    " COLLECT_LIST(array(v)) AS v, COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE)",
    "framed": "SELECT STREAM LAG(s) OVER (ORDER BY a.ROWTIME) AS p, array(v) AS l FROM a",
    "joined": "SELECT STREAM a.s, b.l FROM a LEFT JOIN b OVER (RANGE INTERVAL '1' SECOND PRECEDING) AS b ON a.v = b.v",
}
SQL = "CREATE STREAM a (s STRUCT<x: INT>, v INT); CREATE VIEW b AS SELECT STREAM v, array(s) AS l FROM a;" + ";".join(
    f"CREATE PUMP p_{name} AS INSERT INTO {name} {query}" for name, query in QUERIES.items()
)


def row(number: int) -> dict[str, object]:
    nested = {"x": number} if number % 2 else None
    return {"s": nested, "v": number, "rowtime": 1_700_000_000_000_000 + number * 40_000_000}


@pytest.mark.slow
def test_the_schemas_of_a_query_are_the_same_in_every_tick(spark: SparkSession, tmp_path: Path) -> None:
    home, got, files = tmp_path / "home", defaultdict(list), defaultdict(set)

    def pipeline() -> rt.Pipeline:
        made = rt.Pipeline(spark, home=home).sql(SQL)
        for name in QUERIES:
            made.sink(name, lambda batch, name=name: took(name, batch))
        return made

    def took(name: str, batch: rt.Batch) -> None:
        files[name] |= {pq.read_schema(file) for file in batch.files}
        if batch.count:
            got[name].append(batch.table())

    made = pipeline()
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)
    number = 0
    for count in (1, 1, 3, 2_000, 2):
        with rt.writer("a", home=home) as log:
            log.insert([row(n) for n in range(number, number + count)])
        number += count
        pipeline().run_available(tmp_path / "check")
    with rt.writer("a", home=home) as log:
        log.end()
    pipeline().run_available(tmp_path / "check")
    for name in QUERIES:
        assert len(got[name]) > 3, name
        assert len({table.schema for table in got[name]}) == 1, name
        assert len(files[name]) == 1, name
        assert pa.concat_tables(got[name]).num_rows >= number // 2
