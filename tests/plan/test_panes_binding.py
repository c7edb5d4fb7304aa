"""Binding of EVENT TIME and PANES: accepted forms, and refusals with a place and a hint."""

from __future__ import annotations

import pytest

from rowtime.operators.panes.event_time import EventTimed
from rowtime.operators.panes.fired_bounds import FiredBounds
from rowtime.operators.panes.panes import Panes
from rowtime.plan.bind.catalog import Catalog
from rowtime.plan.program import Program, compile_script

STREAM = (
    "CREATE STREAM permits (u TIMESTAMP) EVENT TIME (u);\n"
    "CREATE STREAM s (n INT, t TIMESTAMP, ms BIGINT, v STRING) EVENT TIME (t, LAG INTERVAL '1' MINUTE);\n"
)
COUNT = "SELECT STREAM COUNT(*) AS c FROM"
OF_ENDS = "PANES(e, DURATION INTERVAL '1' HOUR)"
HOUR = "PANES(t, DURATION INTERVAL '1' HOUR)"


def _program(sql: str) -> Program:
    program = compile_script(STREAM + sql)
    assert program.problems == ()
    return program


def _timed(program: Program) -> list[EventTimed]:
    return [node for node in program.operators if isinstance(node, EventTimed)]


def test_settings_are_read_in_any_order_and_have_the_defaults_of_the_source() -> None:
    rest = "EVENT TIME (ms, MODE MANUAL, RESOLUTION SECONDS, MINIMUM GAP INTERVAL '5' SECOND)"
    program = _program(f"CREATE VIEW w {rest} AS SELECT STREAM ms FROM s; SELECT STREAM * FROM w")
    below, above = _timed(program)
    assert (below.lag, below.gap, below.mode, below.unit) == (60_000_000, 100_000, "OUTPUT_EVENT_TIME", None)
    assert (above.lag, above.gap, above.mode, above.unit) == (0, 5_000_000, "MANUAL", "SECOND")


def test_a_definition_keeps_its_event_time() -> None:
    catalog = _program("SELECT STREAM n FROM s").catalog
    stored = catalog.streams["s"].as_json()

    class Home:
        def definition(self, name: str) -> dict[str, object] | None:
            return stored if name == "s" else None

        def names(self) -> list[str]:
            return ["s"]

        def elsewhere(self, _name: str) -> str:
            return ""

    assert Catalog(Home()).stream("s") == catalog.streams["s"]


def test_panes_read_the_nearest_declaration_through_filters_and_views() -> None:
    views = "CREATE VIEW u AS SELECT STREAM n, t FROM s WHERE n > 1; CREATE VIEW w AS SELECT STREAM t FROM u;"
    program = _program(f"{views} SELECT STREAM COUNT(*) AS c, PANE_START AS p FROM w AS x GROUP BY {HOUR}")
    (panes,) = (node for node in program.operators if isinstance(node, Panes))
    assert panes.event.name == "s.event_time"
    assert panes.times.period == panes.times.duration == 3_600_000_000


def test_regions_that_meet_are_one_under_the_least_of_their_bounds() -> None:
    views = "CREATE VIEW b AS SELECT STREAM t, n FROM s WHERE n > 1 UNION ALL SELECT STREAM t, n FROM s;"
    program = _program(f"{views} {COUNT} b GROUP BY {HOUR}")
    (panes,) = (node for node in program.operators if isinstance(node, Panes))
    assert (panes.event.name, panes.event.mode, panes.event.regions) == ("b.union.event_time", "INPUT_WATERMARK", 2)


