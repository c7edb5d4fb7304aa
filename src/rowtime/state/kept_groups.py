"""What kept rows stand for, counted whatever files have them: open groups and sessions, and events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from rowtime.kernels.frames import Ints
from rowtime.kernels.open_groups import OpenGroups, OpenSessions, Weighted
from rowtime.operators.contract.state import Segment

Parts = tuple[Ints, Ints, Ints | None]


class KeptGroups:
    """Knows the groups of the files that it has been shown; of later ticks it reads only the new files."""

    def __init__(self) -> None:
        self._groups, self._sessions, self._known = OpenGroups(), OpenSessions(), dict[str, int | None]()

    def count(
        self,
        live: Iterable[Segment],
        gone: Collection[str],
        bound: int,
        parts_of: Callable[[Segment], Parts],
        *,
        lasting: bool = False,
    ) -> int:
        """Return how many groups with a part in ``live`` end after a bound; ``gone``: paths that the tick has dropped.

        ``parts_of``: hashes, ends and perhaps starts of the parts in a file. ``lasting``: groups go only with their
        files. If a file is known that is of neither kind, a tick was given up, and all files are read again.
        """
        segments = {segment.path: segment for segment in live}
        stays = {path for path, known in self._known.items() if path in segments and segments[path].sum == known}
        if not {*self._known} <= (stays if lasting else stays | {*gone}):
            self._groups, self._sessions, stays = OpenGroups(), OpenSessions(), set()
        for path, segment in segments.items():
            if path not in stays:
                hashes, ends, starts = parts_of(segment)
                if starts is None:
                    self._groups.add(hashes, ends)
                else:
                    self._sessions.add(hashes, starts, ends)
        self._known = {path: segment.sum for path, segment in segments.items()}
        return self._groups.after(bound) + self._sessions.after(bound)


class KeptWeights:
    """The sum of the weights of one log's rows; of later ticks it reads only the new files."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, int | None], Weighted] = {}

    def count(self, live: Iterable[Segment], bound: int, weights_of: Callable[[Segment], tuple[Ints, Ints]]) -> int:
        """Return the sum of the rows in ``live`` that end after a bound; ``weights_of``: weights and ends in a file."""
        before, self._files = self._files, {}
        for segment in live:
            place = segment.path, segment.sum
            self._files[place] = before[place] if place in before else Weighted(*weights_of(segment))
        return sum(file.after(bound) for file in self._files.values())
