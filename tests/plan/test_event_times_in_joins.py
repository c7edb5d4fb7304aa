# ruff: noqa: E501 - a query a line
"""Joins over event columns: accepted if the columns are rowtimes, else refused or warned about, with the promotion."""

from __future__ import annotations

import pytest

from rowtime.operators.joins.join import Join
from rowtime.plan.program import Program, compile_script

GIVEN = """
CREATE STREAM orders (order_id BIGINT, ordered_at TIMESTAMP) USING csv OPTIONS (path 'o', header 'true');
CREATE STREAM payments (order_id BIGINT, paid_at TIMESTAMP) USING csv OPTIONS (path 'p', header 'true');
CREATE STREAM order_log (order_id BIGINT, ordered_at TIMESTAMP);
CREATE STREAM payment_log (order_id BIGINT, paid_at TIMESTAMP);
CREATE STREAM declared_orders (order_id BIGINT, ordered_at TIMESTAMP ASCENDING) USING csv OPTIONS (path 'o');
CREATE STREAM declared_payments (order_id BIGINT, paid_at TIMESTAMP ASCENDING WITHIN INTERVAL '90' SECOND)
  USING csv OPTIONS (path 'p');
CREATE VIEW o AS SELECT STREAM ordered_at AS ROWTIME, * FROM orders ORDER BY ordered_at WITHIN INTERVAL '1' MINUTE;
CREATE VIEW p AS SELECT STREAM paid_at AS ROWTIME, * FROM payments ORDER BY paid_at WITHIN INTERVAL '1' MINUTE;
CREATE VIEW renamed AS SELECT STREAM order_id, paid_at AS paid FROM p WHERE order_id > 0;
CREATE VIEW later AS SELECT STREAM paid_at + INTERVAL '1' HOUR AS ROWTIME, * FROM payments
  ORDER BY paid_at + INTERVAL '1' HOUR WITHIN INTERVAL '1' MINUTE;
"""
HOUR, MINUTE, SECOND = 3_600_000_000, 60_000_000, 1_000_000


def compiled(left: str, right: str, on: str) -> Program:
    return compile_script(f"{GIVEN} SELECT STREAM a.order_id FROM {left} AS a JOIN {right} AS b ON {on}")


def join(program: Program) -> tuple[int, int]:
    assert program.problems == ()
    (found,) = (node for node in program.operators if isinstance(node, Join))
    return found.low, found.high


def within(paid: str = "paid_at") -> str:
    return f"a.order_id = b.order_id AND b.{paid} BETWEEN a.ordered_at AND a.ordered_at + INTERVAL 1 HOUR"


@pytest.mark.parametrize(
    ("left", "right", "paid"),
    [
        ("o", "p", "paid_at"),
        ("o", "renamed", "paid"),
        ("(SELECT STREAM order_id, ordered_at FROM o)", "(SELECT STREAM * FROM renamed)", "paid"),
        ("declared_orders", "declared_payments", "paid_at"),
        ("o", "declared_payments", "paid_at"),
        ("declared_orders", "renamed", "paid"),
    ],
)
def test_a_range_over_columns_that_are_rowtimes_is_one_of_rowtimes(left: str, right: str, paid: str) -> None:
    program = compiled(left, right, within(paid))
    assert join(program) == (0, HOUR)
    assert program.warnings == ()


