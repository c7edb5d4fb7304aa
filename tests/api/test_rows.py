"""Queries over rows from Python have the same plans, errors and answers as in SQL."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.plan.program import compile_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
CLICKS = {"page": "STRING", "at": "TIMESTAMP", "n": "INT"}
ORDERS = {"page": "STRING", "id": "INT"}
STREAMS = "CREATE STREAM clicks (page STRING, at TIMESTAMP, n INT);\nCREATE STREAM orders (page STRING, id INT);\n"
SORTED = "SELECT STREAM at AS ROWTIME, * FROM clicks ORDER BY at WITHIN INTERVAL '30' SECOND"

FORMS: dict[str, tuple[Callable[[rt.Rows, rt.Rows], rt.Relation], str]] = {
    "t-sort": (lambda c, _: c.t_sort("at", within=30 * SECOND), SORTED),
    "t-sort with further keys": (
        lambda c, _: c.t_sort("at", within=30 * SECOND, then=["page"]),
        "SELECT STREAM at AS ROWTIME, * FROM clicks ORDER BY at, page WITHIN INTERVAL '30' SECOND",
    ),
    "promotion": (lambda c, _: c.promote("at"), "SELECT STREAM at AS ROWTIME, * FROM clicks"),
    "group": (
        lambda c, _: (
            c.t_sort("at", within=30 * SECOND).group_by("page", minute=rt.floor("minute")).agg(hits="COUNT(*)")
        ),
        ("SELECT STREAM FLOOR(ROWTIME TO MINUTE) AS minute, page, COUNT(*) AS hits "
        f"FROM ({SORTED}) AS q GROUP BY FLOOR(ROWTIME TO MINUTE), page"),
    ),
    "group within": (
        lambda c, _: (
            c.group_by("page", within=30 * SECOND, minute=rt.floor("MINUTE", "at")).agg(
                having="COUNT(*) > 1", hits="COUNT(*)", total="SUM(n)"
            )
        ),
        ("SELECT STREAM FLOOR(at TO MINUTE) AS minute, page, COUNT(*) AS hits, SUM(n) AS total FROM clicks "
        "GROUP BY FLOOR(at TO MINUTE) WITHIN INTERVAL '30' SECOND, page HAVING COUNT(*) > 1"),
    ),
    "tumble": (
        lambda c, _: c.group_by(rt.tumble(HOUR), "page").agg(hits="COUNT(*)"),
        "SELECT STREAM page, COUNT(*) AS hits FROM clicks GROUP BY TUMBLE(ROWTIME, INTERVAL '3600' SECOND), page",
    ),
    "hop": (
        lambda c, _: c.group_by(rt.hop(MINUTE, HOUR), "page").agg(hits="COUNT(*)"),
        ("SELECT STREAM page, COUNT(*) AS hits FROM clicks "
        "GROUP BY HOP(ROWTIME, INTERVAL '60' SECOND, INTERVAL '3600' SECOND), page"),
    ),
    "session": (
        lambda c, _: c.group_by("page", rt.session(MINUTE)).agg(hits="COUNT(*)"),
        "SELECT STREAM page, COUNT(*) AS hits FROM clicks GROUP BY SESSION(ROWTIME, INTERVAL '60' SECOND), page",
    ),
    "over": (
        lambda c, _: c.over(partition_by=["page"], last=MINUTE, total="SUM(n)"),
        "SELECT STREAM *, SUM(n) OVER (PARTITION BY page RANGE INTERVAL '60' SECOND PRECEDING) AS total FROM clicks",
    ),
    "over rows": (
        lambda c, _: c.over(rows=3, total="SUM(n)", most="MAX(n)"),
        "SELECT STREAM *, SUM(n) OVER (ROWS 3 PRECEDING) AS total, MAX(n) OVER (ROWS 3 PRECEDING) AS most FROM clicks",
    ),
    "join": (
        lambda c, o: c.join(o, "l.page = r.page", within=(0 * SECOND, MINUTE), page="l.page", id="r.id"),
        ("SELECT STREAM l.page AS page, r.id AS id FROM clicks AS l JOIN orders AS r ON l.page = r.page "
        "AND r.ROWTIME BETWEEN l.ROWTIME + INTERVAL '0' SECOND AND l.ROWTIME + INTERVAL '60' SECOND"),
    ),
    "semi join of a query": (
        lambda c, o: c.where("n > 1").join(o, "l.page = r.page", how="LEFT SEMI JOIN", within=(-MINUTE, MINUTE)),
        ("SELECT STREAM l.* FROM (SELECT STREAM * FROM clicks WHERE n > 1) AS l LEFT SEMI JOIN orders AS r "
        "ON l.page = r.page "
        "AND r.ROWTIME BETWEEN l.ROWTIME + INTERVAL '-60' SECOND AND l.ROWTIME + INTERVAL '60' SECOND"),
    ),
    "limit": (
        lambda c, _: c.select("page").limit(3),
        "SELECT STREAM * FROM (SELECT STREAM page FROM clicks) AS q LIMIT 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_each_form_has_the_plan_of_its_sql(name: str, tmp_path: Path) -> None:
    made, sql = FORMS[name]
    pipeline = rt.Pipeline(home=tmp_path)
    made(pipeline.stream("clicks", CLICKS), pipeline.stream("orders", ORDERS)).to()
    wanted = compile_script(STREAMS + sql)
    assert wanted.problems == ()
    assert pipeline.compile().described().operators == wanted.described().operators


def test_queries_that_cannot_complete_are_refused_as_in_sql(tmp_path: Path) -> None:
    pipeline = rt.Pipeline(home=tmp_path)
    pipeline.stream("clicks", CLICKS).group_by("page").agg(hits="COUNT(*)").to()
    with pytest.raises(rt.Refused, match="R104"):
        pipeline.compile()


@pytest.mark.slow
def test_a_pipeline_of_objects_gives_the_answer_of_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    """A T-sort, groups with a Python function, a join with a table and a frame; run twice, then with more rows."""
    found: list[dict[str, Any]] = []
    names = tmp_path / "names"
    spark.createDataFrame([("a", "Home"), ("b", "Cart")], "page STRING, name STRING").write.parquet(str(names))

    def pipeline() -> rt.Pipeline:
        made = rt.Pipeline(spark, home=tmp_path / "home")
        made.sql(f"CREATE TABLE names (page STRING, name STRING) USING parquet OPTIONS (path '{names}')")
        clicks = made.stream("clicks", CLICKS).t_sort("at", within=30 * SECOND)
        minutes = clicks.group_by("page", minute=rt.floor("MINUTE")).agg(
            hits="COUNT(*)", spread=rt.Folded(lambda values: max(values) - min(values), "n", "INT")
        )
        shown = minutes.join("names", "l.page = r.page", name="r.name", hits="l.hits", spread="l.spread")
        shown.over(partition_by=["name"], sum_of_hits="SUM(hits)").to(
            lambda batch: found.extend(batch.table().to_pylist())
        )
        return made

    made = pipeline()
    made.home.define("clicks", made.compile().defines[0].as_json(), replace=True)
    rounds = (
        [("a", "10:00:10", 5), ("b", "10:00:20", 1), ("a", "10:00:05", 2), ("a", "10:02:00", 1)],
        [("b", "10:02:05", 7), ("a", "10:04:00", 1), ("a", "10:00:30", 9)],  # the last one is late
    )
    for rows in rounds:
        with rt.writer("clicks", home=tmp_path / "home", writer="w") as log:
            log.insert([{"page": page, "at": f"2026-01-01 {at}", "n": n} for page, at, n in rows])
        query = pipeline().run_available(tmp_path / "check")
    assert query.ledger
    assert [(row["name"], row["hits"], row["spread"], row["sum_of_hits"]) for row in found] == [
        ("Home", 2, 3, 2), ("Cart", 1, 0, 1), ("Home", 1, 0, 3), ("Cart", 1, 0, 2),
    ]  # fmt: skip
    assert rt.verify(tmp_path / "check", pipeline(), home=tmp_path / "home").equal
