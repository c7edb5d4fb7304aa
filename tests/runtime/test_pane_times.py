"""The panes of an instant, before and after 1970, compared with the oracle: in numpy, and as Spark SQL."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rowtime.operators.panes.pane_times import PaneTimes
from tests.oracle.panes import Windows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("duration", "period", "offset"),
    [(5, 5, 0), (10, 3, 0), (10, 4, 7), (3, 10, -4), (4, 10, 25), (7, 7, -1_000_003), (1, 1, 0)],
)
def test_panes_of_times_on_both_sides_of_the_epoch(
    spark: SparkSession, duration: int, period: int, offset: int
) -> None:
    chance = random.Random(duration * period)
    far = [sign * chance.randrange(10**15) for sign in (-1, 1) for _ in range(20)]
    times, panes = np.array([*range(-30, 31), *far]), PaneTimes(duration, period, offset)
    ends = [sorted(start + duration for start in Windows(duration, period, offset).starts(int(t))) for t in times]
    covered = panes.covers(times)
    assert covered.tolist() == [bool(found) for found in ends]
    assert panes.first_end(times)[covered].tolist() == [found[0] for found in ends if found]
    # A row between two panes is refused before the ends of its panes are computed.
    inside = [(n, int(t)) for n, t in enumerate(times) if covered[n]]
    found = spark.createDataFrame(inside, "n INT, t BIGINT").selectExpr("n", f"{panes.ends_text('t')} AS e").collect()
    told: dict[int, list[int]] = {n: [] for n in range(len(times))}
    for n, end in found:
        told[n].append(end)
    assert [sorted(told[n]) for n in range(len(times))] == ends
    assert max(map(len, ends)) <= panes.most
