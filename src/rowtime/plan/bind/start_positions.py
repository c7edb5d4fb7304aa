"""Where the streams of a script begin to be read: at the earliest retained row, or FROM NOW (SPEC 10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowtime.core.errors import Place, refuse

if TYPE_CHECKING:
    from rowtime.plan.bind.catalog import Catalog

FORMATS = frozenset({"log", "parquet", "csv", "json", "kafka", "delta", "iceberg"})
"""Those of which what is there can be told from what comes."""


@dataclass
class Starts:
    """The streams that are read, by how: a script reads each in one way."""

    now: set[str] = field(default_factory=set)
    beginning: set[str] = field(default_factory=set)

    def note(self, catalog: Catalog, name: str, place: Place | None, *, now: bool) -> None:
        """Take down how ``name`` is read; raises ``Refused`` (R157) where it cannot be, or is read otherwise too."""
        if now:
            self._check(catalog, name, place)
        mine, other = (self.now, self.beginning) if now else (self.beginning, self.now)
        if name in other:
            ways = ("FROM NOW", "from its start")
            what = f"{name} is read {ways[now]} elsewhere in this script, and here {ways[not now]}"
            raise refuse("R157", what, "Write FROM NOW in both places, or in none.", place)
        mine.add(name)

    @staticmethod
    def _check(catalog: Catalog, name: str, place: Place | None) -> None:
        stream = None if name in catalog.views or name in catalog.tables else catalog.stream(name)
        if stream is None and name in catalog.names():
            hint = "A view reads from now if it says so of its streams."
            raise refuse("R157", f"{name} is no stream, and begins nowhere", hint, place)
        if stream is not None and stream.format not in FORMATS:
            hint = "Leave it out; it has no rows from before the start."
            raise refuse("R157", f"a stream of {stream.format} is not read FROM NOW", hint, place)
