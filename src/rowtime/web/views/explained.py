"""An opened box of the graph: EXPLAIN of an operator, its SQL, and its state over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rowtime.client.home import Home
from rowtime.core.clock import NOBODY
from rowtime.core.errors import RowtimeError
from rowtime.core.secrets import shown, variables_in
from rowtime.core.starred_sql import starred
from rowtime.core.time import to_text
from rowtime.expr.proof import lines_of
from rowtime.plan.bind.pump_edge import pump_name
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.explain import explain
from rowtime.plan.formats import is_known
from rowtime.plan.program import Program, compile_script
from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.plan.streams_as import pump_of
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreatePump, CreateStream, CreateTable, CreateView, Query
from rowtime.state.journal import Entry
from rowtime.web.moments import Moment
from rowtime.web.words import UNKNOWN

SLOWEST: Final = 12  # writers that are listed
POINTS: Final = 300  # of a chart


@dataclass(frozen=True)
class Line:
    """A line of a script; ``on``: it belongs to the displayed operator."""

    number: int
    text: str
    on: bool


@dataclass(frozen=True)
class Writer:
    """A writer of a stream: its clock as text, and why it was set aside."""

    name: str
    clock: str
    aside: str = ""


class Explained:
    """EXPLAIN of the operators of a plan, bound once as ``program``. ``problem``: why some of it is missing."""

    def __init__(self, plan: StoredPlan, home: Home, variables: Mapping[str, str]) -> None:
        self._plan = plan
        self.problem = ""
        self.program: Program | None = None
        self.entries: dict[str, Mapping[str, Any]] = {}
        hidden = dict.fromkeys(variables_in(plan.sql), "0")
        try:
            program = compile_script(plan.sql, home, {**hidden, **variables}, code=PythonCode.of_plan(plan))
            self.program = program
            self.entries = {entry["name"]: entry for entry in explain(program)}
            missing = [*program.problems, *program.not_checked]
            self.problem = str(missing[0]).split("\n", 1)[0] if missing else ""
        except RowtimeError as error:
            self.problem = str(error).split("\n", 1)[0]

    def terms(self, name: str) -> list[tuple[str, Sequence[str]]]:
        """Return what it requires, keeps, emits and promises, and why its order holds: a term, and lines."""
        entry = self.entries.get(name)
        return _of_entry(entry) if entry is not None else _of_stored(self._plan.operators[name])

    def script(self, name: str) -> list[Line]:
        """The script with the statement that the operator comes from."""
        first, last = _statement(self._plan.sql, name)
        lines = starred(self._plan.sql, is_known).splitlines()
        return [Line(n, text, first <= n <= last) for n, text in enumerate(lines, 1)]


def writers(name: str, entry: Entry) -> tuple[list[Writer], int]:
    """Return the slowest writers of a stream, and their total number."""
    clocks = {who: at for who, at in entry["clocks"].get(name, {}).items() if who not in ("", NOBODY)}
    away = entry["sources"].get(name, {}).get("away", {})
    slowest = sorted(clocks, key=lambda who: (clocks[who], who))[:SLOWEST]
    shown = [Writer(who, to_text(clocks[who]), str(away.get(who) or "")) for who in slowest]
    gone = [Writer(who, UNKNOWN, str(why)) for who, why in sorted(away.items()) if who not in clocks and why]
    return [*shown, *gone[: SLOWEST - len(shown)]], len({*clocks, *away})


def held_over_time(name: str, moments: Sequence[Moment]) -> dict[str, list[int]]:
    """Return an operator's rows of state and their bytes: the most of each of up to ``POINTS`` stretches of ticks."""
    step = max(1, -(-len(moments) // POINTS))
    stretches = [moments[at : at + step] for at in range(0, len(moments), step)]
    return {
        "ticks": [stretch[-1].tick for stretch in stretches],
        "rows": [max(moment.held.get(name, 0) for moment in stretch) for stretch in stretches],
        "bytes": [max(moment.sizes.get(name, 0) for moment in stretch) for stretch in stretches],
    }


def _of_entry(entry: Mapping[str, Any]) -> list[tuple[str, Sequence[str]]]:
    promise = entry["promises"]
    columns = [" ".join(filter(None, (c["name"], c["type"], _order(c["order"])))) for c in entry["emits"]["columns"]]
    terms: list[tuple[str, Sequence[str]]] = [
        ("With", [f"{name} {value}" for name, value in entry["with"].items()]),
        ("Groups", [f"{g['key']}: {g['order']}{', closes groups' if g['closes'] else ''}" for g in entry["groups"]]),
        ("Requires", [entry["requires"]]),
        (
            "Keeps",
            [f"{k['what']}, until {k['until']} (bounded by {k['bounded_by']})" for k in entry["keeps"]] or ["nothing"],
        ),
        ("Emits", [", ".join(columns) or "no columns", *entry["emits"]["in_words"]]),
        ("Promises", [promise["bound"], *([promise["reason"]] if promise["reason"] else [])]),
        ("Proof", [line for proof in entry["proofs"] for line in lines_of(proof)]),
    ]
    return [(term, lines) for term, lines in terms if lines]


def _order(order: str) -> str:
    return "" if order == "none" else order


def _of_stored(operator: StoredOperator) -> list[tuple[str, Sequence[str]]]:
    """Return what the checkpoint alone has."""
    answers = operator.answers
    fields = [f"{name} {_safe(value)}" for name, value in operator.fields.items() if value not in _NOTHING]
    promise = [text for text in (answers.promise, answers.reason) if text]
    return [(term, lines) for term, lines in (("With", fields), ("Promises", promise)) if lines]


_NOTHING: Final[tuple[Any, ...]] = (None, False, [], "", 0)


def _safe(value: Any) -> Any:
    """Return a stored value as people see it: pairs of texts are options."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):  # noqa: PLR2004
        return [value[0], shown(value[0], value[1], is_known)]
    return [*map(_safe, value)] if isinstance(value, list) else value


def _statement(sql: str, name: str) -> tuple[int, int]:
    """Return the first and the last line of the statement that an operator comes from; (0, -1) for none."""
    statements = [one for one in parse_script(sql).statements if one.place is not None]
    starts = [one.place.line for one in statements]
    for number, statement in enumerate(statements):
        if _makes(statement, name, alone=len(statements) == 1):
            after = starts[number + 1] - 1 if number + 1 < len(starts) else len(sql.splitlines())
            return starts[number], max(starts[number], after)
    return 0, -1


def _makes(statement: object, name: str, *, alone: bool) -> bool:
    """Return True if the operator's name begins with the name of what the statement creates."""
    base = name.lower()
    if isinstance(statement, Query):
        return alone or base.startswith("query")
    if isinstance(statement, CreatePump):
        text = pump_name(statement)
    elif isinstance(statement, CreateStream) and statement.query is not None and base.startswith("into_"):
        text = pump_name(pump_of(statement))
    elif isinstance(statement, CreateStream | CreateView | CreateTable):
        text = statement.name.text.lower()
    else:
        return False
    return base == text or base.startswith((f"{text}.", f"{text}/"))
