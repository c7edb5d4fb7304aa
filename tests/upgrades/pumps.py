"""A pipeline whose pumps other scripts start and stop, with two targets: a directory and a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import rowtime as rt
from rowtime.cli.status import status_of
from rowtime.core.stores import place_of
from rowtime.observe.pump_states import pump_lines
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import SparkSession

    from rowtime.runtime.pump_ordering import Ordered

SCRIPT = """
CREATE STREAM s (v BIGINT);
CREATE STREAM other (v BIGINT);
CREATE STREAM files (v BIGINT) USING parquet OPTIONS (path '{out}/files');
CREATE STREAM more (v BIGINT) USING parquet OPTIONS (path '{out}/more');
CREATE STREAM log (v BIGINT);
CREATE VIEW large AS SELECT STREAM v FROM s WHERE v >= 0;
CREATE PUMP a.files STOPPED AS INSERT INTO files SELECT STREAM v FROM large;
CREATE PUMP a.log STOPPED AS INSERT INTO log SELECT STREAM v FROM large;
"""
COUNTS = """
CREATE STREAM counts (h TIMESTAMP, n BIGINT) USING parquet OPTIONS (path '{out}/counts');
CREATE PUMP a.counts STOPPED AS INSERT INTO counts
  SELECT STREAM FLOOR(x.ROWTIME TO HOUR) AS h, COUNT(*) AS n FROM s AS x GROUP BY FLOOR(x.ROWTIME TO HOUR);
"""


class Pumps:
    """A pipeline whose pumps get orders from other scripts."""

    def __init__(self, folder: Path, spark: SparkSession, check: str = "") -> None:
        self.folder, self.spark, self.script = folder, spark, SCRIPT
        self.check = check or str(folder / "check")
        self.sent = 0

    @property
    def place(self) -> Checkpoint:
        return Checkpoint(place_of(self.check))

    def pipeline(self, script: str = "") -> rt.Pipeline:
        text = (script or self.script).replace("{out}", str(self.folder / "out"))
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(text)

    def run(self, script: str = "") -> rt.Query:
        return self.pipeline(script).run_available(self.check)

    def order(self, text: str) -> Ordered:
        return rt.alter(self.check, text, home=self.folder / "home")

    def send(self, count: int = 1, stream: str = "s", hours: Sequence[int] = ()) -> None:
        with rt.writer(stream, home=self.folder / "home") as log:
            for number in range(count):
                at = {"rowtime": f"2024-01-01 {hours[number]:02d}:00:00"} if hours else {}
                log.insert([{"v": self.sent, **at}])
                self.sent += 1

    def files(self, name: str = "files", column: str = "v") -> list[Any]:
        found = sorted((self.folder / "out" / name).glob("part-*"))
        return [value for file in found for value in pq.read_table(file)[column].to_pylist()]

    def log(self) -> list[int]:
        """The rows that another pipeline reads from the log."""
        reader = rt.Pipeline(self.spark, home=self.folder / "home")
        return [int(value) for value in reader.preview("SELECT STREAM v FROM log", rows=100)["v"].to_pylist()]

    def orders(self) -> list[str]:
        """The present files of orders."""
        return [path.name for path in (place_of(self.check) / "orders").glob("*.json")]

    def verified(self) -> bool:
        """With the script of the checkpoint, and with that of the pipeline."""
        found = rt.verify(self.check, home=self.folder / "home", spark=self.spark)
        assert found.equal, found
        return rt.verify(self.check, self.pipeline()).equal

    def said(self) -> list[str]:
        return [line.split(" of ")[0] for line in pump_lines(status_of(self.check))]


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
