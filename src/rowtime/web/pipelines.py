"""The pages of one pipeline: what each takes from its records and its request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowtime.core.errors import Refused, refuse
from rowtime.core.time import SECOND, wall_clock
from rowtime.observe.pump_states import pump_lines, pumps_of
from rowtime.web.pages import data, fragment, mark_of, page
from rowtime.web.views.explained import Explained, held_over_time, writers
from rowtime.web.views.graph import graph
from rowtime.web.views.ticks import durations, rows, summary
from rowtime.web.views.timeline import Selection, steps, timeline
from rowtime.web.watched import Pipeline

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def page_of(name: str, title: str, /, *, pipeline: Pipeline, **values: Any) -> Response:
    """Return a page of a pipeline, with its facts at the top."""
    context = {"pipeline": pipeline, "at": name, "title": title, "facts": facts_of(pipeline), **values}
    return page(f"{name}.html", context)


def facts_of(pipeline: Pipeline) -> dict[str, Any]:
    """Return the facts on each page of a pipeline."""
    records = pipeline.records
    alive = records.liveness
    moments = records.moments
    faults = records.damage
    last = moments[-1] if records.last is not None and moments else None
    beat = wall_clock() // SECOND if alive.under_way else 0  # its text includes how long
    pumps = _pumps(pipeline)
    mark = mark_of(alive, records.number, records.read, faults, beat, pumps)
    journal = {"read": records.read, "wanted": records.wanted, "first": moments[0].tick if last is not None else None}
    return {"alive": alive, "last": last, "faults": faults, "mark": mark, "pumps": pumps, **journal}


def _pumps(pipeline: Pipeline) -> tuple[str, ...]:
    """Return which pumps are stopped and which orders wait; nothing if the plan cannot be read."""
    records = pipeline.records
    try:
        plan = records.plan
    except Refused:
        return ()  # the page says why
    if plan is None:
        return ()
    return tuple(pump_lines({**pumps_of(records.checkpoint.folder, plan), "state": records.liveness.state}))


def facts(request: Request, pipeline: Pipeline) -> Response:
    """Return only the facts, for a page that is open."""
    context = facts_of(pipeline)
    return fragment(request, "facts.html", context["mark"], {"pipeline": pipeline, "facts": context})


def graph_page(_request: Request, pipeline: Pipeline) -> Response:
    """The page around the graph."""
    return page_of("graph", "Graph", pipeline=pipeline)


def graph_data(request: Request, pipeline: Pipeline) -> Response:
    """The graph for the script that draws it."""
    records = pipeline.records
    plan, entry = records.plan, records.last
    if plan is None:
        return data(request, "none", {"tick": None, "blame": "", "nodes": [], "edges": []})
    content = graph(plan, entry or _NOTHING, records.moments)
    return data(request, mark_of(records.number, records.read), content)


def box(_request: Request, pipeline: Pipeline, explained: Explained | None) -> Response:
    """Return one box of the graph, opened."""
    name = _box_of(_request, pipeline)
    records = pipeline.records
    plan = records.plan
    assert plan is not None
    assert explained is not None
    listed, every = writers(name, records.last or _NOTHING) if name in plan.formats else ([], 0)
    values = {
        "pipeline": pipeline,
        "name": name,
        "kind": plan.operators[name].kind,
        "terms": explained.terms(name),
        "problem": explained.problem,
        "script": explained.script(name),
        "writers": listed,
        "all_writers": every,
    }
    return page("box.html", values)


def held_data(request: Request, pipeline: Pipeline) -> Response:
    """The state of one operator over time: its rows, or its ``bytes``."""
    name = _box_of(request, pipeline)
    records, what = pipeline.records, "bytes" if "bytes" in request.query_params else "rows"
    history = held_over_time(name, records.moments)
    chart = {"x": history["ticks"], "series": [{"label": what, "values": history[what]}], "step": True}
    return data(request, mark_of(name, what, records.number, records.read), chart)


def timeline_page(_request: Request, pipeline: Pipeline) -> Response:
    """Return the page around the timeline."""
    return page_of("timeline", "Timeline", pipeline=pipeline)


def timeline_data(request: Request, pipeline: Pipeline) -> Response:
    """Return the timeline after a tick, by default the newest."""
    records, wanted = pipeline.records, _selection(request)
    plan, moments = records.plan, records.moments
    if plan is None or not moments:
        return data(request, "none", {"tick": None, "steps": []})
    entry = records.last if wanted.tick is None else records.entry_at(wanted.tick)
    if entry is None:
        what = f"the journal has no entry of tick {wanted.tick} any more"
        raise refuse("R704", what, f"The journal keeps the newest ticks: {moments[0].tick} to {moments[-1].tick}.")
    content = timeline(plan, entry, moments, records.refusals, wanted)
    mark = mark_of(records.number, records.read, *request.query_params.multi_items())
    return data(request, mark, {**content, "steps": steps(moments)})


def ticks_of(pipeline: Pipeline) -> dict[str, Any]:
    """Return the values at the top of the page Ticks."""
    records = pipeline.records
    mark = mark_of(records.number, records.read)
    return {"pipeline": pipeline, "found": summary(records.moments), "alive": records.liveness, "mark": mark}


def ticks_page(_request: Request, pipeline: Pipeline) -> Response:
    """Return the page with durations, rows, and the slowest ticks."""
    return page_of("ticks", "Ticks", **ticks_of(pipeline))


def ticks_part(request: Request, pipeline: Pipeline) -> Response:
    """Return only the table, for a page that is open."""
    context = ticks_of(pipeline)
    return fragment(request, "ticks_part.html", context["mark"], context)


def durations_data(request: Request, pipeline: Pipeline) -> Response:
    """Milliseconds by part, for a chart."""
    records = pipeline.records
    return data(request, mark_of(records.number, records.read), durations(records.moments))


def rows_data(request: Request, pipeline: Pipeline) -> Response:
    """Rows by tick, for a chart."""
    records = pipeline.records
    plan = records.plan
    return data(request, mark_of(records.number, records.read), rows(records.moments, [*plan.formats] if plan else []))


def _selection(request: Request) -> Selection:
    """Parse the request; raises ``Refused`` (R704) for an invalid number."""
    given = request.query_params
    try:
        values = {name: int(given[name]) for name in ("tick", "from", "to", "at") if name in given}
    except ValueError:
        raise refuse(
            "R704", "a tick or a time in this address is not a number", "Start from the page Timeline."
        ) from None
    return Selection(values.get("tick"), values.get("from"), values.get("to"), values.get("at"))


def _box_of(request: Request, pipeline: Pipeline) -> str:
    """The operator that a request names; raises ``Refused`` (R704)."""
    name = request.query_params.get("box", "")
    plan = pipeline.records.plan
    if plan is None or name not in plan.operators:
        raise refuse("R704", f"there is no operator {name} in this plan", "The page Graph shows the operators.")
    return name


_NOTHING: dict[str, Any] = {"tick": -1, "clocks": {}, "totals": {}, "sources": {}, "segments": {}, "control": {}}
