"""What another process is told of a tick before its first step, and what it tells after the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rowtime.core.stores import Place
from rowtime.runtime.meter import Measured
from rowtime.runtime.narrow_tables import Narrowed

Outcome = tuple[Mapping[str, Any], Measured]
"""The scalars, segments, counts and names of files of a tick, by attribute; and what its meter has measured."""
OUTCOME: Final = ("controls", "schemas", "logs", "outputs", "ledger", "held", "jobs", "_refused", "_written")
"""The attributes of a tick that its steps change."""


def carried(entry: Mapping[str, Any], control: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a journal entry that the steps after it need; ``control``: the operators' scalars."""
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