SPELLED = {
    "the other way round": ("a.ordered_at BETWEEN b.paid_at - INTERVAL 1 HOUR AND b.paid_at", HOUR),
    "a difference": ("b.paid_at >= a.ordered_at AND b.paid_at - a.ordered_at <= INTERVAL '60' MINUTE", HOUR),
    "TIMESTAMPADD": ("b.paid_at >= a.ordered_at AND TIMESTAMPADD(HOUR, 1, a.ordered_at) >= b.paid_at", HOUR),
    "DATEADD": ("b.paid_at >= a.ordered_at AND DATEADD(HOUR, -1, b.paid_at) <= a.ordered_at", HOUR),
    "micros": ("UNIX_MICROS(b.paid_at) - UNIX_MICROS(a.ordered_at) BETWEEN 0 AND 3600000000", HOUR),
    "seconds": ("UNIX_SECONDS(b.paid_at) - UNIX_SECONDS(a.ordered_at) BETWEEN 0 AND 3600", HOUR + SECOND - 1),
    "TIMESTAMPDIFF": ("TIMESTAMPDIFF(MINUTE, a.ordered_at, b.paid_at) BETWEEN 0 AND 60", HOUR + MINUTE - 1),
    "equal times": ("a.ordered_at = b.paid_at", 0),
    "days": ("FLOOR(a.ordered_at TO DAY) = FLOOR(b.paid_at TO DAY)", 24 * HOUR - 1),
    "dates": ("CAST(a.ordered_at AS DATE) = CAST(b.paid_at AS DATE)", 24 * HOUR - 1),
    "months": ("DATE_TRUNC('MONTH', a.ordered_at) = DATE_TRUNC('MONTH', b.paid_at)", 31 * 24 * HOUR - 1),
    "rounded up": ("CEIL(a.ordered_at TO HOUR) >= CEIL(b.paid_at TO HOUR) AND b.paid_at > a.ordered_at", HOUR - 1),
    "buckets": (
        "TIME_BUCKET(INTERVAL '5' MINUTE, a.ordered_at) = TIME_BUCKET(INTERVAL '5' MINUTE, b.paid_at)",
        5 * MINUTE - 1,
    ),
    "the next day or the same": (
        "FLOOR(b.paid_at TO DAY) - FLOOR(a.ordered_at TO DAY) BETWEEN INTERVAL '0' DAY AND INTERVAL '1' DAY",
        48 * HOUR - 1,
    ),
    "DATEDIFF": ("DATEDIFF(b.paid_at, a.ordered_at) = 0", 24 * HOUR - 1),
    "a date or the next": (
        "CAST(b.paid_at AS DATE) BETWEEN CAST(a.ordered_at AS DATE) AND DATE_ADD(CAST(a.ordered_at AS DATE), 1)",
        48 * HOUR - 1,
    ),
    "a date or the next, as a sum": (
        "CAST(b.paid_at AS DATE) >= CAST(a.ordered_at AS DATE) AND CAST(b.paid_at AS DATE) - 1 <= CAST(a.ordered_at AS DATE)",
        48 * HOUR - 1,
    ),
    "days between dates": (
        "DATEDIFF(CAST(b.paid_at AS DATE), CAST(a.ordered_at AS DATE)) BETWEEN 0 AND 1",
        48 * HOUR - 1,
    ),
    "the day before": ("CAST(b.paid_at AS DATE) = DATE_SUB(CAST(a.ordered_at AS DATE), 1)", -1),
    "a distance either way": ("ABS(TIMESTAMPDIFF(SECOND, b.paid_at, a.ordered_at)) <= 3600", HOUR + SECOND - 1),
    "a distance, limit first": ("3600000000 > ABS(UNIX_MICROS(b.paid_at) - UNIX_MICROS(a.ordered_at))", HOUR - 1),
    "a distance as an interval": ("ABS(b.paid_at - a.ordered_at) < INTERVAL '1' HOUR", HOUR - 1),
}


@pytest.mark.parametrize("spelled", SPELLED)
@pytest.mark.parametrize("sides", [("o", "p"), ("declared_orders", "declared_payments")])
@pytest.mark.parametrize("clause", ["JOIN {} AS b ON", "LEFT JOIN {} AS b ON", ", {} AS b WHERE"])
def test_a_range_is_one_of_rowtimes_however_it_is_spelled(spelled: str, sides: tuple[str, str], clause: str) -> None:
    condition, high = SPELLED[spelled]
    (left, right), both = sides, f"a.order_id = b.order_id AND {condition}"
    program = compile_script(f"{GIVEN} SELECT STREAM a.order_id FROM {left} AS a {clause.format(right)} {both}")
    assert join(program)[1] == high
    assert program.warnings == ()


def test_a_range_that_is_open_is_refused_at_the_join_with_a_limit_of_its_own_columns() -> None:
    on = "a.order_id = b.order_id AND b.paid_at > a.ordered_at"
    (problem,) = compiled("declared_orders", "declared_payments", on).problems
    assert (problem.code, problem.place is not None) == ("R152", True)
    assert problem.message.startswith("the condition does not limit b.paid_at - a.ordered_at from above")
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1 :].startswith("declared_payments")
    limited = problem.hint.split(": ON ")[1].rstrip(".")
    program = compiled("declared_orders", "declared_payments", limited)
    assert join(program) == (1, MINUTE)
    assert program.warnings == ()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM a.order_id FROM {} AS a, {} AS b WHERE a.order_id = b.order_id AND b.paid_at BETWEEN a.ordered_at AND a.ordered_at + INTERVAL 1 HOUR",
        "SELECT STREAM a.order_id FROM {} AS a JOIN {} AS b USING (order_id)",
        "SELECT STREAM a.order_id FROM {} AS a NATURAL JOIN {} AS b",
        "SELECT STREAM a.order_id FROM {} AS a CROSS JOIN {} AS b",
        "SELECT STREAM a.order_id FROM {} AS a JOIN {} AS b ON a.order_id = b.order_id AND MONTHS_BETWEEN(b.paid_at, a.ordered_at) < 1",
    ],
)
def test_a_join_without_a_limit_of_rowtimes_is_refused_with_the_promotion_to_write(query: str) -> None:
    (problem,) = compile_script(f"{GIVEN} {query.format('orders', 'payments')}").problems
    assert problem.code in ("R152", "R225")
    followed = compile_script(f"{GIVEN} {problem.hint.split('so that ON compares them: ')[1].rstrip('.')}")
    assert followed.problems == followed.warnings == ()


