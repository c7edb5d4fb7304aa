"""The records of the flights example, its feed, and the computation that checks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from examples.flights import independent, records
from examples.flights.feed import feed
from rowtime.client.arrow_types import arrow_type
from rowtime.client.home import Home
from rowtime.client.log_contract import Item
from rowtime.client.log_folder import FolderPen
from rowtime.client.log_items import Bound, Entry, Rows
from rowtime.client.stream_log import scan
from rowtime.core.time import END
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreateStream

pytestmark = pytest.mark.sampled(8)

SQL = Path(records.__file__).with_name("flights.sql")


@pytest.fixture(scope="module")
def airports() -> dict[str, pa.Table]:
    return records.by_airport()


@pytest.fixture(scope="module")
def deliveries() -> dict[str, list[independent.Delivery]]:
    return independent.deliveries()


def at(day: int, hour: int, minute: int, month: int = 1) -> datetime:
    return datetime(2013, month, day, hour, minute, tzinfo=UTC)


def flight(table: pa.Table, number: int, day: datetime) -> dict[str, Any]:
    """The only record of a flight number that was delivered on a day or in the following night."""
    chosen = table.filter(pc.equal(table["flight"], number)).to_pylist()
    (found,) = [row for row in chosen if day <= row["rowtime"] < day + timedelta(hours=30)]
    return dict(found)


def entries(home: Path, stream: str) -> list[Entry]:
    return scan(Home(home).log_path(stream), {})["main"]


def stored(home: Path, stream: str) -> pa.Table:
    """The rows in a stream's log, in order, with the given columns."""
    log = Home(home).log_path(stream)
    files = [log / entry.path for entry in entries(home, stream) if isinstance(entry, Rows)]
    table = pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)
    assert table["__p"].to_pylist() == list(range(table.num_rows))
    return table.rename_columns({"__t": "rowtime"}).select(records.SCHEMA.names)


# -- records ----------------------------------------------------------------------------


def test_every_flight_is_a_record_of_its_airport(airports: dict[str, pa.Table]) -> None:
    assert {name: table.num_rows for name, table in airports.items()} == {"EWR": 120835, "JFK": 111279, "LGA": 104662}
    assert sum(table.num_rows for table in airports.values()) == 336_776
    for name, table in airports.items():
        assert table.schema == records.SCHEMA
        assert pc.unique(table["origin"]).to_pylist() == [name]


def test_a_cancelled_flight_has_no_departure_and_every_record_is_delivered(airports: dict[str, pa.Table]) -> None:
    assert sum(table["departure"].null_count for table in airports.values()) == 8_255
    assert sum(table["rowtime"].null_count for table in airports.values()) == 0


def test_records_are_in_the_order_of_delivery_and_departures_are_not(airports: dict[str, pa.Table]) -> None:
    for table in airports.values():
        delivered, departed = table["rowtime"].cast(pa.int64()), table["departure"].drop_null().cast(pa.int64())
        assert not pc.any(pc.less(delivered[1:], delivered[:-1])).as_py()
        assert pc.any(pc.less(departed[1:], departed[:-1])).as_py()


def test_a_flight_is_delivered_when_it_ends(airports: dict[str, pa.Table]) -> None:
    # 2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,...
    assert flight(airports["EWR"], 1545, at(1, 0, 0)) == {
        "carrier": "UA",
        "flight": 1545,
        "tailnum": "N14228",
        "origin": "EWR",
        "dest": "IAH",
        "dep_delay": 2,
        "arr_delay": 11,
        "air_time": 227,
        "distance": 1400,
        "departure": at(1, 5, 17),
        "rowtime": at(1, 9, 4),
    }


def test_2400_is_midnight_of_the_next_day(airports: dict[str, pa.Table]) -> None:
    # 2013,10,30,2400,2359,1,327,337,-10,B6,839,N661JB,JFK,BQN,182,1576,...
    found = flight(airports["JFK"], 839, at(30, 12, 0, month=10))
    assert (found["departure"], found["rowtime"]) == (at(31, 0, 0, month=10), at(31, 3, 2, month=10))


def test_a_cancelled_flight_is_delivered_when_it_should_have_left(airports: dict[str, pa.Table]) -> None:
    # 2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,N18120,EWR,RDU,NA,416,...
    found = flight(airports["EWR"], 4308, at(1, 0, 0))
    assert (found["departure"], found["air_time"], found["rowtime"]) == (None, None, at(1, 16, 30))


def test_a_flight_without_air_time_is_delivered_at_its_departure(airports: dict[str, pa.Table]) -> None:
    # 2013,1,1,1525,1530,-5,1934,1805,NA,MQ,4525,N719MQ,LGA,XNA,NA,1147,...
    found = flight(airports["LGA"], 4525, at(1, 0, 0))
    assert (found["departure"], found["air_time"], found["rowtime"]) == (at(1, 15, 25), None, at(1, 15, 25))


