"""Rows that fail are found in the task that computes their tick; the driver computes none of these ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rowtime.runtime.session import derive
from tests.laws.failing_pipelines import CLAUSES, OVERFLOWS, Clause, items
from tests.laws.test_failing_laws import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.executors.tasks import Tasks

ALWAYS: Final = ("sum beyond its type", "compared overflow in CASE")
"""The cases of the default run."""


@pytest.mark.parametrize(
    "clause",
    [
        pytest.param(one, id=one.name, marks=[] if one.name in ALWAYS else [pytest.mark.slow])
        for one in (*CLAUSES, *OVERFLOWS)
    ],
)
def test_failing_rows_are_refused_by_tasks(
    spark: SparkSession, sent: list[Tasks], clause: Clause, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    monkeypatch.setattr("rowtime.runtime.executors.tasks.LeftToDriver.__init__", _noting(left))
    assert check(derive(spark), clause, items(1), 1), "nothing has failed"
    reasons = [*left, *(tasks.needs for tasks in sent if tasks.needs)]
    assert not reasons


def _noting(left: list[str]) -> Any:
    def init(error: Exception, why: str) -> None:
        Exception.__init__(error, why)
        if type(error).__name__ == "LeftToDriver":
            left.append(why)

    return init