def test_a_declared_tolerance_is_that_of_the_promotion() -> None:
    gates = {
        n.name: n for n in compiled("declared_orders", "declared_payments", within()).operators if n.kind == "t-sort"
    }
    assert sorted(gate.within for gate in gates.values()) == [0, 90_000_000]  # type: ignore[attr-defined]


def test_columns_of_an_earlier_join_are_still_the_rowtimes_of_their_inputs() -> None:
    third = "c.order_id = b.order_id AND c.paid_at BETWEEN a.ordered_at AND a.ordered_at + INTERVAL 1 HOUR"
    program = compiled("o", "p", f"{within()} JOIN p AS c ON {third}")
    assert program.problems == program.warnings == ()
    assert [(n.low, n.high) for n in program.operators if isinstance(n, Join)] == [(0, HOUR), (-HOUR, HOUR)]


@pytest.mark.parametrize(
    ("left", "right", "on", "named"),
    [
        ("orders", "payments", within(), "orders and payments"),
        ("o", "payments", within(), "payments"),
        ("order_log", "payments", within(), "payments"),
        ("orders", "payments", "a.order_id = b.order_id", "orders and payments"),
        ("orders", "payments", "a.order_id = b.order_id AND a.ordered_at = b.paid_at", "orders and payments"),
        ("orders", "payments", "a.order_id = b.order_id AND a.ordered_at < b.paid_at", "orders and payments"),
        ("orders", "payments", f"{within()} AND a.order_id > 3", "orders and payments"),
        ("declared_orders", "payments", within(), "declared_orders and payments"),
    ],
)
def test_equal_times_of_change_of_files_are_refused_with_the_promotion_to_write(
    left: str, right: str, on: str, named: str
) -> None:
    (problem,) = compiled(left, right, on).problems
    assert problem.code == "R225"
    assert f"the ROWTIME of {named} is the time of change of a file" in problem.message
    query = problem.hint.split("so that ON compares them: ")[1].rstrip(".")
    followed = compile_script(f"{GIVEN} {query}")
    assert followed.problems == followed.warnings == ()


FIELDS = "id INT, made TIMESTAMP, at TIMESTAMP, day DATE, ms BIGINT, meta STRUCT<at TIMESTAMP, day DATE, ms BIGINT, by STRUCT<at TIMESTAMP>>"
WITH_FIELDS = "; ".join(f"CREATE STREAM {name} ({FIELDS}) USING parquet OPTIONS (path '{name}')" for name in "ab")


