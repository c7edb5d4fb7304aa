"""Rows that are refused behind a merge are told by the writer and the position that they had before it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATES = """
    CREATE STREAM a (n INT, t TIMESTAMP) EVENT TIME (t);
    CREATE STREAM permits (p INT);
    CREATE VIEW odd AS SELECT STREAM n, t FROM a WHERE n % 2 = 1;
    CREATE VIEW direct AS SELECT STREAM * FROM STREAM(GATE(TABLE a, TABLE permits)) WITH UNBOUNDED STATE;
    CREATE VIEW viewed AS SELECT STREAM * FROM STREAM(GATE(TABLE odd, TABLE permits)) WITH UNBOUNDED STATE;
    CREATE PUMP p1 AS INSERT INTO refused SELECT STREAM 'direct' AS gate, n, reason, writer, position FROM direct.rejected;
    CREATE PUMP p2 AS INSERT INTO others SELECT STREAM 'viewed' AS gate, n, reason, writer, position FROM viewed.rejected;
"""  # noqa: E501


@pytest.mark.slow
def test_a_gate_above_an_event_time_told_the_number_in_the_merge_and_no_writer(
    spark: SparkSession, tmp_path: Path
) -> None:
    found: set[tuple[Any, ...]] = set()

    def run(writes: dict[tuple[str, str], list[int]], *, end: bool = False) -> None:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(GATES)
        for name in ("refused", "others"):
            pipeline.sink(name, lambda batch: found.update(_told(batch)))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        for (stream, writer), seconds in writes.items():
            with rt.writer(stream, home=tmp_path / "home", writer=writer) as log:
                log.insert([_row(stream, n, f"2024-01-01 10:00:{n:02}") for n in seconds])
                if end:
                    log.set_rowtime_bound("end")
        pipeline.run_available(tmp_path / "check")

    run({("a", "x"): [1, 3, 5], ("a", "y"): [2, 4], ("permits", "p"): [1]})
    run({("a", "x"): [7, 9], ("a", "y"): [8], ("permits", "p"): []}, end=True)
    assert found == {
        *(("direct", n, "NO_PERMIT", "x", at) for at, n in enumerate((1, 3, 5, 7, 9)) if n > 1),
        *(("direct", n, "NO_PERMIT", "y", at) for at, n in enumerate((2, 4, 8))),
        *(("viewed", n, "NO_PERMIT", "x", at) for at, n in enumerate((1, 3, 5, 7, 9)) if n > 1),
    }


def _row(stream: str, n: int, at: str) -> dict[str, object]:
    return {"p": 1, "rowtime": at} if stream == "permits" else {"n": n, "t": at, "rowtime": at}


def _told(batch: rt.Batch) -> set[tuple[Any, ...]]:
    names = ("gate", "n", "reason", "writer", "position")
    return {tuple(row[name] for name in names) for row in (batch.table().to_pylist() if batch.count else [])}
