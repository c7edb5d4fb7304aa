"""The order check: a value that is declared or promised to ascend is checked row by row.

SPEC 6: `MONOTONIC(e)` and declared orders are about the stream, so about its rows in stream
order: the input is one sequence. A row whose value goes back (or is NULL) is refused as
``BROKEN_ORDER`` and moves nothing. The greatest value so far is the *mark*: no later row
has a lesser one, so groups of lesser values are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks
from rowtime.core.errors import refuse
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Column, Control, Delta, Gate, Kept, Operator, Shape, T, Tick, quoted
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    from sqlglot import exp

VALUE = "__o"  # TIMESTAMP: the value as µs, in an order that ascends


@dataclass(frozen=True)
class Ordered:
    """Lets rows pass whose ``value`` does not go back; ``strict``: nor stays.

    ``declares``: the column whose declared order this is.
    """

    name: str
    input: Operator
    value: exp.Expr
    descending: bool = False
    strict: bool = False
    declares: Column | None = None

    kind: ClassVar[str] = "order check"
    promise: ClassVar[str] = ""
    reason: ClassVar[str] = ""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The one input."""
        return (self.input,)

    def requires(self) -> str:
        """The rows of one sequence, which is what an order is about."""
        return "stream order"

    def keeps(self) -> tuple[Kept, ...]:
        """The mark."""
        return (
            Kept("the greatest value so far" if not self.descending else "the least value so far", "the stream ends"),
        )

    def emits(self) -> Shape:
        """The input's columns; of a declared one the order is known from here on."""
        shape = self.input.emits()
        if self.declares is None:
            return shape
        known = self.declares
        return replace(shape, columns=tuple(known if c.name == known.name else c for c in shape.columns))

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """Those of the input."""
        return clocks[0]

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Refuse the rows that go back."""
        delta, control = deltas[0], tick.control(self)
        if delta.rows is None:
            return Delta(None, delta.clocks)
        if "type" not in control:
            control["type"] = delta.rows.selectExpr(f"{to_spark(self.value)} AS v").schema[0].dataType.simpleString()
        rows = delta.rows.selectExpr("*", f"timestamp_micros({self._ascending(control)}) AS {VALUE}")
        gate = Gate(VALUE, -1 if self.strict else 0, "BROKEN_ORDER", control.get("marks", {}), missing="BROKEN_ORDER")
        verdict = tick.judge(self, rows, gate, delta.count)
        control["marks"] = dict(verdict.marks)
        rows = tick.account(self, rows, verdict, T, T)
        shape = self.emits()
        return Delta(rows.selectExpr(*map(quoted, shape.names), *shape.internals), delta.clocks, delta.count)

    def mark(self, control: Control) -> str | None:
        """The mark as Spark SQL of the value's own type; ``None`` before the first row."""
        at = max(control.get("marks", {}).values(), default=BEGINNING)
        if at <= BEGINNING:
            return None
        return _decoded(~at if self.descending else at, control["type"])

    def _ascending(self, control: Control) -> str:
        text = _encoded(to_spark(self.value), control["type"])
        if text is None:
            raise refuse(
                "R107",
                f"{to_rowtime(self.value)} is of type {control['type']}, whose order cannot be checked",
                "Whole numbers, DECIMAL up to 18 digits, DATE and TIMESTAMP can be; cast it to one of them.",
            )
        return f"~({text})" if self.descending else text


def _encoded(value: str, kind: str) -> str | None:
    """The value as a BIGINT of the same order."""
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f"CAST({value} AS BIGINT)"
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return f"unix_micros(CAST({value} AS TIMESTAMP))"
    digits = _decimal(kind)
    return None if digits is None else f"CAST(({value}) * {10**digits} AS BIGINT)"


def _decoded(value: int, kind: str) -> str:
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return f"CAST(timestamp_micros({value}L) AS {kind})"
    digits = _decimal(kind)
    return f"CAST({value}L AS {kind})" if digits is None else f"CAST({value}L AS DECIMAL(38, 0)) / {10**digits}"


def _decimal(kind: str) -> int | None:
    """The digits behind the point of a DECIMAL that fits a BIGINT."""
    if not kind.startswith("decimal("):
        return None
    precision, scale = (int(part) for part in kind.removeprefix("decimal(").removesuffix(")").split(","))
    return scale if precision <= 18 else None  # noqa: PLR2004 - digits of a BIGINT
