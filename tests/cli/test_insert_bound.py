"""``rowtime insert`` and ``rowtime bound``: rows and bounds from the shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowtime.cli import row_files
from rowtime.client import log_items, stream_log
from rowtime.client.home import Home
from rowtime.client.writer import open_writer
from rowtime.core.time import END, to_micros

if TYPE_CHECKING:
    from typer.testing import Result

COLUMNS = {"page": "STRING", "n": "INT", "at": "TIMESTAMP", "price": "DECIMAL(10, 2)"}
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    place = Home(tmp_path / ".rowtime")
    columns = [{"name": name, "type": kind, "nullable": True} for name, kind in COLUMNS.items()]
    place.define("clicks", {"columns": columns, "format": None, "options": {}})
    return place


def rows(home: Home, writer: str = "main") -> list[dict[str, Any]]:
    log = home.log_path("clicks")
    entries = stream_log.scan(log, {}).get(writer, [])
    return [row for e in entries if isinstance(e, log_items.Rows) for row in pq.read_table(log / e.path).to_pylist()]


def bounds(home: Home, writer: str) -> list[int]:
    entries = stream_log.scan(home.log_path("clicks"), {}).get(writer, [])
    return [entry.at for entry in entries if isinstance(entry, log_items.Bound)]


def test_csv_rows_have_the_declared_types_and_empty_cells_are_null(
    rowtime: Callable[..., Result], home: Home, tmp_path: Path
) -> None:
    (tmp_path / "clicks.csv").write_text(
        'Page,n,at,price,rowtime\n"a, b",1,2024-01-01 12:00:00,1.10,2024-01-01 12:00:00\n,,,,2024-01-01 12:00:30\n'
    )
    result = rowtime("insert", "clicks", "clicks.csv")
    assert result.stdout == "2 rows into clicks (writer main); clock 2024-01-01 12:00:30\n"
    first, second = rows(home)
    assert (first["page"], first["n"], first["at"], first["price"]) == ("a, b", 1, NOON, Decimal("1.10"))
    assert (second["page"], second["n"], second["at"], second["price"]) == ("", None, None, None)
    assert first["__t"] == NOON


def test_json_lines_and_a_column_that_gives_the_rowtime(
    rowtime: Callable[..., Result], home: Home, tmp_path: Path
) -> None:
    (tmp_path / "clicks.jsonl").write_text(
        '{"page": "a", "at": "2024-01-01 12:00:00"}\n\n{"page": "b", "at": "2024-01-02"}\n'
    )
    result = rowtime("insert", "clicks", "clicks.jsonl", "--rowtime", "at", "--writer", "w", "--json")
    assert json.loads(result.stdout) == {
        "stream": "clicks",
        "writer": "w",
        "rows": 2,
        "clock": "2024-01-02 00:00:00",
        "will_be_refused": 0,
    }
    assert [row["__t"].day for row in rows(home, "w")] == [1, 2]


def test_parquet_in_chunks(
    rowtime: Callable[..., Result], home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "CHUNK", 40)
    pq.write_table(pa.table({"n": list(range(100))}), tmp_path / "clicks.parquet")
    assert rowtime("insert", "clicks", "clicks.parquet").exit_code == 0
    assert [row["n"] for row in rows(home)] == list(range(100))
    assert len(stream_log.scan(home.log_path("clicks"), {})["main"]) == 3


def test_standard_input_is_json_lines(rowtime: Callable[..., Result], home: Home) -> None:
    result = rowtime("insert", "clicks", "-", text='{"page": "a", "price": 1.10}\n{"page": "b"}')
    assert result.stdout.startswith("2 rows into clicks (writer main); clock 20")
    assert [row["price"] for row in rows(home)] == [Decimal("1.10"), None]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (("a.csv", "page,n\na,1\nb,many\n"), "many"),
        (("a.csv", "page,m\na,1\n"), "R205 the stream has no column m"),
        (("a.jsonl", '{"page": "a"}\nnonsense\n'), "line 2 of a.jsonl is not JSON"),
        (("a.jsonl", "[1]\n"), "line 1 of a.jsonl is not a JSON object"),
        (("a.jsonl", '{"n": "one"}\n'), "R206 row 0, column n"),
        (("a.parquet", "nonsense"), "a.parquet cannot be read"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(
    rowtime: Callable[..., Result], home: Home, tmp_path: Path, file: tuple[str, str], said: str
) -> None:
    name, content = file
    (tmp_path / name).write_text(content)
    result = rowtime("insert", "clicks", name)
    assert result.exit_code == 1
    assert said in result.stderr
    assert rows(home) == []


def test_a_refusal_says_how_many_rows_are_in_the_stream_already(
    rowtime: Callable[..., Result], home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "CHUNK", 2)
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": 2}\n{"n": "x"}\n')
    result = rowtime("insert", "clicks", "a.jsonl")
    assert result.exit_code == 1
    assert "The 2 rows of a.jsonl before these are in the stream" in result.stderr
    assert len(rows(home)) == 2


def test_an_unknown_stream_is_refused_with_the_names_that_exist(
    rowtime: Callable[..., Result], home: Home, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("page\na\n")
    result = rowtime("insert", "klicks", "a.csv")
    assert result.exit_code == 1
    assert "Streams there: clicks." in result.stderr


def test_a_file_of_no_known_format_is_wrong_usage(rowtime: Callable[..., Result], home: Home, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("page\na\n")
    assert rowtime("insert", "clicks", "a.txt").exit_code == 2
    assert rowtime("insert", "clicks", "a.txt", "--format", "csv").exit_code == 0
    assert rowtime("insert", "clicks", "none.csv").exit_code == 2


def test_a_bound_goes_to_main_of_a_stream_without_rows(rowtime: Callable[..., Result], home: Home) -> None:
    result = rowtime("bound", "clicks", "2024-01-01 12:00:00", "--strict")
    assert result.stdout == "clicks: bound 2024-01-01 12:00:00.000001 for writer main\n"
    assert bounds(home, "main") == [to_micros(NOON) + 1]


def test_a_bound_goes_to_every_writer_that_has_not_left(rowtime: Callable[..., Result], home: Home) -> None:
    for name in ("one", "two", "gone"):
        with open_writer("clicks", home=home, writer=name) as writer:
            writer.insert([{"page": "a"}])
            if name == "gone":
                writer.close(leave=True)
    result = rowtime("bound", "clicks", "end", "--json")
    assert json.loads(result.stdout) == {"stream": "clicks", "bound": "+∞", "writers": ["one", "two"], "held": []}
    assert bounds(home, "*") == [END]


def test_a_bound_to_one_writer(rowtime: Callable[..., Result], home: Home) -> None:
    assert rowtime("bound", "clicks", "2024-01-01", "--writer", "one").exit_code == 0
    assert rowtime("bound", "clicks", "2024-01-02", "--writer", "two").exit_code == 0
    assert bounds(home, "one") == [to_micros("2024-01-01")]


def test_writers_that_are_open_elsewhere_are_named(rowtime: Callable[..., Result], home: Home) -> None:
    with open_writer("clicks", home=home, writer="free") as writer:
        writer.insert([{"page": "a"}])
    with open_writer("clicks", home=home, writer="busy") as writer:
        writer.insert([{"page": "a"}])
        everyone = rowtime("bound", "clicks", "2024-01-01")
        result = rowtime("bound", "clicks", "end", "--writer", "busy")
    assert everyone.stdout == "clicks: bound 2024-01-01 00:00:00 for writers busy, free\n"
    assert result.exit_code == 1
    assert "no bound for writer busy, which a running process has open" in result.stderr


def test_text_that_is_not_a_time_is_refused(rowtime: Callable[..., Result], home: Home) -> None:
    result = rowtime("bound", "clicks", "noon")
    assert result.exit_code == 1
    assert "R301 'noon' is not a timestamp" in result.stderr


def test_streams_are_listed_with_their_columns(rowtime: Callable[..., Result], home: Home) -> None:
    assert rowtime("streams").stdout == "clicks (page STRING, n INT, at TIMESTAMP, price DECIMAL(10, 2))\n"
    assert json.loads(rowtime("streams", "--json").stdout)[0]["name"] == "clicks"
