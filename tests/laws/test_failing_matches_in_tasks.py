"""A condition of MATCH_RECOGNIZE that fails in a task gives up its candidate there, as it does on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowtime.operators.patterns.conditions import Tester
from rowtime.runtime.executors.tasks import Tasks
from tests.runtime.test_match_failures import CUTS, MEASURES, PAST, ROWS, SELECT, played

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_SPARK = (
    f"{SELECT}{MEASURES}AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) WITHIN INTERVAL '1' MINUTE "
    "DEFINE A AS BROUND(10 / (FIRST(A.n) - A.n + 2), 1) > 0, B AS HEX(CAST(B.v AS STRING)) = HEX('0')) AS m"
)


@pytest.mark.parametrize("sql", [PAST, OF_SPARK], ids=["a sum beyond its type", "a condition of Spark"])
def test_a_failing_condition_gives_up_the_same_candidates(
    spark: SparkSession, sent: list[Tasks], monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Tasks, "done", lambda *_of, **_how: None)  # the driver computes all ticks
        expected, _ = played(spark, sql, ROWS, CUTS[0])
    assert any(expected[0])
    assert any(expected[1])
    monkeypatch.setattr(Tasks, "_leave", lambda *of, **_how: pytest.fail(f"left to the driver: {of[2]}"))
    for cut in CUTS[:2]:
        assert played(spark, sql, ROWS, cut)[0] == expected, cut
    assert {tasks.needs for tasks in sent} == {""}


def test_a_failing_condition_that_is_taken_for_a_false_one_is_noticed(
    spark: SparkSession, sent: list[Tasks], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted fault: what fails is not satisfied."""
    right, _ = played(spark, PAST, ROWS, CUTS[0])
    tried = Tester.tried

    def wrong(*of: Any) -> Any:
        fits, fails, error = tried(*of)
        return fits, fails & False, error

    monkeypatch.setattr(Tester, "tried", wrong)
    assert played(spark, PAST, ROWS, CUTS[0])[0] != right
    assert sent