@pytest.mark.parametrize(
    ("on", "promoted", "compared"),
    [
        ("b.meta.at BETWEEN a.meta.at AND a.meta.at + INTERVAL '1' HOUR", ("meta.at", "meta.at"), (0, HOUR)),
        ("b.meta.by.at >= a.at AND b.meta.by.at < a.at + INTERVAL '1' HOUR", ("at", "meta.by.at"), (0, HOUR - 1)),
        ("ABS(unix_micros(a.meta.at) - unix_micros(b.at)) < 5", ("meta.at", "at"), (-4, 4)),
        (
            "timestamp_millis(b.ms) BETWEEN timestamp_millis(a.ms) AND timestamp_millis(a.ms) + INTERVAL '1' HOUR",
            ("TIMESTAMP_MILLIS(ms)", "TIMESTAMP_MILLIS(ms)"),
            (0, HOUR),
        ),
        ("b.ms BETWEEN a.ms AND a.ms + 60 * 60000", ("TIMESTAMP_MILLIS(ms)",) * 2, (0, HOUR)),
        ("(b.ms - a.ms) / 1000 < 60", ("TIMESTAMP_MILLIS(ms)",) * 2, (-24 * HOUR, 24 * HOUR)),
        ("b.day = a.day", ("CAST(day AS TIMESTAMP)",) * 2, (1 - 24 * HOUR, 24 * HOUR - 1)),
        (
            "b.day BETWEEN a.day AND a.day + INTERVAL '1' DAY",
            ("CAST(day AS TIMESTAMP)",) * 2,
            (1 - 24 * HOUR, 48 * HOUR - 1),
        ),
        ("unix_micros(b.at) - unix_micros(a.at) BETWEEN 0 AND 3600000000", ("at", "at"), (0, HOUR)),
    ],
)
def test_the_promotion_is_of_the_times_that_on_compares(
    on: str, promoted: tuple[str, str], compared: tuple[int, int]
) -> None:
    (problem,) = compile_script(f"{WITH_FIELDS}; SELECT STREAM a.id FROM a JOIN b ON a.id = b.id AND {on}").problems
    query = problem.hint.split("so that ON compares them: ")[1].rstrip(".")
    for stream, time in zip("ab", promoted, strict=True):
        assert f"SELECT STREAM {time} AS ROWTIME, * FROM {stream} ORDER BY {time} WITHIN" in query
    followed = compile_script(f"{WITH_FIELDS}; {query}")
    assert join(followed) == compared
    assert followed.warnings == ()


@pytest.mark.parametrize("on", ["b.ms BETWEEN a.id AND a.id + 3600000", "b.id > a.id", "b.ms = a.ms", "TRUE"])
def test_no_time_is_guessed_where_on_may_compare_others(on: str) -> None:
    (problem,) = compile_script(f"{WITH_FIELDS}; SELECT STREAM a.id FROM a JOIN b ON a.id = b.id AND {on}").problems
    assert problem.hint.startswith("Promote the event time of each input in a sub-query or a view: ")


def test_a_limit_that_is_an_example_is_said_to_be_one() -> None:
    (problem,) = compiled("orders", "payments", "a.order_id = b.order_id").problems
    limit = "b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '1' MINUTE"
    assert f"and limit the time between them, for example by {limit}, so that ON" in problem.hint


@pytest.mark.parametrize("name", ["at", "from", "select", "when", "date", "Odd Col", "a-b", 'q"x'])
def test_a_promotion_quotes_names_that_need_it(name: str) -> None:
    streams = "; ".join(f"CREATE STREAM {s} (`{name}` TIMESTAMP) USING csv OPTIONS (path '{s}')" for s in "ab")
    on = f"b.`{name}` BETWEEN a.`{name}` AND a.`{name}` + INTERVAL '1' HOUR"
    (problem,) = compile_script(f"{streams}; SELECT STREAM 1 AS x FROM a JOIN b ON {on}").problems
    followed = compile_script(f"{streams}; {problem.hint.split('so that ON compares them: ')[1].rstrip('.')}")
    assert join(followed) == (0, HOUR)


OPEN = {
    "b.paid_at > a.ordered_at": "b.paid_at <= a.ordered_at + INTERVAL '1' MINUTE",
    "b.paid_at < a.ordered_at": "b.paid_at >= a.ordered_at - INTERVAL '1' MINUTE",
    "b.paid_at <= a.ordered_at - INTERVAL '5' MINUTE": "b.paid_at >= a.ordered_at - INTERVAL '6' MINUTE",
    "b.paid_at >= a.ordered_at + INTERVAL '1' HOUR": "b.paid_at <= a.ordered_at + INTERVAL '61' MINUTE",
    "HOUR(b.paid_at) = HOUR(a.ordered_at)":
        "b.paid_at BETWEEN a.ordered_at - INTERVAL '1' DAY AND a.ordered_at + INTERVAL '1' DAY",
    "b.paid_at BETWEEN a.ordered_at - INTERVAL '2' MONTH AND a.ordered_at":
        "b.paid_at >= a.ordered_at - INTERVAL '62' DAY",
}  # fmt: skip


@pytest.mark.parametrize("on", OPEN)
def test_the_limit_of_an_open_range_goes_with_the_condition(on: str) -> None:
    both = f"a.order_id = b.order_id AND {on}"
    (problem,) = compiled("o", "p", both).problems
    limited = problem.hint.removeprefix("Limit the time between them: ON ").rstrip(".")
    assert limited.endswith(f" AND {OPEN[on]}")
    conditions = compile_script(f"{GIVEN} SELECT STREAM a.order_id FROM o AS a JOIN p AS b ON {limited}")
    low, high = join(conditions)
    assert low <= high


