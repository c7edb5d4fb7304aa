"""The law of requirements, which every plan of the tests obeys (tests/conftest.py), finds planted faults."""

from __future__ import annotations

from dataclasses import replace

from rowtime.operators.contract import Operator, walk
from rowtime.operators.order.merge import Merge
from rowtime.plan.program import compile_script
from tests.plan.requirement_law import broken

UNION = """
CREATE STREAM a (v INT);
CREATE STREAM b (v INT);
SELECT STREAM v, SUM(v) OVER (ROWS 2 PRECEDING) AS s FROM (SELECT STREAM v FROM a UNION ALL SELECT STREAM v FROM b);
"""


EVENTS = """
CREATE STREAM e (k STRING, a TIMESTAMP, b TIMESTAMP) EVENT SHAPE INTERVAL (a, b);
CREATE VIEW v AS SELECT STREAM COUNT(*) AS n, k FROM e GROUP BY SNAPSHOT(), k EMIT INTERVALS (x, y);
CREATE VIEW w AS SELECT STREAM k FROM v;
SELECT STREAM k FROM w UNION ALL SELECT STREAM k FROM v;
"""


def test_rows_are_merged_before_a_select_list_drops_their_order() -> None:
    sink = compile_script(EVENTS).sinks[0]
    merges = [node for node in walk(sink) if isinstance(node, Merge) and node.numbers]
    assert [node.input.name for node in merges] == ["v.emit", "v.emit"]
    bad = replace(merges[0], input=next(node for node in walk(sink) if node.inputs == (merges[0],)))
    assert any("leaves out" in told for told in broken([replace(bad, input=replace(bad.input, input=merges[0].input))]))  # type: ignore[type-var]


def test_rows_are_counted_after_the_filter_of_such_a_list() -> None:
    sink = compile_script(EVENTS.partition("CREATE VIEW w")[0] + "SELECT STREAM k FROM v WHERE n > 1 LIMIT 3").sinks[0]
    assert [node.kind for node in walk(sink)][-6:] == ["emit lifetimes", "merge", "select", "merge", "limit", "sink"]


def test_a_missing_merge_is_found() -> None:
    sink = compile_script(UNION).sinks[0]
    assert list(broken([sink])) == []
    merge = next(node for node in walk(sink) if isinstance(node, Merge))
    over = next(node for node in walk(sink) if node.inputs == (merge,))
    (told,) = broken([replace(over, input=merge.input)])  # type: ignore[type-var]
    assert told.startswith(f"{over.name} requires")


def test_a_superfluous_merge_is_found() -> None:
    sink = compile_script(UNION).sinks[0]
    twice: Operator = replace(sink, input=Merge("again", sink.input))
    assert list(broken([twice])) == ["again could be left out"]