def test_the_sql_declares_the_columns_of_the_records() -> None:
    script = parse_script(SQL.read_text(encoding="utf-8"))
    assert not script.problems
    streams = {s.name.text: s.columns for s in script.statements if isinstance(s, CreateStream)}
    for airport in records.AIRPORTS:
        columns = streams[airport.lower()]
        assert pa.schema([(column.name, arrow_type(column.type)) for column in columns]) == records.COLUMNS


# -- the independent computation --------------------------------------------------------


def test_the_independent_deliveries_are_the_records(
    airports: dict[str, pa.Table], deliveries: dict[str, list[independent.Delivery]]
) -> None:
    for name, table in airports.items():
        columns = [table[column].to_pylist() for column in ("rowtime", "departure", "origin", "carrier")]
        assert [independent.Delivery(*values) for values in zip(*columns, strict=True)] == deliveries[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hours", "late"),
    [
        (2, {"EWR": 31_901, "JFK": 42_938, "LGA": 11_263}),
        (4, {"EWR": 12_508, "JFK": 23_760, "LGA": 7}),
        (5, {"EWR": 1_908, "JFK": 3_770}),
        (6, {"EWR": 364, "JFK": 368}),
        (8, {"EWR": 335, "JFK": 341}),
        (10, {"EWR": 6, "JFK": 30}),
        (11, {}),
    ],
)
def test_how_many_are_late(deliveries: dict[str, list[independent.Delivery]], hours: int, late: dict[str, int]) -> None:
    found = independent.count(deliveries, timedelta(hours=hours))
    assert found.late == Counter(late)
    assert found.cancelled == Counter({"EWR": 3_239, "JFK": 1_863, "LGA": 3_153})
    assert (found.accepted + found.late + found.cancelled).total() == 336_776
    assert found.departures.total() == found.accepted.total()


def test_a_departure_exactly_at_the_tolerance_is_accepted() -> None:
    def landed(departure: datetime | None) -> independent.Delivery:
        return independent.Delivery(at(2, 0, 0), departure, "EWR", "UA")

    flights = [landed(at(1, 9, 0)), landed(None), landed(at(1, 3, 0)), landed(at(1, 2, 59)), landed(at(1, 3, 30))]
    found = independent.count({"EWR": flights}, timedelta(hours=6))
    assert (found.accepted["EWR"], found.late["EWR"], found.cancelled["EWR"]) == (3, 1, 1)
    assert found.departures == Counter({("EWR", at(1, 9, 0), "UA"): 1, ("EWR", at(1, 3, 0), "UA"): 2})


# -- the feed ---------------------------------------------------------------------------


class Killed(BaseException):
    pass


class Cut:
    """Ends the feed at its n-th report, and counts the reports before."""

    def __init__(self, after: int | None = None) -> None:
        self.after, self.reports = after, 0

    def __call__(self, *_: object) -> None:
        self.reports += 1
        if self.reports == self.after:
            raise Killed


def few(airports: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: table.slice(0, rows) for (name, table), rows in zip(airports.items(), (23, 20, 4), strict=True)}


def check(home: Path, expected: Mapping[str, pa.Table]) -> None:
    for airport, table in expected.items():
        stream = airport.lower()
        assert stored(home, stream).cast(records.SCHEMA).equals(table.combine_chunks())
        bounds = [entry for entry in entries(home, stream) if isinstance(entry, Bound)]
        assert [(bound.first, bound.at) for bound in bounds] == [(table.num_rows, END)]


def test_the_feed_writes_every_record_and_ends_each_stream_once(airports: dict[str, pa.Table], tmp_path: Path) -> None:
    feed(tmp_path / "home")
    feed(tmp_path / "home")
    check(tmp_path / "home", airports)


def test_the_feed_may_be_cut_after_any_chunk(airports: dict[str, pa.Table], tmp_path: Path) -> None:
    whole = Cut()
    feed(tmp_path / "whole", whole, few(airports), chunk=5)
    assert whole.reports == (5 + 1) + (4 + 1) + (1 + 1)
    for after in range(1, whole.reports + 1):
        home = tmp_path / str(after)
        with pytest.raises(Killed):
            feed(home, Cut(after), few(airports), chunk=5)
        feed(home, None, few(airports), chunk=5)
        check(home, few(airports))


def test_the_feed_may_be_cut_inside_every_write(
    airports: dict[str, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(after: int) -> None:
        left = iter(range(after))
        put = FolderPen.put

        def killed(self: FolderPen, make: Callable[[], Item]) -> None:
            put(self, make)
            if next(left, None) is None:
                raise Killed

        with monkeypatch.context() as patched:
            # The file has its final name already, but the writer does not know it yet.
            patched.setattr(FolderPen, "put", killed)
            with pytest.raises(Killed):
                feed(home, None, few(airports), chunk=5)

    for after in range(13):  # 5 + 4 + 1 inserts and three ends
        home = tmp_path / str(after)
        cut(after)
        feed(home, None, few(airports), chunk=7)
        check(home, few(airports))
