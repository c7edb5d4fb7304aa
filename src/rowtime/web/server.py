"""The server of the console: uvicorn on an address of this machine."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rowtime.core.errors import Problem, RowtimeError, refuse
from rowtime.core.time import SECOND, wall_clock
from rowtime.plan.stored import StoredPlan
from rowtime.web import pipelines
from rowtime.web.guard import LOOPBACK, Access, Guard
from rowtime.web.pages import STATIC, fragment, mark_of, page
from rowtime.web.records import BUDGET, problems_of
from rowtime.web.rows import Rows
from rowtime.web.views.explained import Explained
from rowtime.web.views.home import cards
from rowtime.web.waiting import Waiting
from rowtime.web.watched import Pipeline, Watched

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


View = Callable[[Request, Pipeline], Response]
Act = Callable[[Request, Pipeline], Awaitable[Response]]

NOT_FOUND: Final = 404
UNREADABLE: Final = 422
EXPECTED: Final = (RowtimeError, OSError, ValueError, KeyError, TypeError)
"""Errors that reading a damaged checkpoint may raise: a page shows them."""


class Console:
    """The pages over the ``watched`` pipelines; ``acts``: statements may be executed."""

    def __init__(self, watched: Watched, access: Access, *, acts: bool = False) -> None:
        self.watched, self.access, self.acts = watched, access, acts
        self.waiting = Waiting(watched, acts=acts)
        self.rows = Rows(watched, self.explained)
        self._explained: dict[str, tuple[StoredPlan, Explained]] = {}
        self.app = Starlette(
            routes=[
                Route("/", self.home),
                Route("/part/home", self.home_part),
                *self._routes(),
                Mount("/static", StaticFiles(directory=STATIC)),
            ],
            middleware=[Middleware(Guard, access=access)],
            exception_handlers={NOT_FOUND: self._not_found},
        )

    def _routes(self) -> list[Route]:
        shown: dict[str, View] = {
            "facts": pipelines.facts,
            "graph": pipelines.graph_page,
            "graph.json": pipelines.graph_data,
            "box": lambda request, one: pipelines.box(request, one, self.explained(one)),
            "held.json": pipelines.held_data,
            "timeline": pipelines.timeline_page,
            "timeline.json": pipelines.timeline_data,
            "waiting": self.waiting.page,
            "waiting/part": self.waiting.part,
            "rows": self.rows.page,
            "trace": self.rows.trace,
            "trace/part": self.rows.trace_part,
            "ticks": pipelines.ticks_page,
            "ticks/part": pipelines.ticks_part,
            "durations.json": pipelines.durations_data,
            "rows.json": pipelines.rows_data,
        }
        done = {"act": self.waiting.act, "trace/begin": self.rows.begin}
        acts = [Route(f"/p/{{key}}/{name}", self.by_form(act), methods=["POST"]) for name, act in done.items()]
        return [*acts, *(Route(f"/p/{{key}}/{name}", self.of_pipeline(view)) for name, view in shown.items())]

    def by_form(self, act: Act) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler for a form, for the pipeline in the address."""

        async def answered(request: Request) -> Response:
            pipeline = self.watched.get(request.path_params["key"])
            if pipeline is None:
                return _nothing("there is no such pipeline")
            try:
                await run_in_threadpool(pipeline.records.refresh)
                return await act(request, pipeline)
            except EXPECTED as error:
                return page("problems.html", {"problems": problems_of(error), "pipeline": pipeline}, UNREADABLE)

        return answered

    def explained(self, pipeline: Pipeline) -> Explained | None:
        """Return EXPLAIN of a pipeline's plan; bound once for each plan."""
        plan = pipeline.records.plan
        if plan is None:
            return None
        cached = self._explained.get(pipeline.key)
        if cached is None or cached[0] is not plan:
            cached = self._explained[pipeline.key] = (plan, Explained(plan, self.watched.home, self.watched.variables))
        return cached[1]

    def home(self, request: Request) -> Response:
        """Show all pipelines."""
        return page("home.html", self._home(request))

    def home_part(self, request: Request) -> Response:
        """Show the same, for a page that is open."""
        context = self._home(request)
        return fragment(request, "home_part.html", context["mark"], context)

    def _home(self, _request: Request) -> dict[str, Any]:
        listed = cards(self.watched.pipelines, BUDGET)
        return {"cards": listed, "home": str(self.watched.home.path), "mark": mark_of(listed, _beat())}

    def of_pipeline(self, view: View) -> Callable[[Request], Response]:
        """Return a handler for a view of the pipeline in the address; problems with its checkpoint are a page too."""

        def shown(request: Request) -> Response:
            pipeline = self.watched.get(request.path_params["key"])
            if pipeline is None:
                return _nothing("there is no such pipeline")
            try:
                pipeline.records.refresh()
                pipeline.records.check()
                return view(request, pipeline)
            except EXPECTED as error:
                return page("problems.html", {"problems": problems_of(error), "pipeline": pipeline}, UNREADABLE)

        return shown

    def _not_found(self, _request: Request, _error: Exception) -> Response:
        return _nothing("there is no such page")


def _nothing(what: str) -> Response:
    problem = Problem("R704", what, hint="The home page lists the pipelines.")
    return page("problems.html", {"problems": [problem]}, NOT_FOUND)


def _beat() -> int:
    """Return a number that changes every ten seconds, because pages also show ages."""
    return wall_clock() // (10 * SECOND)
