"""The items of an embedded stream log: rows, bounds and leaves of a writer, each with a name that describes it.

Every row, bound and leave of a writer has a position, counted from 0 without gaps. The names are

    r-<first>-<count>-<least>-<greatest>-<order>-<arrival>-<checksum>.parquet      rows
    b-<position>-<time>-<arrival>       a bound
    c-<position>-<checksum>.json        a bound of a column (`bound_items`)
    l-<position>                        the writer leaves

Positions in names have 20 digits; times are µs UTC, ``END`` for infinity. Rows have the columns ``__p``, ``__a``,
``__t`` (position, arrival, rowtime given), then the declared ones. Older versions wrote names without checksums, and of
bounds without arrivals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_NAME: Final = re.compile(
    r"r-(?P<rows>\d{20})-(?P<count>\d+)-(?P<least>-?\d+)-(?P<greatest>-?\d+)"
    r"-(?P<order>[oun])-(?P<arrival>-?\d+)(?:-(?P<sum>[0-9a-f]{8}))?\.parquet"
    r"|b-(?P<bound>\d{20})-(?P<at>-?\d+)(?:-(?P<bound_arrival>-?\d+))?"
    r"|l-(?P<leave>\d{20})"
    r"|c-(?P<column>\d{20})(?:-(?P<column_sum>[0-9a-f]{8}))?\.json"
)


class Order(StrEnum):
    """What a file of rows says about the rowtimes given by its writer."""

    ORDERED = "o"  # every row has one, and they do not decrease
    UNORDERED = "u"  # some go back, or some are missing
    NONE = "n"  # no row has one


@dataclass(frozen=True)
class Rows:
    """A file of rows: positions [first, first + count); rowtimes given in [least, greatest], µs.

    ``least`` and ``greatest`` are 0 if no row has one; ``arrival`` is that of the last row; ``sum`` the checksum of the
    file, ``None`` if an older version wrote it.
    """

    first: int
    count: int
    least: int
    greatest: int
    order: Order
    arrival: int
    path: str = ""  # relative to the log
    sum: int | None = None

    @property
    def end(self) -> int:
        """Return the position after the last row."""
        return self.first + self.count


@dataclass(frozen=True)
class Bound:
    """A bound: no later row of this writer is earlier than ``at``; with its arrival, if known (µs UTC)."""

    first: int
    at: int
    path: str = ""
    arrival: int | None = None

    @property
    def end(self) -> int:
        """Return the position after the bound."""
        return self.first + 1


@dataclass(frozen=True)
class Leave:
    """The writer leaves: it no longer holds the stream, and says nothing about others."""

    first: int
    path: str = ""

    @property
    def end(self) -> int:
        """Return the position after the leave."""
        return self.first + 1


@dataclass(frozen=True)
class ColumnBound:
    """A bound of a column of declared order, after the writer's items; the file has its content."""

    first: int
    path: str = ""
    sum: int | None = None

    @property
    def end(self) -> int:
        """Return the position after the bound."""
        return self.first + 1


Entry = Rows | Bound | Leave | ColumnBound


def file_name(entry: Entry) -> str:
    """Return the name of an entry's file: everything about it except the rows themselves."""
    match entry:
        case Rows(first, count, least, greatest, order, arrival, _, sum_of):
            return f"r-{first:020}-{count}-{least}-{greatest}-{order}-{arrival}{_sum_in_name(sum_of)}.parquet"
        case Bound(first, at, _, arrival):
            return f"b-{first:020}-{at}" + ("" if arrival is None else f"-{arrival}")
        case Leave(first):
            return f"l-{first:020}"
        case ColumnBound(first, _, sum_of):
            return f"c-{first:020}{_sum_in_name(sum_of)}.json"


def _sum_in_name(checksum: int | None) -> str:
    return "" if checksum is None else f"-{checksum:08x}"


def _sum_of_name(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


def parse_entry(path: str) -> Entry | None:
    """Return the entry of a file, by its path in the log; ``None`` for any other file."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    if match is None:
        return None
    if match["rows"]:
        first, count, least, greatest, arrival = map(int, match.group("rows", "count", "least", "greatest", "arrival"))
        return Rows(first, count, least, greatest, Order(match["order"]), arrival, path, _sum_of_name(match["sum"]))
    if match["bound"]:
        arrival_text = match["bound_arrival"]
        return Bound(int(match["bound"]), int(match["at"]), path, None if arrival_text is None else int(arrival_text))
    if match["column"]:
        return ColumnBound(int(match["column"]), path, _sum_of_name(match["column_sum"]))
    return Leave(int(match["leave"]), path)
