"""What a tick has in memory is freed when it ends, and not whenever Python looks for cycles."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import rowtime as rt
from rowtime.runtime.tick import RunningTick

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM clicks (page STRING, at TIMESTAMP);
INSERT INTO clicks (page, at) VALUES ('a', TIMESTAMP '2024-01-01 10:00:00'), ('b', TIMESTAMP '2024-01-01 10:05:00'),
  ('c', TIMESTAMP '2024-01-01 09:00:00');
SELECT STREAM page, COUNT(*) AS n FROM clicks GROUP BY FLOOR(at TO MINUTE) WITHIN INTERVAL '10' SECOND, page;
"""


def test_a_tick_is_in_no_cycle(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, ticks = RunningTick.__init__, list[weakref.ref[RunningTick]]()

    def init(tick: RunningTick, *given: Any) -> None:
        ticks.append(weakref.ref(tick))
        made(tick, *given)

    monkeypatch.setattr(RunningTick, "__init__", init)
    gc.disable()
    try:
        query = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL).run_available(tmp_path / "check")
        assert query.ledger["query"]["LATE"] == 1
        assert ticks
        assert [tick() for tick in ticks] == [None] * len(ticks)
    finally:
        gc.enable()
