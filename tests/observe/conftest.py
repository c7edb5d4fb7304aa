"""One pipeline for all tests here: a stream log, a T-sort with late rows, groups by minute, two runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.observe.observer import Observer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM trades (ev TIMESTAMP, k STRING, n INT);
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, n FROM trades ORDER BY ev WITHIN INTERVAL '10' SECOND;
SELECT STREAM FLOOR(sorted.ROWTIME TO MINUTE) AS m, k, SUM(n) AS total FROM sorted
GROUP BY FLOOR(sorted.ROWTIME TO MINUTE), k"""
ROWS = (10, 70, 65, 10, 200)  # seconds after 10:00; the second 10 is late


class Listener:
    """A listener with the methods of Spark's listeners that is no subclass of them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.events.append(("started", event))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.events.append(("progress", event))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.events.append(("idle", event))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.events.append(("terminated", event))


class Broken(Observer):
    """A listener whose methods fail."""

    def _fail(self, *_: Any) -> None:
        raise RuntimeError("always")

    started = ticked = failed = ended = _fail  # type: ignore[assignment]


class Records(logging.Handler):
    """Collects log records."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.kept: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record)

    def of(self, event: str) -> list[Any]:
        return [record for record in self.kept if getattr(record, "event", None) == event]


@dataclass
class Ran:
    """A checkpoint after one run of several ticks and one more, and the events that observers got in the first."""

    spark: SparkSession
    folder: Path
    listener: Listener = field(default_factory=Listener)
    records: Records = field(default_factory=Records)
    progress: list[dict[str, Any]] = field(default_factory=list)

    def first(self, seconds: Sequence[int], **how: Any) -> None:
        self.query = self.run(seconds, listeners=[self.listener], **how)
        check = self.folder / "check"
        self.sizes = {str(path.relative_to(check)): path.stat().st_size for path in check.rglob("*.parquet")}

    def run(self, seconds: Sequence[int], **how: Any) -> rt.Query:
        self.pipeline = rt.Pipeline(self.spark, home=self.folder / "home").sql(SQL)
        self.pipeline.sink("result", lambda _: time.sleep(0.01))
        self.pipeline.home.define("trades", self.pipeline.compile().defines[0].as_json(), replace=True)
        for at in seconds:  # one file each, so that each tick reads one
            with rt.writer("trades", home=self.folder / "home", writer="w") as log:
                log.insert([{"ev": f"2024-01-01 10:{at // 60:02}:{at % 60:02}", "k": "a", "n": at}])
        return self.pipeline.run_available(self.folder / "check", **how)


@pytest.fixture(scope="session")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    from rowtime.runtime.sources.contract import Limits

    found = Ran(spark, tmp_path_factory.mktemp("observed"))
    logger, level = logging.getLogger("rowtime"), logging.getLogger("rowtime").level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(found.records)
    try:
        found.first(ROWS, limits=Limits(rows=2), listener=found.progress.append, observers=[Broken()])
    finally:
        logger.setLevel(level)
        logger.removeHandler(found.records)
    return found
