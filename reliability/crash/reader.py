"""The pipeline that reads what clients write: rows unchanged, groups of minutes, and refused rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rowtime as rt
from reliability.crash.cases import Case, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (n BIGINT, k STRING);
CREATE STREAM merged (n BIGINT, k STRING);
CREATE STREAM minutes (k STRING, c BIGINT, total BIGINT) USING parquet OPTIONS (path '{out}/minutes');
CREATE STREAM refused (n BIGINT, reason STRING) USING json OPTIONS (path '{out}/refused');
CREATE PUMP p1 AS INSERT INTO merged SELECT STREAM n, k FROM a;
CREATE PUMP p2 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(n) AS total FROM a
  GROUP BY FLOOR(a.ROWTIME TO MINUTE), k;
CREATE PUMP p3 AS INSERT INTO refused SELECT STREAM n, reason FROM a.rejected;
"""


class Reader(Case):
    """A case in one folder; its input is what clients write to the stream ``a``."""

    @property
    def name(self) -> str:
        return "reader"

    def make(self) -> None:
        self.define()

    def pipeline(self, spark: SparkSession | None) -> rt.Pipeline:
        return rt.Pipeline(spark, home=self.folder / "home").sql(SQL.format(out=self.folder / "out"))

    def state(self) -> State:
        """Return the state after recovery, without what a sink has of the tick before: it may be another tick."""
        found = super().state()
        sinks = {
            name: {k: v for k, v in control.items() if k != "proof"} for name, control in found.get("sinks", {}).items()
        }
        return {**found, "sinks": sinks} if "sinks" in found else found

    def run(self, spark: SparkSession) -> None:
        """Read all that is there."""
        self.pipeline(spark).run_available(self.folder / "check", end=True)
