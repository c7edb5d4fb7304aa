"""Refused files: how many files of refused rows each gate has, and their checksums, so that a missing file is noticed.

An entry of the journal names the files of its own tick only. In addition it has, for each gate, the first tick from
which files are counted, their number, and the sum of their checksums; each tick adds its refused rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from rowtime.core.stores import Place
from rowtime.state.files import damaged

KEY: Final = "rejected"
_ALL: Final = 1 << 32

Entry = Mapping[str, Any]
Counted = Mapping[str, list[int]]


def counted(before: Entry, tick: int, refused: Mapping[str, Collection[str]], sums: Mapping[str, int]) -> Counted:
    """Return the counts of each gate after a tick that refused files with known checksums."""
    counts = dict(before.get(KEY, {}))
    for gate, paths in refused.items():
        since, files, total = counts.get(gate, (tick, 0, 0))
        counts[gate] = [since, files + len(paths), (total + sum(sums.get(path, 0) for path in paths)) % _ALL]
    return counts


def compare(
    entry: Entry, gate: str, place: Place, listed: Mapping[Place, int], earlier: Callable[[], Collection[Entry]]
) -> None:
    """Compare the files of a gate, with their checksums (0: unknown), with the counts in the last entry.

    ``place``: where they are; ``earlier`` returns the remaining entries. Raises ``Failure`` (R406) if one is missing.
    """
    since, files, total = entry.get(KEY, {}).get(gate, (0, 0, 0))
    mine = {path: checksum for path, checksum in listed.items() if since <= tick_of(path) <= entry.get("tick", -1)}
    if not files or (len(mine), sum(mine.values()) % _ALL) == (files, total):
        return
    ticks = {tick_of(path) for path in mine}
    gone = sorted(
        {earlier_entry["tick"] for earlier_entry in earlier() if earlier_entry.get("refused", {}).get(gate)} - ticks
    )
    missing = f"; the file of tick {gone[0]} is missing" if gone else ""
    raise damaged(f"{place} has {len(mine)} of the {files} files of rows that {gate} has refused{missing}")


def tick_of(path: Place) -> int:
    """Return the tick that has written a file."""
    return int(path.name.split("-", 1)[0])
