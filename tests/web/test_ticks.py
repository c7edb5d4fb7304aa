"""Ticks: durations by part, rows, and the slowest ticks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.state.costs import PARTS
from rowtime.web.views.ticks import NAMES
from tests.web.conftest import address
from tests.web.generated import Made

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture
def client(console: Callable[..., TestClient]) -> TestClient:
    made = console()
    made.base_url = str(made.base_url).rstrip("/") + address(made, "factory")
    return made


def test_durations_are_given_by_part(client: TestClient) -> None:
    found = client.get("/durations.json").json()
    parts = {one["label"]: one["values"] for one in found["series"]}
    assert [*parts] == [
        f"{name}, ms" for name in ("input", "planning", "clock pass", "Spark jobs", "driver", "sinks", "journal")
    ]
    assert [*NAMES] == [*PARTS], "no part of a tick is left out"
    assert parts["Spark jobs, ms"][17] == 190
    assert parts["journal, ms"][:2] == [9, 9]


def test_parts_after_the_newest_entry_have_no_time_yet(client: TestClient) -> None:
    found = client.get("/durations.json").json()["series"]
    newest = {one["label"].removesuffix(", ms"): one["values"][-1] for one in found}
    assert {name for name, value in newest.items() if value is None} == {"sinks", "journal"}
    assert all(None not in one["values"][:-1] for one in found)


def test_the_slowest_ticks_come_first(client: TestClient) -> None:
    text = client.get("/ticks").text
    rows = text[text.index("<tbody>") :]
    assert rows.index(">51</a>") < rows.index(">34</a>") < rows.index(">0</a>")
    assert "336 ms" in rows


def test_rows_are_counted_by_tick(client: TestClient) -> None:
    found = {one["label"]: one["values"] for one in client.get("/rows.json").json()["series"]}
    assert found["rows in"] == [103] * 60, "those of the first tick, too"
    assert sum(found["refused"]) == 22


def test_a_journal_without_costs_says_so(console: Callable[..., TestClient], home: Path) -> None:
    Made(home / "checkpoints" / "upgraded", costs=False).make()
    client = console()
    place = address(client, "upgraded")
    assert "has no costs of ticks" in client.get(f"{place}/ticks").text
    series = client.get(f"{place}/durations.json").json()["series"]
    assert {len(one["values"]) for one in series} == {0}
