"""The page Waiting, and its actions if the console may act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool

from rowtime.core.errors import refuse
from rowtime.core.time import wall_clock
from rowtime.plan.lateness import LateRows, late_rows
from rowtime.web.actions import carry_out, command
from rowtime.web.pages import fragment, mark_of, page
from rowtime.web.pipelines import facts_of, page_of
from rowtime.web.views.waits import Held, offered, waits

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from rowtime.web.watched import Pipeline, Watched


class Waiting:
    """What waits in a pipeline; ``acts``: statements may be executed."""

    def __init__(self, watched: Watched, *, acts: bool) -> None:
        self._watched, self._acts = watched, acts

    def page(self, _request: Request, pipeline: Pipeline) -> Response:
        """Show the whole page."""
        return page_of("waiting", "Waiting", **self._values(pipeline))

    def part(self, request: Request, pipeline: Pipeline) -> Response:
        """Show what waits, for a page that is open."""
        context = self._values(pipeline)
        return fragment(request, "waiting_part.html", context["mark"], context)

    async def act(self, request: Request, pipeline: Pipeline) -> Response:
        """Execute a statement; raises ``Refused`` (R705) if that is not allowed, or it is no longer offered."""
        if not self._acts:
            raise refuse("R705", "this console does not run actions", "Start it with --allow-actions.")
        form = dict(parse_qsl((await request.body()).decode(errors="replace")))
        offer = offered(_waits(pipeline), form.get("way", ""))
        if offer is None:
            raise refuse("R705", "this action is no longer offered", "See the page Waiting for the current ones.")
        if offer.way.lasting and form.get("sure") != "yes":
            raise refuse("R705", offer.way.lasting, "Tick the box to confirm.")
        arguments = command(offer.way, pipeline, self._watched, form.get("time", ""))
        went_well, output = await run_in_threadpool(carry_out, arguments)
        outcome = {"arguments": arguments, "went_well": went_well, "output": output}
        return page("acted.html", {**outcome, "pipeline": pipeline, "title": "Done", "facts": facts_of(pipeline)})

    def _values(self, pipeline: Pipeline) -> dict[str, Any]:
        items, late = _waits(pipeline), _late(pipeline)
        mark = mark_of(items, late)
        return {"pipeline": pipeline, "waits": items, "late": late, "acts": self._acts, "mark": mark}


def _waits(pipeline: Pipeline) -> list[Held]:
    records = pipeline.records
    plan, entry = records.plan, records.last
    return waits(plan, entry, wall_clock()) if plan is not None and entry is not None else []


def _late(pipeline: Pipeline) -> list[LateRows]:
    plan, entry = pipeline.records.plan, pipeline.records.last
    return late_rows(plan, entry) if plan is not None and entry is not None else []
