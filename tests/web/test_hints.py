"""The hints of the console work."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from rowtime.client.home import Home
from rowtime.plan.program import compile_script
from rowtime.web import waiting
from rowtime.web.guard import Access
from rowtime.web.server import Console
from rowtime.web.watched import Watched
from tests.web import generated
from tests.web.conftest import AT, address

if TYPE_CHECKING:
    from httpx import Response

Ask = Callable[..., TestClient]
TOKEN = Access("127.0.0.1", 8642, "t")


def told(answer: Response, taken: str) -> str:
    """The part of the hint of an answer that ``taken`` matches; a page has its hint in a paragraph of its own."""
    page = re.search(r'<p class="quiet">(.*?)</p>', answer.text, re.DOTALL)
    hint = unescape(page[1]) if page else answer.text.splitlines()[1]
    found = re.search(taken, hint)
    assert found is not None, hint
    return found[1]


def test_a_refused_request_names_the_address_to_open(console: Ask) -> None:
    client = console()
    told(client.get("/", headers={"host": "evil.example"}), "Open the (address) that the console has printed")
    assert client.get(f"{AT}/").status_code == 200
    told(client.get("/", headers={"origin": "http://evil.example"}), "Open the console in a separate (window)")
    assert client.get("/").status_code == 200, "as a browser asks for an address that is typed"
    client = console(access=TOKEN)
    with_token = told(client.get("/"), r"address with (\?token=)… that the console has printed")
    assert client.get(f"/{with_token}t", follow_redirects=True).status_code == 200


def test_a_missing_page_links_to_an_existing_one(console: Ask) -> None:
    client = console()
    told(client.get("/nowhere"), "The (home page) lists the pipelines")
    pipeline = address(client, "factory")
    assert client.get(f"{pipeline}/graph").status_code == 200, "a link of the home page"
    page = told(client.get(f"{pipeline}/timeline.json", params={"at": "noon"}), "Start from the page (.*)[.]")
    assert client.get(f"{pipeline}/{page.lower()}").status_code == 200
    oldest = told(client.get(f"{pipeline}/timeline.json", params={"tick": 99}), r"newest ticks: (\d+) to 59[.]")
    assert client.get(f"{pipeline}/timeline.json", params={"tick": oldest}).status_code == 200
    page = told(client.get(f"{pipeline}/box", params={"box": "nobody"}), "The page (.*) shows the operators")
    boxes = {box["name"] for box in client.get(f"{pipeline}/{page.lower()}.json").json()["nodes"]}
    assert {client.get(f"{pipeline}/box", params={"box": box}).status_code for box in boxes} == {200}


@pytest.mark.parametrize(("number", "what"), [("x", "there is no such row"), ("99", "row 99 no longer exists")])
def test_existing_rows_can_be_traced(console: Ask, number: str, what: str) -> None:
    client = console()
    pipeline = address(client, "factory")
    answer = client.get(f"{pipeline}/trace", params={"sink": "per_minute.sink", "number": number})
    assert what in answer.text
    page = told(answer, "The page (.*) lists the rows")
    links, older = list[str](), [f"{pipeline}/{page.lower()}"]
    while older:  # a slow machine needs several pages
        shown = client.get(unescape(older[0])).text
        links += re.findall(r'href="([^"]*/trace\?[^"]*)"', shown)
        older = re.findall(r'href="([^"]*before=\d+[^"]*)"', shown)
    assert len({*links}) == 39
    assert client.get(unescape(links[0])).status_code == 200


def test_an_action_works_as_the_refusals_say(console: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "carry_out", lambda _: (True, "it is done"))
    client = console()
    act, ours = f"{address(client, 'factory')}/act", {"origin": AT}
    told(client.post(act, headers=ours), "Start it with (--allow-actions)")
    client = console(acts=True)
    asked = {"way": "0123456789abcdef", "time": "2026-03-02 09:20:00"}
    told(client.post(act, data=asked, headers=ours), "See the page (Waiting)")
    page = client.get(f"{address(client, 'factory')}/waiting").text
    asked["way"] = re.findall(r'name="way" value="(\w+)"', page)[-1]
    told(client.post(act, data=asked, headers=ours), "Tick the (box) to confirm")
    assert 'name="sure" value="yes"' in page
    assert "it is done" in client.post(act, data={**asked, "sure": "yes"}, headers=ours).text


def test_rows_are_shown_once_the_home_of_their_streams_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, other = generated.SCRIPT.split("CREATE STREAM found")
    home = Home(tmp_path / "home")
    for stream in compile_script(streams).defines:
        home.define(stream.name, stream.as_json())
    monkeypatch.setattr(generated, "SCRIPT", f"CREATE STREAM found{other}")
    monkeypatch.setattr(generated, "compile_script", partial(compile_script, home=home))
    factory = str(generated.Made(tmp_path / "elsewhere" / "factory").make())

    def rows(of: Home) -> Response:
        client = TestClient(Console(Watched(of, [factory]), Access(port=8642), acts=False).app, base_url=AT)
        return client.get(f"{address(client, 'factory')}/rows")

    told(rows(Home(tmp_path / "none")), "Give variables with --set, the home with (--home)")
    assert rows(home).text.count('class="pick"') == 39
