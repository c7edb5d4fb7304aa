"""``rowtime bound``: promises that no earlier row will come to a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, HomeFolder, StreamName
from rowtime.cli.outcome import REFUSED, write_json
from rowtime.client.bound_items import from_text
from rowtime.client.home import Home
from rowtime.client.log_contract import OPEN_ALREADY
from rowtime.client.writer import DEFAULT_WRITER, EVERYONE, Writer, only_writer, open_writer, present_writers
from rowtime.core.clock import strict as strictly
from rowtime.core.errors import Refused, refuse
from rowtime.core.stores import place_of
from rowtime.core.time import to_micros, to_text
from rowtime.plan.bind.event_time import manual
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.settings import put

Instant = Annotated[
    str, typer.Argument(metavar="TIME", help="A timestamp (UTC if it has no zone), or 'end'; with --column, a value.")
]
Strict = Annotated[bool, typer.Option("--strict", help="The next row is after TIME, not at TIME.")]
WriterName = Annotated[
    str | None, typer.Option("--writer", metavar="NAME", help="Only this writer; default: all that are present.")
]

ColumnName = Annotated[
    str | None,
    typer.Option("--column", metavar="NAME", help="Set the bound of this column, which has a declared order."),
]
CheckpointFolder = Annotated[
    str | None, typer.Option("--checkpoint", metavar="DIR", help="Set the bound of an event time in this pipeline.")
]


def bound(
    stream: StreamName,
    time: Instant,
    strict: Strict = False,
    writer: WriterName = None,
    column: ColumnName = None,
    checkpoint: CheckpointFolder = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Promise that no row of a stream will be earlier than TIME; 'end': that no row will come.

    With --column: that no later row lies behind this value of a column of declared order.
    """
    if column is not None:
        if checkpoint is not None:
            raise typer.BadParameter("a bound of a column is sent to the stream", param_hint="--checkpoint")
        _set_column(Home(home), (stream, column, time, writer), strict=strict, as_json=as_json)
        return
    at = strictly(to_micros(time)) if strict else to_micros(time)
    if checkpoint is not None:
        _set(checkpoint, stream, at, as_json=as_json)
        return
    place = Home(home)
    sent, held = _tell(place, stream, [writer], at) if writer else (_tell_everyone(place, stream, at), [])
    if as_json:
        write_json({"stream": stream, "bound": to_text(at), "writers": sent, "held": held})
    else:
        _show(stream, at, sent, held)
    if held:
        raise typer.Exit(REFUSED)


def _set_column(home: Home, target: tuple[str, str, str, str | None], *, strict: bool, as_json: bool) -> None:
    """Send the bound of a column after the writer's items."""
    stream, column, value, writer = target
    with open_writer(stream, home=home, writer=writer or only_writer(home, stream)) as opened:
        assert opened.schema is not None
        opened.set_bound(column, from_text(value, column, opened.schema), strict)
    if as_json:
        write_json({"stream": stream, "column": column, "bound": value, "strict": strict, "writer": opened.name})
        return
    typer.echo(
        f"{stream}: {column} {'beyond' if strict else 'from'} {value} on, after the rows of writer {opened.name}"
    )


def _set(folder: str, name: str, at: int, *, as_json: bool) -> None:
    """Set the bound of an event time in MODE MANUAL or of a T-sort; the pipeline's next tick takes it."""
    place = place_of(folder)
    plan = Checkpoint(place).plan
    if plan is None:
        raise refuse("R405", f"{folder} is not a checkpoint", "Give the checkpoint folder of the pipeline.")
    operator = manual(plan, name, at)
    put(place, operator, at)
    if as_json:
        write_json({"operator": operator, "bound": to_text(at)})
        return
    typer.echo(f"the bound of {operator} is set to {to_text(at)}; the next tick takes it")


def _tell_everyone(home: Home, stream: str, at: int) -> list[str]:
    """Give the bound to each present writer, whichever process has it open; to ``main`` if there is none."""
    names = present_writers(home, stream)
    with open_writer(stream, home=home, writer=EVERYONE if names else DEFAULT_WRITER) as opened:
        opened.set_rowtime_bound(at)
    return names or [DEFAULT_WRITER]


def _tell(home: Home, stream: str, names: Iterable[str], at: int) -> tuple[list[str], list[str]]:
    """Return the writers that got the bound, and those that did not, because another process has them open."""
    sent: list[str] = []
    held: list[str] = []
    for name in names:
        opened = _open(home, stream, name)
        if opened is None:
            held.append(name)
            continue
        with opened:
            opened.set_rowtime_bound(at)
        sent.append(name)
    return sent, held


def _open(home: Home, stream: str, name: str) -> Writer | None:
    try:
        return open_writer(stream, home=home, writer=name)
    except Refused as refused:
        if any(problem.code == OPEN_ALREADY for problem in refused.problems):
            return None
        raise


def _show(stream: str, at: int, sent: list[str], held: list[str]) -> None:
    if sent:
        typer.echo(f"{stream}: bound {to_text(at)} for {_writers(sent)}")
    if held:
        typer.echo(
            f"{stream}: no bound for {_writers(held)}, which a running process has open.\n"
            "Let that process set the bound, or stop it first.",
            err=True,
        )


def _writers(names: list[str]) -> str:
    return f"writer{'' if len(names) == 1 else 's'} {', '.join(names)}"
