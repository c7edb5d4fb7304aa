"""Bounds that are set manually on an operator, on their way into the journal.

Semantics 3 and 8.1. Setting one leaves a file in the checkpoint. The next tick takes it as an item that comes after
everything that was read before, and journals it with the positions at which it took effect. A file that an entry names
is done, whether it still exists or not.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from rowtime.core.stores import Place, listed
from rowtime.state.files import make_folder, remove, write_new
from rowtime.state.sealed import sealed, unsealed

FOLDER = "settings"


def put(checkpoint: Place, operator: str, at: int) -> None:
    """Write a bound (µs UTC) for an operator of a pipeline, running or not."""
    folder = checkpoint / FOLDER
    make_folder(folder)
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:6]}.json"
    write_new(folder / name, sealed({"operator": operator, "at": at}))


def waiting(checkpoint: Place, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the bounds that are not journaled yet, in the order in which they were written."""
    done = {setting["file"] for setting in entry.get("settings", ())}
    files = sorted(path for path in listed(checkpoint / FOLDER, "*.json") if path.name not in done)
    contents = ((path.name, unsealed(path)) for path in files)
    return [{"operator": one["operator"], "at": one["at"], "file": name} for name, one in contents]


def done(checkpoint: Place, settings: Iterable[Mapping[str, Any]]) -> None:
    """Remove the files of journaled bounds."""
    for setting in settings:
        remove(checkpoint / FOLDER / setting["file"])
