"""Runs several queries over one stream of rows in one pipeline, and returns their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
START = "2024-01-01 10:00:00"


def answers(
    spark: SparkSession,
    folder: Path,
    definitions: str,
    queries: Mapping[str, str],
    parts: Sequence[Sequence[Row]],
    *,
    ticks: bool = False,
) -> dict[str, list[Row]]:
    """Return the rows of each query without the rowtime; each part of the rows of stream ``a`` is an insert.

    A row has a ``rowtime``, or comes a second after the row before it. With ``ticks`` each part is also a tick.
    """
    got: dict[str, list[Row]] = {name: [] for name in queries}
    pumps = [f"CREATE PUMP p_{name} AS INSERT INTO o_{name} {query};" for name, query in queries.items()]
    pipeline = rt.Pipeline(spark, home=folder / "home").sql("\n".join([definitions, *pumps]))
    for name, rows in got.items():
        pipeline.sink(f"o_{name}", lambda batch, into=rows: into.extend(batch.table().to_pylist()))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    second = 0
    for part in parts:
        timed = []
        for row in part:
            timed.append({"rowtime": f"2024-01-01 10:{second // 60:02}:{second % 60:02}", **row})
            second += 1
        with rt.writer("a", home=folder / "home") as log:
            log.insert(timed)
        if ticks:
            pipeline.run_available(folder / "check")
    with rt.writer("a", home=folder / "home") as log:
        log.end()
    pipeline.run_available(folder / "check")
    return {name: [{k: v for k, v in row.items() if k != "rowtime"} for row in rows] for name, rows in got.items()}
