"""The items of an embedded stream log: rows, bounds and leaves of a writer, each with a name that describes it.

Every row, bound and leave of a writer has a position, counted from 0 without gaps. The names are

    r-<first>-<count>-<least>-<greatest>-<order>-<arrival>-<checksum>-d<delivery>-p<link>.parquet      rows
    b-<position>-<time>-<arrival>-d<delivery>-p<link>       a bound
    c-<position>-<checksum>-p<link>.json        a bound of a column (`bound_items`)
    l-<position>-p<link>                        the writer leaves

Positions in names have 20 digits; times are µs UTC, ``END`` for infinity. Rows have the columns ``__p``, ``__a``,
``__t`` (position, arrival, rowtime given), then the declared ones. Older versions wrote names without checksums, of
bounds without arrivals, and without links. Only items of pumps have a delivery.

The **link** of an item is a hash of its name; a name contains the link of the item before it, so the items of a writer
are a chain. Law: if two items have the same link, everything before them is the same. The **delivery** is the link that
the journal of a pump has for the tick whose rows and bound these are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final

_LINK: Final = r"(?:-d[0-9a-f]{16})?(?:-p[0-9a-f]{16})?"
_NAMES: Final = (
    r"r-(?P<rows>\d{20})-(?P<count>\d+)-(?P<least>-?\d+)-(?P<greatest>-?\d+)"
    r"-(?P<order>[oun])-(?P<arrival>-?\d+)(?:-(?P<sum>[0-9a-f]{8}))?#\.parquet"
    r"|b-(?P<bound>\d{20})-(?P<at>-?\d+)(?:-(?P<bound_arrival>-?\d+))?#"
    r"|l-(?P<leave>\d{20})#"
    r"|c-(?P<column>\d{20})(?:-(?P<column_sum>[0-9a-f]{8}))?#\.json"
)
_NAME: Final = re.compile(f"(?:{_NAMES.replace('#', _LINK)})")
_FOLLOWS: Final = re.compile(r"-p([0-9a-f]{16})")
_DELIVERY: Final = re.compile(r"-d([0-9a-f]{16})")


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
    follows: str = ""  # the link of the item before it; empty for the first one, or if an older version wrote it
    delivery: str = ""  # empty if no pump wrote it, or one of an older version

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
    follows: str = ""
    delivery: str = ""

    @property
    def end(self) -> int:
        """Return the position after the bound."""
        return self.first + 1


@dataclass(frozen=True)
class Leave:
    """The writer leaves: it no longer holds the stream, and says nothing about others."""

    first: int
    path: str = ""
    follows: str = ""

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
    follows: str = ""

    @property
    def end(self) -> int:
        """Return the position after the bound."""
        return self.first + 1


Entry = Rows | Bound | Leave | ColumnBound


def file_name(entry: Entry) -> str:
    """Return the name of an entry's file: everything about it except the rows themselves."""
    link = f"-p{entry.follows}" if entry.follows else ""
    if isinstance(entry, Rows | Bound) and entry.delivery:
        link = f"-d{entry.delivery}{link}"
    match entry:
        case Rows(first, count, least, greatest, order, arrival, _, sum_of):
            return f"r-{first:020}-{count}-{least}-{greatest}-{order}-{arrival}{_sum_in_name(sum_of)}{link}.parquet"
        case Bound(first, at, _, arrival):
            return f"b-{first:020}-{at}" + ("" if arrival is None else f"-{arrival}") + link
        case Leave(first):
            return f"l-{first:020}{link}"
        case ColumnBound(first, _, sum_of):
            return f"c-{first:020}{_sum_in_name(sum_of)}{link}.json"


def link_of(entry: Entry | None) -> str:
    """Return the link of an item: it tells this item, and all before it, from any other; empty for no item."""
    return "" if entry is None else blake2b(file_name(entry).encode(), digest_size=8).hexdigest()


def _sum_in_name(checksum: int | None) -> str:
    return "" if checksum is None else f"-{checksum:08x}"


def _sum_of_name(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


def parse_entry(path: str) -> Entry | None:
    """Return the entry of a file, by its path in the log; ``None`` for any other file."""
    name = path.rpartition("/")[2]
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    follows, delivery = (link[1] if (link := kind.search(name)) else "" for kind in (_FOLLOWS, _DELIVERY))
    if match["rows"]:
        first, count, least, greatest, arrival = map(int, match.group("rows", "count", "least", "greatest", "arrival"))
        checksum = _sum_of_name(match["sum"])
        return Rows(first, count, least, greatest, Order(match["order"]), arrival, path, checksum, follows, delivery)
    if match["bound"]:
        arrived = None if match["bound_arrival"] is None else int(match["bound_arrival"])
        return Bound(int(match["bound"]), int(match["at"]), path, arrived, follows, delivery)
    if match["column"]:
        return ColumnBound(int(match["column"]), path, _sum_of_name(match["column_sum"]), follows)
    return Leave(int(match["leave"]), path, follows)
