"""Versions: each change of an event as its old and its new state, numbered in the merged order (semantics 9.5).

EMIT CHANGES shows the difference that every item makes. So the changes of all inputs are put into one order below. From
here on a row has the number of its change (`CHANGED_BY`) and the bound when that change came (`MET`). Operators above
keep both: a pair of a join comes with the later of its two changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rowtime.core.columns import (
    CHANGED,
    CHANGED_BY,
    CHOICE,
    MET,
    OF_INPUT,
    POSITION,
    ROWTIME,
    STOP,
    VERSION,
    WEIGHT,
    WRITER,
)
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Column, Delta, Link, Operator, Shape, Tick, Unary, named, quoted
from rowtime.operators.contract.requirement import COUNTED
from rowtime.operators.rows.lifetimes import BEGINS, TWICE, derived, netted

BEFORE = (f"-1L AS {CHANGED_BY}", f"{BEGINNING}L AS {MET}")
"""The version from before the new changes, which are numbered from 0."""


@dataclass(frozen=True)
class Versions(Unary):
    """The changes ``input`` as weighted rows; ``columns``: the payload's names there, and those above.

    ``of``: only the changes of this one of several inputs.
    """

    columns: tuple[tuple[str, Column], ...]
    of: int | None = None

    kind: ClassVar[str] = "versions"
    promises = Operator.promises
    needs: ClassVar = (COUNTED,)  # stream order, with numbers
    numbers_changes: ClassVar[bool] = True

    def emits(self) -> Shape:
        """Return the payload of the events."""
        return derived(Shape(tuple(column for _, column in self.columns)))

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the change with this number."""
        payload = named([(column.name, name) for name, column in self.columns])
        same = (*payload, (CHANGED_BY, POSITION), (BEGINS, f"unix_micros({CHANGED[1]})"))
        return Link(same, "true" if self.of is None else f"{OF_INPUT} = {self.of}")

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the rows; lazily."""
        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        rows = delta.rows if self.of is None else delta.rows.where(f"{OF_INPUT} = {self.of}")
        _, start, stop, new_stop = CHANGED
        was, now = f"coalesce(unix_micros({stop}), {END}L)", f"unix_micros({new_stop})"
        changes = f"IF({CHOICE} = 0L, {new_stop} IS NOT NULL, NOT coalesce({new_stop} <= {start}, false))"
        payload = [f"{quoted(name)} AS {quoted(column.name)}" for name, column in self.columns]
        rows = rows.selectExpr("*", TWICE).where(changes).selectExpr(
            *payload, f"{start} AS {ROWTIME}", f"'' AS {WRITER}", f"0L AS {POSITION}",
            f"IF({CHOICE} = 0L, {was}, coalesce({now}, {was})) AS {STOP}", f"IF({CHOICE} = 0L, -1L, 1L) AS {WEIGHT}",
            f"{POSITION} AS {CHANGED_BY}", f"unix_micros({ROWTIME}) AS {MET}",
        )  # fmt: skip
        return Delta(rows, clocks)


def versions_of(changes: Frame, by: Sequence[str]) -> Frame:
    """Return the changes (`CHANGED_BY`, `MET`) of each group ``by`` with the next one, from the earlier state on."""
    names = [quoted(name) for name in by]
    changes = changes.select(*names, CHANGED_BY, MET).distinct()
    first = changes.select(*names).distinct().selectExpr("*", *BEFORE)
    groups = f"PARTITION BY {', '.join(names)}" if names else ""
    values = (CHANGED_BY, MET, *(f"lead({name}) OVER ({groups} ORDER BY {CHANGED_BY})" for name in (CHANGED_BY, MET)))
    return first.unionByName(changes).selectExpr(
        *(f"{name} AS __g{n}" for n, name in enumerate(names)),
        *(f"{value} AS {name}" for value, name in zip(values, VERSION, strict=True)),
    )


def as_of(rows: Frame, versions: Frame, by: Sequence[str], identity: Sequence[str]) -> Frame:
    """Return the rows that exist at each version of their group, combined by ``identity`` and version."""
    same = "".join(f" AND {quoted(name)} <=> __g{n}" for n, name in enumerate(by))
    versioned = rows.joined(versions, f"{CHANGED_BY} <= __v{same}", "inner").drop(CHANGED_BY, MET)
    return netted(versioned, [*identity, *VERSION])


def differences(results: Frame, names: Sequence[str]) -> Frame:
    """Return events of each version (``names``, __x, the end, the weight), minus those of the version before."""
    came, gone = (WEIGHT, "__v", "__vc"), (f"-{WEIGHT}", "__nv", "__nc")
    changes = zip(came, gone, (WEIGHT, CHANGED_BY, MET), strict=True)
    values = [f"IF({CHOICE} = 0L, {one}, {other}) AS {name}" for one, other, name in changes]
    rows = results.selectExpr("*", TWICE).selectExpr(*map(quoted, names), "__x", STOP, *values)
    return netted(rows.where(f"{CHANGED_BY} >= 0"), [*names, "__x", STOP, CHANGED_BY])
