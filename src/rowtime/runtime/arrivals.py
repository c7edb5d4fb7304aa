"""Arrival clocks in a journal entry: below which arrival time no item of a writer can come any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Operator
from rowtime.operators.events.imported_bounds import Imported, clocks_of
from rowtime.plan.waiting import timed_by
from rowtime.runtime.intake import Taken


class Arrivals:
    """Those of the streams of a program; those of an event stream are known to who imports its bounds."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._importers = {source: node.name for node in operators if (source := node.imports_from()) is not None}
        self._timed_by = timed_by(operators)

    def of(self, entry: Mapping[str, Any], stream: str) -> Mapping[str, int]:
        """Of the writers of a stream, µs; of those that are away what they had reached."""
        importer = self._importers.get(stream)
        away: Mapping[str, int] = _control(entry, importer or stream).get("away", {})
        found: Mapping[str, int] = entry.get("clocks", {}).get(stream, {})
        return {**away, **(found if importer is None else clocks_of(Imported.of(_control(entry, importer))))}

    def waiting(self, entry: Mapping[str, Any]) -> set[str]:
        """The operators that hold bounds until arrival clocks pass them."""
        return {name for name in self._importers.values() if _control(entry, name).get("pending")}

    def let_out(self, entry: Mapping[str, Any], taken: Mapping[str, Taken]) -> bool:
        """True if arrival clocks alone may let something out: only where something is held that they time."""
        held = {key.rsplit("/", 1)[0] for key in entry.get("held", ())} | self.waiting(entry)
        timing = {stream for name in held for stream in self._timed_by.get(name, ())}
        return any(
            (not intake.source.gives_rowtime or "runs" in intake.part.detail)
            and self.move(entry, name, {w: intake.part.arrived.get(w, BEGINNING) for w in intake.present})
            for name, intake in taken.items()
            if name in timing
        )

    def move(self, entry: Mapping[str, Any], stream: str, arrived: Mapping[str, int]) -> bool:
        """True if a reading has raised one of a stream whose rows come with none of their own."""
        clocks = self.of(entry, stream)
        if not any(at > clocks.get(writer, BEGINNING) for writer, at in arrived.items()):
            return False
        modes = _control(entry, stream).get("modes", {})
        return not modes or any(modes.get(writer) == "arrival" for writer in arrived)


def _control(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = entry.get("control", {}).get(name, {})
    return found
