"""The law of groups of groups: the stamp is the greatest rowtime that a row of the group can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from rowtime.runtime.session import derive
from tests.laws.checking import check_cuts
from tests.laws.deeper_pipelines import close_items
from tests.laws.grid_pipelines import pipelines
from tests.laws.pipelines import LONG, Law

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem


@pytest.mark.slow
def test_groups_of_groups_equal_an_oracle_that_lists_rowtimes(spark: SparkSession) -> None:
    session = derive(spark)

    @settings(
        max_examples=400 if LONG else 25,
        deadline=None,
        derandomize=not LONG,
        database=None,
        phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(pipelines(), close_items())
    def holds(law: Law, made: list[ScriptItem]) -> None:
        check_cuts(session, law, made)

    holds()
