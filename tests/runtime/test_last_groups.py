"""At the end of a stream all groups go out: nothing is kept, and no kept column is computed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.operators.contract.state import Route
from rowtime.runtime.tick import RunningTick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM a (k STRING, v BIGINT);
SELECT STREAM k, LAST(v) AS v, COUNT(*) AS n FROM a GROUP BY k WITH UNBOUNDED STATE"""


@pytest.mark.parametrize("rows_at_the_end", [False, True])
def test_the_last_tick_writes_no_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, rows_at_the_end: bool
) -> None:
    written: list[tuple[list[str], list[str]]] = []
    found: list[Any] = []
    real = RunningTick.write

    def write(tick: RunningTick, node: Any, rows: Any, routes: Mapping[str, Route]) -> Any:
        written.append(([*routes], [name for name in rows.columns if name.startswith("__s")]))
        return real(tick, node, rows, routes)

    monkeypatch.setattr(RunningTick, "write", write)
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL)
    pipeline.sink("result", lambda batch: found.extend(batch.table().to_pylist() if batch.count else ()))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    with rt.writer("a", home=tmp_path / "home") as log:
        for second, (k, v) in enumerate([("x", 1), ("y", 2), ("x", 3)]):
            log.insert([{"rowtime": f"2024-01-01 10:00:0{second}", "k": k, "v": v}])
            pipeline.run_available(tmp_path / "check")
        if rows_at_the_end:
            log.insert([{"rowtime": "2024-01-01 10:00:09", "k": "z", "v": 9}])
        log.end()
    pipeline.run_available(tmp_path / "check")
    last_rows = [("z", 9, 1)] if rows_at_the_end else []
    assert sorted((row["k"], row["v"], row["n"]) for row in found) == [("x", 3, 2), ("y", 2, 1), *last_rows]
    *earlier, last = written
    assert {tuple(routes) for routes, _ in earlier} == {("state",)}
    assert last == (["complete"], ["__s1_0"])  # a count is its own partial result
