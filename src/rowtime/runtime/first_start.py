"""The first start of a script: its definitions and drops take effect when that start succeeds.

Streams are defined, and the rows of the script inserted, before the first tick runs, because the tick reads them. Until
that tick is committed, a record in the home says so (`client.starts`). With it everything is undone if the start fails
or dies, so that a corrected script starts as if there had been no other. Streams to which somebody else has written in
the meantime stay. Streams are dropped after that tick. A later start defines the script's changes in the same way,
until it has opened the checkpoint.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

from sqlglot import exp

from rowtime.client.home import Home
from rowtime.client.starts import STATEMENTS_DONE, Start, begin, settle_all
from rowtime.client.writer import EVERYONE, Writer, only_writer, open_writer
from rowtime.core.clock import strict
from rowtime.core.errors import Problem, Refused, refuse
from rowtime.core.time import END, to_micros
from rowtime.plan.bind.event_time import manual
from rowtime.plan.finite import is_finite
from rowtime.plan.program import Program
from rowtime.sql.generate import to_rowtime
from rowtime.sql.statements import EndStream, InsertValues, SetBound, Statement
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import make_folder, write_over
from rowtime.state.sealed import sealed, unsealed
from rowtime.state.settings import put


@dataclass
class FirstStart:
    """The changes of a start outside its checkpoint, until it is settled."""

    program: Program
    home: Home
    checkpoint: Checkpoint
    start: Start | None = None

    def __enter__(self) -> Self:
        """Define the streams of the script."""
        program, home, last = self.program, self.home, self.checkpoint.journal.last()
        settle_all(home, self.checkpoint.folder if self.checkpoint.driven else None)
        defines = {stream.name: stream.as_json() for stream in program.defines}
        dropped = performed(program, self.checkpoint) or (self.checkpoint.folder / DROPPED).exists()
        drops = () if last is not None or dropped else program.drops
        if drops or any(home.definition(name) != after for name, after in defines.items()):
            start = {
                "checkpoint": str(self.checkpoint.folder),
                "tick": -1 if last is None else last["tick"],
                "runs": bool(program.sinks),
                "writers": self._writers(),
            }
            self.start = begin(home, start, defines, drops)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Undo the changes if the start has failed; one that runs no first tick has succeeded."""
        if error is not None or not self.program.sinks or self.checkpoint.journal.last() is not None:
            self.settle(succeeded=error is None)

    def perform(self) -> None:
        """Apply the statements of the script that have not taken effect yet."""
        perform(self.program, self.home, self.checkpoint)

    def settle(self, *, succeeded: bool) -> None:
        """Keep the changes of the start if it ``succeeded`` or has committed a tick, else undo them."""
        start, self.start = self.start, None
        if start is None:
            return
        if succeeded and self.program.drops and self.checkpoint.journal.last() is None:
            make_folder(self.checkpoint.folder)
            (self.checkpoint.folder / DROPPED).touch()  # the next start drops nothing
        start.settle(succeeded=succeeded)
        if not succeeded and self.checkpoint.journal.last() is None:
            (self.checkpoint.folder / DONE).unlink(missing_ok=True)

    def _writers(self) -> list[str]:
        """Return the writers of the statements that take effect once."""
        actions = self.program.actions
        if not actions:
            return []
        named = {action.writer for action in actions if isinstance(action, SetBound | EndStream) and action.writer}
        make_folder(self.checkpoint.folder)
        return [writer_of(self.checkpoint), EVERYONE, *sorted(named)]


# Statements with an effect: rows and bounds of a script, which take effect once per checkpoint.
#
# They are written by a writer of their own, whose name comes from the checkpoint's plan; items that it has written
# before are skipped, so an interrupted start is finished by the next one. The checkpoint records which statements have
# taken effect. A bound or an end that is added to a script later takes effect at the next start. Rows do not, because
# they would be late, and are refused; so are drops.

_FLOAT = re.compile(r"\s*(?:nan|[+-]?(?:inf|infinity|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))\s*", re.IGNORECASE)
"""A text that Spark casts to DOUBLE; anything else is left to the writer, which says what does not fit."""


