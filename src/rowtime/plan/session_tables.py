"""Tables of the session: its temporary views and the tables of its catalogs, as static tables of a script.

Such a table is read as if ``CREATE TABLE name (columns) USING session`` had defined it. A script may have this
statement itself. Otherwise it is added to the script in the checkpoint, which then binds without a session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rowtime.core.errors import refuse
from rowtime.operators.contract import quoted
from rowtime.operators.streams.table import Table
from rowtime.plan.stored import StoredPlan
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreateTable

SESSION: Final = "session"


def definition(name: str, columns: Iterable[tuple[str, str]]) -> CreateTable:
    """Return the statement that defines a table of the session. Raises ``Refused`` (R155) for unknown types."""
    listed = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns)
    text = f"CREATE TABLE {'.'.join(map(quoted, name.split('.')))} ({listed}) USING {SESSION}"
    script = parse_script(text)
    if script.problems:
        what = f"the table {name} of the session cannot be read: {script.problems[0].message}"
        raise refuse("R155", what, "Make a temporary view without this column, or cast it to another type.")
    (statement,) = script.statements
    assert isinstance(statement, CreateTable)
    return statement


def with_definitions(script: str, tables: Iterable[CreateTable]) -> str:
    """Return a script with the definitions of its session tables after its own text."""
    texts = sorted(table.text.rstrip("; \n") for table in tables)
    return "\n;\n".join([script, *texts]) if texts else script


def kept_in(plan: StoredPlan, name: str) -> CreateTable | None:
    """Return a session table as it is in a plan, whatever it is now; ``None`` for another name."""
    for operator in plan.operators.values():
        if operator.kind == Table.kind and operator.fields["table"] == name and operator.fields["source"][0] == SESSION:
            return definition(name, ((column["name"], column["type"]) for column in operator.fields["columns"]))
    return None
