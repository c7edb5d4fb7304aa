"""An aggregate refuses exactly the groups for which a batch of Spark fails; the others have the values of the batch."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from rowtime.core.errors import RowtimeError
from rowtime.core.time import END
from rowtime.operators.rows import partials
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "g STRING, x DOUBLE, y DOUBLE, b BIGINT, d DECIMAL(38, 0)"
GREAT, LONG = 2**63 - 1, Decimal(9 * 10**37)
GROUPS: dict[str, list[tuple[Any, ...]]] = {
    "constant": [(1.0, 1.0, 1, Decimal(1))] * 3,
    "single": [(1.0, 2.0, 40_000, Decimal(1))],
    "null": [(None, None, None, None)] * 2,
    "greatest": [(1e308, 1e308, GREAT, LONG)] * 2,
    "least": [(-1e308, 1e308, -GREAT, -LONG)] * 2,
    "one side": [(1.0, 1.0, 2, Decimal(2)), (1.0, 3.0, 3, Decimal(3))],
    "plain": [(1.0, 1.5, 1, Decimal(1)), (2.0, 1.0, 2, Decimal(2)), (2.0, 3.0, 7, Decimal(2))],
}
CALLS = (
    "CORR(x, y)", "CORR(x, y) FILTER (WHERE b < 3)", "SUM(b)", "AVG(b)", "SUM(d)", "AVG(d)", "VAR_SAMP(x)",
    "REGR_SLOPE(x, y)", "REGR_AVGX(x, d)", "PERCENTILE(b, 0.5)", "PERCENTILE(x, 0.5, b)", "MAX(b) - MIN(b)",
    "1 / STDDEV_POP(x)", "BITMAP_COUNT(BITMAP_CONSTRUCT_AGG(b))", "SUM(LEAST(ABS(b), 100000000) * INTERVAL '1' DAY)",
    "AVG(d) + 0 * COUNT(DISTINCT b)",
)  # fmt: skip


def by_rowtime(spark: SparkSession, call: str, cut: list[int]) -> dict[str, str]:
    made: list[ScriptItem] = []
    for minute, (name, rows) in enumerate(GROUPS.items()):
        for row in rows:
            at = ORIGIN + (60 * minute + len(made)) * SECOND
            values = dict(zip("xybd", row, strict=True), g=name, rowtime=at)
            made.append(ScriptItem(len(made) + 1, "s", "w", values, None))
    made.append(ScriptItem(len(made) + 1, "s", "w", None, END))
    sql = (
        f"CREATE STREAM s ({COLUMNS}); SELECT STREAM g, CAST({call} AS STRING) AS a FROM s "
        "GROUP BY SESSION(s.ROWTIME, INTERVAL '30' SECOND), g"
    )
    case = Transcript("failing", "failing", sql, tuple(made), (), "exact", frozenset(), {"s": ["w"]}, {})
    found = play(derive(spark), case, [*cut, len(made)])
    assert {row["reason"] for row in found.refused} <= {"MALFORMED"}
    got = [(row["g"], FAILS) for row in found.refused] + [(row["g"], shown(row["a"])) for _, row in found.rows]
    assert len(got) == len(dict(got)), "each group comes once"
    return dict(got)


FAILS = "MALFORMED"


def shown(value: str | None) -> str:
    """The value as text, without the last digits of floating point."""
    try:
        return str(value if value is None else round(float(value), 9))
    except ValueError:
        return str(value)


def by_batch(spark: SparkSession, call: str) -> dict[str, str]:
    def value(rows: DataFrame) -> str:
        try:
            return shown(rows.selectExpr(f"CAST({call} AS STRING) AS a").collect()[0][0])
        except (PySparkException, Py4JJavaError):
            return FAILS

    schema = COLUMNS.replace("g STRING, ", "")
    return {name: value(spark.createDataFrame(rows, schema).coalesce(1)) for name, rows in GROUPS.items()}


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=[] if call == CALLS[0] else [pytest.mark.slow]) for call in CALLS]
)
def test_the_groups_for_which_spark_fails_are_refused(spark: SparkSession, call: str) -> None:
    expected = by_batch(spark, call)
    for cut in ([], [2, 5, 9]):
        assert by_rowtime(spark, call, cut) == expected


def test_a_sum_of_months_is_refused_by_check(spark: SparkSession) -> None:
    """Spark does not pass intervals of years and months to other programs, so no tick can keep them."""
    with pytest.raises(RowtimeError, match=r"R189 SUM\(.*\) keeps an interval of years and months"):
        by_rowtime(spark, "SUM(MAKE_YM_INTERVAL(0, CAST(LEAST(ABS(b), 2000000000) AS INT)))", [])


@pytest.mark.parametrize("call", ["BITMAP_COUNT(BITMAP_CONSTRUCT_AGG(b))", "SUM(d)", "PERCENTILE(x, 0.5, b)"])
def test_failing_groups_are_refused_in_tasks(
    spark: SparkSession, sent: list[Tasks], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tasks, "_leave", lambda *of, **_how: pytest.fail(f"left to the driver: {of[2]}"))
    expected = by_batch(spark, call)
    assert "MALFORMED" in expected.values()
    for cut in ([], [2, 5, 9]):
        assert by_rowtime(spark, call, cut) == expected
    assert sent
    assert {tasks.needs for tasks in sent} == {""}


@pytest.mark.usefixtures("sent")
def test_a_failing_group_that_is_believed_to_be_computed_is_noticed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted fault: an aggregate gives NULL for a group for which it fails."""
    monkeypatch.setattr(partials, "is_failing", lambda name: "false")
    call = "BITMAP_COUNT(BITMAP_CONSTRUCT_AGG(b))"
    assert by_rowtime(spark, call, []) != by_batch(spark, call)