DONE, DROPPED = STATEMENTS_DONE, "statements.dropped"
WRITER = "statements.writer"  # the writer of the script's rows
"""Files of a checkpoint: its statements have taken effect; so have those that drop streams."""


def performed(program: Program, checkpoint: Checkpoint) -> bool:
    """Return True once the statements of a script have taken effect: with its first tick, if it runs any."""
    if program.sinks and checkpoint.journal.last() is None:
        return False  # an interrupted start is repeated as far as it was undone
    return (checkpoint.folder / DONE).exists()


def perform(program: Program, home: Home, checkpoint: Checkpoint) -> None:
    """Insert the rows and set the bounds of a script, as far as that is not done yet.

    Raises ``Refused`` (R145) for rows and drops that were added after the script's statements took effect.
    """
    done = checkpoint.folder / DONE
    if not (program.actions or program.drops or program.dropped_schemas):
        return
    actions: Sequence[Statement] = program.actions
    before: list[str] = []
    dropped = _drops(program)
    drops = list(dropped)
    if performed(program, checkpoint):
        before = unsealed(done)["statements"]
        actions = _new(actions, before)
    if checkpoint.journal.last() is not None or before:
        _check_drops([drop for text, drop in dropped.items() if text not in before])
        drops = []
    if before and not actions:
        return
    writer = writer_of(checkpoint)
    by_stream: dict[str, list[Statement]] = defaultdict(list)
    for statement in actions:
        assert isinstance(statement, InsertValues | SetBound | EndStream)
        if isinstance(statement, SetBound) and statement.view:
            put(checkpoint.folder, manual(program.described(), statement.stream.text), _bound(statement))
            continue
        if isinstance(statement, EndStream) and _end_files(program, statement, checkpoint):
            continue
        by_stream[statement.stream.text.lower()].append(statement)
    for stream, statements in by_stream.items():
        _perform(program, home, stream, statements, writer)
    write_over(done, sealed({"statements": [*before, *drops, *map(_content, actions)]}))


def _new(actions: Sequence[Statement], before: Sequence[str]) -> Sequence[Statement]:
    """Return the statements that have not taken effect."""
    left, new = Counter(before), []
    for statement in actions:
        left[_content(statement)] -= 1
        if left[_content(statement)] < 0:
            new.append(statement)
    refused = [statement for statement in new if isinstance(statement, InsertValues)]
    if refused:
        what = "these rows were not in the script when it first ran, and a script inserts its rows once per checkpoint"
        hint = "Take them out and send them with rowtime insert, or in a script of their own."
        raise Refused(*(Problem("R145", what, statement.place, hint) for statement in refused))
    return new


def _drops(program: Program) -> dict[str, str]:
    """Return what a script drops, in stored form, and the statement's text; the streams of a schema count as one."""
    schemas = program.dropped_schemas
    alone = [name for name in program.drops if not name.startswith(tuple(f"{schema}." for schema in schemas))]
    drops = {json.dumps(["DropSchema", name]): f"DROP SCHEMA {name}" for name in schemas}
    return drops | {json.dumps(["DropStream", name]): f"DROP STREAM {name}" for name in alone}


def _check_drops(statements: Sequence[str]) -> None:
    """Refuse (R145) drops that the script did not have at first: the rows may have been read."""
    hint = "Take it out and drop the stream in a script of its own."
    what = "was not in the script when it first ran, and a script drops streams once per checkpoint"
    if statements:
        raise Refused(*(Problem("R145", f"{statement} {what}", hint=hint) for statement in statements))


def _content(statement: Statement) -> str:
    """Return a statement's content, independent of its spelling."""
    if isinstance(statement, InsertValues):
        content: list[object] = [statement.columns, [[_constant(value) for value in row] for row in statement.rows]]
    elif isinstance(statement, SetBound):
        column = statement.column.text.lower() if statement.column else None
        content = [_constant(statement.at), statement.strict, statement.writer, statement.view, column]
    else:
        assert isinstance(statement, EndStream)
        content = [statement.writer]
    return json.dumps([type(statement).__name__, statement.stream.text.lower(), *content], default=str)