def test_other_streams_are_warned_about_with_the_promotion_to_write() -> None:
    program = compiled("order_log", "payment_log", within())
    assert join(program) == (0, 0)
    (warning,) = program.warnings
    assert warning.code == "R158"
    query = warning.hint.split("so that ON compares them: ")[1].split(". If equal")[0]
    followed = compile_script(f"{GIVEN} {query}")
    assert join(followed) == (0, HOUR)
    assert followed.warnings == ()


@pytest.mark.parametrize("left", ["order_log", "o"])
def test_equal_rowtimes_that_are_said_are_not_warned_about(left: str) -> None:
    program = compiled(left, "payment_log", "a.order_id = b.order_id AND a.ROWTIME = b.ROWTIME")
    assert join(program) == (0, 0)
    assert program.warnings == ()


def test_a_column_of_which_a_function_is_promoted_is_another_time() -> None:
    program = compiled("o", "later", within())
    assert join(program) == (0, 0)
    assert [warning.code for warning in program.warnings] == ["R158"]


def test_a_query_that_names_rowtime_is_not_promoted_silently() -> None:
    script = f"{GIVEN} SELECT STREAM a.ROWTIME AS r FROM declared_orders AS a JOIN declared_payments AS b ON {within()}"
    assert [problem.code for problem in compile_script(script).problems] == ["R225"]


TIMED = {
    "a group": "SELECT STREAM COUNT(*) AS n FROM orders AS s GROUP BY FLOOR(s.ROWTIME TO HOUR)",
    "a group of hopping windows": "SELECT STREAM COUNT(*) AS n FROM orders GROUP BY HOP(ROWTIME, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
    "a table of windows": "SELECT STREAM window_end, COUNT(*) AS n FROM STREAM(TUMBLE(TABLE orders, DESCRIPTOR(ROWTIME), INTERVAL '1' HOUR)) GROUP BY window_end",
    "a session": "SELECT STREAM COUNT(*) AS n FROM orders GROUP BY SESSION(ROWTIME, INTERVAL '1' HOUR)",
    "distinct": "SELECT STREAM DISTINCT FLOOR(s.ROWTIME TO HOUR) AS h FROM orders AS s",
    "a range": "SELECT STREAM COUNT(*) OVER (RANGE INTERVAL '1' HOUR PRECEDING) AS n FROM orders",
    "keys that expire": "SELECT STREAM LAG(order_id) OVER (PARTITION BY order_id) AS n FROM orders KEYS EXPIRE AFTER INTERVAL '1' HOUR",
    "a join of windows": "SELECT STREAM a.order_id FROM orders OVER (RANGE INTERVAL '1' HOUR PRECEDING) AS a JOIN order_log AS b ON a.order_id = b.order_id",
    "a join of rowtimes": "SELECT STREAM a.order_id FROM orders AS a JOIN order_log AS b ON b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '1' HOUR",
    "a join of equal rowtimes": "SELECT STREAM a.order_id FROM orders AS a JOIN order_log AS b ON b.ROWTIME = a.ROWTIME",
    "a join as of a time": "SELECT STREAM a.order_id FROM order_log AS a JOIN orders FOR SYSTEM_TIME AS OF a.ROWTIME AS b ON a.order_id = b.order_id",
    "a match": "SELECT STREAM * FROM orders MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES a.order_id AS x PATTERN (a b) WITHIN INTERVAL '1' MINUTE DEFINE b AS b.order_id > a.order_id)",
    "a sort": "SELECT STREAM order_id FROM orders AS s ORDER BY FLOOR(s.ROWTIME TO HOUR), order_id",
    "a promoted function of it": "SELECT STREAM COUNT(*) AS n FROM (SELECT STREAM s.ROWTIME + INTERVAL '1' HOUR AS ROWTIME FROM orders AS s) AS x GROUP BY FLOOR(x.ROWTIME TO HOUR)",
    "a view": "CREATE VIEW v AS SELECT STREAM order_id FROM orders WHERE order_id > 1; SELECT STREAM COUNT(*) AS n FROM v GROUP BY FLOOR(v.ROWTIME TO HOUR)",
}  # fmt: skip


