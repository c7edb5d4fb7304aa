"""How much of the processors others leave: a tick takes longer beside other programs, and that is no growth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


class Processors:
    """Measures from one call to the next."""

    def __init__(self) -> None:
        self._before = _spent()

    def left(self) -> float:
        """Return the share of all processors that was idle or ours since the last call."""
        (total, busy, own), before = _spent(), self._before
        self._before = total, busy, own
        others = (busy - before[1]) - (own - before[2])
        return 1.0 - max(0.0, others) / max(1, total - before[0])


def below(process: str) -> Iterator[str]:
    """Return the descendants of a process."""
    try:
        children = [child for task in Path(f"/proc/{process}/task").iterdir() for child in _children(task)]
    except FileNotFoundError:
        return
    for child in children:
        yield child
        yield from below(child)


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except FileNotFoundError:
        return []


def _spent() -> tuple[int, int, int]:
    """Return clock ticks of all processors: in all, busy, and busy with us."""
    user, nice, system, idle, waiting, *rest = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    busy = user + nice + system + sum(rest)
    return busy + idle + waiting, busy, sum(map(_own, ("self", *below(str(os.getpid())))))


def _own(process: str) -> int:
    """Return what a process and its dead children have used; 0 for one that is gone."""
    try:
        return sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]))
    except (FileNotFoundError, ProcessLookupError):
        return 0
