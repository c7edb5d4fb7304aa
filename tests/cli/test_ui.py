"""``rowtime ui``: how it starts, and which errors prevent that."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rowtime.client.home import Home
from rowtime.web.server import Server, Settings
from rowtime.web.watched import Watched

if TYPE_CHECKING:
    from typer.testing import Result


def test_a_port_in_use_is_reported_with_a_code(rowtime: Callable[..., Result]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = rowtime("ui", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert result.stderr.startswith("R702 the console cannot listen on 127.0.0.1")
    port = re.search(r"Choose another one with --port; (\d+) takes any free one[.]", result.stderr)
    assert port is not None
    with Server(Watched(Home(), ()), Settings(port=int(port[1]))).beside() as url:
        assert url.startswith("http://127.0.0.1:")


def test_without_the_extra_it_says_what_to_install(
    rowtime: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("rowtime.web", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = rowtime("ui", "--port", "0")
    assert result.exit_code == 1
    assert (
        result.stderr
        == "R701 the console needs the package uvicorn, which is not installed\npip install 'rowtime[ui]'\n"
    )


@pytest.mark.parametrize(
    ("settings", "asks"),
    [
        (Settings(port=0), False),
        (Settings("localhost", port=0), False),
        (Settings("0.0.0.0", port=0), True),  # noqa: S104 - what is tested
        (Settings(port=0, acts=True), True),
        (Settings(port=0, token="mine"), True),  # noqa: S106 - no secret
    ],
)
def test_a_token_is_required_if_others_can_reach_it_or_if_it_may_act(settings: Settings, asks: bool) -> None:
    made = Server(Watched(Home(), ()), settings)
    with made.beside() as url:
        assert ("?token=" in url) is asks
        assert settings.token is None or url.endswith("token=mine")
