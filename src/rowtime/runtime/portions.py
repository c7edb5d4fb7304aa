"""How much of a long input a tick takes: about as many rows as one process computes itself.

A larger tick needs more memory. The limits of the user hold as well: they say what a tick takes at most. A result never
depends on how the input is cut into ticks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from rowtime.frames.frame import MOST
from rowtime.runtime.sources.contract import Limits, Slice, Source

TEXT: Final = 128 << 20
"""Bytes of text in a portion: its rows are not counted before they are read."""


class Portions:
    """The portions of a run."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}  # by stream: as many as have about `MOST` rows
        self._bytes: dict[str, int] = {}

    def take(
        self, stream: str, source: Source, before: Mapping[str, Any], given: Limits
    ) -> tuple[Slice, Mapping[str, Any]]:
        """Return the range of a stream after the entry ``before``; a smaller one if its files have too many rows."""
        while True:
            part, state = source.discover(before["offsets"], self._limits(stream, given), before["state"])
            if not part.rows:
                return part, state
            if not part.counted:
                if stream in self._bytes or part.backlog is None or part.backlog.unit != "bytes":
                    return part, state
                self._bytes[stream] = TEXT
                if part.backlog.taken <= TEXT:
                    return part, state
                continue
            files = len(part.detail["files"])
            self._files[stream] = max(1, files * MOST // part.rows)
            if part.rows <= MOST or files <= 1:
                return part, state

    def _limits(self, stream: str, given: Limits) -> Limits:
        files, size = self._files.get(stream), self._bytes.get(stream)
        least = {"files": _least(given.files, files), "bytes": _least(given.bytes, size)}
        return replace(given, rows=_least(given.rows, MOST), **least)


def _least(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)
