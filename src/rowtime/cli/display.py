"""The progress display of a run: redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self, TextIO

from rowtime.audit.number_units import unit_advice
from rowtime.cli.figures import Figures, Reached
from rowtime.cli.status import counts_as_text
from rowtime.core.counts import counted
from rowtime.core.time import BEGINNING, to_text
from rowtime.plan.lateness import LateRows, many_late
from rowtime.plan.poisoned import Poisoned
from rowtime.plan.waiting import Wait
from rowtime.web.words import amount

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from rowtime.api.query import Query

REFRESH = 4  # a second
BEAT = 0.5  # seconds


class Display:
    """Shows the progress of a query; a context manager, and a listener for queries.

    From Python, with the whole display::

        with Display() as display:
            display.query = pipeline.start(folder, available_now=True, listener=display.listener)
            display.query.awaitTermination()

    ``pipeline.run_available(folder, listener=display.listener)`` works too; it returns no query before the end, so rows
    of single sinks and what waits are not shown. ``plain``: lines even on a terminal, for scripts that print results
    themselves. ``file``: where to write, by default standard output. A summary comes last.
    """

    def __init__(self, query: Query | None = None, *, plain: bool | None = None, file: TextIO | None = None) -> None:
        self.query = query
        self.file = sys.stdout if file is None else file
        self.plain = not self.file.isatty() if plain is None else plain
        self.figures = Figures(time.monotonic())
        self._lines = Lines(self.file)
        self._live: Live | None = None
        self._turn, self._over = threading.Lock(), threading.Event()
        self._beating: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.plain:
            self._beating = threading.Thread(target=self._beat, name="rowtime-display", daemon=True)
            self._beating.start()
        else:
            self._live = _live(self)
            self._live.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()
        if self._beating is not None:
            self._beating.join()
            self._lines.finish(self._seen())
        if kind is None:
            self.file.write("\n".join(self._summary()) + "\n")
            self.file.flush()

    def listener(self, progress: Mapping[str, Any]) -> None:
        """Process the progress or the failure of a tick, or a change of the plan; may be called from any thread."""
        if "changed" in progress:
            self.note(f"pumps were altered: {'; '.join(progress['changed'])}")
            return
        with self._turn:
            self.figures.take(progress, time.monotonic())
        for source in progress.get("sources", ()):
            for file in source.get("files", ()):
                self.note(f"{file['code']} {file['file']}: {file['why']}")

    def note(self, line: str) -> None:
        """Print a line once, above the figures."""
        if self._live is not None:
            self._live.console.print(line, markup=False)
        else:
            self.file.write(f"{line}\n")
            self.file.flush()

    def render(self) -> RenderableType:
        """Return what the terminal shows now."""
        with self._turn:
            return screen(self._seen())

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            with self._turn:
                self._lines.show(self._seen())

    def _seen(self) -> Snapshot:
        waits = self.query.waiting() if self.query is not None else []
        started, doing, backlogs = self.query is not None, "", {}
        if self.query is not None:
            watch = self.query.engine.watch
            doing, backlogs = watch.words, {name: asdict(backlog) for name, backlog in watch.backlogs.items()}
        return Snapshot(self.figures, waits, self._outputs(), time.monotonic(), started, doing, backlogs)

    def _outputs(self) -> Outputs:
        """Return rows and bound of each sink since the checkpoint began, which only the query knows."""
        if self.query is None:
            return ()
        control = self.query.engine.entry["control"]
        names = [node.name for node in self.query.engine.program.sinks]
        return [(n, control[n]["sequence"], to_text(control[n].get("bound", BEGINNING))) for n in names if n in control]

    def _late_rows(self) -> list[LateRows]:
        return [] if self.query is None else many_late(self.query.engine.plan, self.query.engine.entry)

    def _summary(self) -> list[str]:
        seen = self._seen()
        refused = (f"refused at {gate}: {', '.join(f'{n:,} {why}' for why, n in reasons.items())}"
                   for gate, reasons in self.figures.refused.items())  # fmt: skip
        late = (f"late: {rows}" for rows in self._late_rows())
        outputs = (f"{name}: {counted(rows, 'rows')} in all, up to {bound}" for name, rows, bound in seen.outputs)
        waits = (f"still waiting: {wait}" for wait in seen.waits)
        return [self.figures.summary_text(seen.now), *refused, *late, *self._advice(), *outputs, *waits]

    def _advice(self) -> Iterator[str]:
        if self.query is not None and self.figures.rows_refused:
            engine = self.query.engine
            yield from unit_advice(engine.checkpoint, engine.plan, engine.entry)


def _live(display: Display) -> Live:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.live import Live  # noqa: PLC0415

    console = Console(file=display.file)
    return Live(get_renderable=display.render, console=console, refresh_per_second=REFRESH, transient=True)


LINE_EVERY = 1.0  # seconds: at most one line of figures
QUIET = 3.0  # seconds without output before a line says what waits
BUSY = 3.0  # seconds of a slow tick before a line says what it does
BUSY_AGAIN = 10.0  # seconds before the next such line
REPEAT = 30.0  # seconds before the same line is repeated

Outputs = Sequence[tuple[str, int, str]]


@dataclass(frozen=True)
class Snapshot:
    """The content of the display at one moment.

    ``outputs`` are sinks with their rows and bounds; ``started``: Spark runs. ``doing``: what the driver does in a slow
    tick; ``backlogs``: by stream, what that tick takes and what is left after it.
    """

    figures: Figures
    waits: Sequence[Wait | Poisoned]
    outputs: Outputs
    now: float
    started: bool = True
    doing: str = ""
    backlogs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def reached(self) -> Mapping[str, Reached]:
        """Return how far each stream with a known end has been read."""
        return self.figures.ahead(self.backlogs)

    @property
    def share(self) -> str:
        """Return how far all of these have been read: the slowest one decides when the end is reached."""
        shares = [reached.share for reached in self.reached.values()]
        return percent(min(shares)) if shares else ""


def percent(share: float) -> str:
    """Return a share as text; 100 % only once nothing is left."""
    return f"{min(share, 0.99) if share < 1 else 1:.0%}".replace("%", " %")


def screen(seen: Snapshot) -> RenderableType:
    """Return the snapshot as a small table for a terminal."""
    from rich.table import Table  # noqa: PLC0415 - only a terminal needs it
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for label, text, style in _screen_rows(seen):
        table.add_row(label, Text(text, style=style))
    return table


def _screen_rows(seen: Snapshot) -> Iterator[tuple[str, str, str]]:
    figures = seen.figures
    speed = (
        f"{counted(figures.rows_in, 'rows')}   {figures.rate(seen.now):,.0f} rows/s   {seen.now - figures.began:.0f} s"
    )
    yield "rowtime", "   ".join(filter(None, (_state(seen), seen.share, speed))), ""
    if seen.doing:
        yield "now", seen.doing, ""
    for stream in {**figures.clocks, **seen.reached}:
        clock = f"clock {figures.clocks[stream]}" if stream in figures.clocks else ""
        read = counted(figures.taken[stream], "rows")
        yield stream, "   ".join(filter(None, (clock, read, _left(seen.reached.get(stream))))), ""
    for gate, counts in figures.ledger.items():
        yield f"at {gate}", counts_as_text(counts), "yellow" if gate in figures.refused else ""
    for sink, rows, bound in seen.outputs:
        yield f"to {sink}", f"{counted(rows, 'rows')}, up to {bound}", ""
    if figures.failure:
        yield "failed", f"try {figures.failures}: {figures.failure}", "red"
    for wait in seen.waits:
        yield "waits", str(wait), "dim"


def _state(seen: Snapshot) -> str:
    if seen.figures.ticks:
        return f"tick {seen.figures.last_tick}"
    if not seen.started:
        return "starting Spark"
    return "first tick" if seen.doing else "waiting for rows"


def _left(reached: Reached | None) -> str:
    if reached is None:
        return ""
    return f"{amount(reached.left, reached.unit)} left" if reached.left else "all read"


@dataclass
class Lines:
    """Plain lines: one per tick, at most one per second, and what waits if there is no output."""

    file: TextIO
    printed: float = float("-inf")
    starting: bool = False
    ticks: int = 0
    rows: int = 0
    failures: int = 0
    waits: str = ""
    waits_told: float = field(default=float("-inf"))
    busy_due: float | None = None  # when to report what the current tick does

    def show(self, seen: Snapshot) -> None:
        """Write what is new since the last time, if it is time."""
        figures = seen.figures
        if not seen.started and not self.starting:
            self.starting = True
            self._write("starting Spark …")
        if figures.failure and figures.failures != self.failures:
            self.failures = figures.failures
            self._write(f"tick failed (try {figures.failures}), trying again: {figures.failure}")
        if figures.ticks > self.ticks and seen.now - self.printed >= LINE_EVERY:
            self._figures(seen)
        self._doing(seen)
        if not seen.doing and seen.now - figures.last_output >= QUIET:
            self._waits(seen)

    def finish(self, seen: Snapshot) -> None:
        """Write the remaining figures."""
        if seen.figures.ticks > self.ticks:
            self._figures(seen)

    def _figures(self, seen: Snapshot) -> None:
        figures = seen.figures
        self.printed = seen.now
        added, self.rows, self.ticks = figures.rows_in - self.rows, figures.rows_in, figures.ticks
        clocks = ", ".join(f"{stream} at {clock}" for stream, clock in figures.clocks.items())
        refused = f"  refused {figures.rows_refused:,}" if figures.rows_refused else ""
        rate = f"{figures.rate(seen.now):,.0f} rows/s"
        share = f"  {seen.share}" if seen.share else ""
        rows = f"+{counted(added, 'rows')} ({rate}){share}"
        self._write(f"tick {figures.last_tick}  {rows}  out {figures.rows_out:,}{refused}  {clocks}")

    def _doing(self, seen: Snapshot) -> None:
        """Report what a slow tick does: after a few seconds, then now and then."""
        if not seen.doing:
            self.busy_due = None
        elif self.busy_due is None:
            self.busy_due = seen.now + BUSY
        elif seen.now >= self.busy_due:
            self.busy_due = seen.now + BUSY_AGAIN
            self._write(f"{seen.doing}{f'  {seen.share}' if seen.share else ''}")

    def _waits(self, seen: Snapshot) -> None:
        text = "\n".join(f"waiting  {wait}" for wait in seen.waits)
        if text and (text != self.waits or seen.now - self.waits_told >= REPEAT):
            self.waits, self.waits_told = text, seen.now
            self._write(text)

    def _write(self, text: str) -> None:
        self.file.write(text + "\n")
        self.file.flush()
