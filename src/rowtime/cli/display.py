"""The progress display of a run: redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self, TextIO

from rowtime.audit.number_units import unit_advice
from rowtime.cli.figures import Figures
from rowtime.cli.views import Lines, Outputs, Snapshot, screen
from rowtime.core.counts import counted
from rowtime.core.time import BEGINNING, to_text
from rowtime.plan.lateness import LateRows, many_late

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
