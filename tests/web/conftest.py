"""The console in this process: requests by Starlette's client, over generated checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rowtime.client.home import Home
from rowtime.web.guard import Access
from rowtime.web.server import Console
from rowtime.web.watched import Watched
from tests.web.generated import Made

Ask = Callable[..., TestClient]
AT = "http://127.0.0.1:8642"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory in which a pipeline called factory has stopped."""
    folder = tmp_path / "home"
    (folder / "checkpoints").mkdir(parents=True)
    Made(folder / "checkpoints" / "factory").make()
    return folder


@pytest.fixture
def console(home: Path) -> Ask:
    """``console(CHECKPOINT, …)`` opens these checkpoints, or all of the home."""

    def opened(*given: str, access: Access | None = None, acts: bool = False) -> TestClient:
        made = Console(Watched(Home(home), given), access or Access(port=8642), acts=acts)
        return TestClient(made.app, base_url=AT, follow_redirects=False)

    return opened


def address(client: TestClient, name: str) -> str:
    """The path prefix of a pipeline's pages."""
    text = client.get("/").text
    start = text.index(f'href="/p/{name}-') + len('href="')
    return text[start : text.index("/graph", start)]
