"""A table function of Python over a stream: rows in, rows out, with state that is checkpointed.

The function gets the rows of a tick writer by writer, in the order in which they arrived, as Arrow tables. Its state is
in the journal, so a restart continues where the last tick ended. It runs in the driver, because state and order belong
to one place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from rowtime.core.columns import POSITION, ROWTIME, ROWTIME_NAME, WRITER
from rowtime.core.errors import Failure, Problem
from rowtime.core.fields import UNSTORED
from rowtime.core.imported import described_error, staying
from rowtime.operators.contract import Column, Control, Delta, Derivation, Shape, Tick, Unary, quoted
from rowtime.operators.contract.requirement import WRITERS
from rowtime.operators.contract.state import StateNote

MICROS = pa.timestamp("us", "UTC")


class TableFunction(Protocol):
    """Describes a table function, ``STREAM(f(CURSOR(query), …))``: created once per run, with the other arguments.

    Arguments are literals: text, int or Decimal, bool, ``timedelta`` for an interval, ``datetime`` (UTC) for a
    timestamp, ``None`` for NULL. If the constructor or ``columns`` raises ValueError or TypeError, the script is
    refused (R141).
    """

    def columns(self, given: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Return the names and Spark types of the output columns, given those of the input."""
        ...

    def process(self, rows: pa.Table, state: dict[str, Any]) -> pa.Table:
        """Process some rows of one writer, in the order of their arrival, and return any number of rows.

        ``rows`` has the columns of the input and ``ROWTIME`` (timestamp, µs UTC). The result has the columns that
        ``columns`` promised and ``ROWTIME``, which is that of the row that caused it. ``state`` belongs to the writer
        and has plain JSON values; it is empty before the first row. A tick may end anywhere, so the result must not
        depend on where the rows are cut.
        """
        ...


Make = Callable[..., TableFunction]
"""Makes a table function from its arguments."""


@dataclass(frozen=True)
class Remembered(Control):
    """By writer: ``states``, the function's state; ``places``, how many rows it has made."""

    states: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TableFunctionCall(Unary):
    """``function(input, arguments)``; ``made`` is the function with its arguments."""

    function: str
    arguments: tuple[exp.Expr, ...]
    columns: tuple[Column, ...]
    made: TableFunction = field(compare=False, repr=False, metadata=UNSTORED)

    control: ClassVar = Remembered
    kind: ClassVar[str] = "table function"
    needs: ClassVar = (WRITERS,)  # promised to the function

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the function's state."""
        what, until = "what the function remembers of each writer", "the function forgets it"
        return (StateNote(what, until, "writers", fields=("states",)),)

    def emits(self) -> Shape:
        """Return the function's columns; rows keep their rowtime and writer, and are numbered again."""
        return replace(self.input.emits().without_origin(), columns=self.columns, arrival=False, event=None)

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return None: only the function knows which columns contribute."""
        return None if column in self.emits().names else super().made_from(n, column)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Pass the new rows to the function, writer by writer."""
        delta = deltas[0]
        if delta.rows is None:
            return delta
        names = self.input.emits().names
        rows = delta.rows.selectExpr(*map(quoted, names), f"{ROWTIME} AS {ROWTIME_NAME}", WRITER, POSITION).toArrow()
        rows = rows.sort_by([(WRITER, "ascending"), (POSITION, "ascending")])
        control = tick.control(self)
        states, places = {**control.states}, {**control.places}
        parts = [self._writer(states, places, writer, rows) for writer in rows[WRITER].unique().to_pylist()]
        tick.remember(self, states=states, places=places)
        parts = [part for part in parts if part.num_rows]
        if not parts:
            return Delta(None, delta.clocks)
        output = tick.frame(self, pa.concat_tables(parts, promote_options="permissive"))
        typed = [f"CAST({quoted(c.name)} AS {c.type}) AS {quoted(c.name)}" for c in self.columns]
        rows = output.selectExpr(*typed, ROWTIME, WRITER, POSITION)
        return Delta(rows, delta.clocks, delta.lowest, delta.highest)

    def _writer(self, states: dict[str, Any], places: dict[str, int], writer: str, rows: pa.Table) -> pa.Table:
        """Return the function's output for one writer's rows, with places."""
        mine = rows.filter(pc.equal(rows[WRITER], writer)).drop_columns([WRITER, POSITION])
        state = deepcopy(states.get(writer, {}))
        try:
            with staying():
                output = self.made.process(mine, state)
                states[writer] = json.loads(json.dumps(state))
        except Exception as error:
            raise self._failure(described_error(error)) from error
        names = {name.lower(): name for name in output.column_names}
        missing = [name for name in (*(c.name for c in self.columns), ROWTIME_NAME) if name.lower() not in names]
        if missing:
            raise self._failure(f"its rows have no column {', '.join(missing)}")
        times = output[names[ROWTIME_NAME.lower()]].cast(MICROS)
        edges, given = pc.min_max(times.cast(pa.int64())), pc.min_max(mine[ROWTIME_NAME].cast(pa.int64()))
        if output.num_rows and (times.null_count or edges["min"].as_py() < given["min"].as_py()):
            raise self._failure("it gave a row that has no rowtime, or an earlier one than all rows of its input")
        first = places.get(writer, 0)
        places[writer] = first + output.num_rows
        columns = {column.name: output[names[column.name.lower()]] for column in self.columns}
        numbers = pa.array(range(first, first + output.num_rows), pa.int64())
        return pa.table(
            {**columns, ROWTIME: times, WRITER: pa.array([writer] * output.num_rows, pa.string()), POSITION: numbers}
        )

    def _failure(self, what: str) -> Failure:
        return Failure(Problem("R506", f"the table function {self.function} failed: {what}"))
