"""A proxy in front of a server of object stores: it throttles, is slow, loses answers and holds requests back.

Its user may also examine each write before it is executed, while the program that sent it waits.
"""

from __future__ import annotations

import http.client
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote, urlsplit

THROTTLE: Final = "503"  # not carried out
LOSE: Final = "lost"  # carried out, without an answer
LATE: Final = "late"  # executed later, by `Faults.deliver`; without an answer
SLOW: Final = "slow"  # carried out and answered after a while
_WHILE: Final = 1.5  # seconds
_READS: Final = ("GET", "HEAD")
_REMOVED: Final = re.compile(rb"<Key>(.*?)</Key>|\bDELETE (/\S+)")  # objects are removed in batches, of one mostly
_DROPPED: Final = {"connection", "transfer-encoding"}
_OWN: Final = {*_DROPPED, "content-length", "date", "server"}  # headers of an answer that the proxy gives itself


class Faults:
    """What happens to the next PUTs whose path contains a text; ``seen`` are all requests, by method and path.

    Clients of Google write the slashes of a key as ``%2F``; here all paths are decoded.

    ``puts``: when each PUT came and when it was answered (seconds of a clock of its own), and its path. ``keys``: the
    keys that sign them; ``agents``: the programs that send them. ``before`` is called with method and path of each
    write before it is executed, and may return a fault.
    """

    def __init__(self, server: str) -> None:
        self.server, self.part = urlsplit(server).netloc, ""
        self.next: list[str] = []
        self.before: Callable[[str, str], str] = lambda _method, _path: ""
        self.seen: list[tuple[str, str]] = []
        self.puts: list[tuple[float, float, str]] = []
        self.keys: set[str] = set()
        self.agents: set[str] = set()
        self.late: list[tuple[str, str, bytes, dict[str, str]]] = []

    def put(self, part: str, *kinds: str) -> None:
        """Add these faults to the next writes."""
        self.part, self.next = part, [*kinds]

    def of(self, method: str, path: str, body: bytes) -> str:
        """Return the fault of a request."""
        if method in _READS:
            return ""
        if method == "PUT" and self.part in path and self.next:
            return self.next.pop(0)
        removed = _REMOVED.search(body) if method == "POST" else None
        if removed is None:
            return self.before(method, path)
        key = (removed[1] or removed[2]).decode()
        return self.before("DELETE", unquote(key) if key.startswith("/") else f"{urlsplit(path).path}/{unquote(key)}")

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Execute a request, with the name of the host for which it was signed."""
        connection = http.client.HTTPConnection(self.server, timeout=30)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    def deliver(self) -> list[int]:
        """Execute the late requests. Return the status of each."""
        requests, self.late = self.late, []
        return [self.ask(*request)[0] for request in requests]


class _Quiet(ThreadingHTTPServer):
    """A server that prints nothing about programs that die, or that close a connection early."""

    request_queue_size = 128  # connections that wait: readers of a log ask for many objects at once

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def faulty(server: str) -> Iterator[tuple[str, Faults]]:
    """Yield the address of a proxy, and its faults."""
    faults = Faults(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _any(self) -> None:
            body = self._body()
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
            faults.seen.append((self.command, unquote(self.path)))
            began = time.monotonic()
            signed = self.headers.get("authorization", "").partition("Credential=")[2]
            faults.keys.add(signed.partition("/")[0])
            faults.agents.add(self.headers.get("user-agent", ""))
            kind = faults.of(self.command, unquote(self.path), body)
            if kind == THROTTLE:
                self._answer(503, {}, b"")
                return
            if kind == SLOW:
                time.sleep(_WHILE)
            if kind == LATE:
                faults.late.append((self.command, self.path, body, headers))
            else:
                found = faults.ask(self.command, self.path, body, headers)
                if self.command == "PUT":
                    faults.puts.append((began, time.monotonic(), unquote(self.path)))
            if kind in (LOSE, LATE):
                self.close_connection = True
                self.connection.close()
            else:
                self._answer(*found)

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":  # as Arrow writes
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            length = headers.get("content-length", headers.get("Content-Length", "0"))
            self.send_header("content-length", length if self.command == "HEAD" else str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _any  # noqa: N815 - names of the class

    proxy = _Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}", faults
    finally:
        proxy.shutdown()
        proxy.server_close()
