"""How much of a long input a tick takes: about as many rows as the driver computes itself.

A larger tick needs Spark jobs, which take longer than several ticks on the driver, and more memory. The limits of the
user hold as well: they say what a tick takes at most. A result never depends on how the input is cut into ticks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rowtime.frames.local import MOST
from rowtime.runtime.sources.contract import Limits, Slice, Source


class Portions:
    """The portions of a run; none if its ticks need Spark jobs whatever their size is."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}  # by stream: as many as have about `MOST` rows
        self._wanted = True

    def take(
        self, stream: str, source: Source, before: Mapping[str, Any], given: Limits
    ) -> tuple[Slice, Mapping[str, Any]]:
        """Return the range of a stream after the entry ``before``; a smaller one if its files have too many rows."""
        while True:
            part, state = source.discover(before["offsets"], self._limits(stream, given), before["state"])
            if not self._wanted or not part.counted or not part.rows:
                return part, state
            files = len(part.detail["files"])
            self._files[stream] = max(1, files * MOST // part.rows)
            if part.rows <= MOST or files <= 1:
                return part, state

    def ended(self, jobs: int) -> None:
        """Note how many Spark jobs a tick has run."""
        self._wanted = self._wanted and not jobs

    def _limits(self, stream: str, given: Limits) -> Limits:
        if not self._wanted:
            return given
        files = self._files.get(stream, given.files)
        return replace(given, rows=_least(given.rows, MOST), files=_least(given.files, files))


def _least(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)
