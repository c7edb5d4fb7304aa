"""GROUP BY … WITHIN gives rows another rowtime; expressions of the query over the old rowtime use the old one."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from tests.answers import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINED = """
CREATE STREAM a (k STRING, at TIMESTAMP);
CREATE VIEW v AS SELECT STREAM a.ROWTIME AS came, FLOOR(a.ROWTIME TO MINUTE) AS minute, k, at FROM a;
CREATE VIEW h AS SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS hour, MIN(at) AS first_at FROM a
  GROUP BY FLOOR(a.ROWTIME TO HOUR);
CREATE VIEW s AS SELECT STREAM SESSION_END(a.ROWTIME, INTERVAL '1' MINUTE) AS ended, MIN(at) AS first_at FROM a
  GROUP BY SESSION(a.ROWTIME, INTERVAL '1' MINUTE);
CREATE VIEW w AS SELECT STREAM window_start AS b, window_end AS e, at
  FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ROWTIME), INTERVAL '1' MINUTE)) AS x;
"""
BY_MINUTE = "GROUP BY FLOOR(at TO MINUTE) WITHIN INTERVAL '1' HOUR"
BY_FIRST = "GROUP BY FLOOR(first_at TO HOUR) WITHIN INTERVAL '1' HOUR"
QUERIES = {
    "view": f"SELECT STREAM FLOOR(at TO MINUTE) AS m, MAX(came) AS x, MAX(minute) AS y FROM v {BY_MINUTE}",
    "own": f"SELECT STREAM FLOOR(at TO MINUTE) AS m, MAX(a.ROWTIME) AS x, MIN(FLOOR(ROWTIME TO MINUTE)) AS y FROM a"
    f" {BY_MINUTE}",
    "group": f"SELECT STREAM FLOOR(first_at TO HOUR) AS m, MAX(hour) AS x FROM h {BY_FIRST}",
    "session": f"SELECT STREAM FLOOR(first_at TO HOUR) AS m, MAX(ended) AS x FROM s {BY_FIRST}",
    "window": f"SELECT STREAM FLOOR(at TO MINUTE) AS m, MAX(b) AS x, MAX(e) AS y FROM w {BY_MINUTE}",
    "key": "SELECT STREAM minute AS x, FLOOR(at TO MINUTE) AS m, COUNT(*) AS n FROM v GROUP BY minute,"
    " FLOOR(at TO MINUTE) WITHIN INTERVAL '1' HOUR HAVING MAX(came) >= TIMESTAMP '2024-01-01 10:00:00'",
    "kept": f"SELECT STREAM FLOOR(at TO MINUTE) AS m, COLLECT_LIST(came) AS x FROM v {BY_MINUTE}",
    "same": "SELECT STREAM FLOOR(came TO MINUTE) AS m, MAX(v.ROWTIME) AS x FROM v"
    " GROUP BY FLOOR(came TO MINUTE) WITHIN INTERVAL '1' HOUR",
    "joined": "SELECT STREAM FLOOR(l.at TO MINUTE) AS m, MAX(r.ROWTIME) AS x, MAX(l.ROWTIME) AS y FROM a AS l JOIN"
    " a AS r ON l.k = r.k AND r.ROWTIME BETWEEN l.ROWTIME AND l.ROWTIME"
    " GROUP BY FLOOR(l.at TO MINUTE) WITHIN INTERVAL '1' HOUR",
}


def time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"2024-01-01 {text}+00:00")


def test_a_column_that_follows_the_rowtime_keeps_its_value_where_within_groups_by_another_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Both rows come at 10:00; their event times are at 9:30.
    parts = [[{"k": "x", "at": "2024-01-01 09:30:50"}], [{"k": "y", "at": "2024-01-01 09:30:10"}]]
    got = answers(spark, tmp_path, DEFINED, QUERIES, parts)
    ten, second, minute = time("10:00:00"), time("10:00:01"), time("09:30:00")
    assert got == {
        "view": [{"m": minute, "x": second, "y": ten}],
        "own": [{"m": minute, "x": second, "y": ten}],
        "group": [{"m": time("09:00:00"), "x": ten}],
        "session": [{"m": time("09:00:00"), "x": time("10:01:01")}],
        "window": [{"m": minute, "x": ten, "y": time("10:01:00")}],
        "key": [{"m": minute, "x": ten, "n": 2}],
        "kept": [{"m": minute, "x": [second, ten]}],
        "same": [{"m": ten, "x": second}],
        "joined": [{"m": minute, "x": second, "y": second}],
    }
