"""Arrival clocks from a journal entry: no item of a writer can come any more with an arrival time below its clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Operator
from rowtime.operators.events.imported_bounds import Imported, clocks_of
from rowtime.plan.waiting import timed_by
from rowtime.runtime.intake import Taken


class Arrivals:
    """The arrival clocks of a program's streams; those of an event stream matter to the importers of its bounds."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._importers = {source: node.name for node in operators if (source := node.imports_from()) is not None}
        self._timed_by = timed_by(operators)

    def of(self, entry: Mapping[str, Any], stream: str) -> Mapping[str, int]:
        """Return the clocks of a stream's writers, µs; for writers that are away, their last ones."""
        importer = self._importers.get(stream)
        away: Mapping[str, int] = _control(entry, importer or stream).get("away", {})
        clocks: Mapping[str, int] = entry.get("clocks", {}).get(stream, {})
        return {**away, **(clocks if importer is None else clocks_of(Imported.of(_control(entry, importer))))}

    def waiting(self, entry: Mapping[str, Any]) -> set[str]:
        """Return the operators that hold bounds until arrival clocks pass them."""
        return {name for name in self._importers.values() if _control(entry, name).get("pending")}

    def let_out(self, entry: Mapping[str, Any], taken: Mapping[str, Taken]) -> bool:
        """Return True if arrival clocks alone may release something: if an operator that they time holds something."""
        held = {key.rsplit("/", 1)[0] for key in entry.get("held", ())} | self.waiting(entry)
        timing = {stream for name in held for stream in self._timed_by.get(name, ())}
        return any(
            (not intake.source.gives_rowtime or "runs" in intake.part.detail)
            and self.move(entry, name, {w: intake.part.arrived.get(w, BEGINNING) for w in intake.present})
            for name, intake in taken.items()
            if name in timing
        )

    def move(self, entry: Mapping[str, Any], stream: str, arrived: Mapping[str, int]) -> bool:
        """Return True if a reading has raised a clock of a stream whose rows have no rowtimes of their own."""
        clocks = self.of(entry, stream)
        if not any(at > clocks.get(writer, BEGINNING) for writer, at in arrived.items()):
            return False
        modes = _control(entry, stream).get("modes", {})
        return not modes or any(modes.get(writer) == "arrival" for writer in arrived)


def _control(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    control: Mapping[str, Any] = entry.get("control", {}).get(name, {})
    return control
