"""The pages of one pipeline: what each takes from its records and its request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowtime.core.errors import refuse
from rowtime.web.pages import data, fragment, mark_of, page
from rowtime.web.views.explained import Explained, held_over_time, writers
from rowtime.web.views.graph import graph
from rowtime.web.watched import Pipeline

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def page_of(name: str, title: str, pipeline: Pipeline, **values: Any) -> Response:
    """A page of a pipeline, with its facts above."""
    told = {"pipeline": pipeline, "at": name, "title": title, "facts": facts_of(pipeline), **values}
    return page(f"{name}.html", told)


def facts_of(pipeline: Pipeline) -> dict[str, Any]:
    """What stands on each page of a pipeline."""
    records = pipeline.records
    alive = records.liveness
    moments = records.moments
    faults = [records.faults[number] for number in sorted(records.faults)[-3:]]
    last = moments[-1] if records.last is not None and moments else None
    mark = mark_of(alive, records.number, records.read, faults)
    told = {"read": records.read, "wanted": records.wanted}
    return {"alive": alive, "last": last, "faults": faults, "mark": mark, **told}


def facts(request: Request, pipeline: Pipeline) -> Response:
    """The facts alone, for a page that is there."""
    found = facts_of(pipeline)
    return fragment(request, "facts.html", found["mark"], {"pipeline": pipeline, "facts": found})


def graph_page(_request: Request, pipeline: Pipeline) -> Response:
    """The page around the graph."""
    return page_of("graph", "Graph", pipeline)


def graph_data(request: Request, pipeline: Pipeline) -> Response:
    """The graph for the script that draws it."""
    records = pipeline.records
    plan, entry = records.plan, records.last
    if plan is None:
        return data(request, "none", {"tick": None, "blame": "", "nodes": [], "edges": []})
    found = graph(plan, entry or _NOTHING, records.moments)
    return data(request, mark_of(records.number, records.read), found)


def box(_request: Request, pipeline: Pipeline, explained: Explained | None = None) -> Response:
    """One box of the graph, opened."""
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
    """What one operator has held over time."""
    name = _box_of(request, pipeline)
    records = pipeline.records
    found = held_over_time(name, records.moments)
    told = {"x": found["ticks"], "series": [{"label": "rows held", "values": found["rows"]}], "step": True}
    return data(request, mark_of(name, records.number, records.read), told)


def _box_of(request: Request, pipeline: Pipeline) -> str:
    """The operator that a request names; raises ``Refused`` (R704)."""
    name = request.query_params.get("box", "")
    plan = pipeline.records.plan
    if plan is None or name not in plan.operators:
        raise refuse("R704", f"there is no operator {name} in this plan", "The page Graph has those that there are.")
    return name


_NOTHING: dict[str, Any] = {"tick": -1, "clocks": {}, "totals": {}, "sources": {}, "segments": {}, "control": {}}
