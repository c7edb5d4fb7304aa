"""Events with lifetimes from Python: each method has the plan of its SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import rowtime as rt
from rowtime.plan.program import compile_script

SECOND, NOON = timedelta(seconds=1), datetime(2024, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))
COLUMNS = {"a": "TIMESTAMP", "b": "TIMESTAMP", "k": "INT", "x": "INT"}
SHAPE = "INTERVAL (a, b) ON LATE ADJUST"
DECLARE = "".join(
    f"CREATE STREAM {name} (a TIMESTAMP, b TIMESTAMP, k INT, x INT) EVENT SHAPE {SHAPE}; " for name in "st"
)
Made = Callable[[rt.Events, rt.Events], rt.Relation]
METHODS: dict[str, Made] = {
    "SELECT STREAM * FROM TO_POINT(s)": lambda s, _: s.to_point(),
    "SELECT STREAM * FROM POINT_AT_END(s)": lambda s, _: s.point_at_end(),
    "SELECT STREAM * FROM SHIFT(s, INTERVAL '-1' SECOND)": lambda s, _: s.shift(-SECOND),
    "SELECT STREAM * FROM EXTEND(EXTEND(s, INTERVAL '2' SECOND))": lambda s, _: s.extend(2 * SECOND).extend(),
    "SELECT STREAM * FROM ALTER_DURATION(s, INTERVAL '1' SECOND)": lambda s, _: s.alter_duration(SECOND),
    "SELECT STREAM * FROM QUANTIZE(s, INTERVAL '1' SECOND)": lambda s, _: s.quantize(SECOND),
    "SELECT STREAM * FROM CHOP(s, INTERVAL '2' SECOND, INTERVAL '1' SECOND)": lambda s, _: s.chop(2 * SECOND, SECOND),
    "SELECT STREAM * FROM STITCH((SELECT STREAM k FROM s))": lambda s, _: s.select("k").stitch(),
    "SELECT STREAM * FROM CLIP(s, t, k)": lambda s, t: s.clip(t, "k"),
    "SELECT STREAM * FROM POINT_TO_SIGNAL(s, k)": lambda s, _: s.point_to_signal("k"),
    "SELECT STREAM * FROM (SELECT STREAM * FROM s AS e WHERE LIFETIME(e) CONTAINS "
    "TIMESTAMP '2024-01-01 12:00:00.000000') AS e WHERE LIFETIME(e) PRECEDES "
    "PERIOD (TIMESTAMP '2024-01-02 00:00:00.000000', TIMESTAMP '2024-01-03 00:00:00.000000')":
        lambda s, _: s.contains(NOON).precedes((NOON + timedelta(hours=12), NOON + timedelta(hours=36))),
    "SELECT STREAM * FROM s AS e WHERE LIFETIME(e) IMMEDIATELY SUCCEEDS PERIOD (DATE '2024-01-01', DATE '2024-01-02')":
        lambda s, _: s.immediately_succeeds("PERIOD (DATE '2024-01-01', DATE '2024-01-02')"),
    "SELECT STREAM k, MAX(x) AS m FROM s GROUP BY SNAPSHOT(), k": lambda s, _: s.snapshot("k").aggregate(m="MAX(x)"),
    "SELECT STREAM COUNT(*) AS c FROM s GROUP BY TUMBLE(INTERVAL '2' SECOND, INTERVAL '1' SECOND)":
        lambda s, _: s.tumble(2 * SECOND, offset=SECOND).aggregate(c="COUNT(*)"),
    "SELECT STREAM COUNT(*) AS c FROM s GROUP BY HOP(INTERVAL '1' SECOND, INTERVAL '2' SECOND, 'point at end') "
    "HAVING COUNT(*) > 1":
        lambda s, _: s.hop(SECOND, 2 * SECOND, point_at_end=True).aggregate(having="COUNT(*) > 1", c="COUNT(*)"),
    "SELECT STREAM MAX(LIFETIME_END(s) - LIFETIME_START(s)) AS m FROM s "
    "GROUP BY TUMBLE(INTERVAL '2' SECOND, 'clip end')":
        lambda s, _: s.tumble(2 * SECOND, clip_end=True).aggregate(m="MAX(LIFETIME_END(s) - LIFETIME_START(s))"),
    "SELECT STREAM k, SUM(x) AS y FROM s GROUP BY SESSION(INTERVAL '1' SECOND, INTERVAL '9' SECOND, 'clip end'), k":
        lambda s, _: s.session(SECOND, "k", longest=9 * SECOND, clip_end=True).aggregate(y="SUM(x)"),
    "SELECT STREAM k, SUM(x) AS y FROM s GROUP BY COUNT_WINDOW(3), k":
        lambda s, _: s.count_window(3, "k").aggregate(y="SUM(x)"),
    "SELECT STREAM l.k AS k, r.x AS y FROM s AS l JOIN t AS r ON l.k = r.k":
        lambda s, t: s.join(t, "l.k = r.k", k="l.k", y="r.x"),
    "SELECT STREAM l.k AS k, r.x AS y FROM s AS l LEFT JOIN t AS r ON l.k = r.k":
        lambda s, t: s.left_join(t, "l.k = r.k", k="l.k", y="r.x"),
    "SELECT STREAM l.* FROM s AS l LEFT ANTI JOIN t AS r ON l.k = r.k": lambda s, t: s.left_anti_join(t, "l.k = r.k"),
    "SELECT STREAM * FROM s UNION ALL SELECT STREAM * FROM t": lambda s, t: s.union_all(t),
    "SELECT STREAM * FROM s EMIT INTERVALS (f, u) FULLY ORDERED":
        lambda s, _: s.emit_intervals("f", "u", fully_ordered=True),
    "SELECT STREAM * FROM s EMIT POINTS (f)": lambda s, _: s.emit_points("f"),
    "SELECT STREAM * FROM s EMIT EDGES (e, f, u)": lambda s, _: s.emit_edges("e", "f", "u"),
    "SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY SNAPSHOT(), k EMIT CHANGES":
        lambda s, _: s.snapshot("k").aggregate(c="COUNT(*)").emit_changes(),
    "SELECT STREAM COUNT(*) AS c FROM s GROUP BY COUNT_WINDOW(3) EMIT CHANGES":
        lambda s, _: s.count_window(3).aggregate(c="COUNT(*)").emit_changes(),
}  # fmt: skip


@pytest.mark.parametrize("sql", METHODS)
def test_a_method_has_the_plan_of_its_sql(sql: str, tmp_path: Path) -> None:
    pipeline = rt.Pipeline(home=tmp_path)
    s, t = (pipeline.events(name, COLUMNS, shape=SHAPE) for name in "st")
    METHODS[sql](s, t).to()
    expected = compile_script(DECLARE + sql)
    assert expected.problems == ()
    assert pipeline.compile().described().operators == expected.described().operators


def test_a_view_of_events_and_selections_from_it_are_events(tmp_path: Path) -> None:
    pipeline = rt.Pipeline(home=tmp_path)
    view = pipeline.events("s", COLUMNS, shape=SHAPE).where("x > 0").view("v")
    view.select("k").stitch().to()
    sql = "SELECT STREAM * FROM STITCH((SELECT STREAM k FROM v))"
    expected = compile_script(f"{DECLARE}CREATE VIEW v AS SELECT STREAM * FROM s WHERE x > 0; {sql}")
    assert pipeline.compile().described().operators == expected.described().operators
