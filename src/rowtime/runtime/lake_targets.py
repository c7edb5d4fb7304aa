"""The lake tables of a checkpoint's pumps, for commands that have no pipeline: secrets come from the caller.

``rowtime optimize`` combines their small files into large ones, concurrently with other writers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rowtime.client.home import Home
from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.stores import place_of
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.program import compile_script
from rowtime.plan.stored import StoredPlan
from rowtime.runtime.claims import pump_of
from rowtime.runtime.sinks.lake import Conflict, LakeTable
from rowtime.runtime.sinks.lakes import lake_table
from rowtime.state.checkpoint import Checkpoint

_PLACE: Final = {"delta": "path", "iceberg": "table"}
"""The option by which people know a table."""


@dataclass(frozen=True)
class LakeTarget:
    """The table of a pump: its format, and the options of its stream."""

    kind: str
    options: Mapping[str, str]

    @property
    def called(self) -> str:
        """Return the table's name in messages."""
        return self.options[_PLACE[self.kind]]

    def table(self, pump: str) -> LakeTable:
        """Return the table, for reading its state."""
        return lake_table(self.kind, self.options, pump)


def lake_targets(
    plan: StoredPlan, home: Home | str | Path | None, variables: Mapping[str, str] | None
) -> dict[str, LakeTarget]:
    """Return the lake tables to which the pumps of a plan write, by pump.

    ``variables``: the secrets of its script, which the checkpoint does not keep; ``home``: where its streams may be.
    Raises ``Refused`` if the script does not compile with them.
    """
    if not variables:
        kept = {name: node.fields for name, node in plan.operators.items() if node.fields.get("format") in LAKES}
        return {pump_of(name): LakeTarget(target["format"], dict(target["options"])) for name, target in kept.items()}
    here = home if isinstance(home, Home) else Home(home)
    program = compile_script(plan.sql, here, variables, code=PythonCode.of_plan(plan))
    if program.problems:
        raise Refused(*program.problems)
    lakes = [node for node in program.sinks if node.format in LAKES]
    return {pump_of(node.name): LakeTarget(node.format, dict(node.options)) for node in lakes}


_TRIES = 5


@dataclass(frozen=True)
class Compacted:
    """A table, and how many of its files are now parts of larger ones."""

    pump: str
    table: str
    files: int


def optimize(
    checkpoint: str | Path,
    pump: str = "",
    *,
    home: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> list[Compacted]:
    """Compact the lake tables of a checkpoint, or of one of its pumps; the pipeline may run meanwhile.

    ``variables``: the secrets of its script, which the checkpoint does not keep; ``home``: where its streams may be.
    Raises ``Refused``: R405 if there is no checkpoint, R571 if no pump writes to a lake table; ``Failure``: R565.
    """
    place = Checkpoint(place_of(checkpoint))
    if place.plan is None:
        raise refuse("R405", f"{checkpoint} has no tick", "Give the checkpoint folder of a pipeline that has run.")
    tables = lake_targets(place.plan, home, variables)
    chosen = {name: target for name, target in tables.items() if pump in ("", name)}
    if not chosen:
        what = f"the pump {pump} does not write" if pump else "none of its pumps writes"
        hint = f"Pumps that do: {', '.join(tables)}." if tables else ""
        raise refuse("R571", f"{checkpoint}: {what} to a lake table", hint)
    return [Compacted(name, target.called, _compacted(name, target)) for name, target in chosen.items()]


def _compacted(pump: str, target: LakeTarget) -> int:
    for _ in range(_TRIES):
        with contextlib.suppress(Conflict):
            return target.table(pump).compact()
    what = f"the table {target.called} cannot be compacted: other writers keep changing the same files"
    raise Failure(Problem("R565", what, hint="Try again later. Nothing was changed."))
