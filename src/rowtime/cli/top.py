"""``rowtime top``: all pipelines of a home as a table in the terminal, the same lines as the console's home page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowtime.cli.options import AsJson, Checkpoints, HomeFolder
from rowtime.cli.outcome import write_json
from rowtime.client.home import Home
from rowtime.core.time import to_text, wall_clock
from rowtime.state.liveness import RETRYING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rowtime.web.views.home import Card
    from rowtime.web.watched import Watched

BUDGET = 1.0  # seconds for reading, per refresh
STYLES = {"running": "green", "retrying": "yellow", "crashed": "red"}

Every = Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.1, help="How often to refresh.")]
Once = Annotated[bool, typer.Option("--once", help="Print the table once and exit.")]


def top(
    checkpoints: Checkpoints = None,
    home: HomeFolder = None,
    every: Every = 2.0,
    once: Once = False,
    as_json: AsJson = False,
) -> None:
    """Show all pipelines with their state, rows and freshness, running or not; without Java. Ctrl-C ends it.

    With --json: once, as a list.
    """
    from rowtime.web.watched import Watched  # noqa: PLC0415 - other commands need not load it

    watched = Watched(Home(home), checkpoints or ())
    if as_json:
        write_json([_plain(card, wall_clock()) for card in _cards(watched)])
    else:
        _show(watched, every, once=once)


def _show(watched: Watched, every: float, *, once: bool) -> None:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.live import Live  # noqa: PLC0415

    console = Console()
    if once or not console.is_terminal:
        console.print(_table(watched))
        return
    try:
        with Live(_table(watched), console=console, auto_refresh=False, screen=True) as live:
            while True:
                time.sleep(every)
                live.update(_table(watched), refresh=True)
    except KeyboardInterrupt:
        return


def _cards(watched: Watched) -> Sequence[Card]:
    from rowtime.web.views.home import cards  # noqa: PLC0415 - as above

    return cards(watched.pipelines, BUDGET)


def _plain(card: Card, now: int) -> dict[str, Any]:
    """Return one pipeline as plain values; unknown ones are null."""
    behind, alive = card.freshness(now), card.liveness
    return {
        "name": card.name,
        "checkpoint": card.where,
        "state": "unreadable" if card.problems else alive.state,
        "tick": card.tick,
        "at": None if card.at is None else to_text(card.at),
        "rows_in": card.rows_in,
        "rows_out": card.rows_out,
        "rows_refused": card.refused,
        "rows_held": card.held,
        "bound": None if card.bound is None else to_text(card.bound),
        "freshness_seconds": None if behind is None else behind / 1e6,
        "under_way": None if alive.under_way is None else alive.under_way.as_json(),
        "doing": _doing(card, now),
        "failures": alive.failures,
        "error": alive.error,
        "problems": [problem.as_json() for problem in (*card.problems, *card.damage)],
    }


def _table(watched: Watched) -> RenderableType:
    from rich.console import Group  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415

    shown, now = _cards(watched), wall_clock()
    if not shown:
        return Text(f"There is no pipeline below {watched.home.path} yet. Start one with rowtime run FILE.")
    table = Table(box=None, pad_edge=False)
    for title in ("pipeline", "state"):
        table.add_column(title, overflow="fold")
    for title in ("rows in", "rows out", "refused", "held", "freshness", "last tick"):
        table.add_column(title, justify="right")
    for card in shown:
        state = "unreadable" if card.problems else card.liveness.state
        table.add_row(Text(card.name), Text(_state(card), style=STYLES.get(state, "")), *map(Text, _numbers(card, now)))
    doing = [Text(f"{card.name}: {words}") for card in shown if (words := _doing(card, now))]
    notes = [Text(line, style="red") for card in shown for line in _notes(card)]
    return Group(table, *doing, *notes)


def _state(card: Card) -> str:
    if card.problems:
        return "unreadable"
    alive = card.liveness
    return f"{alive.state}, try {alive.failures}" if alive.state == RETRYING else alive.state


def _doing(card: Card, now: int) -> str:
    """Return what the driver does in a slow tick."""
    doing = card.liveness.under_way
    return "" if doing is None else doing.words(now)


def _numbers(card: Card, now: int) -> Sequence[str]:
    from rowtime.web.words import UNKNOWN, instant, number, span  # noqa: PLC0415 - as above

    if card.tick is None or card.at is None:
        return [UNKNOWN] * 6
    behind = card.freshness(now)
    counts = map(number, (card.rows_in, card.rows_out, card.refused, card.held))
    fresh = instant(card.bound) if behind is None else span(behind)
    return [*counts, fresh, f"{number(card.tick)}, {span(now - card.at)} ago"]


def _notes(card: Card) -> Iterator[str]:
    """Yield the problems, below the table."""
    for problem in (*card.problems[:1], *card.damage):
        yield f"{card.name}: {problem.code} {problem.message}"
    if card.liveness.error:
        yield f"{card.name}: {card.liveness.error}"
