"""The guard: which requests the console answers, and what its pages may do in a browser.

A foreign page can make a browser send requests to 127.0.0.1, also under its own name (DNS rebinding). So the Host of
each request must be the address with which the console was started, and requests that change something must come from a
page of the console itself (Origin). A token is required if others can reach the address, or if actions are allowed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "rowtime-token"
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer the forms of the pages would have the origin null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True)
class Access:
    """The access rules: the ``host`` that the console listens on, its ``port``, and a ``token`` if one is required."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None

    @property
    def names(self) -> Sequence[str]:
        """Return the allowed Hosts of a request; on all addresses, any IP address or this machine's name."""
        return LOOPBACK if self.host in LOOPBACK else (self.host, *LOOPBACK)

    def knows(self, host: str) -> bool:
        """Return True for a Host that is the console's own address."""
        try:
            url = urlsplit(f"//{host}")
            name, port = url.hostname or "", url.port
        except ValueError:
            return False
        if self.port and port not in (self.port, None if self.port == 80 else self.port):  # noqa: PLR2004 - of HTTP
            return False
        return name in self.names or (self.host in ("0.0.0.0", "::") and _is_address(name))  # noqa: S104 - compared

    def fits(self, token: str | None) -> bool:
        """Return True if no token is required, or this is the one."""
        return self.token is None or (token is not None and secrets.compare_digest(token.encode(), self.token.encode()))


class Guard:
    """Middleware: refuses requests that are not the user's (R703), and sets the security headers of each answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refused(Request(scope))
        await (refused or self.app)(scope, receive, marked)

    def _refused(self, request: Request) -> Response | None:
        headers = request.headers
        if not self.access.knows(headers.get("host", "")):
            return _no(
                "R703",
                "the console does not answer requests for this host name",
                "Open the address that the console has printed.",
            )
        if not self._from_here(headers, request.method):
            return _no("R703", "another site sent this request", "Open the console in a separate window.")
        given = request.query_params.get("token")
        if given is not None and self.access.fits(given):
            return self._let_in(request)
        if not self.access.fits(request.cookies.get(COOKIE) or _bearer(headers)):
            what = "Open the address with ?token=… that the console has printed."
            return _no("R703", "the console requires its token", what, status=401)
        return None

    def _from_here(self, headers: Headers, method: str) -> bool:
        origin = headers.get("origin")
        if origin is not None:
            return self.access.knows(urlsplit(origin).netloc)
        return method in ("GET", "HEAD") and headers.get("sec-fetch-site", "none") in ("none", "same-origin")

    def _let_in(self, request: Request) -> Response:
        """Move the token from the address, where it would be visible, to a cookie."""
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        url = request.url.replace(query="").include_query_params(**dict(rest))
        answer = RedirectResponse(url.path + (f"?{url.query}" if url.query else ""), status_code=303)
        if self.access.token is not None:
            answer.set_cookie(COOKIE, self.access.token, httponly=True, samesite="strict")
        return answer


def _no(code: str, what: str, hint: str, status: int = 403) -> Response:
    return PlainTextResponse(f"{code} {what}\n{hint}\n", status)


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else None


def _is_address(name: str) -> bool:
    return all(part.isdigit() for part in name.split(".")) or ":" in name
