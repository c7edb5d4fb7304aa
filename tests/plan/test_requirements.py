"""The law of requirements, which every plan of the tests obeys (tests/conftest.py), sees what is planted."""

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


def test_a_merge_that_is_missing_is_seen() -> None:
    sink = compile_script(UNION).sinks[0]
    assert list(broken([sink])) == []
    merge = next(node for node in walk(sink) if isinstance(node, Merge))
    over = next(node for node in walk(sink) if node.inputs == (merge,))
    (told,) = broken([replace(over, input=merge.input)])  # type: ignore[type-var]
    assert told.startswith(f"{over.name} requires")


def test_a_merge_that_is_too_many_is_seen() -> None:
    sink = compile_script(UNION).sinks[0]
    twice: Operator = replace(sink, input=Merge("again", sink.input))
    assert list(broken([twice])) == ["again could be left out"]
