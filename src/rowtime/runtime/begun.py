"""What another process is told of a tick before its first step, and what it tells after the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.stores import Place
from rowtime.operators.contract import Control
from rowtime.runtime.meter import Measured
from rowtime.runtime.narrow_tables import Narrowed

if TYPE_CHECKING:
    from rowtime.runtime.tick import RunningTick

Outcome = tuple[Mapping[str, Any], Measured]
"""The scalars, segments, counts and names of files of a tick, by attribute; and what its meter has measured."""
OUTCOME: Final = ("controls", "schemas", "logs", "outputs", "ledger", "held", "jobs", "_refused", "_written")
"""The attributes of a tick that its steps change."""


def continued(before: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome of a tick whose first steps, ``before``, were those of this process, by attribute."""
    both = {name: [*before[name], *outcome[name]] for name in ("jobs", "_written")}
    return {**outcome, **both, "controls": {**before["controls"], **outcome["controls"]}}


def carried(entry: Mapping[str, Any], stored: Mapping[str, Any], controls: Mapping[str, Control]) -> dict[str, Any]:
    """Return the part of a journal entry that the steps after it need; ``stored``, ``controls``: operators' scalars."""
    control = {**stored, **{name: own.stored() for name, own in controls.items()}}
    return {"control": control} | {name: entry[name] for name in ("schemas", "segments", "sums") if name in entry}


@dataclass(frozen=True)
class Begun:
    """A tick that has not stepped yet: its number and time, and what the journal's ``entry`` before it says."""

    number: int
    folder: Place
    now: int
    entry: Mapping[str, Any]
    narrowed: Narrowed
    few: bool

    @classmethod
    def of(cls, tick: RunningTick, entry: Mapping[str, Any]) -> Begun:
        """Return a tick, and what its steps need of the entry before it."""
        return cls(tick.number, tick.folder, tick.now, entry, tick.narrowed, tick.given.few)
