"""Where recorded input must be cut when it is read again.

A range of the sources may be read as one however many ticks took it, except at the points where something took effect
that is not an item of a writer: a bound set manually or on all writers, a writer that joins at the clock of the others,
a database table with other limits than before. Each leaves a file that records what was read before it, and the journal
counts them. Only the newest ``KEPT`` stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rowtime.core.errors import refuse
from rowtime.core.stores import Place
from rowtime.state.files import make_folder, remove, write_over
from rowtime.state.sealed import sealed, unsealed

FOLDER = "cuts"
KEPT = 4096
_OF_A_SOURCE = ("offsets", "first", "state", "away", "ended")


@dataclass(frozen=True)
class Cut:
    """``before``: tick, sources, clocks, and limits of tables; ``settings``: the bounds that were set manually then."""

    before: Mapping[str, Any]
    settings: Sequence[Mapping[str, Any]]


def note(checkpoint: Place, before: Mapping[str, Any], settings: Sequence[Mapping[str, Any]]) -> int:
    """Record the cut after an entry, and return how many there are then.

    Called before the commit: the cut of a tick that failed is overwritten by the next one.
    """
    number = int(before.get("cuts", 0))
    make_folder(checkpoint / FOLDER)
    write_over(_path(checkpoint, number), sealed({"before": _short(before), "settings": list(settings)}))
    remove(_path(checkpoint, number - KEPT))
    return number + 1


def noted(checkpoint: Place, entry: Mapping[str, Any]) -> list[Cut]:
    """Return the cuts up to an entry, in order; raises ``Refused`` (R407) if some are missing."""
    paths = [_path(checkpoint, number) for number in range(entry.get("cuts", 0))]
    gone = [path for path in paths if not path.exists()]
    if gone:
        what = (
            f"the input has been cut {len(paths)} times by bounds set and writers joining, and {gone[0].name} is gone"
        )
        raise refuse("R407", f"the recorded input cannot be read again: {what}", f"The newest {KEPT} are kept.")
    return [Cut(content["before"], content["settings"]) for content in map(unsealed, paths)]


def _short(entry: Mapping[str, Any]) -> dict[str, Any]:
    sources = {
        name: {key: notes[key] for key in _OF_A_SOURCE if key in notes} for name, notes in entry["sources"].items()
    }
    clocks = {name: entry["clocks"][name] for name in sources}
    limits = {"limits": entry["limits"]} if "limits" in entry else {}
    return {"tick": entry["tick"], "sources": sources, "clocks": clocks, **limits}


def _path(checkpoint: Place, number: int) -> Place:
    return checkpoint / FOLDER / f"{number:012d}.json"
