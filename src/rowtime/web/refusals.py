"""Refused rows as marks of the timeline: the refused times and the reasons, read from the files of each gate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowtime.core.errors import RowtimeError
from rowtime.core.stores import Place
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.memory import read_table
from rowtime.state.refused_files import tick_of

FILES: Final = 256  # of a gate, the newest ones, for which marks are drawn
KEPT: Final = 4_096  # files whose times are cached


@dataclass(frozen=True)
class Refused:
    """The rows of one file: ``times`` (µs UTC) and their ``reasons``."""

    tick: int
    times: Any
    reasons: Any


class Refusals:
    """The refused rows of one checkpoint; a file never changes, so each is read once."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._known: dict[str, Refused] = {}

    def of(self, gate: str, tick: int) -> Sequence[Refused]:
        """Return the rows that a gate has refused up to a tick, oldest first; from damaged files, what can be read."""
        files: list[Place] = []
        with suppress(RowtimeError, OSError):
            files = self._checkpoint.rejected(gate, tick)[-FILES:]
        refused = (self._read(path) for path in files)
        return [content for content in refused if content is not None]

    def _read(self, path: Place) -> Refused | None:
        name = str(path)
        if name not in self._known:
            try:
                table = read_table(path, columns=["refused_time", "reason"])
            except (OSError, pa.ArrowInvalid, KeyError):
                return None
            if len(self._known) >= KEPT:
                self._known.clear()
            table = table.filter(table["refused_time"].is_valid())
            times = table["refused_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
            self._known[name] = Refused(tick_of(path), times, np.asarray(table["reason"].to_pylist(), dtype=object))
        return self._known[name]
