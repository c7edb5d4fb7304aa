"""What waits for what: for each operator that holds rows, what holds it and how to release it.

It reads only the plan and a journal entry, so it works on a running, stopped or crashed pipeline and starts neither
Spark nor Java.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from rowtime.core.clock import NOBODY
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS, SECOND, to_text
from rowtime.operators.contract import Operator
from rowtime.operators.streams.quarantine import HELD
from rowtime.plan.bind.event_time import MANUAL, settable
from rowtime.plan.formats.files import DIRECTORIES
from rowtime.plan.holders import beneath, holder, slowest_of
from rowtime.plan.poisoned import Poisoned, poisoned
from rowtime.plan.remedies import CHECKPOINT, TIME, Advice, Remedy, Way, or_end
from rowtime.plan.stored import CLASSES, StoredPlan

PATIENCE: Final = 30 * SECOND
"""How long (µs) a bound must be still before remedies are offered that cannot be undone."""


@dataclass(frozen=True)
class Wait:
    """One operator that holds rows at a ``bound`` that has not moved ``since``; both as text (UTC).

    ``stalled``: the bound has been still for so long that ``release`` also names remedies that cannot be undone.
    """

    operator: str
    kind: str
    held: int
    bound: str
    stream: str
    writer: str
    release: str
    since: str = ""
    stalled: bool = False
    folder: str = ""
    """Where the files of a stream are that waits for another file."""
    ways: tuple[Way, ...] = field(default=(), compare=False)
    """The remedies in ``release``, one by one."""

    def __str__(self) -> str:
        what = ("open group" if CLASSES[self.kind].holds_results else "row") + ("s" if self.held != 1 else "")
        since = f" since {self.since}" if self.since else ""
        return (
            f"{self.operator} holds {self.held:,} {what} at {self.bound}{since}: waits for {self.who}; {self.release}"
        )

    @property
    def who(self) -> str:
        """Say who holds it, in words."""
        if self.folder:
            return f"the next file of {self.stream}, in {self.folder}"
        return f"writer '{self.writer}' of {self.stream}" if self.writer else self.stream

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        content = asdict(self)
        del content["ways"]  # `release` says the same
        return content


def waiting(plan: StoredPlan, entry: Mapping[str, Any], now: int, patience: int = PATIENCE) -> list[Wait | Poisoned]:
    """Return every operator that holds rows after ``entry``, in plan order; poisoned clocks come first.

    ``now`` is the time of day, ``patience`` how long a bound may be still before it counts as stalled (both µs).
    """
    held: dict[str, int] = {}
    for key, rows in entry.get("held", {}).items():
        name = key.rsplit("/", 1)[0]
        held[name] = held.get(name, 0) + rows
    waits_of = (_wait(plan, entry, name, rows, now - patience) for name, rows in held.items() if rows)
    order = list(plan.operators)
    waits = sorted((w for w in waits_of if w is not None), key=lambda wait: order.index(wait.operator))
    ahead = poisoned(plan, entry)
    behind = {poisoning.stream for poisoning in ahead if not plan.operators[poisoning.operator].answers.promotes}
    return [*ahead, *(replace(w, release=_AHEAD, ways=()) if w.stream in behind else w for w in waits)]


_AHEAD = "see the clock that is ahead, above: everything that waits for it would wait until that time"


def _wait(plan: StoredPlan, entry: Mapping[str, Any], name: str, rows: int, before: int) -> Wait | None:
    """Return what an operator waits for; it is stalled if its bound has been still since ``before``."""
    if name not in plan.operators:
        return None
    _, began = entry.get("since", {}).get(name, (None, None))
    stalled = began is None or began <= before
    operator = plan.operators[name]
    if operator.answers.awaits_event:
        return _panes(plan, entry, name, rows, stalled=stalled)
    own = not operator.inputs or operator.answers.holds_itself
    below, bound = slowest_of([name] if own else operator.inputs, entry["clocks"])
    if bound >= END:
        return None
    since = "" if began is None else to_text(began)
    jumps = entry.get("control", {}).get(name, {}).get(HELD)
    if jumps and operator.answers.is_gate:
        # Rows whose time is not decided yet by the rows after them.
        writer, (position, _) = min(jumps.items())
        stream, _ = holder(plan, entry["clocks"], name)
        release = f"the rows after its row {position} decide whether that row counts: send more"
        return Wait(name, operator.kind, rows, to_text(bound), stream, writer, release, since)
    stream, writer = holder(plan, entry["clocks"], below)
    remedy = Remedy(
        stream,
        writer,
        plan.formats.get(stream, "log"),
        silent=bound <= BEGINNING,
        promoted=_promoted(plan, below, stream),
        bound=_bound_to_set(plan, entry, name, below, stream),
        alone=len(entry["clocks"].get(stream, {})) <= 1,
    )
    offsets = entry["sources"].get(stream, {}).get("offsets", {})
    advice = remedy.advice(started=bool(offsets), stalled=stalled)
    writer = "" if writer == NOBODY else writer
    times, release = (since, stalled), str(advice)
    if holding := operator.answers.holding(operator.fields, entry.get("control", {}).get(name, {})):
        release = f"{holding}; {release}"
    folder = _folder(plan, stream) if writer else ""
    return Wait(name, operator.kind, rows, to_text(bound), stream, writer, release, *times, folder, advice.ways)


def _folder(plan: StoredPlan, stream: str) -> str:
    """Return where the files of a stream are; empty for one that does not read files."""
    if plan.formats.get(stream) not in DIRECTORIES:
        return ""
    return next((value for name, value in plan.operators[stream].fields["source"][1] if name.lower() == "path"), "")


def _panes(plan: StoredPlan, entry: Mapping[str, Any], name: str, rows: int, *, stalled: bool) -> Wait | None:
    """Return what panes wait for: the bound of their event time, not a clock."""
    control = entry.get("control", {})
    event = plan.operators[name].inputs[1]
    bound = control.get(event, {}).get("bound", BEGINNING)
    if bound >= END:
        return None
    event = _slowest_region(plan, control, event)
    stream, _ = holder(plan, entry["clocks"], event)
    since = to_text(entry["since"][name][1]) if name in entry.get("since", {}) else ""
    advice = _release_of(plan, event, stream, stalled=stalled)
    times = (since, stalled)
    return Wait(
        name, plan.operators[name].kind, rows, to_text(bound), stream, "", str(advice), *times, ways=advice.ways
    )


def _slowest_region(plan: StoredPlan, control: Mapping[str, Any], event: str) -> str:
    """Return the region with the least bound, which holds the others."""
    reached = control.get(event, {}).get("regions")
    if not reached:
        return event
    passed = [name for name in beneath(plan, event) if plan.operators[name].answers.passes_bounds]
    held = next((n for n in passed if plan.operators[n].fields["region"] == reached.index(min(reached))), None)
    return event if held is None else _slowest_region(plan, control, plan.operators[held].inputs[1])


def _release_of(plan: StoredPlan, event: str, stream: str, *, stalled: bool) -> Advice:
    """Return what moves the bound of an event time."""
    settings = plan.operators[event].fields
    name = event.split(".event_time", maxsplit=1)[0]
    where = f"the bound of its event time {settings['column']}, of {name}, has stopped there"
    if settings["mode"] == MANUAL:
        setting = f"rowtime bound {name} '<time>'{'' if name == stream else ' --checkpoint DIR'}"
        command = ("bound", name, TIME, *(() if name == stream else ("--checkpoint", CHECKPOINT)))
        first = Way("type ", setting, command=command)
        return Advice(where, (first, *([or_end(stream)] if stalled else [])))
    lag = plan.operators[event].micros("lag")
    later = f" by more than the lag of {timedelta(microseconds=lag)}" if lag else ""
    first = Way(f"send a row whose {settings['column']} is later{later}")
    return Advice(where, (first, *([or_end(stream)] if stalled else [])))


def timed_by(operators: Sequence[Operator]) -> dict[str, frozenset[str]]:
    """Return the streams whose arrival clocks reach each operator; none reaches rows with an event time."""
    gates: dict[str, frozenset[str]] = {}
    for node in operators:
        gates[node.name] = node.timed_by([gates[child.name] for child in node.inputs])
    return gates


def _promoted(plan: StoredPlan, name: str, stream: str) -> bool:
    """Return True if the rowtime of ``name`` is an event time, so that the stream's bounds say nothing about it."""
    inputs = plan.operators[name].inputs
    below = [child for child in inputs if child == stream or stream in beneath(plan, child)]
    return bool(below) and (plan.operators[name].answers.promotes or any(_promoted(plan, c, stream) for c in below))


def _bound_to_set(plan: StoredPlan, entry: Mapping[str, Any], name: str, below: str, stream: str) -> str:
    """Return ``ALTER VIEW … SET ROWTIME BOUND …`` that releases the rows of ``name``; empty if there is none."""
    path = [below]
    while (gate := path[-1]) not in settable(plan):
        under = [child for child in plan.operators[gate].inputs if child == stream or stream in beneath(plan, child)]
        if not under:
            return ""
        path.append(under[0])
    segments = [rows for key, rows in entry["segments"].items() if key.rsplit("/", 1)[0] == name]
    until = max((segment[3] for rows in segments for segment in rows), default=END)
    if not MIN_MICROS <= until <= MAX_MICROS:
        return ""
    # A group is complete at its end; rows that wait in order may get more rows of the same time.
    strict = "" if plan.operators[name].answers.holds_results else " STRICT"
    view = gate.removesuffix(".event_time")
    view = view if view.isidentifier() else f'"{view}"'  # for example a sub-query
    return f"ALTER VIEW {view} SET ROWTIME BOUND TIMESTAMP '{to_text(until)}'{strict};"
