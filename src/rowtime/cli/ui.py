"""``rowtime ui``: the console over checkpoints, in a browser."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rowtime.cli.options import Checkpoints, HomeFolder, Settings, variables
from rowtime.client.home import Home
from rowtime.core.errors import Refused, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowtime.web.server import Server

Host = Annotated[
    str, typer.Option("--host", help="The address to listen on; if others can reach it, a token is required.")
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")]
Token = Annotated[
    str | None,
    typer.Option(
        "--token", envvar="ROWTIME_UI_TOKEN", help="The token that the console requires; default: a generated one."
    ),
]
Allow = Annotated[
    bool, typer.Option("--allow-actions", help="Let the page Waiting set bounds and end streams; requires a token.")
]
PORT = 8642


def ui(
    checkpoints: Checkpoints = None,
    home: HomeFolder = None,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    token: Token = None,
    allow_actions: Allow = False,
    settings: Settings = None,
) -> None:
    """Show pipelines in a browser, running or not: graph, timeline, held rows, rows, ticks."""
    console = server(checkpoints or (), Home(home), host, port, token, allow_actions, variables(settings))
    typer.echo(f"rowtime console: {console.url}\nCtrl-C ends it.")
    console.run()


@contextmanager
def beside(checkpoint: str, home: Home, values: dict[str, str]) -> Iterator[None]:
    """Show a run while it is running, on the usual port or, if that is in use, on a free one."""
    try:
        console = server([checkpoint], home, "127.0.0.1", PORT, None, False, values)
    except Refused as refused:
        if refused.problems[0].code != "R702":
            raise
        console = server([checkpoint], home, "127.0.0.1", 0, None, False, values)
    with console.beside() as url:
        typer.echo(f"rowtime console: {url}", err=True)
        yield


def server(
    checkpoints: Sequence[str],
    home: Home,
    host: str,
    port: int,
    token: str | None,
    acts: bool,
    values: dict[str, str],
) -> Server:
    """Return a console with its port open; raises R701 without the extra ``ui``, R702 for a port in use."""
    try:
        from rowtime.web.server import Server, Settings  # noqa: PLC0415 - an extra
        from rowtime.web.watched import Watched  # noqa: PLC0415 - the same
    except ModuleNotFoundError as missing:
        what = f"the console needs the package {missing.name}, which is not installed"
        raise refuse("R701", what, "pip install 'rowtime[ui]'") from None
    return Server(Watched(home, checkpoints, values), Settings(host, port, token, acts))
