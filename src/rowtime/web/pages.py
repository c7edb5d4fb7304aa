"""Pages: templates filled with the values of views. Text from data stays text: every value is escaped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse, JSONResponse, Response

from rowtime import __version__
from rowtime.core.time import wall_clock
from rowtime.web import words

if TYPE_CHECKING:
    from starlette.requests import Request

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
SEEN: Final = "seen"
PAGES: Final = (
    ("graph", "Graph"),
    ("timeline", "Timeline"),
    ("waiting", "Waiting"),
    ("rows", "Rows"),
    ("ticks", "Ticks"),
)
"""The pages of a pipeline: their names in addresses, and their titles."""


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": words.number,
        "instant": words.instant,
        "span": words.span,
        "milliseconds": words.milliseconds,
        "size": words.size,
    }
    environment.globals |= {"pages": PAGES, "version": __version__, "stamp": _stamp()}
    return environment


def _stamp() -> str:
    """Return a text that changes with any static file, so that browsers do not use files of another version."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]


ENVIRONMENT: Final = _environment()


def page(name: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """Return a whole page, or a fragment of one."""
    text = ENVIRONMENT.get_template(name).render({"pipeline": None, "at": "", "now": wall_clock(), **values})
    return HTMLResponse(text, status, headers={"cache-control": "no-store"})


def fragment(request: Request, name: str, mark: str, values: Mapping[str, Any]) -> Response:
    """Return a part of a page that refreshes itself; nothing (204) if its ``mark`` is unchanged."""
    if request.query_params.get(SEEN) == mark:
        return Response(status_code=204)
    return page(name, {**values, "mark": mark})


def data(request: Request, mark: str, values: Mapping[str, Any]) -> Response:
    """Return plain values for a script of the console, with an ETag; 304 if the browser has them."""
    headers = {"etag": f'"{mark}"', "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return JSONResponse(values, headers=headers)


def mark_of(*values: object) -> str:
    """Return a short text that differs for different values."""
    return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()[:16]
