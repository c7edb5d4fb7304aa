"""EXPLAIN speaks of operators as users know them, whatever they are made of."""

from __future__ import annotations

import re

import pytest

from rowtime.plan.explain import as_text, explain_query
from rowtime.plan.program import compile_script
from tests.laws.lifetime_pipelines import LIFETIMES
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, transcript
from tests.laws.sorted_pipelines import SORTED
from tests.laws.speculation_pipelines import SPECULATION

SCRIPTS = {law.name: transcript(law, []).sql for law in (*LAWS, *SORTED, *PANES)}
SCRIPTS |= {law.name: law.transcript([]).sql for law in (*LIFETIMES, *SPECULATION)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_setting_is_shown_as_python_has_it(name: str) -> None:
    (sink,) = compile_script(SCRIPTS[name]).sinks
    text = as_text(explain_query(sink))
    assert not re.findall(r"[A-Z]\w+\(\w+=|<\w", text), text


def test_times_and_shapes_are_shown_as_they_are_said() -> None:
    sql = "SELECT STREAM COUNT(*) AS c FROM s GROUP BY COUNT_WINDOW(2); "
    declared = (
        "CREATE STREAM r (a TIMESTAMP, k INT) EVENT SHAPE POINT (a) BOUND EVERY 5 ROWS DELAY INTERVAL '2' SECOND; "
        "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP) EVENT SHAPE INTERVAL (a, b) ON LATE ADJUST BOUND FROM r; "
    )
    (sink,) = compile_script(declared + sql).sinks
    text = as_text(explain_query(sink))
    assert "shape POINT (a) BOUND EVERY 5 ROWS DELAY 0:00:02" in text
    assert "shape INTERVAL (a, b) ON LATE ADJUST BOUND FROM r" in text
    assert "size 2" in text