@pytest.mark.parametrize("query", TIMED.values(), ids=TIMED.keys())
def test_a_time_of_change_that_decides_a_result_is_warned_about(query: str) -> None:
    program = compile_script(GIVEN + query)
    assert program.problems == ()
    (warning,) = program.warnings
    assert warning.code == "R226"
    assert "the ROWTIME of orders is the time of change of its files" in warning.message
    assert warning.place is not None
    assert warning.place.text[warning.place.column - 1 :].startswith("orders")
    create, view = warning.hint.split("event, ")[1].split(", and read ")
    followed = compile_script(f"{GIVEN} {create}; {query.replace('orders', view.split(' ')[0])}")
    assert followed.problems == followed.warnings == ()


UNTIMED = {
    "a filter": "SELECT STREAM order_id FROM orders WHERE order_id > 1",
    "a sort of an event time": "SELECT STREAM ordered_at AS ROWTIME, order_id FROM orders ORDER BY ordered_at WITHIN INTERVAL '1' MINUTE",
    "groups of an event time": "SELECT STREAM COUNT(*) AS n FROM orders GROUP BY FLOOR(ordered_at TO HOUR) WITHIN INTERVAL '1' MINUTE",
    "groups of an ordered column": "SELECT STREAM ordered_at, COUNT(*) AS n FROM declared_orders GROUP BY ordered_at",
    "rows": "SELECT STREAM COUNT(*) OVER (ROWS 3 PRECEDING) AS n FROM orders",
    "a union": "SELECT STREAM order_id FROM orders UNION ALL SELECT STREAM order_id FROM payments",
    "a log": "SELECT STREAM COUNT(*) AS n FROM order_log AS s GROUP BY FLOOR(s.ROWTIME TO HOUR)",
    "a column for the rowtime": "CREATE STREAM x (at TIMESTAMP) USING csv OPTIONS (path 'x', rowtime.column 'at'); SELECT STREAM COUNT(*) AS n FROM x GROUP BY FLOOR(x.ROWTIME TO HOUR)",
    "a table": "CREATE TABLE t (order_id BIGINT) USING parquet OPTIONS (path 't'); SELECT STREAM orders.order_id FROM orders JOIN t ON orders.order_id = t.order_id",
    "panes": "CREATE STREAM x (at TIMESTAMP) USING csv OPTIONS (path 'x') EVENT TIME (at); SELECT STREAM PANE_END AS e, COUNT(*) AS n FROM x GROUP BY PANES(at, DURATION INTERVAL '1' MINUTE)",
}  # fmt: skip


@pytest.mark.parametrize("query", UNTIMED.values(), ids=UNTIMED.keys())
def test_other_results_are_not_warned_about(query: str) -> None:
    program = compile_script(GIVEN + query)
    assert program.problems == program.warnings == ()


SUBQUERIES = {
    "EXISTS": "EXISTS (SELECT STREAM 1 FROM {right} AS b WHERE {on})",
    "NOT EXISTS": "NOT EXISTS (SELECT STREAM 1 FROM {right} AS b WHERE {on})",
    "IN": "a.order_id IN (SELECT STREAM order_id FROM {right} AS b WHERE {on})",
}


@pytest.mark.parametrize("test", SUBQUERIES.values(), ids=SUBQUERIES)
@pytest.mark.parametrize("streams", [("orders", "payments"), ("order_log", "payment_log")], ids=["files", "logs"])
def test_a_sub_query_over_event_columns_is_answered_with_their_promotion(streams: tuple[str, str], test: str) -> None:
    """The hint had a range over the times of change of files, before the row and not after it."""
    query = f"SELECT STREAM a.order_id FROM {streams[0]} AS a WHERE {test.format(right=streams[1], on=within())}"
    (problem,) = compile_script(f"{GIVEN} {query}").problems
    assert (problem.code, "compares other times than the rowtimes" in problem.message) == ("R152", True)
    followed = compile_script(f"{GIVEN} {problem.hint.split('so that ON compares them: ')[1].rstrip('.')}")
    assert join(followed) == (0, HOUR)
    assert followed.warnings == ()
    (problem,) = compile_script(f"{GIVEN} {query.replace('(SELECT STREAM', '(SELECT')}").problems
    assert (problem.code, problem.hint) == ("R105", "Write SELECT STREAM.")


@pytest.mark.parametrize("test", SUBQUERIES.values(), ids=SUBQUERIES)
def test_a_sub_query_over_columns_with_a_declared_order_is_accepted(test: str) -> None:
    query = f"SELECT STREAM a.order_id FROM declared_orders AS a WHERE {test.format(right='declared_payments', on=within())}"
    program = compile_script(f"{GIVEN} {query}")
    assert join(program) == (0, HOUR)
    assert program.warnings == ()
