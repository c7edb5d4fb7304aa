"""A proxy before an S3 server that throttles, and that loses answers to requests which have been carried out."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

THROTTLE: Final = "503"  # not carried out
LOSE: Final = "lost"  # carried out, without an answer
LATE: Final = "late"  # carried out later, by `Faults.deliver`; without an answer
_DROPPED: Final = {"host", "connection", "transfer-encoding"}


class Faults:
    """What happens to the next writes whose path contains a text; ``seen`` are all requests, by method and path.

    ``keys``: by whose keys they are signed; ``agents``: the programs that ask.
    """

    def __init__(self, server: str) -> None:
        self.server, self.part = urlsplit(server).netloc, ""
        self.next: list[str] = []
        self.seen: list[tuple[str, str]] = []
        self.keys: set[str] = set()
        self.agents: set[str] = set()
        self.late: list[tuple[str, str, bytes, dict[str, str]]] = []

    def put(self, part: str, *kinds: str) -> None:
        """Let these befall the next writes."""
        self.part, self.next = part, [*kinds]

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Have a request carried out."""
        connection = http.client.HTTPConnection(self.server, timeout=30)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    def deliver(self) -> list[int]:
        """Carry out what is late; the status of each."""
        requests, self.late = self.late, []
        return [self.ask(*request)[0] for request in requests]


@contextmanager
def faulty(server: str) -> Iterator[tuple[str, Faults]]:
    """The address of a proxy, and its faults."""
    faults = Faults(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
            faults.seen.append((self.command, self.path))
            signed = self.headers.get("authorization", "").partition("Credential=")[2]
            faults.keys.add(signed.partition("/")[0])
            faults.agents.add(self.headers.get("user-agent", ""))
            kind = faults.next.pop(0) if self.command == "PUT" and faults.part in self.path and faults.next else ""
            if kind == THROTTLE:
                self._answer(503, {}, b"")
                return
            if kind == LATE:
                faults.late.append((self.command, self.path, body, headers))
            else:
                found = faults.ask(self.command, self.path, body, headers)
            if kind in (LOSE, LATE):
                self.close_connection = True
                self.connection.close()
            else:
                self._answer(*found)

        def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in {*_DROPPED, "content-length", "date", "server"}:
                    self.send_header(name, value)
            length = headers.get("content-length", headers.get("Content-Length", "0"))
            self.send_header("content-length", length if self.command == "HEAD" else str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _any  # noqa: N815 - names of the class

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}", faults
    finally:
        proxy.shutdown()
        proxy.server_close()