def test_passed_bounds_may_be_about_another_column() -> None:
    views = (
        "CREATE VIEW b EVENT TIME (ms, RESOLUTION MILLISECONDS, MODE INPUT_WATERMARK) AS SELECT STREAM t, ms FROM s;"
    )
    program = _program(f"{views} {COUNT} b GROUP BY PANES(ms, DURATION INTERVAL '1' HOUR)")
    (panes,) = (node for node in program.operators if isinstance(node, Panes))
    assert (panes.event.column, panes.event.unit, panes.event.regions) == ("ms", "MILLISECOND", 1)
    same = "CREATE VIEW b EVENT TIME (t, MODE INPUT_WATERMARK) AS SELECT STREAM t FROM s;"
    assert len(_timed(_program(f"{same} {COUNT} b GROUP BY {HOUR}"))) == 1


def test_after_a_delay_and_a_gate_the_event_time_is_that_of_sent_rows() -> None:
    for call in ("DELAY(TABLE s, INTERVAL '1' HOUR)", "GATE(TABLE s, TABLE permits)"):
        program = _program(f"{COUNT} STREAM({call}) AS x GROUP BY {HOUR} WITH UNBOUNDED STATE")
        (panes,) = (node for node in program.operators if isinstance(node, Panes))
        assert (panes.event.name, panes.event.lag, panes.event.gap) == ("query.event_time", 0, 0)


SHIFTED = (
    "CREATE VIEW w EVENT TIME (f, MODE INPUT_WATERMARK) AS SELECT STREAM e + INTERVAL '1' SECOND AS f, h.e AS e FROM h;"
)
NAMED = (
    "CREATE TABLE names (v STRING, name STRING) USING parquet OPTIONS (path '/data/names');"
    "CREATE VIEW j AS SELECT STREAM h.e, name FROM h JOIN names ON names.v = h.v;"
)
ABOVE = f"CREATE VIEW d AS SELECT STREAM PANE_END AS f, SUM(n) AS n FROM h GROUP BY {OF_ENDS};"
MINUTES = (
    "CREATE VIEW h AS SELECT STREAM PANE_END AS e, v, COUNT(*) AS n FROM s "
    "GROUP BY PANES(t, DURATION INTERVAL '1' MINUTE), v;"
)


@pytest.mark.parametrize(
    ("query", "below"),
    [
        (f"{COUNT} h GROUP BY {OF_ENDS}", 1),
        (f"{COUNT} (SELECT STREAM n, e FROM h WHERE n > 1) AS x GROUP BY {OF_ENDS}", 1),
        ("SELECT STREAM e, CURRENT_BOUND() AS b FROM h", 1),
        (f"CREATE VIEW u AS SELECT STREAM e FROM h UNION ALL SELECT STREAM e FROM h; {COUNT} u GROUP BY {OF_ENDS}", 2),
        (f"{SHIFTED} {COUNT} w GROUP BY PANES(f, DURATION INTERVAL '1' HOUR)", 1),
        (f"{NAMED} SELECT STREAM name, COUNT(*) AS c FROM j GROUP BY {OF_ENDS}, name", 1),
        (f"{NAMED} SELECT STREAM h.e, CURRENT_BOUND() AS b FROM h JOIN names ON names.v = h.v", 1),
        (f"{ABOVE} {COUNT} d GROUP BY PANES(f, DURATION INTERVAL '1' DAY)", 2),
    ],
)
def test_panes_pass_the_event_time_on(query: str, below: int) -> None:
    program = _program(MINUTES + query)
    assert sum(isinstance(node, FiredBounds) for node in program.operators) == below


def test_nothing_is_added_if_the_event_time_of_panes_is_unused() -> None:
    program = _program(f"{MINUTES} SELECT STREAM e, n FROM h WHERE n > 1")
    assert not [node for node in program.operators if isinstance(node, FiredBounds)]


