"""A schema registry behind HTTP for the tests: Confluent's paths over a folder of a registry for tests."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rowtime.core.errors import Refused
from rowtime.runtime.schemas.registry import MockRegistry, Schema

PATIENCE = 20  # seconds


class Served:
    """The requests to a server; ``fails``: how many it still rejects; ``refuses``: why it accepts no schema."""

    def __init__(self, registry: MockRegistry) -> None:
        self.registry = registry
        self.url, self.fails, self.refuses = "", 0, ""
        self.asked: list[str] = []
        self.authorizations: set[str] = set()

    @staticmethod
    def comes(condition: Callable[[], object]) -> bool:
        """Return True if a condition becomes true before a timeout that counts processor time."""
        until = time.monotonic() + PATIENCE * max(1, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))
        while not condition() and time.monotonic() < until:
            time.sleep(0.05)
        return bool(condition())

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append(path)
        if self.fails:
            self.fails -= 1
            return 503, {"error_code": 50301, "message": "starting"}
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] == ["schemas", "ids"]:
            found = self.registry.by_id(int(parts[2]))
            return (
                (404, {"error_code": 40403})
                if found is None
                else (200, {"schema": found.text, "schemaType": found.kind})
            )
        subject = parts[1]
        if body is None:
            found = self.registry.latest(subject)
            return (
                (404, {"error_code": 40401})
                if found is None
                else (200, {"schema": found.text, "schemaType": found.kind})
            )
        if self.refuses:
            return 409, {"error_code": 409, "message": self.refuses}
        schema = Schema(body["schema"], body.get("schemaType", "AVRO"))
        try:
            return 200, {"id": self.registry.id_of(subject, schema, register=len(parts) > 2)}
        except Refused:
            return 404, {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def serving(home: Path, registry: str) -> Iterator[Served]:
    """A server of a registry of a home."""
    served = Served(MockRegistry(home / "schema-registry" / registry))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            if "Authorization" in self.headers:
                served.authorizations.add(self.headers["Authorization"])
            status, found = served.answer(self.path, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
