"""Poisoned clocks: one row, or one bound, has moved a clock so far ahead that most later rows are late.

It reads only the plan and a journal entry, like `waiting`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rowtime.core.time import BEGINNING, HOUR, to_text
from rowtime.kernels.blame import Raise
from rowtime.operators.contract.lateness import at_most, interval
from rowtime.operators.panes.event_time import SET
from rowtime.plan.holders import holder
from rowtime.plan.stored import StoredPlan


@dataclass(frozen=True)
class Poisoned:
    """A row that moved a clock so far ahead that most later rows are late; times as text (UTC).

    ``position`` is ``None`` if a bound did it, not a row.
    """

    operator: str
    stream: str
    writer: str
    position: int | None
    before: str
    after: str
    rows: int
    late: int
    release: str
    kind: str = "poisoned clock"

    def __str__(self) -> str:
        who = f"row {self.position} of writer {self.writer or self.stream} of {self.stream}"
        if self.position is None:
            who = f"a bound of {self.stream}"
        what = f"raised the clock of {self.operator} from {self.before} to {self.after}"
        return f"{who} {what}, and {self.late:,} of the {self.rows:,} rows since were LATE; {self.release}"

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return asdict(self)


def poisoned(plan: StoredPlan, entry: Mapping[str, Any]) -> list[Poisoned]:
    """Return the clocks that one row or bound moved so far ahead that most rows since were refused, at least three.

    Without it most of them would have been accepted (`kernels.blame`).
    """
    clocks = []
    for name, control in entry.get("control", {}).items():
        if name not in plan.operators:
            continue
        for writer, stored in control.get("raised", {}).items():
            row = Raise(*stored)
            if row.poisons:
                stream, _ = holder(plan, entry["clocks"], name)
                place = control.get("place", row.position)
                clocks.append(_poisoning(name, stream, (writer, place), row, _guarded(_guard_of(plan, name, row))))
        if plan.operators[name].answers.awaits_event:
            clocks += _by_bounds(plan, entry, name, control.get("jumps", {}))
    return clocks


def _poisoning(name: str, stream: str, place: tuple[str, int | None], row: Raise, advice: str) -> Poisoned:
    release = f"{advice}; the late rows are in {name}.rejected"
    times = (to_text(row.before), to_text(row.after))
    return Poisoned(name, stream, *place, *times, row.rows, row.late, release)


def _guarded(where: str) -> str:
    return f"if it is wrong, let a guard refuse it: write {where}, and start with a new checkpoint"


def _by_bounds(
    plan: StoredPlan, entry: Mapping[str, Any], name: str, jumps: Mapping[str, Sequence[int]]
) -> Iterator[Poisoned]:
    """Yield what raised the bounds of panes: rows of the regions below, or a bound that was set."""
    for region, stored in jumps.items():
        row = Raise(*stored)
        if not row.poisons:
            continue
        event, jump = _cause(plan, entry["control"], plan.operators[name].inputs[1], int(region))
        stream, _ = holder(plan, entry["clocks"], event)
        if jump is not None:
            row = row._replace(before=jump[2], after=jump[3])
            yield _poisoning(name, stream, (jump[0], jump[1]), row, _guarded(_guard_of_time(plan, event, row)))
        elif plan.operators[event].fields["mode"] == SET:
            yield _poisoning(name, event.removesuffix(".event_time"), ("", None), row, _set_anew(plan, event, stream))


Jump = Sequence[Any]
"""Writer and position of a row, and the clock before and after it (µs)."""


def _cause(
    plan: StoredPlan, control: Mapping[str, Any], event: str, region: int | None = None
) -> tuple[str, Jump | None]:
    """Return the event time whose bound went so far, below operators that only pass bounds on, and its row."""
    causes: list[tuple[str, Jump | None]] = []
    for below in _passed(plan, event, region):
        mine = plan.operators[below].inputs[1]
        jump = control.get(below, {}).get("jump")
        causes.append((mine, jump) if jump is not None else _cause(plan, control, mine))
    return max(causes, key=lambda one: one[1][3] if one[1] is not None else BEGINNING, default=(event, None))


def _passed(plan: StoredPlan, event: str, region: int | None) -> list[str]:
    """Return the operators that pass the bounds of a region, or of each, on to an event time."""
    below, names = [*plan.operators[event].inputs] if plan.operators[event].fields.get("regions") else [], []
    while below:
        name = below.pop(0)
        if not plan.operators[name].answers.passes_bounds:
            below += plan.operators[name].inputs
        elif region in (None, plan.operators[name].fields["region"]):
            names.append(name)
    return names


def _set_anew(plan: StoredPlan, event: str, stream: str) -> str:
    """Return what to do about a bound that was set: it cannot be taken back."""
    column, name = plan.operators[event].fields["column"], event.removesuffix(".event_time")
    if name != stream:
        return "a bound cannot be taken back: if it is wrong, start without it and with a new checkpoint"
    view = f"CREATE VIEW … EVENT TIME ({column}, MODE MANUAL) AS SELECT STREAM *"
    own = f"if it is wrong, read a view with a bound of its own, {view} FROM {stream}, and start with a new checkpoint"
    return f"a bound cannot be taken back: {own}"


def _guard_of(plan: StoredPlan, name: str, row: Raise) -> str:
    """Return where the guard of a gate is declared, and one that would have refused the row."""
    operator = plan.operators[name]
    if "shape" in operator.fields:
        return f"{_beyond(row)} after the EVENT SHAPE of {name.removesuffix('.events')}"
    if operator.answers.awaits_event:
        return _guard_of_time(plan, operator.inputs[1], row)
    # A guard alone accepts the first row of a writer, whatever its time.
    resync = " RESYNC AFTER 3 ROWS" if row.before <= BEGINNING else ""
    return f"{'GROUP' if operator.fields.get('by_group') else 'ORDER'} BY … WITHIN … {_beyond(row)}{resync} in {name}"


def _guard_of_time(plan: StoredPlan, event: str, row: Raise) -> str:
    """Return where the guard of an event time is declared, and one that would have refused the row."""
    column, name = plan.operators[event].fields["column"], event.split(".event_time", maxsplit=1)[0]
    return f"EVENT TIME ({column}, {_beyond(row)}) of {name}"


def _beyond(row: Raise) -> str:
    """Return a guard that refuses the row: half of how far it was above its neighbours, and at most an hour."""
    return f"EARLY BEYOND {interval(at_most(min(HOUR, row.ahead // 2)))}"
