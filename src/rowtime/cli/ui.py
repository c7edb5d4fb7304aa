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
    from rowtime.web.watched import Watched

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
Imports = Annotated[
    bool, typer.Option("--import", help="Let traces import the Python modules that scripts name; their code runs.")
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
    imports: Imports = False,
) -> None:
    """Show pipelines in a browser, running or not: graph, timeline, held rows, rows, ticks."""
    given = watched(checkpoints or (), Home(home), variables(settings), imports=imports)
    console = server(given, host, port, token, acts=allow_actions)
    typer.echo(f"rowtime console: {console.url}\nCtrl-C ends it.")
    console.run()


@contextmanager
def beside(checkpoint: str, home: Home, values: dict[str, str]) -> Iterator[None]:
    """Show a run while it is running, on the usual port or, if that is in use, on a free one."""
    given = watched([checkpoint], home, values, imports=True)  # the run has imported them
    try:
        console = server(given, "127.0.0.1", PORT, None)
    except Refused as refused:
        if refused.problems[0].code != "R702":
            raise
        console = server(given, "127.0.0.1", 0, None)
    with console.beside() as url:
        typer.echo(f"rowtime console: {url}", err=True)
        yield


def watched(checkpoints: Sequence[str], home: Home, values: dict[str, str], *, imports: bool) -> Watched:
    """Return the pipelines of a console; raises R701 without the extra ``ui``."""
    with _needs_extra():
        from rowtime.web.watched import Watched  # noqa: PLC0415 - an extra

        return Watched(home, checkpoints, values, imports=imports)


def server(given: Watched, host: str, port: int, token: str | None, *, acts: bool = False) -> Server:
    """Return a console with its port open; raises R701 without the extra ``ui``, R702 for a port in use."""
    with _needs_extra():
        from rowtime.web.server import Server, Settings  # noqa: PLC0415 - an extra

        return Server(given, Settings(host, port, token, acts))


@contextmanager
def _needs_extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        what = f"the console needs the package {missing.name}, which is not installed"
        raise refuse("R701", what, "pip install 'rowtime[ui]'") from None
