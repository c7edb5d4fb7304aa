"""Statements that act: rows and bounds of a script, which take effect once per checkpoint.

They are written by a writer of their own, whose name comes from the checkpoint's plan; what
it has written before is skipped, so an interrupted start is finished by the next one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.client.writer import open_writer
from rowtime.core.clock import strict
from rowtime.core.errors import Problem, Refused
from rowtime.core.time import END, to_micros
from rowtime.sql.generate import to_rowtime
from rowtime.sql.statements import EndStream, InsertValues, SetBound, Statement

if TYPE_CHECKING:
    from rowtime.client.home import Home
    from rowtime.client.writer import Writer
    from rowtime.plan.program import Program
    from rowtime.state.checkpoint import Checkpoint

THE_WRITER = "script"


def perform(program: Program, home: Home, checkpoint: Checkpoint) -> None:
    """Insert the rows and set the bounds of a script, what is not done yet."""
    done = checkpoint.folder / "statements.done"
    if not program.once or done.exists():
        return
    by_stream: dict[str, list[Statement]] = defaultdict(list)
    for statement in program.once:
        assert isinstance(statement, InsertValues | SetBound | EndStream)
        by_stream[statement.stream.text.lower()].append(statement)
    for stream, statements in by_stream.items():
        _perform(program, home, stream, statements)
    done.touch()


def _perform(program: Program, home: Home, stream: str, statements: list[Statement]) -> None:
    with open_writer(stream, home=home.path, writer=THE_WRITER) as writer:
        already, position = writer.position, 0
        for statement in statements:
            items = _rows(program, statement) if isinstance(statement, InsertValues) else [statement]
            for item in items:
                if position >= already:
                    _send(writer, item)
                position += 1


def _send(writer: Writer, item: object) -> None:
    if isinstance(item, SetBound):
        at = _constant(item.at)
        writer.set_rowtime_bound(strict(to_micros(at)) if item.strict else to_micros(at))  # type: ignore[arg-type]
    elif isinstance(item, EndStream):
        writer.set_rowtime_bound(END)
    else:
        writer.insert([item])


def _rows(program: Program, statement: InsertValues) -> list[dict[str, object]]:
    stream = program.catalog.stream(statement.stream.text)
    assert stream is not None
    names = list(statement.columns) or [name for name, _ in stream.columns]
    for row in statement.rows:
        if len(row) != len(names):
            raise Refused(Problem("R135", f"a row has {len(row)} values for {len(names)} columns", statement.place))
    return [dict(zip(names, map(_constant, row), strict=True)) for row in statement.rows]


def _constant(node: exp.Expr) -> object:
    inner = node.unnest()
    if isinstance(inner, exp.Cast):
        return _constant(inner.this)
    if isinstance(inner, exp.Neg):
        return -_constant(inner.this)  # type: ignore[operator]
    if isinstance(inner, exp.Null):
        return None
    if isinstance(inner, exp.Boolean):
        return bool(inner.this)
    if isinstance(inner, exp.Literal):
        return inner.name if inner.is_string else inner.to_py()
    raise Refused(Problem("R136", f"{to_rowtime(node)} is not a literal value"))
