"""The pipelines of the laws behind a pump with a typed target: what it refuses is gone for who reads the target."""

from __future__ import annotations

from dataclasses import replace

from rowtime.plan.program import compile_script
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.guard_pipelines import GUARDS
from tests.laws.pipelines import DECLARE, LAWS, Feeds, Law
from tests.laws.sorted_pipelines import SORTED
from tests.oracle import feed as f
from tests.oracle.select import select

TARGET = "CREATE STREAM typed (m TINYINT NOT NULL CHECK (m % 5 <> 3))"


def _fits(values: f.Values) -> bool:
    return bool(values["n"] % 5 != 3)


def _writes_n_alone(law: Law) -> bool:
    program = compile_script(DECLARE.format(law.columns, law.clauses) + law.sql)
    return not program.problems and [sink.emits().names for sink in program.sinks] == [("n",)]


def behind_a_pump(law: Law) -> Law:
    """The law with its query in a pump into a target that does not take every row."""
    before, _, query = law.sql.rstrip("; ").rpartition(";")
    sql = f"{before}; {TARGET}; CREATE PUMP through AS INSERT INTO typed {query}; SELECT STREAM m AS n FROM typed"

    def oracle(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
        items, refused = law.oracle(feeds)
        rows = (row for parts in items.values() for row in f.rows_of(parts) if not _fits(row.values))
        gone = [f.Refusal("through", row.values, "MALFORMED", row.at, row.at) for row in rows]
        return select(items, _fits), [*refused, *gone]

    return replace(
        law, name=f"{law.name}, behind a pump", operators=("pump gate",), sql=sql.lstrip("; "), oracle=oracle
    )


PUMPED = tuple(behind_a_pump(law) for law in (*LAWS, *DEEPER, *SORTED, *GUARDS) if _writes_n_alone(law))