@pytest.mark.parametrize("early", ["", " EMIT EVERY INTERVAL '10' SECOND"])
@pytest.mark.parametrize(
    "taken",
    [
        "x WHERE timing = 'COMPLETE' AND n > 1",
        "(SELECT STREAM timing AS g, e, n, i FROM x) AS y WHERE 'COMPLETE' = y.g",
    ],
)
def test_repeated_fires_are_not_counted_twice(early: str, taken: str) -> None:
    age = ", DISCARD AGE INTERVAL '1' MINUTE"
    minutes = (
        "CREATE VIEW x AS SELECT STREAM PANE_END AS e, PANE_TIMING AS timing, PANE_INDEX AS i, COUNT(*) AS n FROM s "
        f"GROUP BY PANES(t, DURATION INTERVAL '1' MINUTE{age}){early};"
    )
    (problem,) = compile_script(f"{STREAM}{minutes} {COUNT} x WHERE timing <> 'LATE' GROUP BY {OF_ENDS}").problems
    assert (problem.code, problem.place and problem.place.line) == ("R170", 3)
    assert "counts a pane more than once" in problem.message
    assert _program(f"{minutes} {COUNT} {taken} GROUP BY {OF_ENDS}")
    declared = f"{minutes} CREATE VIEW again EVENT TIME (e) AS SELECT STREAM e, n, timing FROM x;"
    (problem,) = compile_script(f"{STREAM}{declared} {COUNT} again GROUP BY {OF_ENDS}").problems
    assert "counts a pane more than once" in problem.message
    assert _program(f"{declared} {COUNT} again WHERE timing = 'COMPLETE' GROUP BY {OF_ENDS}")


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("SELECT STREAM t, COUNT(*) OVER (ROWS 2 PRECEDING) AS c FROM s", "over"),
        ("SELECT STREAM s.t FROM s OVER (RANGE INTERVAL '1' HOUR PRECEDING) JOIN permits AS p ON s.t = p.u", "join"),
        ("SELECT STREAM t FROM s LIMIT 3", "limit"),
        ("SELECT STREAM t AS ROWTIME, t FROM s ORDER BY t WITHIN INTERVAL '1' MINUTE", "t-sort"),
        (
            "SELECT STREAM MAX(t) AS t FROM s GROUP BY CEIL(s.ROWTIME TO HOUR)",
            "group by",
        ),
        ("SELECT STREAM DISTINCT FLOOR(s.ROWTIME TO HOUR) AS h, t FROM s", "group by"),
    ],
)
def test_the_hint_declares_a_lost_event_time_again(query: str, at: str) -> None:
    view = f"CREATE VIEW below AS {query};"
    for read, filled in ((f"{view} {COUNT} below", ""), (f"{COUNT} ({query}) AS q", query)):
        (problem,) = compile_script(f"{STREAM}{read} GROUP BY {HOUR}").problems
        assert problem.code == "R170"
        assert f"the event time t ends at {at}" in str(problem)
        statement = problem.hint.partition("read the view: ")[2].replace("SELECT STREAM …", filled or "…")
        assert _program(f"{'' if filled else view} {statement} {COUNT} v GROUP BY {HOUR}")


