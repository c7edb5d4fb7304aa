"""The rows of every edge follow from what gates and sinks count, exactly or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rowtime as rt
from rowtime.plan.program import compile_script
from rowtime.runtime.sources.contract import Limits
from rowtime.web.moments import Moment
from rowtime.web.records import Records
from rowtime.web.views.graph import graph
from rowtime.web.views.passed import rows_out, since

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = """CREATE STREAM a (t TIMESTAMP, k INT, small INT);
CREATE STREAM b (k INT);
CREATE STREAM few (k INT, n SMALLINT);
CREATE STREAM many (m TIMESTAMP, n BIGINT);
CREATE VIEW sorted AS SELECT STREAM t AS ROWTIME, k, small FROM a ORDER BY t WITHIN INTERVAL '5' SECOND;
CREATE VIEW both AS SELECT STREAM k FROM sorted UNION ALL SELECT STREAM k + 1 AS k FROM b;
CREATE PUMP counts AS INSERT INTO many SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, COUNT(*) AS n
  FROM both AS s GROUP BY FLOOR(s.ROWTIME TO MINUTE) HAVING COUNT(*) > 1;
CREATE PUMP typed AS INSERT INTO few SELECT STREAM k, small FROM sorted WHERE k > 0;"""
ROWS = [(0, 1, 1), (1, 0, 1), (70, 2, 70_000), (10, 3, 3), (71, 4, 4), (72, 5, 5)]  # 10 is late; 70,000 is no SMALLINT


class Taken:
    """Counts the rows that come out of each operator, while they can be read."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def __call__(self, node: Any, delta: Any) -> None:
        rows = 0 if delta.rows is None else delta.rows.count()
        self.rows[node.name] = self.rows.get(node.name, 0) + rows


def test_each_edge_has_as_many_rows_as_the_run_had(spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "home"
    pipeline = rt.Pipeline(spark, home=home).sql(SQL)
    for name in ("few", "many"):
        pipeline.sink(name, lambda _: None)
    for one in pipeline.compile().defines:
        pipeline.home.define(one.name, one.as_json(), replace=True)
    with rt.writer("a", home=home, writer="w") as log:
        for second, k, small in ROWS:
            log.insert([{"t": f"2024-01-01 00:{second // 60:02}:{second % 60:02}", "k": k, "small": small}])
    with rt.writer("b", home=home, writer="w") as log:
        log.insert([{"rowtime": "2024-01-01 00:00:03", "k": 7}, {"rowtime": "2024-01-01 00:02:00", "k": 8}])
    engine = pipeline._engine(tmp_path / "check", Limits(rows=2), ends=False)
    taken = engine.tap = Taken()
    while engine.tick() is not None:
        pass
    engine.stop()
    records = Records(tmp_path / "check")
    records.refresh()
    assert records.plan is not None
    assert records.last is not None
    assert len(records.moments) > 2
    edges = graph(records.plan, records.last, records.moments)["edges"]
    found = {(edge["from"], edge["to"]): edge["rows"] for edge in edges}
    unknown = {below for (below, _), rows in found.items() if rows is None}
    assert {(below, above): taken.rows[below] for below, above in found if below not in unknown} == {
        edge: rows for edge, rows in found.items() if rows is not None
    }
    assert taken.rows["sorted"] == 5
    assert taken.rows["typed"] == 3
    assert unknown <= {"counts.group"}, "a filter behind a group does not say what it was given"


def moment(tick: int, **counts: int) -> Moment:
    totals = {name: {"in": n, "accepted": n} for name, n in counts.items()}
    return Moment(tick, 0, {}, totals, {}, {})


def test_the_first_ticks_of_a_checkpoint_count_from_nothing() -> None:
    one = since([moment(0, s=5)], 10)
    assert one is not None
    plan = compile_script("CREATE STREAM s (n INT); SELECT STREAM n FROM s").described()
    assert rows_out(plan, *one)["s"] == 5
    many = [moment(tick, s=5 * (tick + 1)) for tick in range(20)]
    whole = since(many[:10], 10)
    assert whole is not None
    assert rows_out(plan, *whole)["s"] == 50
    last = since(many, 10)
    assert last is not None
    assert (last[0].tick, last[1].tick, rows_out(plan, *last)["s"]) == (9, 19, 50)
    pruned = since(many[3:6], 10)
    assert pruned is not None
    assert pruned[0].tick == 3, "what was before is not known"
    assert since([], 10) is None
