"""The pages Rows and Trace: what made a row of an output, or where a row of a stream went.

A trace runs the recorded input again, so it needs Spark and a process of its own.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from rowtime.audit.traced import LISTED
from rowtime.core.errors import refuse
from rowtime.plan.bind.python_code import modules_of
from rowtime.plan.stored import StoredPlan
from rowtime.web.commands import run_rowtime
from rowtime.web.kept_rows import Kept, refused_rows, written_rows
from rowtime.web.pages import fragment, mark_of
from rowtime.web.pipelines import page_of
from rowtime.web.views.rows import condition_of, page_of_rows, row_at
from rowtime.web.watched import Pipeline, Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from rowtime.web.views.explained import Explained
    from rowtime.web.watched import Pipeline, Watched

OUTPUT, REFUSED = "output", "rejected"
FIRST = ("reason", "refused_time", "refused_by", "writer", "position")


class Rows:
    """Rows of outputs and gates, and their traces; ``explained`` returns the bound script of a pipeline."""

    def __init__(self, watched: Watched, explained: Callable[[Pipeline], Explained | None]) -> None:
        self._watched, self._explained = watched, explained
        self.traces = Traces(watched)

    def page(self, request: Request, pipeline: Pipeline) -> Response:
        """Show the rows of an output or a gate; by default those of the first output."""
        entry, parameters = pipeline.records.last, request.query_params
        choices = self.choices(pipeline)
        what, name = parameters.get("what") or (choices[0][0] if choices else OUTPUT), parameters.get("of", "")
        name = name or next((choice for kind, choice in choices if kind == what), "")
        condition, before = parameters.get("filter", ""), parameters.get("before", "")
        shown = None
        if entry is not None and (what, name) in choices:
            kept = self._kept(pipeline, what, name)
            shown = page_of_rows(kept, int(before) if before.isdigit() else None, condition)
        streams = [*plan.formats] if (plan := pipeline.records.plan) is not None else []
        values = {
            "streams": streams,
            "choices": choices,
            "what": what,
            "name": name,
            "filter": condition,
            "before": before,
        }
        return page_of("rows", "Rows", pipeline=pipeline, shown=shown, link=_link(pipeline, values), **values)

    def choices(self, pipeline: Pipeline) -> list[tuple[str, str]]:
        """Return what can be shown: each output, and each gate that has refused rows."""
        plan, entry = pipeline.records.plan, pipeline.records.last
        if plan is None or entry is None:
            return []
        gates = [gate for gate, counts in entry["totals"].items() if counts.get("in", 0) > counts.get("accepted", 0)]
        return [*((OUTPUT, name) for name in plan.of_kind("sink")), *((REFUSED, name) for name in gates)]

    def _kept(self, pipeline: Pipeline, what: str, name: str) -> Kept:
        records = pipeline.records
        entry = records.last
        assert entry is not None
        if what == REFUSED:
            return refused_rows(records.checkpoint, name, entry, FIRST)
        explained = self._explained(pipeline)
        program = explained.program if explained is not None else None
        node = program.sink(name) if program is not None else None
        if node is None:
            why = explained.problem if explained is not None else "there is no plan"
            raise refuse(
                "R706",
                f"rowtime does not know where {name} writes: {why}",
                "Give variables with --set, the home with --home.",
            )
        return written_rows(node, self._watched.home, records.checkpoint, entry)

    def trace(self, request: Request, pipeline: Pipeline) -> Response:
        """Show a row and its causes: the button that begins the trace, its progress, or the graph."""
        return page_of("trace", "Trace", at="rows", **self._traced(request, pipeline))

    def trace_part(self, request: Request, pipeline: Pipeline) -> Response:
        """Show the same, for a page that waits."""
        context = self._traced(request, pipeline)
        return fragment(request, "trace_part.html", context["mark"], context)

    async def begin(self, request: Request, pipeline: Pipeline) -> Response:
        """Begin a trace."""
        form = dict(parse_qsl((await request.body()).decode(errors="replace")))
        wanted = await run_in_threadpool(self._wanted, pipeline, form)
        self.traces.ask(pipeline, wanted)
        return RedirectResponse(f"/p/{pipeline.key}/trace?{wanted.query}", status_code=303)

    def _traced(self, request: Request, pipeline: Pipeline) -> dict[str, Any]:
        wanted = self._wanted(pipeline, request.query_params)
        begun, result = self.traces.state_of(wanted)
        plan = pipeline.records.plan
        assert plan is not None
        steps = levels(plan, result.items) if result is not None else []
        upwards = {name: partial(_way_up, pipeline, name) for name in plan.formats}
        mark = mark_of(begun, result is not None, result.problem if result else "")
        context = {"asked": begun, "result": result, "levels": steps, "upwards": upwards, "mark": mark}
        return {"pipeline": pipeline, "wanted": wanted, **context}

    def _wanted(self, pipeline: Pipeline, given: Any) -> Wanted:
        """Return the row that a request names; raises ``Refused`` (R704)."""
        plan, sink, number = pipeline.records.plan, given.get("sink", ""), given.get("number", "")
        stream, condition = given.get("from", ""), given.get("where", "").strip()
        if plan is not None and stream in plan.formats and condition:
            return Wanted(pipeline.key, where=condition, stream=stream)
        if plan is None or sink not in plan.of_kind("sink") or not number.isdigit():
            raise refuse("R704", "there is no such row", "The page Rows lists the rows.")
        kept = self._kept(pipeline, OUTPUT, sink)
        where = "" if kept.numbered else condition_of(row_at(kept, int(number)))
        return Wanted(pipeline.key, sink, int(number), where)


def _way_up(pipeline: Pipeline, stream: str, row: Mapping[str, Any]) -> str:
    """Return the address of the forward trace of a stream's row that a trace has listed."""
    time = f"rowtime <=> TIMESTAMP '{row['at']}'" if "at" in row else "true"
    where = f"{time} AND {condition_of(row.get('columns', {}))}"
    return f"/p/{pipeline.key}/trace?{Wanted(pipeline.key, where=where, stream=stream).query}"


