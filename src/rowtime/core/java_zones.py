"""Time zones as Spark's Java knows them: when a local date falls, read from Java's own data (``lib/tzdb.dat``).

A local date falls at a change of the offset if the local date a microsecond before is later than the one at the change:
in St. John's clocks went back at one minute past midnight, so for a minute it was already tomorrow.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import zoneinfo
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from rowtime.core.time import DAY, END, MIN_MICROS, SECOND

_DAY: Final = DAY // SECOND
_OFFSET: Final = re.compile(r"Z|(?=.)(?:UTC|GMT|UT)?(?:[+-](\d{1,2})(?::?(\d{1,2})(?::?(\d{2}))?)?)?")

_ALASKA: Final = ("Adak", "Anchorage", "Atka", "Juneau", "Metlakatla", "Nome", "Sitka", "Yakutat")
FALLS: Final[Mapping[str, int]] = {
    **{f"America/{city}": -3_225_223_727 for city in _ALASKA},
    **dict.fromkeys(("US/Alaska", "US/Aleutian"), -3_225_223_727),
    **dict.fromkeys(("America/Phoenix", "America/Creston", "US/Arizona"), -796_845_540),
    **dict.fromkeys(("Pacific/Guam", "Pacific/Saipan"), -29_415_540),
    "America/Moncton": 1_162_090_860,
    "Antarctica/Casey": 1_267_714_800,
    **dict.fromkeys(("America/St_Johns", "Canada/Newfoundland"), 1_289_097_060),
    "America/Goose_Bay": 1_289_098_860,
}
"""The last fall of the local date (s UTC) in each zone that has one, in any release of the zone data that rowtime has
seen. It is used where no Java is found, as by a check without Spark."""


@dataclass(frozen=True)
class Rules:
    """The offsets (s) of a zone: ``offsets[n]`` holds from ``changes[n - 1]`` (s UTC) on.

    ``yearly``: the changes of each later year: local time of day (s) before it, and both offsets.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]
    yearly: tuple[tuple[int, int, int], ...]

    def falls(self) -> Iterator[int]:
        """Yield the instants (s UTC) at which the local date falls; the last is ``END`` if it falls every year."""
        for n, at in enumerate(self.changes):
            if _falls(at + self.offsets[n], self.offsets[n] - self.offsets[n + 1]):
                yield at
        if any(_falls(local, before - after) for local, before, after in self.yearly):
            yield END


def _falls(local: int, back: int) -> bool:
    """Return True if the date falls where the local time (s) goes back by so many seconds."""
    return back > 0 and 0 < local % _DAY < back


def last_fall(zone: str) -> int | None:
    """Return the first instant (µs UTC) from which on the local date of a zone never falls.

    ``None``: no such zone is known. For most zones that is the first instant of all.
    """
    data = java_data()
    zone = _meant(zone, data)
    if _is_offset(zone):
        return MIN_MICROS
    if data is None:
        known = zone in zoneinfo.available_timezones()
        return FALLS[zone] * SECOND if zone in FALLS else MIN_MICROS if known else None
    rules = rules_of(data, zone)
    return None if rules is None else max((min(at * SECOND, END) for at in rules.falls()), default=MIN_MICROS)


def midnight_after_fall(zone: str) -> tuple[int, int] | None:
    """Return the last fall of a zone's date, and when the next local day begins (µs UTC); ``None`` if it never fell.

    The local midnight between them has come before: it comes twice.
    """
    fall, data = last_fall(zone), java_data()
    zone = _meant(zone, data)
    rules = None if data is None else rules_of(data, zone)
    if fall is None or fall <= MIN_MICROS or rules is None:
        return None
    local = fall // SECOND + rules.offsets[rules.changes.index(fall // SECOND) + 1]
    return fall, fall + (_DAY - local % _DAY) * SECOND


_SHORT: Final = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
"""Java's short names of zones (``ZoneId.SHORT_IDS``, which Spark uses), as far as its data has no zone of that name."""


def _meant(zone: str, data: Path | None) -> str:
    """Return the zone or the offset that a short name stands for; other names as they are."""
    known = data is not None and zone in _content(data).zones
    return zone if known else _SHORT.get(zone, zone)


