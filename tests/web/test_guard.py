"""Which requests the console accepts: Host, Origin, token, and the permissions of its pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rowtime.web.guard import Access

if TYPE_CHECKING:
    from starlette.testclient import TestClient

TOKEN = "s3cret-token"  # noqa: S105 - of a console that the tests start


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8642", "127.0.0.1:9999", "127.0.0.1.evil.example:8642", ""]
)
def test_another_name_for_this_address_gets_no_answer(console: Callable[..., TestClient], host: str) -> None:
    answer = console().get("/", headers={"host": host})
    assert (answer.status_code, answer.text.split()[0]) == (403, "R703")


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:8642", "[::1]:8642"])
def test_the_names_of_this_machine_are_answered(console: Callable[..., TestClient], host: str) -> None:
    assert console().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_site_gets_no_answer(console: Callable[..., TestClient], headers: dict[str, str]) -> None:
    assert console().get("/", headers=headers).status_code == 403


def test_requests_that_change_something_must_come_from_the_console(console: Callable[..., TestClient]) -> None:
    assert console().post("/").status_code == 403
    assert console().post("/", headers={"origin": "http://127.0.0.1:8642"}).status_code == 405


def test_with_a_token_nothing_is_shown_without_it(console: Callable[..., TestClient]) -> None:
    client = console(access=Access("127.0.0.1", 8642, TOKEN))
    for path in ("/", "/static/console.css", "/nowhere"):
        assert client.get(path).status_code == 401
    assert client.get("/", params={"token": "wrong"}).status_code == 401
    assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_leaves_the_address_and_stays_in_a_cookie(console: Callable[..., TestClient]) -> None:
    client = console(access=Access("127.0.0.1", 8642, TOKEN))
    first = client.get("/", params={"token": TOKEN, "a": "1"})
    assert (first.status_code, first.headers["location"]) == (303, "/?a=1")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/nowhere", "/static/console.js"])
def test_no_answer_lets_a_page_run_or_fetch_foreign_content(console: Callable[..., TestClient], path: str) -> None:
    headers = console().get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_an_address_that_others_reach_answers_to_its_own_number() -> None:
    everywhere = Access("0.0.0.0", 80, TOKEN)  # noqa: S104 - what is tested
    assert everywhere.knows("192.168.0.7")
    assert everywhere.knows("192.168.0.7:80")
    assert not everywhere.knows("evil.example")
    assert not Access("192.168.0.7", 8642).knows("192.168.0.8:8642")