def _link(pipeline: Pipeline, values: dict[str, Any]) -> str:
    """Return the address of another page of the same rows."""
    return f"/p/{pipeline.key}/rows?" + urlencode(
        {"what": values["what"], "of": values["name"], "filter": values["filter"]}
    )


SHOWN: Final = 8  # rows of an operator


@dataclass(frozen=True)
class Step:
    """One operator of a trace; ``reads``: the contributing operators below it. Times are texts (UTC).

    ``more`` rows are not shown; ``others`` are the ids of those of them that have edges.
    """

    name: str
    kind: str
    reads: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    more: int
    others: Sequence[int]
    bounds: Sequence[Mapping[str, Any]]


def levels(plan: StoredPlan, items: Sequence[Mapping[str, Any]]) -> list[list[Step]]:
    """Return the operators by their distance from the output, which comes first; one level is a list."""
    names = [*dict.fromkeys(item["operator"] for item in items)]
    depth: dict[str, int] = {}
    for name in sorted(names, key=lambda one: -_place(plan, one)):
        above = [depth[earlier] for earlier in depth if name in _read_by(plan, earlier, names)]
        depth[name] = max(above, default=-1) + 1
    steps = {name: _step(plan, name, names, items) for name in names}
    return [
        [steps[name] for name in names if depth[name] == level] for level in range(max(depth.values(), default=-1) + 1)
    ]


def _place(plan: StoredPlan, name: str) -> int:
    order = [*plan.operators]
    return order.index(name) if name in plan.operators else len(order)


def _read_by(plan: StoredPlan, name: str, names: Sequence[str]) -> list[str]:
    """Return the operators of a trace that one reads, skipping those that are not in it."""
    read: list[str] = []
    left = [*plan.operators[name].inputs] if name in plan.operators else []
    while left:
        below = left.pop(0)
        if below in names:
            read.append(below)
        else:
            left += plan.operators[below].inputs
    return [*dict.fromkeys(read)]


