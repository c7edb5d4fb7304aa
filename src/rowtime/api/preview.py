"""A preview: the result of a query over the available input, without any side effect.

It runs in a scratch checkpoint that is removed afterwards. It takes only the definitions of the script: no pump writes,
no stream is defined, and no row is inserted, so nobody else sees a change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from rowtime.api.query import Query
from rowtime.core.errors import refuse
from rowtime.frames.kinds import arrow_of
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.program import Program
from rowtime.runtime.engine import Engine
from rowtime.runtime.sinks.callables import MemorySink


def alone(before: Program, program: Program) -> Program:
    """Return the one query that was added to ``before``; raises ``Refused`` (R146) if anything else was added."""
    added = program.sinks[len(before.sinks) :]
    if program.statements - before.statements != 1 or len(added) != 1:
        raise refuse("R146", "a preview shows one query", "Give one SELECT STREAM …, and the rest to Pipeline.sql.")
    kept = tuple(replace(sink, format="memory", options=()) for sink in added)
    return replace(program, sinks=kept, actions=(), defines=(), drops=(), take_over=frozenset())


def rows_of(engine: Engine, most: int) -> pa.Table:
    """Run until ``most`` rows are there or all input is read; the table has the query's columns even without rows."""
    node = engine.program.sinks[0]
    sink = engine.stages[node.name].sink
    assert isinstance(sink, MemorySink)

    def look(_progress: dict[str, Any]) -> None:
        if sum(table.num_rows for _, table in sink.batches) >= most:
            query.stop_soon()

    query = Query(engine, 0.0, available_now=True, listener=look)
    query.run()
    result = sink.table
    return _empty(node) if result is None else result.slice(0, most)


def _empty(node: Sink) -> pa.Table:
    """Return a table without rows; a column whose type only Spark knows has the type null."""
    columns = [column for column in node.emits().columns if not column.name.startswith("__")]
    kinds = [(column.name, arrow_of(column.type) if column.type else pa.null()) for column in columns]
    return pa.schema([("rowtime", pa.timestamp("us", "UTC")), *kinds]).empty_table()
