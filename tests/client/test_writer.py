"""Writers: many processes, each with its own order; writes are durable and values strictly checked."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowtime.client import log_folder, stream_log
from rowtime.client.arrow_types import arrow_schema
from rowtime.client.home import Home
from rowtime.client.log_items import Bound, Leave, Order, Rows
from rowtime.client.stream_log import scan
from rowtime.client.writer import Writer, open_writer
from rowtime.core.errors import Failure, Refused
from rowtime.core.time import END, to_micros

BIDS: dict[str, Any] = {
    "columns": [
        {"name": "item", "type": "STRING", "nullable": False},
        {"name": "Price", "type": "DECIMAL(10, 2)", "nullable": True},
        {"name": "at", "type": "TIMESTAMP", "nullable": True},
    ],
    "format": None,
    "options": {},
}
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.define("bids", BIDS)
    return home


def stored(log: Path, writer: str = "main") -> list[dict[str, Any]]:
    """All rows of a writer, as its files have them."""
    files = [entry.path for entry in scan(log, {})[writer] if isinstance(entry, Rows)]
    return [row for path in files for row in pq.read_table(log / path).to_pylist()]


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def test_rows_are_stored_with_position_arrival_and_the_rowtime_given(log: Path) -> None:
    with Writer(log, clock=lambda: to_micros(NOON)) as writer:
        assert writer.insert([{"x": 1, "rowtime": "2024-01-01 10:00:00"}, {"x": 2, "ROWTIME": 7}]) == 0
        assert writer.insert([{"x": 3}]) == 2
    ten, seven = datetime(2024, 1, 1, 10, tzinfo=UTC), datetime(1970, 1, 1, microsecond=7, tzinfo=UTC)
    assert stored(log) == [
        {"__p": 0, "__a": NOON, "__t": ten, "x": 1},
        {"__p": 1, "__a": NOON, "__t": seven, "x": 2},
        {"__p": 2, "__a": NOON, "__t": None, "x": 3},
    ]


def test_names_of_files_have_the_range_and_the_order_of_rowtimes(log: Path) -> None:
    with Writer(log, clock=lambda: 99) as writer:
        for times in ([3, 3, 5], [5, 4], [None, None], [2, None, 9], [-7]):
            writer.insert([{"x": 0, "rowtime": time} for time in times])
    told = [(e.count, e.least, e.greatest, e.order, e.arrival) for e in scan(log, {})["main"] if isinstance(e, Rows)]
    assert told == [
        (3, 3, 5, Order.ORDERED, 99),
        (2, 4, 5, Order.UNORDERED, 99),
        (2, 0, 0, Order.NONE, 99),
        (3, 2, 9, Order.UNORDERED, 99),
        (1, -7, -7, Order.ORDERED, 99),
    ]


def test_bounds_are_in_order_among_the_rows_weaker_ones_too(log: Path) -> None:
    with Writer(log) as writer:
        writer.insert([{"x": 1}])
        writer.set_rowtime_bound(NOON)
        writer.set_rowtime_bound(5, strict=True)
        writer.insert([{"x": 2}, {"x": 3}])
        writer.end()
        writer.close(leave=True)
    found = [(entry.first, getattr(entry, "at", None), type(entry)) for entry in scan(log, {})["main"]]
    assert found == [
        (0, None, Rows),
        (1, to_micros(NOON), Bound),
        (2, 6, Bound),
        (3, None, Rows),
        (5, END, Bound),
        (6, None, Leave),
    ]


def test_an_empty_insert_writes_nothing(log: Path) -> None:
    with Writer(log) as writer:
        writer.insert([{"x": 1}])
        assert writer.insert([]) == 1
        assert writer.insert(pa.table({"x": pa.array([], pa.int64())})) == 1
    assert len(scan(log, {})["main"]) == 1


def test_a_reopened_writer_continues_where_it_stopped(log: Path) -> None:
    with Writer(log, clock=lambda: 500) as writer:
        writer.insert([{"x": 1}, {"x": 2}])
        writer.set_rowtime_bound(9)
    with Writer(log, clock=lambda: 400) as writer:
        assert writer.position == 3
        assert writer.insert([{"x": 3}]) == 3
    arrivals = [entry.arrival for entry in scan(log, {})["main"] if isinstance(entry, Rows)]
    assert arrivals == [500, 500], "an arrival clock that went back is raised to where it was"


def test_a_second_process_with_the_same_writer_is_refused_with_what_to_do(log: Path) -> None:
    program = (
        "import sys; from rowtime.client.writer import Writer\n"
        "w = Writer(sys.argv[1]); print('open', flush=True); input()\n"
    )
    with python(program, log) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(Refused, match='writer="second"') as caught:
            Writer(log)
        Writer(log, "second").close()
        other.communicate("\n")
    assert caught.value.problems[0].code == "R204"
    Writer(log).close()


def test_a_lock_that_a_reader_tests_for_a_moment_does_not_refuse_a_writer(log: Path) -> None:
    Writer(log).close()
    lock = log / "main" / log_folder.LOCK
    with lock.open() as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        release = threading.Timer(0.03, fcntl.flock, (reader, fcntl.LOCK_UN))
        release.start()
        Writer(log).close()
        release.join()


def test_processes_write_at_once_each_in_its_own_order(log: Path) -> None:
    program = (
        "import sys; from rowtime.client.writer import Writer\n"
        "with Writer(sys.argv[1], sys.argv[2]) as w:\n"
        "    for i in range(40): w.insert([{'x': i}]); i % 10 or w.set_rowtime_bound(i)\n"
    )
    names = ["a", "b", "c"]
    running = [python(program, log, name) for name in names]
    seen: dict[str, int] = {}
    read: dict[str, list[int]] = {name: [] for name in names}
    alive = True
    while alive:
        alive = any(process.poll() is None for process in running)
        for name, part in scan(log, seen).items():
            read[name] += [entry.first for entry in part]
            seen[name] = part[-1].end if part else seen[name]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert read == {name: [*range(44)] for name in names}, "a reader beside them missed nothing, took nothing twice"
    assert [row["x"] for row in stored(log, "b")] == [*range(40)]
    for process in running:
        process.communicate()


def test_a_crash_in_an_insert_leaves_nothing_of_it_and_the_name_is_free(log: Path) -> None:
    program = (
        "import os, signal, sys; from rowtime.client import log_folder, writer\n"
        "w = writer.Writer(sys.argv[1]); w.insert([{'x': 1}])\n"
        "log_folder.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "w.insert([{'x': 2}])\n"
    )
    with python(program, log) as process:
        assert process.wait() == -signal.SIGKILL
    leftover = log / "main" / log_folder.UNDER_WAY
    assert leftover.exists()
    assert [entry.first for entry in scan(log, {})["main"]] == [0]
    with Writer(log) as writer:
        assert not leftover.exists()
        assert writer.insert([{"x": 3}]) == 1
    assert [row["x"] for row in stored(log)] == [1, 3]


def test_an_insert_is_durable_before_it_returns(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    original = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        original(descriptor)

    with Writer(log) as writer:
        monkeypatch.setattr(os, "fsync", fsync)
        writer.insert([{"x": 1}])
        assert synced == ["main", ".insert", "s-00000000000000000000"]
        synced.clear()
        writer.set_rowtime_bound(1)
        assert synced == ["s-00000000000000000000"]


def test_a_failing_disk_is_a_failure_and_the_writer_continues(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with Writer(log) as writer:
        monkeypatch.setattr(pq, "write_table", full)
        with pytest.raises(Failure, match="No space left") as caught:
            writer.insert([{"x": 1}])
        monkeypatch.undo()
        assert caught.value.problems[0].code == "R422"
        assert not (log / "main" / log_folder.UNDER_WAY).exists()
        assert writer.insert([{"x": 2}]) == 0


def test_a_log_without_free_positions_accepts_no_row(log: Path) -> None:
    with Writer(log) as writer:
        writer.insert([{"x": 1}])
    [file] = log.rglob("r-*.parquet")
    file.rename(file.with_name(file.name.replace("0" * 20, f"{2**63 - 3:020d}")))
    with Writer(log) as writer:
        assert writer.insert([{"x": 2}]) == 2**63 - 2
        with pytest.raises(Failure, match=r"R501 .*its writer main has reached position 9,223,372,036,854,775,807"):
            writer.insert([{"x": 3}])


def test_a_log_with_an_arrival_beyond_time_accepts_no_row(log: Path) -> None:
    with Writer(log) as writer:
        writer.insert([{"x": 1}])
    [file] = log.rglob("r-*.parquet")
    file.rename(file.with_name(file.name.replace("-n-", "-n-99999")))
    with Writer(log) as writer:
        for act in (lambda: writer.insert([{"x": 2}]), lambda: writer.set_rowtime_bound(5)):
            with pytest.raises(Failure, match=r"R501 .*its writer main has an arrival time after the year 9999"):
                act()


def test_a_closed_writer_writes_nothing(log: Path) -> None:
    writer = Writer(log)
    writer.close()
    writer.close(leave=True)
    for act in (lambda: writer.insert([{"x": 1}]), lambda: writer.set_rowtime_bound(5), writer.end, writer.fence):
        with pytest.raises(Refused, match=f"R217 the writer main of {log} is closed"):
            act()
    assert [*log.rglob("*.parquet")] == []


def test_a_stream_is_found_by_name_and_its_columns_are_converted(home: Home) -> None:
    with open_writer("Bids", home=home) as writer:
        writer.insert([{"item": "pen", "PRICE": 1.1, "at": "2024-01-01 12:00:00"}, {"item": "ink"}])
    first, second = stored(home.log_path("bids"))
    assert (first["item"], first["Price"], first["at"]) == ("pen", Decimal("1.10"), NOON)
    assert (second["item"], second["Price"], second["at"]) == ("ink", None, None)


def test_an_arrow_table_is_converted_too(home: Home) -> None:
    times = pa.array([1, 2], pa.timestamp("ms"))
    table = pa.table({"item": ["a", "b"], "price": [1, 2], "at": ["2024-01-01 12:00:00", None], "Rowtime": times})
    with open_writer("bids", home=home, writer="bulk") as writer:
        assert writer.insert(table) == 0
    rows = stored(home.log_path("bids"), "bulk")
    assert [row["Price"] for row in rows] == [Decimal(1), Decimal(2)]
    assert [row["at"] for row in rows] == [NOON, None]
    assert [to_micros(row["__t"]) for row in rows] == [1000, 2000]


def test_a_column_named_as_rowtime_stays_a_column(home: Home) -> None:
    with open_writer("bids", home=home) as writer:
        writer.insert([{"item": "pen", "at": NOON}], rowtime="AT")
        writer.insert([{"item": "pen", "when": NOON}], rowtime="when")
    first, second = stored(home.log_path("bids"))
    assert (first["__t"], first["at"]) == (NOON, NOON)
    assert (second["__t"], second["at"], "when" in second) == (NOON, None, False)


def test_a_stream_that_is_unknown_or_not_embedded_is_refused(home: Home) -> None:
    home.define("topic", {**BIDS, "format": "kafka"})
    for name, match in (("bidz", "Streams there: bids, topic"), ("topic", "has the format kafka")):
        with pytest.raises(Refused, match=match) as caught:
            open_writer(name, home=home)
        assert caught.value.problems[0].code == "R202"


def test_a_log_elsewhere_needs_no_definition(log: Path, tmp_path: Path) -> None:
    with open_writer("anything", home=tmp_path / "none", log=log) as writer:
        writer.insert([{"x": 1, "y": None}])
    assert [row["x"] for row in stored(log)] == [1]
    assert not (tmp_path / "none").exists()


def test_an_unknown_column_is_refused_and_the_known_ones_are_listed(home: Home) -> None:
    with open_writer("bids", home=home) as writer, pytest.raises(Refused, match="item, Price, at") as caught:
        writer.insert([{"item": "pen", "prize": 1}])
    assert caught.value.problems[0].code == "R205"
    with open_writer("bids", home=home) as writer, pytest.raises(Refused, match="no row has the column when"):
        writer.insert([{"item": "pen"}], rowtime="when")
    assert stream_log.last(home.log_path("bids")) == {}


def test_names_that_the_log_uses_itself_are_refused(log: Path) -> None:
    with Writer(log) as writer, pytest.raises(Refused, match="__p"):
        writer.insert([{"__p": 1}])


UNFIT: list[tuple[str, object]] = [
    ("INT", 1.5),
    ("INT", 2**31),
    ("BIGINT", 2**63),
    ("INT", "1"),
    ("INT", True),
    ("DOUBLE", "1.5"),
    ("DOUBLE", True),
    ("BOOLEAN", 1),
    ("STRING", 1),
    ("DECIMAL(5, 2)", "1.234"),
    ("DECIMAL(5, 2)", 12345),
    ("DATE", NOON),
    ("DATE", "yesterday"),
    ("TIMESTAMP", "noon"),
    ("TIMESTAMP", "infinity"),
    ("TIMESTAMP_NTZ", "2024-01-01T12:00:00Z"),
    ("ARRAY<INT>", [1, 1.5]),
    ("ARRAY<INT>", 1),
    ("MAP<STRING, INT>", {"a": "b"}),
    ("STRUCT<a: INT>", {"b": 1}),
]


@pytest.mark.parametrize(("kind", "value"), UNFIT)
def test_a_value_that_does_not_fit_is_refused_with_its_row_and_column(log: Path, kind: str, value: object) -> None:
    schema = arrow_schema({"columns": [{"name": "x", "type": kind}]})
    with Writer(log, schema=schema) as writer, pytest.raises(Refused, match="row 2, column x") as caught:
        writer.insert([{}, {"x": None}, {"x": value}, {}])
    assert caught.value.problems[0].code == "R206"
    assert scan(log, {}) == {}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("INT", 2.0, 2),
        ("BIGINT", Decimal(7), 7),
        ("DOUBLE", 3, 3.0),
        ("DATE", "2024-02-29", date(2024, 2, 29)),
        ("TIMESTAMP", "0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("TIMESTAMP", 1, datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)),
        ("TIMESTAMP_NTZ", "2024-01-01 12:00:00", NOON.replace(tzinfo=None)),
        ("ARRAY<TIMESTAMP>", ["2024-01-01 12:00", None], [NOON, None]),
        ("MAP<STRING, INT>", {"a": 1}, [("a", 1)]),
        ("STRUCT<a: DATE, b: INT>", {"a": "2024-02-29"}, {"a": date(2024, 2, 29), "b": None}),
    ],
)
def test_a_value_that_fits_is_converted(log: Path, kind: str, value: object, expected: object) -> None:
    with Writer(log, schema=arrow_schema({"columns": [{"name": "x", "type": kind}]})) as writer:
        writer.insert([{"x": value}])
    assert stored(log)[0]["x"] == expected


def test_a_bad_value_in_an_arrow_table_is_found_too(log: Path) -> None:
    with Writer(log, schema=arrow_schema({"columns": [{"name": "x", "type": "INT"}]})) as writer:
        for bad in (pa.array([1, 2, 2**40, 3]), pa.array([None, None, 1.5, 2.5]), pa.array([None, None, "1", "2"])):
            with pytest.raises(Refused, match="row 2, column x"):
                writer.insert(pa.table({"x": bad}))


def _in_arrow(value: object) -> pa.Array | None:
    """A column that ends with the value; ``None`` if no Arrow column can hold it."""
    try:
        return pa.array([None, value])
    except (pa.ArrowException, OverflowError):
        return None


@pytest.mark.parametrize(("kind", "value"), [case for case in UNFIT if _in_arrow(case[1]) is not None])
def test_arrow_tables_and_mappings_refuse_the_same_values(log: Path, kind: str, value: object) -> None:
    table = pa.table({"x": _in_arrow(value)})
    schema = arrow_schema({"columns": [{"name": "x", "type": kind}]})
    with Writer(log, schema=schema) as writer, pytest.raises(Refused, match="row 1, column x"):
        writer.insert(table)


def test_null_where_the_stream_says_not_null_is_refused(home: Home) -> None:
    with open_writer("bids", home=home) as writer, pytest.raises(Refused, match=r"row 1, column item.*NOT NULL"):
        writer.insert([{"item": "pen"}, {"price": 1}])


@pytest.mark.parametrize("time", ["whenever", END, -(2**60), True])
def test_an_invalid_rowtime_is_refused(log: Path, time: object) -> None:
    rows: list[Mapping[str, object]] = [{"x": 1}, {"x": 2, "rowtime": time}]
    with Writer(log) as writer, pytest.raises(Refused, match="row 1, column rowtime"):
        writer.insert(rows)
    with Writer(log) as writer, pytest.raises(Refused, match="row 0, column rowtime"):
        writer.insert(pa.table({"rowtime": pa.array([2**60])}))


def test_texts_have_the_length_of_their_columns(tmp_path: Path) -> None:
    """CHAR is padded with blanks, and blanks beyond the length are cut off; anything else does not fit."""
    home = Home(tmp_path)
    columns = [{"name": "c", "type": "CHAR(3)"}, {"name": "v", "type": "VARCHAR(2)"}]
    home.define("s", {"columns": columns, "format": None, "options": {}})
    with open_writer("s", home=home) as log:
        log.insert([{"c": "é", "v": "ab  "}, {"c": None, "v": ""}])
        for wrong in ({"c": "abcd"}, {"v": "abc"}):
            with pytest.raises(Refused, match=r"R206 row 1, column .*characters"):
                log.insert([{"c": "abc", "v": "ab"}, wrong])
    (path,) = (path for path in (tmp_path / "logs" / "s").rglob("*.parquet"))
    assert [(row["c"], row["v"]) for row in pq.read_table(path).to_pylist()] == [("é  ", "ab"), (None, "")]
