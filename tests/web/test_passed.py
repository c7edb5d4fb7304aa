"""The number of rows on every edge follows from the counts of gates and sinks, exactly or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.plan.program import compile_script
from rowtime.runtime import given_rows
from rowtime.runtime.sources.contract import Limits
from rowtime.web.moments import Moment
from rowtime.web.records import Records
from rowtime.web.views.graph import graph, rows_out, since

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Tap

SQL = """CREATE STREAM a (t TIMESTAMP, k INT, small INT);
CREATE STREAM b (k INT);
CREATE STREAM few (k INT, n SMALLINT);
CREATE STREAM many (m TIMESTAMP, n BIGINT);
CREATE VIEW sorted AS SELECT STREAM t AS ROWTIME, k, small FROM a ORDER BY t WITHIN INTERVAL '5' SECOND;
CREATE VIEW both AS SELECT STREAM k FROM sorted UNION ALL SELECT STREAM k + 1 AS k FROM b;
CREATE PUMP counts AS INSERT INTO many SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, COUNT(*) AS n
  FROM both AS s GROUP BY FLOOR(s.ROWTIME TO MINUTE) HAVING COUNT(*) > 1;
CREATE PUMP typed AS INSERT INTO few SELECT STREAM k, small FROM sorted WHERE k > 0;"""
# 10 is late; 70,000 is not a SMALLINT
ROWS = [(0, 1, 1), (1, 0, 1), (70, 2, 70_000), (10, 3, 3), (71, 4, 4), (72, 5, 5)]


BEHIND = """CREATE STREAM a (t TIMESTAMP, k INT, small INT);
CREATE STREAM b (k INT);
CREATE VIEW sorted AS SELECT STREAM t AS ROWTIME, k, small FROM a ORDER BY t WITHIN INTERVAL '5' SECOND;
CREATE VIEW grouped AS SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS n FROM sorted AS s
  GROUP BY FLOOR(s.ROWTIME TO MINUTE), k;
CREATE VIEW joined AS SELECT STREAM x.k, x.small, y.k AS other FROM sorted AS x
  JOIN b OVER (RANGE INTERVAL '1' HOUR PRECEDING) AS y ON x.k <> y.k;
CREATE PUMP first AS INSERT INTO few SELECT STREAM k, n FROM grouped WHERE k > 1;
CREATE PUMP second AS INSERT INTO many SELECT STREAM k, small AS n FROM joined WHERE k > 1;
CREATE PUMP third AS INSERT INTO many SELECT STREAM k, other AS n FROM joined WHERE other > 7;
CREATE STREAM few (k INT, n BIGINT);
CREATE STREAM many (k INT, n BIGINT);"""


class Run:
    """A pipeline over the same logs in a checkpoint of its own, two rows a tick."""

    def __init__(self, spark: SparkSession, folder: Path, sql: str) -> None:
        self.spark, self.folder, self.sql = spark, folder, sql

        self.home = folder.parent / "home"

    @property
    def pipeline(self) -> rt.Pipeline:
        made = rt.Pipeline(self.spark, home=self.home).sql(self.sql)
        for name in ("few", "many"):
            made.sink(name, lambda _: None)
        return made

    def write(self) -> Run:
        """The rows of both streams."""
        pipeline, home = self.pipeline, self.home
        for one in pipeline.compile().defines:
            pipeline.home.define(one.name, one.as_json(), replace=True)
        with rt.writer("a", home=home, writer="w") as log:
            for second, k, small in ROWS:
                log.insert([{"t": f"2024-01-01 00:{second // 60:02}:{second % 60:02}", "k": k, "small": small}])
        with rt.writer("b", home=home, writer="w") as log:
            log.insert([{"rowtime": "2024-01-01 00:00:03", "k": 7}, {"rowtime": "2024-01-01 00:02:00", "k": 8}])
        return self

    def all(self, tap: Tap = lambda _node, _delta: None) -> Records:
        """Process the present input; each operator passes its rows to ``tap``."""
        engine = self.pipeline._engine(self.folder, Limits(rows=2), ends=False)
        engine.tap = tap
        while engine.tick() is not None:
            pass
        engine.stop()
        records = Records(self.folder)
        records.refresh()
        return records


class Taken:
    """Counts the rows of each operator while they can be read."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def __call__(self, node: Any, delta: Any) -> None:
        rows = 0 if delta.rows is None else delta.rows.count()
        self.rows[node.name] = self.rows.get(node.name, 0) + rows


def edges_of(records: Records) -> dict[tuple[str, str], int | None]:
    """The rows of each edge as the page shows them."""
    assert records.plan is not None
    assert records.last is not None
    assert len(records.moments) > 2
    edges = graph(records.plan, records.last, records.moments)["edges"]
    return {(edge["from"], edge["to"]): edge["rows"] for edge in edges}


@pytest.mark.parametrize(
    "by", ["driver", *(pytest.param(one, marks=pytest.mark.slow) for one in ("spark", "spark that has many rows"))]
)
@pytest.mark.parametrize(
    ("sql", "behind_many"),
    [(SQL, set[str]()), (BEHIND, {"joined.join", "joined.select"})],
    ids=["counted", "behind_filters"],
)
def test_each_edge_has_as_many_rows_as_the_run_had(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
    sql: str,
    behind_many: set[str],
) -> None:
    if by == "spark that has many rows":
        monkeypatch.setattr(given_rows, "FEW_ROWS", 0)
    found = edges_of(Run(spark, tmp_path / "check", sql).write().all())
    taken = Taken()
    Run(spark, tmp_path / "again", sql).all(taken)  # reading rows computes them, so this needs a run of its own
    unknown = {below for (below, _), rows in found.items() if rows is None}
    assert unknown == (behind_many if by == "spark that has many rows" else set())
    known = {edge: rows for edge, rows in found.items() if rows is not None}
    assert known == {(below, above): taken.rows[below] for below, above in known}
    assert taken.rows["sorted"] == 5


def moment(tick: int, **counts: int) -> Moment:
    totals = {name: {"in": n, "accepted": n} for name, n in counts.items()}
    return Moment(tick, 0, {}, totals, {}, {})


def test_the_first_ticks_of_a_checkpoint_count_from_nothing() -> None:
    one = since([moment(0, s=5)], 10)
    assert one is not None
    plan = compile_script("CREATE STREAM s (n INT); SELECT STREAM n FROM s").described()
    assert rows_out(plan, one)["s"] == 5
    many = [moment(tick, s=5 * (tick + 1)) for tick in range(20)]
    whole = since(many[:10], 10)
    assert whole is not None
    assert rows_out(plan, whole)["s"] == 50
    last = since(many, 10)
    assert last is not None
    assert (last.ticks, rows_out(plan, last)["s"]) == ((9, 19), 50)
    pruned = since(many[3:6], 10)
    assert pruned is not None
    assert pruned.ticks[0] == 3, "what was before is not known"
    assert since([], 10) is None
