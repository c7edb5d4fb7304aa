"""``rowtime optimize``: writes the small files of lake tables into large ones, beside whoever else writes there."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rowtime.client.home import Home
from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.stores import place_of
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.program import compile_script
from rowtime.plan.stored import StoredPlan
from rowtime.runtime.claims import pump_of
from rowtime.runtime.sinks.lake import Conflict
from rowtime.runtime.sinks.lakes import lake_table
from rowtime.state.checkpoint import Checkpoint

_TRIES = 5
_PLACE = {"delta": "path", "iceberg": "table"}
"""By which option people know a table."""


@dataclass(frozen=True)
class Compacted:
    """A table, and how many of its files are now parts of larger ones."""

    pump: str
    table: str
    files: int


@dataclass(frozen=True)
class _Target:
    """The table of a pump: its format, and the options of its stream."""

    kind: str
    options: Mapping[str, str]

    @property
    def called(self) -> str:
        return self.options[_PLACE[self.kind]]


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
        raise refuse("R405", f"{checkpoint} has no tick", "Give the folder of a pipeline that ran.")
    tables = _with_secrets(place.plan, home, variables) if variables else _targets(place.plan)
    chosen = {name: target for name, target in tables.items() if pump in ("", name)}
    if not chosen:
        what = f"the pump {pump} writes" if pump else "no pump of it writes"
        hint = f"Pumps that do: {', '.join(tables)}." if tables else ""
        raise refuse("R571", f"{checkpoint}: {what} to no lake table", hint)
    return [Compacted(name, target.called, _compacted(name, target)) for name, target in chosen.items()]


def _targets(plan: StoredPlan) -> dict[str, _Target]:
    """What the pumps of a plan write, as the checkpoint keeps it."""
    targets = {name: node.fields for name, node in plan.operators.items() if node.fields.get("format") in LAKES}
    return {pump_of(name): _Target(found["format"], dict(found["options"])) for name, found in targets.items()}


def _with_secrets(plan: StoredPlan, home: str | Path | None, variables: Mapping[str, str]) -> dict[str, _Target]:
    """The same, from the script and the variables that it names. Raises ``Refused`` if it does not compile."""
    program = compile_script(plan.sql, Home(home), variables)
    if program.problems:
        raise Refused(*program.problems)
    lakes = [node for node in program.sinks if node.format in LAKES]
    return {pump_of(node.name): _Target(node.format, dict(node.options)) for node in lakes}


def _compacted(pump: str, target: _Target) -> int:
    for _ in range(_TRIES):
        with contextlib.suppress(Conflict):
            return lake_table(target.kind, target.options, pump).compact()
    what = f"the table {target.called} cannot be compacted: other writers change the same files again and again"
    raise Failure(Problem("R565", what, hint="Try again later. Nothing was changed."))
