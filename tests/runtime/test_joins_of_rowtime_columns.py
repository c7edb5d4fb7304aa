"""Joins and groups over the column of ``rowtime.column``: the rows that plain SQL gives, however the input is cut."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.contract import Batch

Row = tuple[int, str | None]
LEFT: list[list[Row]] = [[(1, "10:00:00"), (2, "10:00:00.5"), (3, None)], [(1, "11:30:00"), (3, "11:31:00"), (2, None)]]
RIGHT: list[list[Row]] = [[(2, "10:00:00.5"), (1, "10:59:59"), (3, None)], [(3, "11:20:00"), (1, "12:30:00.000001")]]
DAY = datetime(2026, 5, 4)  # noqa: DTZ001 - the files have no zone
CHANGED = [timedelta(hours=11), timedelta(hours=13)]
"""When the files changed: rows without a time have these."""
RANGE = "b.at BETWEEN a.at AND a.at + INTERVAL '1' HOUR"


def moment(at: str | None) -> datetime | None:
    return None if at is None else datetime.fromisoformat(f"2026-05-04 {at}")


def written(folder: Path, form: str, files: list[list[Row]]) -> None:
    folder.mkdir()
    for number, rows in enumerate(files):
        path = folder / f"{number}.{form}"
        if form == "json":
            lines = ({"id": n} | ({} if at is None else {"at": f"2026-05-04T{at}Z"}) for n, at in rows)
            path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        else:
            times = pa.array([moment(at) for _, at in rows], pa.timestamp("us", "UTC"))
            table = pa.table({"id": pa.array([n for n, _ in rows], pa.int32()), "at": times})
            (parquet.write_table if form == "parquet" else csv.write_csv)(table, path)
        changed = (DAY + CHANGED[number] - datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001 - the files have no zone
        os.utime(path, (changed, changed))


def got(spark: SparkSession, place: Path, form: str, query: str, files: int, null: str = "") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []

    def take(batch: Batch) -> None:
        rows.extend(
            tuple(row[name] for name in ("l", "r")) for row in (batch.table().to_pylist() if batch.count else ())
        )

    header = ", header 'true'" if form == "csv" else ""
    given = "".join(
        f"CREATE STREAM {name} (id INT, at TIMESTAMP{null}) USING {form} "
        f"OPTIONS (path '{place / name}', rowtime.column 'at'{header});\n"
        for name in "ab"
    )
    pipeline = rt.Pipeline(spark, home=place / f"home{files}").sql(given + query).sink("result", take)
    pipeline.run_available(place / f"checked{files}", end=True, limits=rt.Limits(files=files))
    return sorted(rows, key=str)


def pairs() -> list[tuple[Row, Row]]:
    return [
        (a, b)
        for a in chain(*LEFT)
        for b in chain(*RIGHT)
        if a[0] == b[0]
        and (x := moment(a[1])) is not None
        and (y := moment(b[1])) is not None
        and x <= y <= x + timedelta(hours=1)
    ]


def expected(clause: str) -> list[tuple[str | None, str | None]]:
    """The rows as (id, time) texts, NULL for no match."""
    matched = pairs()
    lacking: list[tuple[Row | None, Row | None]] = list(matched)
    if clause in ("LEFT JOIN", "FULL JOIN"):
        lacking += [(a, None) for a in chain(*LEFT) if a not in [x for x, _ in matched]]
    if clause == "FULL JOIN":
        lacking += [(None, b) for b in chain(*RIGHT) if b not in [y for _, y in matched]]
    return sorted(((shown(a), shown(b)) for a, b in lacking), key=str)


def shown(row: Row | None) -> str | None:
    if row is None:
        return None
    time = moment(row[1])
    return f"{row[0]} {'' if time is None else time.strftime('%H:%M:%S.%f')}"


SHOWN = "{0}.id || ' ' || COALESCE(DATE_FORMAT({0}.at, 'HH:mm:ss.SSSSSS'), '')"


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@pytest.mark.parametrize("clause", ["JOIN", "LEFT JOIN", "FULL JOIN", ","])
def test_the_rows_of_a_join_are_those_of_plain_sql(spark: SparkSession, tmp_path: Path, form: str, clause: str) -> None:
    written(tmp_path / "a", form, LEFT)
    written(tmp_path / "b", form, RIGHT)
    on = "WHERE" if clause == "," else "ON"
    query = (
        f"SELECT STREAM {SHOWN.format('a')} AS l, {SHOWN.format('b')} AS r "
        f"FROM a {clause} b {on} a.id = b.id AND {RANGE}"
    )
    assert len(pairs()) == 2
    for files in (1, 10):
        assert got(spark, tmp_path, form, query, files) == expected(clause)


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_rows_without_the_column_are_refused_if_it_is_not_null(spark: SparkSession, tmp_path: Path, form: str) -> None:
    early = [[(1, "10:00:00"), (3, None), (2, "10:30:00")], [(1, "11:30:00"), (3, None), (2, "11:40:00")]]
    written(tmp_path / "a", form, early)  # the time of change would make the rows after it OUT_OF_ORDER
    hours = "SELECT STREAM DATE_FORMAT(FLOOR(at TO HOUR), 'HH') AS l, COUNT(*) AS r FROM a GROUP BY FLOOR(at TO HOUR)"
    lost = "SELECT STREAM reason AS l, COUNT(*) AS r FROM a.rejected GROUP BY FLOOR(ROWTIME TO YEAR), reason"
    for files in (1, 10):
        assert got(spark, tmp_path, form, hours, files, " NOT NULL") == [("10", 2), ("11", 2)]
    for files in (2, 20):
        assert got(spark, tmp_path, form, lost, files, " NOT NULL") == [("MALFORMED", 2)]
