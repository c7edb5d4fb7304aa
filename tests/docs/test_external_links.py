"""The check of links to other sites, against a server on this machine."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
SLOW = 0.5  # seconds


class Site(BaseHTTPRequestHandler):
    """Pages by their names; ``asked`` counts the requests."""

    asked: ClassVar[Counter[tuple[str, str]]] = Counter()

    def do_HEAD(self) -> None:
        self.answer("HEAD")

    def do_GET(self) -> None:
        self.answer("GET")

    def answer(self, method: str) -> None:
        self.asked[method, self.path] += 1
        number = self.asked[method, self.path]
        status = {
            "/good": 200,
            "/moved": 301,
            "/no-head": 200 if method == "GET" else 405,
            "/busy": 200 if method == "GET" and number == 2 else 503,
            "/down": 500,
            "/slow": 200,
        }.get(self.path, 404)
        if self.path == "/slow":
            time.sleep(SLOW)
        self.send_response(status)
        if status == 301:
            self.send_header("Location", "/good")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Site.asked.clear()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The scripts, with short pauses."""
    loaded = {}
    for name in ("external_links", "check_site"):
        spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        loaded[name] = module
    return loaded


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_pages_that_are_there_are_not_broken(modules: dict[str, ModuleType], server: str) -> None:
    links = {f"{server}/{name}": ["README.md"] for name in ("good", "moved", "no-head", "busy")}
    assert modules["external_links"].broken(links, pause=0.01) == []
    assert Site.asked["GET", "/busy"] == 2
    assert Site.asked["GET", "/moved"] == 0, "HEAD is enough"


def test_a_broken_link_is_reported_with_the_reason_and_the_files(modules: dict[str, ModuleType], server: str) -> None:
    nobody = f"http://127.0.0.1:{closed_port()}/x"
    links = {
        f"{server}/gone": ["a.md", "b.html"],
        f"{server}/down": list("vwxyz"),
        f"{server}/slow": ["a.md"],
        nobody: ["c.md"],
    }
    gone, down, slow, refused = modules["external_links"].broken(links, seconds=SLOW / 5, pause=0.01)
    assert gone == f"{server}/gone: 404 Not Found; linked from a.md, b.html"
    assert down == f"{server}/down: 500 Internal Server Error; linked from v, w, x and 2 more"
    assert slow.startswith(f"{server}/slow: TimeoutError: ")
    assert refused.startswith(f"{nobody}: URLError: ")
    assert "refused" in refused
    assert Site.asked["GET", "/gone"] == 1, "it stays gone"
    assert Site.asked["GET", "/down"] == 3


def test_links_are_read_from_pages_and_markdown(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    page, text = tmp_path / "page.html", tmp_path / "README.md"
    page.write_text('<a class="x" href="https://a.example/?b=1&amp;c=2#d">A</a> <a href="other.html">B</a>')
    text.write_text("[A](https://a.example/?b=1&c=2) and [C](docs/c.md), <http://d.example>, not http://e.example")
    links = modules["external_links"].links_of([page, text], tmp_path)
    assert links == {"https://a.example/?b=1&c=2": ["page.html", "README.md"], "http://d.example": ["README.md"]}


def test_the_check_of_the_site_follows_external_links_if_told(
    modules: dict[str, ModuleType], server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    (site / "search").mkdir(parents=True)
    (site / "search" / "search_index.json").write_text(json.dumps({"docs": [{"location": "page.html#a"}]}))
    (site / "page.html").write_text(f'<a href="{server}/good">good</a>')
    (tmp_path / "README.md").write_text(f"[gone]({server}/gone)")
    check = modules["check_site"].main
    assert check(site, external=False) == 0
    assert Site.asked == {}
    assert check(site, external=True) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"{server}/gone: 404 Not Found; linked from README.md",
        "1 pages, 1 entries to search, 2 external links, 1 wrong",
    ]
    (tmp_path / "README.md").write_text(f"[good]({server}/good)")
    assert check(site, external=True) == 0