def _end_files(program: Program, statement: EndStream, checkpoint: Checkpoint) -> bool:
    """End a stream over files once all present files have been read; return False for another kind of stream."""
    name, stream = statement.stream.text.lower(), program.catalog.stream(statement.stream.text)
    if stream is None or not is_finite(stream.format):
        return False
    if not any(node.name == name for node in program.streams):
        what = f"no query or pump of this script reads {name}, so there is nothing to end"
        raise refuse("R137", what, "Write the statement into the script that reads it.", statement.place)
    put(checkpoint.folder, name, END)
    return True


def writer_of(checkpoint: Checkpoint) -> str:
    """Return the writer of this checkpoint's statements, recorded there before it writes anything."""
    path = checkpoint.folder / WRITER
    if not path.exists():
        write_over(path, sealed({"writer": f"script-{uuid.uuid4().hex[:12]}"}))
    return str(unsealed(path)["writer"])


def _perform(program: Program, home: Home, stream: str, statements: list[Statement], name: str) -> None:
    """Apply the statements about one stream, in order; the script's own writer leaves after them."""
    with open_writer(stream, home=home.path, writer=name) as writer:
        already, position = writer.position, 0
        for statement in statements:
            if isinstance(statement, InsertValues):
                for row in _rows(program, statement):
                    if position >= already:
                        writer.insert([row])
                    position += 1
            elif isinstance(statement, SetBound) and statement.column and position and not statement.writer:
                if position >= already:  # an item of the script's own writer, after its rows
                    _set_column(writer, statement)
                position += 1
            else:
                # Setting a bound twice has no further effect, so it need not be counted.
                _promise(home, stream, statement)
        writer.close(leave=bool(position))


def _promise(home: Home, stream: str, statement: Statement) -> None:
    assert isinstance(statement, SetBound | EndStream)
    if isinstance(statement, SetBound) and statement.column:
        with open_writer(stream, home=home.path, writer=statement.writer or only_writer(home, stream)) as writer:
            _set_column(writer, statement)
        return
    at = _bound(statement) if isinstance(statement, SetBound) else END
    with open_writer(stream, home=home.path, writer=statement.writer or EVERYONE) as writer:
        writer.set_rowtime_bound(at)


def _set_column(writer: Writer, statement: SetBound) -> None:
    assert statement.column is not None
    try:
        writer.set_bound(statement.column.text, _constant(statement.at), statement.strict)
    except Refused as refused:
        raise Refused(*(replace(problem, place=statement.place) for problem in refused.problems)) from None


def _bound(statement: SetBound) -> int:
    at = to_micros(_constant(statement.at))  # type: ignore[arg-type]
    return strict(at) if statement.strict else at


def _rows(program: Program, statement: InsertValues) -> list[dict[str, object]]:
    stream = program.catalog.stream(statement.stream.text)
    assert stream is not None
    names = list(statement.columns) or [name for name, _ in stream.columns]
    for row in statement.rows:
        if len(row) != len(names):
            raise refuse("R135", f"a row has {len(row)} values for {len(names)} columns", place=statement.place)
    return [dict(zip(names, map(_constant, row), strict=True)) for row in statement.rows]


def _constant(node: exp.Expr) -> object:
    inner = node.unnest()
    if isinstance(inner, exp.Cast):
        value = _constant(inner.this)
        is_float = inner.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)
        return float(value) if is_float and isinstance(value, str) and _FLOAT.fullmatch(value) else value
    if isinstance(inner, exp.Neg) and isinstance(value := _constant(inner.this), int | float | Decimal):
        return -value
    if isinstance(inner, exp.Null):
        return None
    if isinstance(inner, exp.Boolean):
        return bool(inner.this)
    if isinstance(inner, exp.Literal):
        return inner.name if inner.is_string else inner.to_py()
    raise refuse("R136", f"{to_rowtime(node)} is not a literal value")
