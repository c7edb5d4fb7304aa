"""A stream log as a sink: no value that does not fit the stream fails the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.core.errors import Refused
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (n BIGINT, k STRING);
CREATE STREAM o ({columns});
CREATE PUMP p AS INSERT INTO o SELECT STREAM {values} FROM a;
"""


def run(spark: SparkSession, folder: Path, columns: str, values: str) -> None:
    sql = SQL.format(columns=columns, values=values)
    rt.Pipeline(spark, home=folder / "home").sql(sql).run_available(folder / "check", limits=rt.Limits(files=1))


def send(folder: Path, *numbers: int) -> None:
    with rt.writer("a", home=folder / "home") as log:
        log.insert([{"n": n, "k": f"k{n}", "rowtime": n} for n in numbers])


def state(folder: Path) -> tuple[int, int]:
    """The last committed tick (-1: none), and the number of output rows."""
    last: Any = Checkpoint(folder / "check").journal.last()
    found = scan(folder / "home" / "logs" / "o", {}).get("pump.p", [])
    return (-1 if last is None else last["tick"], sum(entry.count for entry in found if isinstance(entry, Rows)))


def test_a_column_of_another_type_is_refused_before_the_start(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="R220 k is of type STRING"):
        run(spark, tmp_path, "n BIGINT", "k")
    assert state(tmp_path) == (-1, 0)


def test_a_value_that_does_not_fit_is_refused_alone(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, "n TINYINT", "n")
    send(tmp_path, 1, 2)
    send(tmp_path, 3, 300, 301)
    run(spark, tmp_path, "n TINYINT", "n")
    assert state(tmp_path)[1] == 3
    entry: Any = Checkpoint(tmp_path / "check").journal.last()
    assert entry["totals"]["p"] == {"in": 5, "accepted": 3, "MALFORMED": 2}


def test_rows_of_the_declared_types_are_not_checked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr("rowtime.runtime.sinks.stream_log.rows_of", lambda *_given: looked.append(1))
    columns = "n BIGINT, k STRING, at TIMESTAMP, x DOUBLE, d DECIMAL(10, 2), b BOOLEAN, y DATE"
    values = "n, k, a.ROWTIME AS at, n * 0.5D AS x, CAST(n AS DECIMAL(10, 2)) AS d, n > 1 AS b, DATE '2024-01-01' AS y"
    run(spark, tmp_path, columns, values)
    send(tmp_path, 1, 2)
    run(spark, tmp_path, columns, values)
    assert (state(tmp_path)[1], looked) == (2, [])
