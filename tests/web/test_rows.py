"""Rows: of outputs and refused by gates, filtered and paged, and the trace of a row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowtime.core.errors import Refused
from rowtime.core.time import to_datetime, to_micros
from rowtime.plan.program import compile_script
from rowtime.web import commands as web_commands
from rowtime.web.kept_rows import Kept, Part
from rowtime.web.rows import levels
from rowtime.web.views.rows import PAGE, condition_of, page_of_rows, row_at
from tests.web.conftest import AT, address
from tests.web.generated import SCRIPT

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def kept(rows: int, a_part: int = 10, *, known: bool = True) -> Kept:
    tables = [
        pa.table(
            {
                "n": [*range(first, min(first + a_part, rows))],
                "t": [f"row {n}" for n in range(first, min(first + a_part, rows))],
            }
        )
        for first in range(0, rows, a_part)
    ]
    return Kept(
        rows, [Part(lambda table=table: table, table.num_rows if known else None) for table in tables], numbered=True
    )


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("condition", ["", "n >= 0", "row"])
def test_pages_have_each_row_once_the_newest_first(known: bool, condition: str) -> None:
    found: list[int] = []
    before: int | None = None
    while True:
        page = page_of_rows(kept(137, known=known), before, condition)
        found += [row.number for row in page.rows]
        assert [row.cells["n"] for row in page.rows] == [str(row.number) for row in page.rows]
        if page.older is None:
            break
        before = page.older
    assert found == [*reversed(range(137))]


def test_a_page_that_ran_out_of_time_continues_where_it_stopped() -> None:
    found: list[int] = []
    before: int | None = None
    for _ in range(100):
        page = page_of_rows(kept(95), before, "n = 3", budget=-1)
        found += [row.number for row in page.rows]
        before = page.older
        if before is None:
            break
    assert found == [3]


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        ("n = 7", [7]),
        ("n != 7", [9, 8, 6, 5, 4, 3, 2, 1, 0]),
        ("n < 2", [1, 0]),
        ("n>=9", [9]),
        ("t = row 4", [4]),
        ("t = 'row 4'", [4]),
        ("t ~ W 5", [5]),
        ("n = NULL", []),
        ("ROW 8", [8]),
        ("<script>", []),
    ],
)
def test_a_filter_compares_numbers_as_numbers_and_texts_as_texts(condition: str, numbers: list[int]) -> None:
    assert [row.number for row in page_of_rows(kept(10), None, condition).rows] == numbers


def test_a_filter_on_an_unknown_column_is_refused() -> None:
    with pytest.raises(Refused, match="R706 there is no column price"):
        page_of_rows(kept(10), None, "price > 1")


def test_a_row_is_found_by_its_number() -> None:
    assert row_at(kept(37), 23) == {"n": 23, "t": "row 23"}
    with pytest.raises(Refused, match="R704"):
        row_at(kept(37), 37)


def test_a_row_without_a_place_is_described_by_its_values() -> None:
    at = to_datetime(to_micros("2026-03-02 09:00:00"))
    values = {"d`e": "it's \\ here", "at": at, "n": 3, "x": 0.1, "none": None}
    assert condition_of(values) == (
        "`d``e` <=> 'it\\'s \\\\ here' AND `at` <=> TIMESTAMP '2026-03-02 09:00:00' AND `n` <=> 3 AND `none` <=> NULL"
    )


@pytest.fixture
def client(console: Callable[..., TestClient]) -> TestClient:
    made = console()
    made.headers.update({"origin": AT})
    made.base_url = str(made.base_url).rstrip("/") + address(made, "factory")
    return made


def cells(text: str) -> list[list[str]]:
    rows = re.findall(r"<tr class=\"pick\">(.*?)</tr>", text, re.DOTALL)
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)] for row in rows]


def test_an_output_shows_its_rows_the_newest_first(client: TestClient) -> None:
    found = cells(client.get("/rows").text)
    assert len(found) == 39
    assert found[0] == ["38", "2026-03-02 09:13:00", "2026-03-02 09:12:00", "sensor-00002", "102"]
    assert len(found) < PAGE


def test_refused_rows_are_shown_with_their_reasons_and_filtered(client: TestClient) -> None:
    asked = {"what": "rejected", "of": "sorted", "filter": "position > 500"}
    found = cells(client.get("/rows", params=asked).text)
    assert [row[:2] for row in found] == [["21", "LATE"], ["20", "LATE"], ["19", "LATE"]]


def test_an_unknown_gate_shows_no_rows(client: TestClient) -> None:
    assert not cells(client.get("/rows", params={"what": "rejected", "of": "../../x"}).text)
    assert not cells(client.get("/rows", params={"what": "output", "of": "nobody.sink"}).text)


ITEMS = [
    {"operator": "per_minute.sink", "tick": 6, "kind": "row", "at": "09:02", "columns": {"device": "<b>", "n": 100}},
    {"operator": "per_minute.group", "tick": 6, "kind": "row", "at": "09:02", "columns": {"device": "<b>", "n": 100}},
    {"operator": "per_minute.group", "tick": 6, "kind": "bound", "at": "09:02"},
    *({"operator": "sorted", "tick": 5, "kind": "row", "at": "09:01", "columns": {"device": "<b>"}} for _ in range(11)),
    {"operator": "doors", "tick": 4, "kind": "row", "at": "09:01", "columns": {"device": None}},
]


def test_a_trace_is_shown_as_a_graph_from_the_row_down(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    class Ran:
        returncode, stdout, stderr = 0, "\n".join(map(json.dumps, ITEMS)), ""

    monkeypatch.setattr(web_commands.subprocess, "run", lambda command, **_: commands.append(command) or Ran)
    asked = {"sink": "per_minute.sink", "number": "38"}
    assert "Trace this row" in client.get("/trace", params=asked).text
    assert client.post("/trace/begin", data=asked).status_code == 303
    text = client.get("/trace", params=asked).text
    while "under way" in text:
        text = client.get("/trace", params=asked).text
    levels = text.split('<div class="level">')[1:]
    assert [re.findall(r"<h3>(\S+)", level) for level in levels] == [
        ["per_minute.sink"],
        ["per_minute.group"],
        ["sorted", "doors"],
    ]
    assert "&lt;b&gt;" in levels[0]
    assert "<b>" not in text
    assert "and 3 more" in levels[2]
    (way,) = re.findall(r'href="([^"]*from=doors[^"]*)"', unescape(text))
    assert way.endswith("where=rowtime+%3C%3D%3E+TIMESTAMP+%2709%3A01%27+AND+%60device%60+%3C%3D%3E+NULL")
    (command,) = commands
    assert command[3:5] == ["trace", str(Path(command[4]))]
    assert command[command.index("--where") + 1].endswith("`device` <=> 'sensor-00002' AND `n` <=> 102")


def test_a_row_of_a_trace_has_its_edges_and_hidden_rows_are_grouped() -> None:
    found = [
        {"operator": "seen.union", "tick": 1, "kind": "row", "at": "09:01", "columns": {}, "id": 0, "made_of": [1, 10]},
        *(
            {"operator": "doors", "tick": 1, "kind": "row", "at": "09:01", "columns": {}, "id": n, "made_of": []}
            for n in range(1, 61)
        ),
    ]
    plan = compile_script(SCRIPT.format(out="/out")).described()
    (union,), (doors,) = levels(plan, found)
    assert union.rows[0]["made_of"] == [1, 10]
    assert [row["id"] for row in doors.rows] == [*range(1, 9)]
    assert (doors.more, [*doors.others]) == (52, [*range(9, 59)])


def test_a_row_of_a_stream_is_followed_to_where_it_went(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    class Ran:
        returncode, stdout, stderr = 0, "\n".join(map(json.dumps, ITEMS)), ""

    monkeypatch.setattr(web_commands.subprocess, "run", lambda command, **_: commands.append(command) or Ran)
    asked = {"from": "doors", "where": "device = '<b>'"}
    answer = client.post("/trace/begin", data=asked)
    assert answer.headers["location"].endswith("/trace?from=doors&where=device+%3D+%27%3Cb%3E%27")
    text = client.get("/trace", params=asked).text
    while "under way" in text:
        text = client.get("/trace", params=asked).text
    assert "Where the row of doors went that fits" in text
    assert commands[0][5:10] == ["--where", "device = '<b>'", "--from", "doors", "--json"]
    assert "R704" in client.get("/trace", params={"from": "nobody", "where": "true"}).text


def test_a_trace_that_fails_says_why_and_can_be_tried_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = {"code": "R407", "message": "the recorded input is gone", "hint": "<i>"}

    class Ran:
        returncode, stdout, stderr = 1, json.dumps({"problems": [problem]}), ""

    monkeypatch.setattr(web_commands.subprocess, "run", lambda _command, **_: Ran)
    asked = {"sink": "per_minute.sink", "number": "38"}
    client.post("/trace/begin", data=asked)
    text = client.get("/trace", params=asked).text
    while "under way" in text:
        text = client.get("/trace", params=asked).text
    assert "R407 the recorded input is gone &lt;i&gt;" in text
    assert "Trace this row again" in text


@pytest.mark.parametrize(
    "asked",
    [
        {"sink": "nobody", "number": "1"},
        {"sink": "per_minute.sink", "number": "-1"},
        {"sink": "per_minute.sink", "number": "99"},
    ],
)
def test_a_missing_row_is_not_traced(client: TestClient, asked: dict[str, str]) -> None:
    assert "R704" in client.post("/trace/begin", data=asked).text
