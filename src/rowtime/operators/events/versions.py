"""Versions: each change of an event as what it was and what it is, numbered in the merged order (SPEC 9.5).

What EMIT CHANGES asks for is the difference that every item makes. So the changes of all
inputs are put into one order below, and from here on a row says with which of them it came
(`Q`) and which bound that one met (`C`). Operators above keep both: a pair of a join comes
with the later one of its two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import (
    Column,
    Control,
    Delta,
    Link,
    Operator,
    P,
    Shape,
    T,
    Tick,
    Unary,
    W,
    named,
    quoted,
)
from rowtime.operators.contract.requirement import COUNTED, Requirement
from rowtime.operators.rows.lifetimes import C, D, E, Q, S, derived, netted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGED = ("__change", "__start", "__stop", "__new_stop")
"""What the columns of a change are called below: as in `EmitChanges`, and out of the way of the payload's."""
OF = "__of"  # INT: which of several inputs a change is of
BEFORE = (f"-1L AS {Q}", f"{BEGINNING}L AS {C}")
"""The version of what was there before the new changes, which are numbered from 0."""
VERSION = ("__v", "__vc", "__nv", "__nc")
"""A change and the bound that it met; the next one of the same group, and the bound of that."""


@dataclass(frozen=True)
class Versions(Unary):
    """The changes ``input`` as weighted rows; ``columns``: the payload's names there, and what they are above.

    ``of``: only those of this one of several inputs.
    """

    name: str
    input: Operator
    columns: tuple[tuple[str, Column], ...]
    of: int | None = None

    kind: ClassVar[str] = "versions"
    numbers_changes: ClassVar[bool] = True

    def requires(self) -> tuple[Requirement, ...]:
        """Stream order, with numbers."""
        return (COUNTED,)

    def emits(self) -> Shape:
        """The payload of the events."""
        return derived(Shape(tuple(column for _, column in self.columns)))

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """The least of the input's."""
        return {"": least(clocks[0].values())}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """The change of this number."""
        payload = named([(column.name, name) for name, column in self.columns])
        same = (*payload, (Q, P), (S, f"unix_micros({CHANGED[1]})"))
        return Link(same, "true" if self.of is None else f"{OF} = {self.of}")

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The rows; lazily, without a job."""
        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        rows = delta.rows if self.of is None else delta.rows.where(f"{OF} = {self.of}")
        _, start, stop, new_stop = CHANGED
        was = f"coalesce(unix_micros({stop}), {END}L)"
        old = f"IF({new_stop} IS NULL, NULL, struct({was} AS {E}, -1L AS {D}))"
        now = f"struct(coalesce(unix_micros({new_stop}), {was}) AS {E}, 1L AS {D})"
        now = f"IF({new_stop} <= {start}, NULL, {now})"
        payload = [f"{quoted(name)} AS {quoted(column.name)}" for name, column in self.columns]
        rows = rows.selectExpr(
            *payload, f"{start} AS {T}", f"'' AS {W}", f"0L AS {P}", f"{P} AS {Q}", f"unix_micros({T}) AS {C}",
            f"explode(filter(array({old}, {now}), x -> x IS NOT NULL)) AS __x",
        )  # fmt: skip
        names = [quoted(column.name) for _, column in self.columns]
        rows = rows.selectExpr(*names, T, W, P, f"__x.{E}", f"__x.{D}", Q, C)
        return Delta(rows, clocks, None if delta.count is None else 2 * delta.count)


def versions_of(changes: DataFrame, by: Sequence[str]) -> DataFrame:
    """The changes (`Q`, `C`) of each group ``by`` with the next one, from that on that was there before."""
    names = [quoted(name) for name in by]
    changes = changes.select(*names, Q, C).distinct()
    first = changes.select(*names).distinct().selectExpr("*", *BEFORE)
    groups = f"PARTITION BY {', '.join(names)}" if names else ""
    values = (Q, C, *(f"lead({name}) OVER ({groups} ORDER BY {Q})" for name in (Q, C)))
    return first.unionByName(changes).selectExpr(
        *(f"{name} AS __g{n}" for n, name in enumerate(names)),
        *(f"{value} AS {name}" for value, name in zip(values, VERSION, strict=True)),
    )


def as_of(rows: DataFrame, versions: DataFrame, by: Sequence[str], identity: Sequence[str]) -> DataFrame:
    """The rows that there are at each version of their group, put together by ``identity`` and version."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    same = "".join(f" AND {quoted(name)} <=> __g{n}" for n, name in enumerate(by))
    found = rows.join(versions, F.expr(f"{Q} <= __v{same}")).drop(Q, C)
    return netted(found, [*identity, *VERSION])


def differences(results: DataFrame, names: Sequence[str]) -> DataFrame:
    """Events of each version (``names``, __x, the end, the weight), less those of the one before it."""
    came = f"struct({D} AS {D}, __v AS {Q}, __vc AS {C})"
    gone = f"struct(-{D} AS {D}, __nv AS {Q}, __nc AS {C})"
    changed = f"explode(filter(array({came}, {gone}), x -> x.{Q} >= 0)) AS __y"
    columns = [*map(quoted, names), "__x", E]
    rows = results.selectExpr(*columns, changed).selectExpr(*columns, "__y.*")
    return netted(rows, [*names, "__x", E, Q])