def java_data() -> Path | None:
    """Return the zone data of the Java that Spark's launcher runs: that of JAVA_HOME, else that of the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java")
    data = None if java is None else Path(java).resolve().parents[1] / "lib" / "tzdb.dat"
    return data if data is not None and data.is_file() else None


@cache
def rules_of(data: Path, zone: str) -> Rules | None:
    """Return the rules of a zone; ``None`` if the data have no zone of this name."""
    content = _content(data)
    number = content.zones.get(zone)
    return None if number is None else _rules(content.rules[number])


@dataclass(frozen=True)
class _Content:
    zones: Mapping[str, int]
    rules: tuple[bytes, ...]


@cache
def _content(data: Path) -> _Content:
    reader = _Reader(data.read_bytes())
    if (reader.of("b"), reader.text()) != (1, "TZDB"):
        return _Content({}, ())
    for _ in range(reader.of("h")):
        reader.text()  # the release
    names = [reader.text() for _ in range(reader.of("h"))]
    rules = tuple(reader.bytes(reader.of("H")) for _ in range(reader.of("h")))
    zones = {names[reader.of("H")]: reader.of("H") for _ in range(reader.of("h"))}
    return _Content(zones, rules)


def is_zone(name: str) -> bool:
    """Return True if Spark accepts a text as a time zone, or if there is no Java to ask."""
    data = java_data()
    return data is None or name in _content(data).zones or name in _SHORT or _is_offset(name)


def is_fixed(zone: str) -> bool:
    """Return True for a zone whose offset never changes: an offset, or a zone such as ``Etc/GMT-5``."""
    data = java_data()
    zone = _meant(zone, data)
    rules = None if data is None or _is_offset(zone) else rules_of(data, zone)
    return _is_offset(zone) or (rules is not None and not rules.changes and not rules.yearly)


def _is_offset(name: str) -> bool:
    """Return True for a fixed offset of at most 18 hours: Z, UTC, +9, GMT-05:30."""
    match = _OFFSET.fullmatch(name)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (19, 0, 0)
    return minutes < 60 and seconds < 60 and (hours, minutes, seconds) <= (18, 0, 0)  # noqa: PLR2004 - as Java


def zones_in(data: Path) -> list[str]:
    """Return the names of all zones."""
    return sorted(_content(data).zones)


class _Reader:
    """Reads the forms in which Java writes zone data."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def bytes(self, count: int) -> bytes:
        self._at += count
        return self._content[self._at - count : self._at]

    def of(self, form: str) -> int:
        value: int = struct.unpack(f">{form}", self.bytes(struct.calcsize(form)))[0]
        return value

    def text(self) -> str:
        return self.bytes(self.of("H")).decode()

    def offset(self) -> int:
        quarters = self.of("b")
        return self.of("i") if quarters == 127 else quarters * 900  # noqa: PLR2004 - Java's mark

    def instant(self) -> int:
        first = self.of("B")
        if first == 255:  # noqa: PLR2004 - Java's mark
            return self.of("q")
        return ((first << 16) + (self.of("B") << 8) + self.of("B")) * 900 - 4_575_744_000


def _rules(content: bytes) -> Rules:
    reader = _Reader(content)
    reader.of("b")  # what it is: rules of a zone
    _offsets(reader)  # the standard offsets, of which daylight saving is no part
    changes, offsets = _offsets(reader)
    return Rules(changes, offsets, tuple(_yearly(reader) for _ in range(reader.of("b"))))


def _offsets(reader: _Reader) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the instants (s UTC) of changes, and the offsets (s) before the first and after each."""
    count = reader.of("i")
    return tuple(reader.instant() for _ in range(count)), tuple(reader.offset() for _ in range(count + 1))


def _yearly(reader: _Reader) -> tuple[int, int, int]:
    """Return the local time of day (s) before a change of each year, and the offsets before and after it."""
    data = reader.of("I")
    hour, kind, standard, before, after = (
        data >> 14 & 31, data >> 12 & 3, data >> 4 & 255, data >> 2 & 3, data & 3,
    )  # fmt: skip
    time = reader.of("i") if hour == 31 else hour * 3600  # noqa: PLR2004 - Java's marks
    base = reader.of("i") if standard == 255 else (standard - 128) * 900  # noqa: PLR2004
    old = reader.of("i") if before == 3 else base + before * 1800  # noqa: PLR2004
    new = reader.of("i") if after == 3 else base + after * 1800  # noqa: PLR2004
    local = (time + old, time, time + old - base)[kind]  # UTC, wall time, standard time
    return local % _DAY, old, new
