"""Groups WITHIN over a column of groups have the rowtimes that they have without WITHIN (SPEC 5)."""

from __future__ import annotations

from itertools import product

import pytest

from rowtime.operators.groups.group_by import GroupBy
from rowtime.plan.program import compile_script
from tests.laws.grid_pipelines import LEVELS, SPELLINGS

BELOW = "CREATE STREAM a (n INT, at TIMESTAMP); CREATE VIEW g AS SELECT STREAM {0} AS m FROM a GROUP BY {0}{1};"
ABOVE = "CREATE VIEW h AS SELECT STREAM {0} AS m FROM g GROUP BY {0}{1}; SELECT STREAM m FROM h;"
WITHIN = " WITHIN INTERVAL '3' SECOND"
SHAPES = ("g.m", "g.m + INTERVAL '0.5' SECOND")
DATES = [
    "CAST({} AS DATE)", "DATE({})", "CAST(FROM_UTC_TIMESTAMP({}, 'Europe/Berlin') AS DATE)", "YEAR({})", "LAST_DAY({})",
]  # fmt: skip
KEYS = [*dict.fromkeys(level.sql for level in (*LEVELS, *SPELLINGS))]


def ends(sql: str) -> list[str]:
    """What closes the groups of ``h``."""
    program = compile_script(sql)
    assert not program.problems, program.problems
    [group] = [node for node in program.operators if isinstance(node, GroupBy) and node.name.startswith("h")]
    return [closer.expression.sql() for closer in group.closers]


@pytest.mark.parametrize("below", ["a.ROWTIME", "a.at"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_tolerance_does_not_move_the_end_of_a_group(below: str, shape: str) -> None:
    for first, second in product(KEYS[::4], [*KEYS, *DATES]):
        lower = BELOW.format(first.format(below), WITHIN if below == "a.at" else "")
        without, within = (ends(lower + ABOVE.format(second.format(shape), by)) for by in ("", WITHIN))
        assert within == without, (first, second)
