"""What Spark drops, from its rules alone: plain Python over the rows of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from rowtime.audit_spark.cuts import Cut

Row = tuple[datetime, str]
BEGINNING = datetime(1970, 1, 1)  # noqa: DTZ001 - all times are UTC


def marks(files: Sequence[Sequence[Row]], cut: Cut, delay: timedelta) -> Mapping[int, datetime]:
    """The watermark with which rows of each file are compared.

    It is that of the batch before. A query that stops has had a batch without rows before, whose watermark is up to
    date; one that goes on is a batch behind.
    """
    result = {}
    for number, batch in enumerate(cut.batches):
        seen = cut.batches[: number if cut.restarts else max(0, number - 1)]
        times = [at for group in seen for file in group for at, _ in files[file]]
        result |= dict.fromkeys(batch, max(times) - delay if times else BEGINNING)
    return result


def floor(at: datetime, size: timedelta) -> datetime:
    return at - (at - BEGINNING) % size


def windows(at: datetime, size: timedelta, slide: timedelta) -> list[datetime]:
    """The starts of the windows that contain a time."""
    last = floor(at, slide)
    return [last - n * slide for n in range(-(-size // slide)) if last - n * slide + size > at]


def counted(
    files: Sequence[Sequence[Row]], late: Mapping[int, datetime], size: timedelta, slide: timedelta
) -> tuple[Counter[tuple[str, str, int]], int]:
    """The windows with their key and count, without late rows; and how many rows of windows are late."""
    groups: Counter[tuple[str, str]] = Counter()
    dropped = 0
    for file, rows in enumerate(files):
        for at, key in rows:
            for start in windows(at, size, slide):
                kept = start + size > late[file]
                dropped += not kept
                groups[start.isoformat(" "), key] += kept
    return Counter({(*group, n): 1 for group, n in groups.items() if n}), dropped
