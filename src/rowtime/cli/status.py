"""``rowtime status``: where time is in a pipeline and what waits for what.

Read from the plan and the newest journal entry of a checkpoint, so it answers for a running,
a stopped and a crashed pipeline, without Spark or Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rowtime.audit.number_units import unit_advice
from rowtime.cli.options import AsJson, CheckpointFolder
from rowtime.cli.outcome import FAILED, write_json
from rowtime.core.clock import least
from rowtime.core.counts import counted
from rowtime.core.errors import refuse
from rowtime.core.stores import place_of
from rowtime.core.time import BEGINNING, SECOND, to_text, wall_clock
from rowtime.observe.pump_states import pump_lines, pumps_of
from rowtime.operators.streams.arrival_times import is_timed_by_arrival
from rowtime.plan.formats.files import DIRECTORIES
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.lateness import late_rows
from rowtime.plan.stored import StoredPlan
from rowtime.plan.waiting import waiting
from rowtime.state.costs import left_in
from rowtime.web.records import Records
from rowtime.web.words import amount

_ARRIVALS: Final = {
    **dict.fromkeys(DIRECTORIES, "when its newest file was changed"),
    "kafka": "the timestamps of its records",
    **dict.fromkeys(LAKES, "when its newest version was committed"),
}
"""What the clock of a stream says whose rowtimes its source records."""

OnlyWaiting = Annotated[bool, typer.Option("--waiting", help="Show only what is held, and what it waits for.")]


def status(checkpoint: CheckpointFolder, only_waiting: OnlyWaiting = False, as_json: AsJson = False) -> None:
    """Show clocks, ledger, held rows and outputs of a pipeline, running or not.

    If the newest entry of the journal is damaged, it shows the newest valid one, with R406 and status 3.
    """
    state = status_of(checkpoint)
    if as_json:
        write_json(state["waiting"] if only_waiting else state)
    elif only_waiting:
        typer.echo("\n".join([wait["text"] for wait in state["waiting"]] or ["nothing waits"]))
    else:
        typer.echo("\n".join(as_lines(state)))
    if damage := state["problems"]:
        if only_waiting or not as_json:
            typer.echo(
                "\n".join(f"{problem['code']} {problem['message']}. {problem['hint']}" for problem in damage), err=True
            )
        raise typer.Exit(FAILED)


def status_of(folder: str | Path) -> dict[str, Any]:
    """Return the status of a checkpoint as plain values; raises ``Refused`` (R405) if there is none.

    It is that of the newest journal entry that can be read; ``problems`` are the entries that are damaged. Raises
    ``Failure`` (R406) if none can be read.
    """
    records = Records(place_of(folder))
    records.refresh(budget=0)
    plan = records.plan
    if plan is None:
        hint = "Give the checkpoint folder of the pipeline."
        raise refuse("R405", f"{folder} is not a checkpoint: it has no plan.json", hint)
    entry, problems = records.last, [problem.as_json() for problem in records.damage]
    state = records.liveness.state
    status: dict[str, Any] = {"checkpoint": str(folder), "state": state, "tick": None, "at": None, "problems": problems}
    status |= pumps_of(place_of(folder), plan)
    if entry is None:
        empty: dict[str, list[Any]] = {key: [] for key in ("streams", "late", "waiting", "outputs", "advice")}
        return {**status, **empty, "ledger": {}, "held": {}}
    now = wall_clock()
    return {
        **status,
        "tick": entry["tick"],
        "at": to_text(entry["at"]),
        "age_seconds": max(0, now - entry["at"]) / SECOND,
        "streams": [_stream(name, entry, plan) for name in plan.of_kind("stream")],
        "ledger": entry["totals"],
        "late": [late.as_json() for late in late_rows(plan, entry)],
        "held": {key: rows for key, rows in entry.get("held", {}).items() if rows},
        "waiting": [{**wait.as_json(), "text": str(wait)} for wait in waiting(plan, entry, now)],
        "outputs": [_output(name, entry) for name in plan.of_kind("sink")],
        "advice": [*unit_advice(records.checkpoint, plan, entry)],
    }


def _stream(name: str, entry: Mapping[str, Any], plan: StoredPlan) -> dict[str, Any]:
    clocks = entry["clocks"].get(name, {})
    notes = entry["sources"].get(name, {"offsets": {}, "away": {}})
    writers = [
        {
            "writer": writer,
            "clock": to_text(clocks[writer]) if writer in clocks else None,
            "offset": offset,
            "set_aside": notes["away"].get(writer),
        }
        for writer, offset in sorted(notes["offsets"].items())
    ]
    stream: dict[str, Any] = {"stream": name, "clock": to_text(least(clocks.values())), "writers": writers}
    if is_timed_by_arrival(plan.operators[name].fields["source"]):
        stream["clock_of"] = _ARRIVALS.get(plan.formats[name], "the arrival of rows")
    if left := left_in(entry).get(name):
        stream["left"] = left._asdict()
    state = notes.get("state", {})
    if state.get("counts"):
        aside = [{"file": file, "code": code, "why": why} for file, (code, why) in state.get("aside", {}).items()]
        stream["files"] = {"counts": state["counts"], "named": aside}
    return stream


def _output(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    control = entry["control"].get(name, {})
    bound = to_text(control.get("bound", BEGINNING))
    return {"sink": name, "rows": control.get("sequence", 0), "bound": bound}


# -- as text --------------------------------------------------------------------------


def as_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield the status as text."""
    yield status["checkpoint"]
    if status["tick"] is None:
        yield "  no tick yet"
        yield from _section("pumps", pump_lines(status))
        return
    yield f"  tick {status['tick']}, at {status['at']} UTC, {_age(status['age_seconds'])} ago, {status['state']}"
    yield from _section("pumps", pump_lines(status))
    yield from _section("streams", (line for stream in status["streams"] for line in _stream_lines(stream)))
    yield from _section("ledger", [*_ledger_lines(status)])
    yield from _section("late", (late["text"] for late in status["late"]))
    yield from _section("advice", status["advice"])
    yield from _section("held", (f"{key}: {rows:,}" for key, rows in status["held"].items()))
    yield from _section("waiting", (wait["text"] for wait in status["waiting"]))
    yield from _section(
        "outputs", (f"{o['sink']}: {counted(o['rows'], 'rows')}, up to {o['bound']}" for o in status["outputs"])
    )


