"""The log of a run: start, upgrade, ticks, refused rows summed per minute, stop.

Failures that are retried are logged where that is decided (`runtime.retries`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from rowtime.core.counts import counted
from rowtime.core.errors import headline
from rowtime.core.log import LOG
from rowtime.observe.observer import Observer, Run
from rowtime.runtime.report import TickReport

MINUTE: Final = 60.0  # seconds between two records about refused rows


class Logs(Observer):
    """Writes to the logger ``rowtime``; ``alone``: nobody waits for the error of the run, so it is logged."""

    def __init__(self) -> None:
        self.alone = False
        self._began = time.monotonic()
        self._since = self._began  # when refused rows were last reported
        self._refused: Counter[tuple[str, str]] = Counter()
        self._ticks = self._rows_in = self._rows_out = 0

    def started(self, run: Run) -> None:
        """Log what runs, and what has changed since the last start."""
        engine = run.engine
        streams, sinks = ([node.name for node in nodes] for nodes in (engine.program.streams, engine.program.sinks))
        tick = engine.entry["tick"]
        LOG.info(
            "started on %s %s: %s into %s",
            engine.checkpoint.folder,
            "for the first time" if tick < 0 else f"after tick {tick}",
            ", ".join(streams),
            ", ".join(sinks),
            extra={**_of(run, "start"), "tick": tick, "streams": streams, "sinks": sinks},
        )
        if engine.changes:
            changes = "; ".join(engine.changes)
            LOG.info("the script has changed: %s", changes, extra={**_of(run, "upgrade"), "changes": [*engine.changes]})

    def ticked(self, run: Run, report: TickReport, progress: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Log one record per tick, at debug level."""
        cost = report.cost
        rows_in, rows_out = sum(report.taken.values()), sum(report.written.values())
        self._ticks, self._rows_in, self._rows_out = self._ticks + 1, self._rows_in + rows_in, self._rows_out + rows_out
        figures = {
            "tick": report.tick,
            "rows_in": rows_in,
            "rows_out": rows_out,
            "rows_refused": cost.refused,
            "milliseconds": round(cost.total, 1),
            "parts": {part: round(ms, 1) for part, ms in cost.milliseconds.items()},
        }
        LOG.debug(
            "tick %d: %s in, %d out, %d refused, %.0f ms",
            report.tick,
            counted(rows_in, "rows"),
            rows_out,
            cost.refused,
            cost.total,
            extra={**_of(run, "tick"), **figures},
        )
        for gate, counts in report.ledger.items():
            self._refused.update({(gate, why): n for why, n in counts.items() if why not in ("in", "accepted") and n})
        self._tell_refused(run)

    def idle(self, run: Run) -> None:
        """Report rows that were refused before, if that is due."""
        self._tell_refused(run)

    def ended(self, run: Run, error: BaseException | None) -> None:
        """Log how it ended, and its totals."""
        self._tell_refused(run, now=True)
        if error is not None:
            if self.alone:
                extra = {**_of(run, "failed"), "error": headline(error)}
                LOG.error("the run ends: %s", headline(error), exc_info=error, extra=extra)
            return
        seconds = round(time.monotonic() - self._began, 3)
        figures = {"ticks": self._ticks, "rows_in": self._rows_in, "rows_out": self._rows_out, "seconds": seconds}
        LOG.info(
            "stopped after %s: %s in, %d out, in %.1f s",
            counted(self._ticks, "ticks"),
            counted(self._rows_in, "rows"),
            self._rows_out,
            seconds,
            extra={**_of(run, "stop"), **figures},
        )

    def _tell_refused(self, run: Run, *, now: bool = False) -> None:
        """Report the rows refused since the last record, if that is a minute ago."""
        if not self._refused or not (now or time.monotonic() - self._since >= MINUTE):
            return
        by_gate: dict[str, dict[str, int]] = {}
        for (gate, why), many in self._refused.items():
            by_gate.setdefault(gate, {})[why] = many
        counts = "; ".join(f"{gate}: {', '.join(f'{n} {why}' for why, n in c.items())}" for gate, c in by_gate.items())
        seconds = round(time.monotonic() - self._since)
        extra = {**_of(run, "refused"), "refused": by_gate, "seconds": seconds}
        LOG.warning("%s refused in %d s: %s", counted(self._refused.total(), "rows"), seconds, counts, extra=extra)
        self._refused.clear()
        self._since = time.monotonic()


def _of(run: Run, event: str) -> dict[str, Any]:
    return {"event": event, "run": run.run_id, "checkpoint": str(run.engine.checkpoint.folder)}
