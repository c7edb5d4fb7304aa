"""A row that a gate refuses, or a condition drops, and that fails too, has one reason, whatever else its tick has.

Rows are judged before their columns are read, so without care a failing column of a refused row would be noticed only
in a tick in which another row fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.plan.program import compile_script
from rowtime.runtime.close_look import computed_at_once
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import refused_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARE = (
    "CREATE STREAM a (n INT, v INT, ev TIMESTAMP); CREATE STREAM e (n INT, v INT, ev TIMESTAMP) EVENT TIME (ev);"
    "CREATE STREAM o (n INT, v INT ASCENDING, ev TIMESTAMP);"
)
SORTED = "ORDER BY ev WITHIN INTERVAL '1' SECOND"
COMPUTED = f"CREATE VIEW x AS SELECT STREAM ev AS ROWTIME, v, n, 10 DIV n AS q FROM a {SORTED};"
SCRIPTS = {
    "key of a T-sort": ("a", f"SELECT STREAM ev AS ROWTIME, v FROM a {SORTED}, 10 DIV n"),
    "column of a T-sort": ("a", f"{COMPUTED} SELECT STREAM v, q FROM x"),
    "column that a condition above does not read": ("a", f"{COMPUTED} SELECT STREAM v, q FROM x WHERE v > 4"),
    "column of a T-sort, in groups": (
        "a",
        f"{COMPUTED} SELECT STREAM COUNT(DISTINCT q) AS c, SUM(v) AS s FROM x GROUP BY FLOOR(x.ROWTIME TO MINUTE)",
    ),
    "column of a T-sort with a guard": (
        "a",
        (
            f"CREATE VIEW x AS SELECT STREAM ev AS ROWTIME, v, 10 DIV n AS q FROM a {SORTED} EARLY BEYOND INTERVAL '5' "
            "SECOND; SELECT STREAM v, q FROM x"
        ),
    ),
    "column below an order": (
        "o",
        (
            "CREATE VIEW x AS SELECT STREAM v, 10 DIV n AS q, ev FROM o; "
            "SELECT STREAM COUNT(q) AS c, MIN(v) AS v FROM x GROUP BY FLOOR(ev TO MINUTE) WITHIN INTERVAL '1' SECOND"
        ),
    ),
    "column below a union": (
        "a",
        (
            "CREATE VIEW x AS SELECT STREAM v, 10 DIV n AS q FROM a UNION ALL SELECT STREAM v, 5 DIV n AS q FROM e;"
            "SELECT STREAM v, q FROM x WHERE v > 4"
        ),
    ),
    "key of a pane": (
        "e",
        (
            "SELECT STREAM PANE_END AS pe, 10 DIV n AS q, COUNT(*) AS c FROM e "
            "GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '1' SECOND), 10 DIV n"
        ),
    ),
    "argument of a pane": (
        "e",
        (
            "SELECT STREAM PANE_END AS pe, SUM(10 DIV n) AS s FROM e "
            "GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '1' SECOND)"
        ),
    ),
}
ROWS = (  # rowtime, n, ev
    (0, 1, 0), (9, 2, 9), (10, 0, 1), (11, 0, 11), (11, 0, 10.5), (12, 1, 12), (13, 0, None), (14, 2, 2), (15, 0, 60),
    (16, 5, 17), (17, 0, 3), (18, 1, 18), (19, 4, 75),
)  # fmt: skip
OFTEN = ("column that a condition above does not read", "key of a pane")


def items(stream: str) -> list[ScriptItem]:
    """Rows in time, late, early and without a time; some of each fail."""
    made = [
        ScriptItem(number, stream, "w", {"rowtime": ORIGIN + at * SECOND, "n": n, "v": number, "ev": _at(ev)}, None)
        for number, (at, n, ev) in enumerate(ROWS, 1)
    ]
    return [*made, *(ScriptItem(len(made) + n, name, "w", None, END) for n, name in enumerate("aeo", 1))]


def _at(seconds: float | None) -> int | None:
    return None if seconds is None else ORIGIN + int(seconds * SECOND)


def played(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    """Rows and refusals with all items in one tick, in some, and in one each."""
    stream, sql = SCRIPTS[name]
    made = items(stream)
    writers = {one: ["w"] for one in "aeo"}
    case = Transcript("gates", "gates", DECLARE + sql, tuple(made), (), "exact", frozenset(), writers, {})
    end, session = len(made), derive(spark)
    cuts = ([end], [3, 7, 11, end], [*range(1, end + 1)])
    return [(rows_of(of), refused_of(of)) for of in (play(session, case, cut) for cut in cuts)]


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=name, marks=[] if name in OFTEN else [pytest.mark.slow]) for name in SCRIPTS]
)
def test_a_row_has_one_reason_in_any_cut(spark: SparkSession, name: str) -> None:
    whole, *others = played(spark, name)
    assert whole[1], "nothing was refused"
    for other in others:
        assert other == whole


def test_only_columns_that_may_fail_and_are_needed_are_computed_at_once() -> None:
    script = (
        f"{DECLARE} CREATE VIEW x AS SELECT STREAM ev AS ROWTIME, v, 10 DIV n AS q, n + 1 AS unread FROM a {SORTED};"
        "CREATE VIEW y AS SELECT STREAM ev AS ROWTIME, v, n > 2 AS b FROM a ORDER BY ev WITHIN INTERVAL '1' SECOND;"
        "CREATE VIEW z AS SELECT STREAM 10 DIV n AS q, v FROM a;"
        "SELECT STREAM x.q AS q FROM x WHERE x.v > 2 UNION ALL SELECT STREAM y.v AS q FROM y "
        "UNION ALL SELECT STREAM z.q AS q FROM z WHERE z.v > 3"
    )
    program = compile_script(script)
    assert not program.problems
    at_once = computed_at_once(program.operators)
    assert at_once["x.select"] == ("q",)
    assert not [name for name in at_once if name.startswith("y")]
