"""Pumps may fill a stream of events only if their rows come in the order in which its events are judged."""

from __future__ import annotations

import pytest

from rowtime.plan.program import compile_script

DECLARE = """
    CREATE STREAM e (a TIMESTAMP, b TIMESTAMP, k INT) EVENT SHAPE EDGE (a, b);
    CREATE STREAM r (t TIMESTAMP, k INT);
    CREATE STREAM points (at TIMESTAMP, k INT) EVENT SHAPE POINT (at);
    CREATE STREAM intervals (since TIMESTAMP, until TIMESTAMP, k INT) EVENT SHAPE INTERVAL (since, until);
    CREATE STREAM edges (since TIMESTAMP, until TIMESTAMP, k INT) EVENT SHAPE EDGE (since, until);
    CREATE STREAM either (kind STRING, since TIMESTAMP, until TIMESTAMP, k INT) EVENT SHAPE BY kind (since, until);
    CREATE STREAM lent (since TIMESTAMP, until TIMESTAMP, k INT) EVENT SHAPE INTERVAL (since, until) BOUND FROM lender;
    CREATE STREAM lender (at TIMESTAMP, k INT) EVENT SHAPE POINT (at) BOUND EVERY 5 ROWS;
    CREATE VIEW moves AS SELECT STREAM k FROM e EMIT EDGES (edge, since, until);
    CREATE VIEW ordered AS SELECT STREAM k FROM e EMIT INTERVALS (since, until) FULLY ORDERED;
"""
IN_ORDER = [
    ("points", "SELECT STREAM k FROM e EMIT POINTS (at)"),
    ("points", "SELECT STREAM r.ROWTIME AS at, k FROM r"),
    ("points", "SELECT STREAM t AS ROWTIME, t AS at, k FROM r ORDER BY t WITHIN INTERVAL '1' MINUTE"),
    ("points", "SELECT STREAM since, k FROM ordered WHERE k > 3"),
    ("intervals", "SELECT STREAM k FROM e EMIT INTERVALS (since, until) FULLY ORDERED"),
    ("intervals (k, until, since)", "SELECT STREAM k, until, since FROM ordered"),
    ("intervals", "SELECT STREAM r.ROWTIME AS since, r.ROWTIME + INTERVAL '1' MINUTE AS until, k FROM r"),
    ("edges", "SELECT STREAM since, until, k FROM moves"),
    ("either", "SELECT STREAM k FROM e EMIT EDGES (edge, since, until)"),
    ("lent", "SELECT STREAM k FROM e"),
]
IN_ANOTHER = [
    ("points", "SELECT STREAM until, k FROM ordered", "EMIT POINTS (at)"),
    ("points", "SELECT STREAM t, k FROM r", "Write q.ROWTIME AS at"),
    ("points", "SELECT STREAM FLOOR(r.ROWTIME TO MINUTE) AS at, k FROM r", "AS ROWTIME"),
    ("intervals", "SELECT STREAM k FROM e", "EMIT INTERVALS (since, until) FULLY ORDERED"),
    ("intervals", "SELECT STREAM since, until, k FROM moves", "EMIT INTERVALS (since, until) FULLY ORDERED"),
    ("edges", "SELECT STREAM until, since, k FROM moves", "EMIT EDGES (edge, since, until)"),
    ("edges", "SELECT STREAM k FROM e", "since, until and the payload from it"),
]


@pytest.mark.parametrize(("target", "query"), IN_ORDER)
def test_events_in_the_order_of_the_stream_may_be_pumped_into_it(target: str, query: str) -> None:
    assert compile_script(f"{DECLARE} CREATE PUMP p AS INSERT INTO {target} {query};").problems == ()


@pytest.mark.parametrize(("target", "query", "hint"), IN_ANOTHER)
def test_a_pump_into_events_was_accepted_and_lost_them(target: str, query: str, hint: str) -> None:
    (problem,) = compile_script(f"{DECLARE} CREATE PUMP p AS INSERT INTO {target} {query};").problems
    assert problem.code == "R193"
    assert hint in problem.hint