def _step(plan: StoredPlan, name: str, names: Sequence[str], items: Sequence[Mapping[str, Any]]) -> Step:
    mine = [item for item in items if item["operator"] == name]
    rows = [item for item in mine if item["kind"] != "bound"]
    columns = [*dict.fromkeys(column for item in rows for column in item.get("columns", {}))]
    kind = plan.operators[name].kind if name in plan.operators else ""
    bounds = [item for item in mine if item["kind"] == "bound"]
    others = sorted({item["id"] for item in rows[SHOWN:] if "id" in item})[:LISTED]
    reads, more = _read_by(plan, name, names), max(0, len(rows) - SHOWN)
    return Step(name, kind, reads, columns, rows[:SHOWN], more, others, bounds)


KEPT: Final = 32  # results
PATIENCE: Final = 900  # seconds


@dataclass(frozen=True)
class Result:
    """The result of a trace (``items``, as in ``rowtime trace --json``), or why there is none."""

    items: Sequence[Mapping[str, Any]] = ()
    problem: str = ""


@dataclass(frozen=True)
class Wanted:
    """A row of a pipeline: of a sink, by its number, or if rows have no order by a condition ``where``.

    ``stream``: instead, the first row of this stream that matches the condition, with a forward trace.
    """

    key: str
    sink: str = ""
    number: int = 0
    where: str = ""
    stream: str = ""

    @property
    def query(self) -> str:
        """Return the row in the form for an address."""
        fields = (
            {"from": self.stream, "where": self.where} if self.stream else {"sink": self.sink, "number": self.number}
        )
        return urlencode(fields)

    @property
    def options(self) -> list[str]:
        """Return the options of ``rowtime trace``."""
        which = ["--where", self.where] if self.where else ["--number", str(self.number)]
        return [*which, *(["--from", self.stream] if self.stream else ["--sink", self.sink]), "--json"]


class Traces:
    """The requested traces; one runs at a time, because each needs a Spark session."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._pool = ThreadPoolExecutor(1, "rowtime-trace")
        self._turn = threading.Lock()
        self._requests: OrderedDict[Wanted, Future[Result]] = OrderedDict()

    def ask(self, pipeline: Pipeline, wanted: Wanted) -> None:
        """Begin a trace, unless it is running or known; one that found nothing is tried again."""
        with self._turn:
            begun = self._requests.get(wanted)
            if begun is not None and not (begun.done() and begun.result().problem):
                return
            self._requests[wanted] = self._pool.submit(self._run, pipeline, wanted)
            while len(self._requests) > KEPT:
                self._requests.popitem(last=False)[1].cancel()

    def state_of(self, wanted: Wanted) -> tuple[bool, Result | None]:
        """Return whether it was requested, and its result; ``None`` while it runs."""
        with self._turn:
            future = self._requests.get(wanted)
        return future is not None, future.result() if future is not None and future.done() else None

    def _run(self, pipeline: Pipeline, wanted: Wanted) -> Result:
        plan = pipeline.records.plan
        modules = [] if plan is None or self._watched.imports else modules_of(plan.sql)
        if modules:
            what = f"A trace runs the recorded input again, and the script has functions of {', '.join(modules)}."
            return Result(problem=f"{what} To let the console run their code, start it with --import.")
        settings = [part for name, value in self._watched.variables.items() for part in ("--set", f"{name}={value}")]
        home = ["--home", str(self._watched.home.path)]
        ran = run_rowtime(["trace", str(pipeline.place), *wanted.options, *home, *settings], PATIENCE)
        return _result(ran.stdout) if ran.returncode == 0 else Result(problem=_why(ran.stdout, ran.stderr))


def _result(text: str) -> Result:
    return Result([json.loads(line) for line in text.splitlines() if line.startswith("{")])


def _why(out: str, err: str) -> str:
    """Return the problem that the command printed as JSON, or the last lines of its output."""
    try:
        answer = json.loads(out)
        problems = answer.get("problems") or [{"code": "", "message": answer.get("failure", ""), "hint": ""}]
        return " ".join(part for part in (problems[0][name] for name in ("code", "message", "hint")) if part)
    except (ValueError, KeyError, AttributeError):
        return (err or out).strip()[-500:] or "The command printed nothing."
