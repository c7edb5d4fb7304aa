"""Types whose values cannot be stored are refused when the script is checked, not by each tick."""

from __future__ import annotations

import pytest

import rowtime as rt
from rowtime.client.arrow_types import arrow_type

KEPT = (
    "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE", "DECIMAL",
    "DECIMAL(38, 10)", "NUMERIC(9)", "STRING", "VARCHAR(5)", "CHAR(3)", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP",
    "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "ARRAY<ARRAY<INT>>", "MAP<STRING, ARRAY<STRUCT<x: INT>>>",
    "STRUCT<time: INT, `a b`: STRING>",
)  # fmt: skip
LOST = ("INTERVAL DAY TO SECOND", "VARIANT", "TIME", "ARRAY<INTERVAL DAY>", "STRUCT<x: MAP<STRING, VARIANT>>")
MONTHS = ("INTERVAL YEAR TO MONTH", "INTERVAL MONTH", "ARRAY<INTERVAL YEAR>", "STRUCT<x: MAP<STRING, INTERVAL MONTH>>")


def codes(text: str) -> list[str]:
    return [problem.code for problem in rt.check(text) if not problem.warns]


@pytest.mark.parametrize("kind", KEPT)
def test_a_log_can_store_what_check_accepts(kind: str) -> None:
    assert codes(f"CREATE STREAM a (x {kind}); SELECT STREAM x FROM a") == []
    arrow_type(kind)


@pytest.mark.parametrize("kind", [*LOST, *MONTHS])
def test_types_that_a_log_cannot_store_are_refused_at_their_declaration(kind: str) -> None:
    code = "R189" if kind in MONTHS else "R208"
    assert codes(f"CREATE STREAM a (x {kind})") == [code]
    from_files = codes(f"CREATE STREAM a (x {kind}) USING parquet OPTIONS (path '/tmp/in')")
    assert from_files == ([code] if kind in MONTHS else [])


@pytest.mark.parametrize(
    "value", ["make_ym_interval(1, 2)", "INTERVAL '1' MONTH", "INTERVAL '1' YEAR * v", "CAST(s AS INTERVAL MONTH)"]
)
def test_year_month_intervals_cannot_be_columns(value: str) -> None:
    stream = "CREATE STREAM a (v INT, s STRING, d DATE);"
    assert codes(f"{stream} SELECT STREAM {value} AS y FROM a") == ["R189"]
    hour = "FLOOR(a.ROWTIME TO HOUR)"
    assert codes(f"{stream} SELECT STREAM {hour} AS h, {value} AS y FROM a GROUP BY {hour}, {value}") == ["R189"]
    assert codes(f"{stream} SELECT STREAM d + {value} AS y FROM a") == []


HOUR = "GROUP BY FLOOR(a.ROWTIME TO HOUR)"
MATCH = (
    "y FROM a MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES {} AS y PATTERN (A B) WITHIN INTERVAL '1' MINUTE "
    "DEFINE B AS B.v > 1)"
)


@pytest.mark.parametrize(
    "query",
    [
        f"SUM(make_ym_interval(0, v)) AS y FROM a {HOUR}",
        f"CAST(AVG(make_ym_interval(0, v)) AS STRING) AS y FROM a {HOUR}",
        f"CAST(MAX(IF(v > 1, INTERVAL '1' MONTH * v, NULL)) AS STRING) AS y FROM a {HOUR}, s",
        f"COUNT(DISTINCT make_ym_interval(0, v)) AS y FROM a {HOUR}",
        f"COUNT(*) AS y FROM a {HOUR} HAVING MIN(make_ym_interval(0, v)) > INTERVAL '1' MONTH",
        f"COUNT(*) AS y FROM a {HOUR}, make_ym_interval(0, v)",
        f"MAX(v) * INTERVAL '1' MONTH AS y FROM a {HOUR}",
        "CAST(SUM(make_ym_interval(0, v)) OVER (ROWS 3 PRECEDING) AS STRING) AS y FROM a",
        "CAST(LAG(make_ym_interval(0, v)) OVER (ORDER BY ROWTIME) AS STRING) AS y FROM a",
        "ARRAY(make_ym_interval(0, v)) AS y FROM a",
        MATCH.format("CAST(LAST(make_ym_interval(0, A.v)) AS STRING)"),
        MATCH.format("CAST(SUM(make_ym_interval(0, A.v)) AS STRING)"),
    ],
)
def test_year_month_intervals_cannot_be_kept_for_a_result(query: str) -> None:
    assert codes(f"CREATE STREAM a (v INT, s STRING, d DATE); SELECT STREAM {query}") == ["R189"]


@pytest.mark.parametrize(
    "query",
    [f"MAX(d + make_ym_interval(0, v)) AS y FROM a {HOUR}", f"COUNT(make_ym_interval(0, v)) AS y FROM a {HOUR}"],
)
def test_year_month_intervals_may_lead_to_a_result(query: str) -> None:
    assert codes(f"CREATE STREAM a (v INT, s STRING, d DATE); SELECT STREAM {query}") == []
