"""The server of the console: uvicorn on an address of this machine."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import uvicorn

from rowtime.core.errors import refuse
from rowtime.web.app import Console
from rowtime.web.guard import LOOPBACK, Access
from rowtime.web.watched import Watched

PORT: Final = 8642


@dataclass(frozen=True)
class Settings:
    """The address of the console.

    ``port`` 0 takes any free one. ``token``: the required token; ``acts``: actions are allowed.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    token: str | None = None
    acts: bool = False

    @property
    def needs_token(self) -> bool:
        """Return True if others can reach the address, or if actions are allowed."""
        return self.acts or self.host not in LOOPBACK


class Server:
    """One console with its port open; ``run`` it, or let it run beside something else."""

    def __init__(self, watched: Watched, settings: Settings) -> None:
        self._socket = _listening(settings)
        token = settings.token or (secrets.token_urlsafe(24) if settings.needs_token else None)
        self.access = Access(settings.host, self._socket.getsockname()[1], token)
        console = Console(watched, self.access, acts=settings.acts)
        config = uvicorn.Config(console.app, log_level="error", access_log=False, lifespan="off", server_header=False)
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """Return the address to open in a browser; it includes the token."""
        access = self.access
        host = f"[{access.host}]" if ":" in access.host else access.host
        return f"http://{host}:{access.port}/" + (f"?token={access.token}" if access.token else "")

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self._server.run(sockets=[self._socket])

    @contextmanager
    def beside(self) -> Iterator[str]:
        """Serve in a thread while the block runs; yield the address."""
        thread = threading.Thread(target=self.run, name="rowtime-ui", daemon=True)
        thread.start()
        try:
            yield self.url
        finally:
            self._server.should_exit = True
            thread.join(timeout=5)
            self._socket.close()


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        what = (
            f"the console cannot listen on {settings.host}, port {settings.port}: {getattr(error, 'strerror', error)}"
        )
        raise refuse("R702", what, "Choose another one with --port; 0 takes any free one.") from None
    return listener
