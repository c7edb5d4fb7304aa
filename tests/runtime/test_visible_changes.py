"""Events that begin and end in one tick: only readers that ask get the open event, and no other reader needs it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.core.columns import (
    AS_GIVEN,
    EDGE_KIND,
    MET,
    NEW_EDGE,
    POSITION,
    ROUTE,
    START,
    STARTED_AT,
    STOP,
    WEIGHT,
    WRITER,
)
from rowtime.core.time import END
from rowtime.frames.frame import Frame
from rowtime.kernels.events import START_EDGE, STOP_EDGE
from rowtime.operators.events.edge_pairs import changes_of
from rowtime.plan.program import compile_script
from rowtime.runtime.visible_changes import visible_changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "CREATE STREAM s (k INT, v INT, a TIMESTAMP, b TIMESTAMP) EVENT SHAPE EDGE (a, b);\n"
BOTH = """CREATE STREAM o (x TIMESTAMP, y TIMESTAMP, k INT, v INT);
CREATE PUMP p AS INSERT INTO o SELECT STREAM k, v FROM s EMIT INTERVALS (x, y)"""
FIELDS = [("k", "int"), (WRITER, "string"), (EDGE_KIND, "int"), (NEW_EDGE, "int")]
FIELDS += [(name, "bigint") for name in (POSITION, AS_GIVEN, START, STOP, MET)]
TYPES = {"int": pa.int32(), "string": pa.string(), "bigint": pa.int64()}


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("SELECT STREAM k, v FROM s EMIT INTERVALS (x, y)", False),
        ("SELECT STREAM k, v FROM s EMIT EDGES (e, x, y)", False),
        ("SELECT STREAM k, v FROM s EMIT CHANGES", True),
        ("SELECT STREAM k, 10 / v AS w FROM s EMIT INTERVALS (x, y)", True),  # a failing one is reported as open
        ("SELECT STREAM k, v FROM s WHERE 10 / v > 1 EMIT INTERVALS (x, y)", True),
        ("SELECT STREAM k FROM ALTER_DURATION(s, INTERVAL '1' HOUR) AS c EMIT INTERVALS (x, y)", True),
        (f"{BOTH}; SELECT STREAM k, v FROM s EMIT CHANGES", True),
    ],
)
def test_retractions_within_a_tick_are_shown_to_operators_that_need_them(query: str, asked: bool) -> None:
    program = compile_script(STREAM + query)
    assert not program.problems, program.problems
    assert ("s" in visible_changes(program)) is asked


def test_skipped_changes_are_those_that_cancel_out(spark: SparkSession) -> None:
    chance = random.Random(3)
    rows: list[dict[str, Any]] = []
    for place in range(200):
        begins = chance.random() < 0.5
        at = chance.randrange(4)
        until = END if begins else at + chance.choice([0, 5, 9])
        kept = place < 30  # open events of an earlier tick
        rows.append({
            "k": chance.randrange(3), WRITER: chance.choice("ab"), NEW_EDGE: int(not kept), POSITION: place,
            EDGE_KIND: START_EDGE if begins or kept else STOP_EDGE, AS_GIVEN: at, START: at,
            STOP: END if kept else until, MET: place // 9,
        })  # fmt: skip
    table = pa.Table.from_pylist(rows, pa.schema([(name, TYPES[kind]) for name, kind in FIELDS]))
    frame = Frame.of(spark, table, FIELDS)
    told, once = ([*changes_of(frame, ["k"], each=each).toArrow().to_pylist()] for each in (True, False))
    assert len(once) < len(told)
    assert netted(once) == netted(told)
    assert all(row in told for row in once)


def netted(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], int]:
    """The final state of each event, by its identity; for the others only the reported changes."""
    found: dict[tuple[Any, ...], int] = {}
    for row in rows:
        what = tuple(row[name] for name in (ROUTE, "k", WRITER, STARTED_AT, AS_GIVEN, START, STOP))
        found[what] = found.get(what, 0) + (row[WEIGHT] or 1)
    return {what: weight for what, weight in found.items() if weight}
