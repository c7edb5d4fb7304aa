"""EXPLAIN uses the users' names of operators, however they are built."""

from __future__ import annotations

import json
import re

import pytest

from reliability.fuzz.sql import scripts
from rowtime.cli.explain import entries_of
from rowtime.plan.explain import as_text, explain_query, orders_as_text
from rowtime.plan.program import compile_script
from tests.laws.lifetime_pipelines import LIFETIMES
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, transcript
from tests.laws.sorted_pipelines import SORTED
from tests.laws.speculation_pipelines import SPECULATION

SCRIPTS = {law.name: transcript(law, []).sql for law in (*LAWS, *SORTED, *PANES)}
SCRIPTS |= {law.name: law.transcript([]).sql for law in (*LIFETIMES, *SPECULATION)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_setting_is_shown_in_python_notation(name: str) -> None:
    (sink,) = compile_script(SCRIPTS[name]).sinks
    entries = explain_query(sink)
    text = f"{as_text(entries)}\n{orders_as_text(entries)}"
    assert not re.findall(r"[A-Z]\w+\(\w+=|<\w|\b__\w+", text), text


@pytest.mark.slow
def test_no_column_of_the_engine_is_shown_by_its_name() -> None:
    programs = [compile_script(script) for script in scripts()]
    entries = [entry for program in programs if not program.problems for entry in entries_of(program)]
    assert len(entries) > 300
    assert not re.findall(r".*\b__\w+", "\n".join([*map(json.dumps, entries), orders_as_text(entries)]))


def test_aggregates_and_sort_keys_are_numbered_as_they_are_listed() -> None:
    sql = """
        CREATE STREAM s (k INT, v INT);
        SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, k, SUM(v) AS total FROM s
        GROUP BY FLOOR(s.ROWTIME TO MINUTE), k HAVING COUNT(*) > 1 ORDER BY FLOOR(s.ROWTIME TO MINUTE), total DESC;
    """
    (sink,) = compile_script(sql).sinks
    text = as_text(explain_query(sink))
    assert "aggregates SUM(v), COUNT(*); having aggregate 2 > 1; sort aggregate 1; directions DESC" in text
    assert "order ROWTIME, sort key 1 DESC, key 1, key 2" in text


def test_times_and_shapes_are_shown_in_sql_notation() -> None:
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
