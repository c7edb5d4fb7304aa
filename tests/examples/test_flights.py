"""The flights example from end to end, against the independent computation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from examples.flights import independent
from examples.flights.__main__ import Outcome, Places, gate, hourly, run
from examples.flights.feed import feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Interrupted(BaseException):
    pass


def interrupted(tick: dict[str, object]) -> None:
    raise Interrupted


def departures(output: Path) -> Counter[tuple[str, object, str]]:
    found: Counter[tuple[str, object, str]] = Counter()
    for row in hourly(output).to_pylist():
        key = (row["origin"], row["hour"], row["carrier"])
        assert key not in found  # a group comes out once
        found[key] = row["departures"]
    return found


@pytest.mark.slow
def test_the_pipeline_finds_what_plain_loops_find(spark: SparkSession, tmp_path: Path) -> None:
    places = Places(tmp_path / "home", tmp_path / "checkpoint", tmp_path / "hourly")
    feed(places.home)
    for _ in range(2):  # after the first tick, and after the second
        with pytest.raises(Interrupted):
            run(places, spark, listener=interrupted)
    outcome = run(places, spark)
    assert run(places, spark) == outcome  # no input is left

    expected = independent.count(independent.deliveries())
    assert departures(places.output) == expected.departures
    for airport in expected.accepted:
        assert Counter(outcome.ledger[gate(airport)]) == Counter(
            {
                "in": expected.accepted[airport] + expected.late[airport] + expected.cancelled[airport],
                "accepted": expected.accepted[airport],
                "LATE": expected.late[airport],
                "NULL_ROWTIME": expected.cancelled[airport],
            }
        )
        assert reasons(outcome, airport) == Counter(
            {"LATE": expected.late[airport], "NULL_ROWTIME": expected.cancelled[airport]}
        )
    total = sum((Counter(counts) for counts in outcome.ledger.values()), Counter[str]())
    assert total["accepted"] + total["LATE"] + total["NULL_ROWTIME"] == total["in"] == 336_776


def reasons(outcome: Outcome, airport: str) -> Counter[str]:
    """The stored refused rows, by reason."""
    files = [str(path) for path in outcome.rejected[gate(airport)]]
    kept = ds.dataset(files, format="parquet").to_table(columns=["reason"])
    return Counter(kept["reason"].to_pylist())
