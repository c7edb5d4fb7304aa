"""The pipelines of the laws before a pump with a typed target; readers of it miss the rows that it refuses."""

from __future__ import annotations

import math
from dataclasses import replace

from rowtime.operators.contract import Shape
from rowtime.plan.program import compile_script
from tests.laws.as_of_pipelines import AS_OF
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.guard_pipelines import GUARDS
from tests.laws.join_pipelines import JOINS
from tests.laws.lifetime_pipelines import LIFETIMES, LifetimeLaw
from tests.laws.over_pipelines import OVER
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import DECLARE, LAWS, Feeds, Law
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.window_pipelines import WINDOWS
from tests.oracle import feed as f
from tests.oracle.select import select

TARGET = "CREATE STREAM typed (m TINYINT NOT NULL CHECK (m % 5 <> 3))"
NUMBERS = ("n", "an", "bn", "c", "total", "s", "v", "m", "g", "ac", "f", "d")
"""Columns that are integers in every law that has them, the best first."""


def _fits(value: int | None) -> bool:
    return value is not None and -128 <= value < 128 and math.fmod(value, 5) != 3


def _shape(law: Law) -> Shape | None:
    """The query of a law; ``None`` if it is not one SELECT."""
    program = compile_script(DECLARE.format(law.columns, law.clauses) + law.sql)
    sinks = program.sinks if not program.problems else ()
    return (
        sinks[0].emits()
        if len(sinks) == 1 and law.sql.rstrip("; ").rpartition(";")[2].strip()[:6] == "SELECT"
        else None
    )


def _number(law: Law) -> str | None:
    """The column of a law that goes into the pump."""
    shape = _shape(law)
    return next((name for name in NUMBERS if shape is not None and name in shape.names), None)


def behind_a_pump(law: Law, column: str) -> Law:
    """The law with a column of its query in a pump into a target that does not accept every row."""
    before, _, query = law.sql.rstrip("; ").rpartition(";")
    sql = (
        f"{before}; {TARGET}; CREATE VIEW whole AS {query}; CREATE PUMP through AS INSERT INTO typed "
        f"SELECT STREAM {column} AS n FROM whole; SELECT STREAM m AS n FROM typed"
    )

    def oracle(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
        items, refused = law.oracle(feeds)
        items = select(items, lambda _: True, lambda values: {"n": values[column]})
        rows = (row for parts in items.values() for row in f.rows_of(parts) if not _fits(row.values["n"]))
        gone = [f.Refusal("through", row.values, "MALFORMED", row.at, row.at) for row in rows]
        return select(items, lambda values: _fits(values["n"])), [*refused, *gone]

    return replace(
        law, name=f"{law.name}, behind a pump", operators=("pump gate",), sql=sql.lstrip("; "), oracle=oracle
    )


ALL = (*LAWS, *DEEPER, *SORTED, *GUARDS, *JOINS, *OVER, *SESSIONS, *AS_OF, *PANES, *WINDOWS)
PUMPED = tuple(behind_a_pump(law, column) for law in ALL if (column := _number(law)))


def events_behind_a_pump(law: LifetimeLaw, columns: str) -> LifetimeLaw:
    """A law over events; a pump writes the rows with a count that fits into a stream of rows."""
    sql = (
        f"CREATE STREAM typed (start TIMESTAMP, stop TIMESTAMP, {columns}); "
        f"CREATE VIEW whole AS {law.sql} EMIT INTERVALS (start, stop); "
        "CREATE PUMP through AS INSERT INTO typed SELECT STREAM * FROM whole; SELECT STREAM * FROM typed"
    )
    return replace(
        law,
        name=f"{law.name}, behind a pump",
        operators=("pump gate",),
        sql=sql,
        oracle=lambda gates: select(law.oracle(gates), lambda row: _fits(row["c"])),
    )


COUNT = "c TINYINT NOT NULL CHECK (c % 5 <> 3)"
COLUMNS = {"snapshots": f"k INT, {COUNT}, t BIGINT", "hopping windows over events": f"{COUNT}, m INT"}
PUMPED_EVENTS = tuple(events_behind_a_pump(law, COLUMNS[law.name]) for law in LIFETIMES if law.name in COLUMNS)
