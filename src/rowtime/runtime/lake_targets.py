"""The lake tables of a checkpoint's pumps, for commands that have no pipeline: secrets come from the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rowtime.client.home import Home
from rowtime.core.errors import Refused
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.program import compile_script
from rowtime.plan.stored import StoredPlan
from rowtime.runtime.claims import pump_of
from rowtime.runtime.sinks.lake import LakeTable
from rowtime.runtime.sinks.lakes import lake_table

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
