"""``rowtime optimize``: writes the small files of Delta tables into large ones, beside whoever else writes there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.stores import place_of
from rowtime.runtime.claims import pump_of
from rowtime.runtime.sinks.delta_log import DeltaLog, delta_place
from rowtime.runtime.sinks.lake import Conflict
from rowtime.state.checkpoint import Checkpoint

_TRIES = 5


@dataclass(frozen=True)
class Compacted:
    """A table, and how many of its files are now parts of larger ones."""

    pump: str
    table: str
    files: int


def optimize(checkpoint: str | Path, pump: str = "") -> list[Compacted]:
    """Compact the lake tables of a checkpoint, or of one of its pumps; the pipeline may run meanwhile.

    Raises ``Refused``: R405 if there is no checkpoint, R571 if no pump writes to a lake table; ``Failure``: R565.
    """
    place = Checkpoint(place_of(checkpoint))
    if place.plan is None:
        raise refuse("R405", f"{checkpoint} has no tick", "Give the folder of a pipeline that ran.")
    tables = dict(_tables(place))
    chosen = {name: path for name, path in tables.items() if pump in ("", name)}
    if not chosen:
        what = f"the pump {pump} writes" if pump else "no pump of it writes"
        hint = f"Pumps that do: {', '.join(tables)}." if tables else ""
        raise refuse("R571", f"{checkpoint}: {what} to no Delta table", hint)
    return [Compacted(name, path, _compacted(name, path)) for name, path in chosen.items()]


def _tables(place: Checkpoint) -> Iterator[tuple[str, str]]:
    assert place.plan is not None
    for name, node in place.plan.operators.items():
        if node.fields.get("format") == "delta":
            yield pump_of(name), dict(node.fields["options"])["path"]


def _compacted(pump: str, path: str) -> int:
    for _ in range(_TRIES):
        with contextlib.suppress(Conflict):
            return DeltaLog(delta_place(path), pump).compact()
    what = f"the Delta table {path} cannot be compacted: other writers change the same files again and again"
    raise Failure(Problem("R565", what, hint="Try again later. Nothing was changed."))
