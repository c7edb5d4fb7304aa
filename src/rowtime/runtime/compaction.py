"""``rowtime optimize``: combines the small files of lake tables into large ones, concurrently with other writers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.stores import place_of
from rowtime.runtime.lake_targets import LakeTarget, lake_targets
from rowtime.runtime.sinks.lake import Conflict
from rowtime.state.checkpoint import Checkpoint

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