@pytest.mark.parametrize(
    ("code", "sql", "said"),
    [
        ("R141", "SELECT STREAM n FROM STREAM(DELAY(TABLE s)) AS x", "STREAM(DELAY(TABLE s, INTERVAL '10' SECOND))"),
        ("R141", "SELECT STREAM n FROM STREAM(DELAY(TABLE s, INTERVAL '1' MONTH)) AS x", "cannot be called"),
        ("R152", "SELECT STREAM n FROM STREAM(GATE(TABLE s, TABLE permits)) AS x", "WITH UNBOUNDED STATE"),
        ("R141", "SELECT STREAM n FROM STREAM(GATE(TABLE s)) AS x", "GATE(TABLE s, TABLE permits)"),
        ("R103", "SELECT STREAM n FROM STREAM(GATE(TABLE s, TABLE permits, many)) AS x", "no column many"),
        ("R103", "SELECT STREAM n FROM STREAM(GATE(TABLE s, TABLE nobody)) AS x", "nobody"),
        ("R170", f"SELECT STREAM COUNT(*) AS c FROM (SELECT STREAM n AS t FROM s) AS x GROUP BY {HOUR}",
         "the event time t ends at select query.x.select"),
        ("R170", f"{COUNT} (SELECT STREAM t FROM s UNION ALL SELECT STREAM u AS t FROM permits) AS x GROUP BY {HOUR}",
         "ends at union all query.x.union: input 2 has no event time"),
        ("R170", f"{COUNT} (SELECT STREAM t, ms FROM s UNION ALL SELECT STREAM ms, t FROM s) AS x GROUP BY {HOUR}",
         "the event times of its inputs differ: t (TIMESTAMP, column 1), t (TIMESTAMP, column 2)"),
        ("R170", "CREATE VIEW v EVENT TIME (ms, MODE INPUT_WATERMARK) AS SELECT STREAM ms FROM s",
         "needs an event time in what it reads; the event time t ends at select v.select"),
        ("R170", "CREATE VIEW v EVENT TIME (t, MODE INPUT_WATERMARK, LAG INTERVAL '1' HOUR) AS SELECT STREAM t FROM s",
         "unchanged"),
        ("R170", "CREATE STREAM x (t TIMESTAMP) EVENT TIME (t, MODE INPUT_WATERMARK)", "a stream has no inputs"),
        ("R170", f"{COUNT} (SELECT STREAM n, t FROM s ORDER BY FLOOR(s.ROWTIME TO HOUR), n) AS x GROUP BY {HOUR}",
         "ends at order by query.x.order"),
        ("R190", "SELECT STREAM n FROM s EMIT EVERY INTERVAL '1' HOUR", "EMIT EVERY"),
        ("R170", "SELECT STREAM COUNT(*) AS c FROM s GROUP BY PANES(s.ROWTIME, DURATION INTERVAL '1' HOUR)",
         "the event time here is t"),
        ("R170", f"SELECT STREAM COUNT(*) AS c FROM s GROUP BY {HOUR}, {HOUR}", "two PANES"),
        ("R170", f"SELECT STREAM PANE_END AS ROWTIME, COUNT(*) AS c FROM s GROUP BY {HOUR}", "AS ROWTIME"),
        ("R170", "CREATE VIEW w EVENT TIME (v) AS SELECT STREAM v FROM s", "STRING"),
        ("R170", "CREATE VIEW w EVENT TIME (t, RESOLUTION SECONDS) AS SELECT STREAM t FROM s", "resolution"),
        ("R103", "CREATE VIEW w EVENT TIME (x) AS SELECT STREAM t FROM s", "no such column"),
        ("R103", "SELECT STREAM PANE_END FROM s", "PANE_END"),
        ("R106", f"SELECT STREAM v, COUNT(*) AS c FROM s GROUP BY {HOUR}", "neither grouped nor aggregated"),
        ("R119", f"SELECT STREAM COUNT(*) AS c, SUM(n) AS C FROM s GROUP BY {HOUR}", "two columns C"),
        ("R119", f"SELECT STREAM COUNT(*) AS change FROM s GROUP BY {HOUR} EMIT CHANGES", "two columns change"),
        ("R122", "SELECT STREAM COUNT(*) AS c FROM s GROUP BY PANES(t, DURATION INTERVAL '1' MONTH)", "duration"),
        ("R122", "SELECT STREAM COUNT(*) AS c FROM s GROUP BY PANES(t, DURATION INTERVAL '0' HOUR)", "above zero"),
        ("R101", "SELECT STREAM COUNT(*) AS c FROM s GROUP BY PANES(t)", "DURATION"),
        ("R101", "CREATE VIEW w EVENT TIME (t, DELAY INTERVAL '1' HOUR) AS SELECT STREAM t FROM s", "LAG"),
    ],
)  # fmt: skip
def test_meaningless_settings_are_refused(code: str, sql: str, said: str) -> None:
    problems = compile_script(STREAM + sql).problems
    assert [problem.code for problem in problems] == [code]
    assert said in str(problems[0])
