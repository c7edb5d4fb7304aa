"""Writes the records into three streams of a home directory, as three airports would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from examples.flights.records import by_airport
from rowtime.client.home import Home
from rowtime.client.writer import open_writer

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK: Final = 5_000

Report = Callable[[str, int, int], object]
"""Told after every insert: the stream, its rows so far, and how many it will have."""


def feed(
    home: Path, report: Report | None = None, records: Mapping[str, pa.Table] | None = None, chunk: int = CHUNK
) -> None:
    """Write all records, then end the streams ``ewr``, ``jfk`` and ``lga``.

    It may be interrupted at any moment and called again: it goes on where it stopped.
    """
    place = Home(home)
    place.create()
    for airport, table in (by_airport() if records is None else records).items():
        _feed_stream(place, airport.lower(), table, report or _silent, chunk)


def _feed_stream(home: Home, stream: str, table: pa.Table, report: Report, chunk: int) -> None:
    # The log is named, so that the stream need not be defined yet: flights.sql does that.
    with open_writer(stream, home=home, log=home.log_path(stream)) as writer:
        # An insert is there as a whole or not at all, and every row takes one position: the
        # next position tells how many rows are there. The end takes a position as well.
        while writer.position < table.num_rows:
            writer.insert(table.slice(writer.position, chunk))
            report(stream, writer.position, table.num_rows)
        if writer.position == table.num_rows:
            writer.end()
    report(stream, table.num_rows, table.num_rows)


def _silent(stream: str, done: int, total: int) -> None:
    pass
