"""The settings in which the model is checked, and its guards: each with the invariant that breaks without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INVARIANTS: Final = ("OneCommitter", "ExactlyOnce", "OnlyCommitted", "NoLoss", "NoGap", "BoundHolds", "Fenced")


@dataclass(frozen=True)
class Setting:
    """A sink, the place of the checkpoint, and which events may happen.

    ``size``: the greatest numbers of rows, attempts at ticks and starts on a store. ``but``: invariants that the events
    themselves break.
    """

    kind: str
    place: str
    events: tuple[str, ...] = ()
    size: tuple[int, int, int] = (3, 3, 3)
    but: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    @property
    def invariants(self) -> list[str]:
        """Return the invariants that hold here."""
        return [one for one in INVARIANTS if one not in self.but]

    def __str__(self) -> str:
        where = f"{self.kind}, checkpoint {'on a disk' if self.place == 'disk' else 'in a store'}"
        without = [f"without {one}" for one in self.off]
        return ", ".join([where, *self.events, *without])


@dataclass(frozen=True)
class Guard:
    """A guard of the code: where it is, and which invariant breaks without it, in which setting."""

    name: str
    where: str
    breaks: str
    setting: Setting


_STORE: Final = (2, 2, 3)
_FORGOTTEN: Final = ("lock", "lock of the target")

SETTINGS: Final = (
    Setting("directory", "disk", ("upgrade",)),
    Setting("log", "disk", ("upgrade", "take over")),
    Setting("database", "disk", ("upgrade", "take over")),
    Setting("lake", "disk", ("gather", "others", "upgrade"), (3, 2, 3)),
    Setting("directory", "store", ("lost",), _STORE),
    Setting("log", "store", ("lost", "take over"), _STORE),
    Setting("database", "store", ("lost", "take over"), _STORE),
    Setting("lake", "store", ("lost", "others"), _STORE),
    Setting("directory", "disk", ("drop",), (2, 2, 3)),
    Setting("directory", "disk", ("older copy",), (3, 3, 3), ("OnlyCommitted", "NoLoss", "NoGap")),
    Setting("lake", "disk", ("older table",), (3, 3, 3), ("NoLoss",)),
    # A file system that forgets its locks: rows may be lost, but never come twice.
    Setting("directory", "disk", (), _STORE, ("NoLoss", "NoGap"), _FORGOTTEN),
    Setting("database", "disk", (), (2, 2, 3), ("NoLoss",), _FORGOTTEN),
)

GUARDS: Final = (
    Guard("journal first", "runtime/engine.py", "OnlyCommitted", Setting("directory", "disk")),
    Guard("lock", "state/checkpoint.py", "NoLoss", Setting("database", "disk")),
    Guard("lock of the target", "sinks/directory.py", "NoLoss", Setting("directory", "store")),
    Guard("epoch", "state/journal.py", "NoLoss", Setting("database", "store")),
    Guard("entry is new", "state/journal.py", "OneCommitter", Setting("lake", "store", (), _STORE)),
    Guard("no later entry", "state/journal.py", "OneCommitter", Setting("log", "store", (), (3, 3, 4))),
    Guard("settle", "state/journal.py", "NoLoss", Setting("database", "store", ("lost",))),
    Guard("sweeper drives", "runtime/handing_over.py", "NoLoss", Setting("database", "store")),
    Guard("journal is whole", "state/checkpoint.py", "OneCommitter", SETTINGS[9]),
    Guard("finish at start", "runtime/handing_over.py", "NoLoss", Setting("directory", "disk")),
    Guard("noted last", "runtime/engine.py", "NoLoss", Setting("directory", "disk")),
    Guard("recover after a failure", "runtime/engine.py", "NoLoss", Setting("directory", "disk")),
    Guard("finish before a change", "runtime/engine.py", "NoLoss", Setting("directory", "disk", ("upgrade",))),
    Guard("all handed over", "runtime/upgrades.py", "NoLoss", Setting("directory", "disk", ("drop",))),
    Guard("renamed, not copied", "sinks/directory.py", "ExactlyOnce", Setting("directory", "disk")),
    Guard("numbers in the log", "sinks/stream_log.py", "ExactlyOnce", Setting("log", "disk")),
    Guard("position is new", "client/writer.py", "ExactlyOnce", Setting("log", "store")),
    Guard("bound after rows", "sinks/stream_log.py", "BoundHolds", Setting("log", "disk")),
    Guard("item at take-over", "sinks/stream_log.py", "Fenced", Setting("log", "store", ("take over",), _STORE)),
    Guard("number in the transaction", "sinks/database.py", "ExactlyOnce", Setting("database", "disk")),
    Guard("number is unchanged", "sinks/table_book.py", "ExactlyOnce", Setting("database", "store")),
    Guard("stage of its own", "sinks/database.py", "ExactlyOnce", Setting("database", "store")),
    Guard(
        "owner in the transaction", "sinks/table_book.py", "Fenced", Setting("database", "disk", ("take over",), _STORE)
    ),
    Guard("mark", "sinks/lake.py", "ExactlyOnce", Setting("lake", "disk")),
    Guard("mark in the version", "sinks/delta_log.py", "ExactlyOnce", Setting("lake", "disk")),
    Guard("version is new", "sinks/delta_log.py", "ExactlyOnce", Setting("lake", "store")),
    Guard("rows of the mark", "sinks/lake.py", "NoGap", SETTINGS[10]),
    Guard("gathered rows stay named", "sinks/staging.py", "NoLoss", Setting("lake", "disk", ("gather",))),
)
