"""What the tasks of one level of a tick give to those of the next one (`level_ticks`)."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rowtime.operators.contract import Control, Delta
from rowtime.runtime.clock_pass.pieces import Judged
from rowtime.runtime.executors.exchanged import Exchanged
from rowtime.runtime.meter import Measured
from rowtime.runtime.sinks.staging import Written
from rowtime.state.segments import SegmentLog

Call = tuple[str, int]
"""A judgement of a tick: the operator, and how many it has had before."""


class UndividedError(Exception):
    """The rows of a tick cannot be divided: one task has to compute it."""


@dataclass
class Part:
    """What a task of level 0 gives.

    ``number``: of the task. ``exchanged``: its rows, by operator; ``judged``: the items of its gates. ``controls``: the
    scalars of operators that read its rows, if they follow from types. ``needs``: why its result is wrong if another
    task has rows of the same ``writers`` (by stream; only if there may be a reason). ``counts``: of the rows that were
    read, by stream; ``given``: by operator, where known. ``refused``, ``schemas``, ``written``: its files of refused
    rows, as in a tick; ``ledger``: the counts of gates that judge each row by itself. ``staged``: files for sinks.
    ``relayed``: packed rows for the last task, if this goes to a task of keys.
    """

    number: int
    exchanged: dict[str, Exchanged] = field(default_factory=dict)
    needs: str = ""
    writers: dict[str, set[str]] = field(default_factory=dict)
    judged: dict[Call, Judged] = field(default_factory=dict)
    controls: dict[str, Control] = field(default_factory=dict)
    counts: dict[str, int | None] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    refused: dict[str, list[Any]] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    ledger: dict[str, Counter[str]] = field(default_factory=dict)
    staged: dict[str, Written] = field(default_factory=dict)
    measured: Measured = field(default_factory=lambda: Measured(0, 0, {}))
    relayed: bytes = b""

    def for_keys(self, keys: Mapping[str, Sequence[str]], many: int) -> Iterator[Part]:
        """Yield what each of so many tasks of keys gets: all facts, and the rows of its keys.

        ``keys``: of what operators have given. Other rows go through the first task, unread.
        """
        others = {name: of for name, of in self.exchanged.items() if name not in keys}
        rows = {name: of.divided(keys[name], many) for name, of in self.exchanged.items() if name in keys}
        for number in range(many):
            mine = {name: parts[number] for name, parts in rows.items()}
            yield replace(self, exchanged=mine, relayed=pickle.dumps(others) if not number else b"")

    def unpacked(self) -> Part:
        """Return it with the rows that were relayed."""
        return replace(self, exchanged=pickle.loads(self.relayed), relayed=b"")  # noqa: S301 - our own


@dataclass
class KeysPart:
    """What a task of keys gives.

    ``parts``: what level 0 gave, with the relayed rows, in the first task. ``deltas``: of its operators, without rows,
    and ``exchanged``: the rows that operators above read. ``gathered``: the scalars of operators of keys, and rows that
    they have left. ``logs``: of what they keep. ``controls``, ``given``, ``schemas``, ``written``: as in `Part`.
    ``received``: the bytes that it got.
    """

    number: int
    parts: Sequence[Part] = ()
    deltas: dict[str, Delta] = field(default_factory=dict)
    exchanged: dict[str, Exchanged] = field(default_factory=dict)
    gathered: dict[str, tuple[Control, Exchanged | None]] = field(default_factory=dict)
    logs: dict[str, SegmentLog] = field(default_factory=dict)
    controls: dict[str, Control] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    measured: Measured = field(default_factory=lambda: Measured(0, 0, {}))
    received: int = 0
