"""Waiting: what is held, by which writer, and the ways to release it, which run only if actions are allowed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.client.home import Home
from rowtime.plan.remedies import Remedy
from rowtime.web import waiting
from rowtime.web.guard import Access
from tests.web.conftest import AT, address

if TYPE_CHECKING:
    from starlette.testclient import TestClient

Console = Callable[..., "TestClient"]
TOKEN = Access("127.0.0.1", 8642, "t")
OURS = {"origin": AT, "authorization": "Bearer t"}


def page_of(client: TestClient, name: str = "factory") -> str:
    text = client.get(f"{address(client, name)}/waiting").text
    return re.sub(r"\s+", " ", unescape(text))


def test_waiting_rows_are_shown_with_the_writer_they_wait_for(console: Console) -> None:
    text = page_of(console())
    assert "per_minute.group" in text
    assert "writer 'door-00002' of doors" in text
    assert "It may send earlier rows." in text


def test_a_warning_comes_before_an_irreversible_statement(console: Console) -> None:
    text = page_of(console())
    first = text.index("This cannot be undone: earlier rows are refused from then on.")
    assert first < text.index("rowtime bound")


def test_nothing_is_executed_without_permission(console: Console) -> None:
    client = console()
    assert ">Run</button>" not in page_of(client)
    answer = client.post(f"{address(client, 'factory')}/act", data={"way": "x"}, headers={"origin": AT})
    assert "R705 " in re.sub(r"</?strong>", "", answer.text)
    assert "--allow-actions" in answer.text


@pytest.fixture
def acting(console: Console, monkeypatch: pytest.MonkeyPatch) -> tuple[TestClient, list[list[str]]]:
    ran: list[list[str]] = []
    monkeypatch.setattr(waiting, "carry_out", lambda arguments: (not ran.append(arguments), "done"))
    client = console(access=TOKEN, acts=True)
    client.headers.update({"authorization": "Bearer t"})
    return client, ran


def keys(client: TestClient) -> list[str]:
    return re.findall(r'name="way" value="(\w+)"', page_of(client))


def test_a_bound_is_set_by_the_command_that_a_user_would_type(
    acting: tuple[TestClient, list[list[str]]], home: Path
) -> None:
    client, ran = acting
    act = f"{address(client, 'factory')}/act"
    asked = {"way": keys(client)[-1], "time": "2026-03-02 09:20:00", "sure": "yes"}
    assert "done" in client.post(act, data=asked, headers=OURS).text
    assert ran == [
        ["bound", "doors", "2026-03-02 09:20:00", "--writer", "door-00002", "--home", str(home)],
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sure": ""}, "this cannot be undone"),
        ({"time": "soon"}, "R301"),
        ({"time": ""}, "R301"),
        ({"way": "0123456789abcdef"}, "this action is no longer offered"),
    ],
)
def test_incomplete_requests_are_not_executed(
    acting: tuple[TestClient, list[list[str]]], changed: dict[str, str], told: str
) -> None:
    client, ran = acting
    asked = {"way": keys(client)[-1], "time": "2026-03-02 09:20:00", "sure": "yes", **changed}
    answer = client.post(f"{address(client, 'factory')}/act", data=asked, headers=OURS)
    assert told in unescape(answer.text)
    assert not ran


def test_another_site_cannot_act(acting: tuple[TestClient, list[list[str]]]) -> None:
    client, ran = acting
    asked = {"way": keys(client)[-1], "time": "2026-03-02 09:20:00", "sure": "yes"}
    act = f"{address(client, 'factory')}/act"
    assert client.post(act, data=asked, headers={**OURS, "origin": "http://evil.example"}).status_code == 403
    client.headers.pop("authorization")
    assert client.post(act, data=asked, headers={"origin": AT}).status_code == 401
    assert not ran


def test_a_name_that_is_copied_into_a_shell_stays_a_name() -> None:
    hostile = Remedy("s", "x'; rm -rf ~; '", "log", silent=False, promoted=False, bound="", alone=True)
    way = hostile.advice(started=True, stalled=True).ways[-1]
    assert way.statement.endswith("""--writer 'x'"'"'; rm -rf ~; '"'"''""")
    assert way.command[-1] == "x'; rm -rf ~; '"


def test_the_bound_is_set_in_the_log(console: Console, home: Path) -> None:
    from rowtime.client.writer import open_writer
    from rowtime.web.waiting import carry_out

    columns = [{"name": "device", "type": "STRING", "nullable": True}]
    Home(home).define("doors", {"columns": columns, "format": None, "options": {}})
    with open_writer("doors", home=Home(home), writer="door-00002") as writer:
        assert writer.name == "door-00002"
    began = time.monotonic()
    well, said = carry_out(["bound", "doors", "2026-03-02 09:20:00", "--writer", "door-00002", "--home", str(home)])
    assert well, said
    assert "bound 2026-03-02 09:20:00 for writer door-00002" in said
    assert time.monotonic() - began < 60