def _ledger_lines(status: Mapping[str, Any]) -> Iterator[str]:
    for gate, counts in status["ledger"].items():
        yield f"{gate}: {counts_as_text(counts)}"
    for stream in status["streams"]:
        if "files" in stream:
            counts = ", ".join(f"{count:,} {code}" for code, count in sorted(stream["files"]["counts"].items()))
            yield f"{stream['stream']}, files: {counts}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    if listed:
        yield f"{title}"
        yield from (f"  {line}" for line in listed)


def _stream_lines(stream: Mapping[str, Any]) -> Iterator[str]:
    left = stream.get("left", {"amount": 0})
    more = f", {amount(left['amount'], left['unit'])} left to read" if left["amount"] else ""
    whose = f" ({stream['clock_of']}, not a time in the rows)" if "clock_of" in stream else ""
    yield f"{stream['stream']}: clock {stream['clock']}{whose}{more}"
    for writer in stream["writers"]:
        clock = f"clock {writer['clock']}" if writer["clock"] else "no clock"
        aside = f", set aside: {writer['set_aside']}" if writer["set_aside"] else ""
        yield f"  {writer['writer']}: {clock}, offset {writer['offset']}{aside}"
    for file in stream.get("files", {}).get("named", ()):
        yield f"  {file['code']} {file['file']}: {file['why']}"


def counts_as_text(counts: Mapping[str, int]) -> str:
    """Return the counts of a gate as text: ``10 in, 8 accepted, 2 refused (2 LATE)``."""
    reasons = {reason: n for reason, n in counts.items() if reason not in ("in", "accepted") and n}
    why = ", ".join(f"{n:,} {reason}" for reason, n in reasons.items())
    refused = f"{sum(reasons.values()):,} refused{f' ({why})' if why else ''}"
    return f"{counts.get('in', 0):,} in, {counts.get('accepted', 0):,} accepted, {refused}"


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
