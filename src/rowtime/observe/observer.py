"""Observers: objects that rowtime calls with each event of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowtime.core.log import LOG
from rowtime.runtime.progress import name_of

if TYPE_CHECKING:
    from rowtime.runtime.engine import Engine
    from rowtime.runtime.report import TickReport
    from rowtime.runtime.retries import Retries


@dataclass(frozen=True)
class Run:
    """One run of a pipeline: its engine, its checkpoint's id, and its own id."""

    engine: Engine
    id: str
    run_id: str

    @property
    def name(self) -> str:
        """Return the names of its sinks."""
        return name_of(self.engine)


class Observer:
    """Receives the events of a run, in its thread; errors of an observer are logged, and the run continues."""

    def given_up(self) -> None:
        """No run begins: its start has failed."""

    def started(self, run: Run) -> None:
        """The run begins; no tick has run yet."""

    def ticked(self, run: Run, report: TickReport, progress: Mapping[str, Any]) -> None:
        """A tick has succeeded."""

    def idle(self, run: Run) -> None:
        """There has been no tick for a while: there was nothing to do."""

    def failed(self, run: Run, retries: Retries) -> None:
        """A tick has failed, and will be tried again."""

    def ended(self, run: Run, error: BaseException | None) -> None:
        """No tick will follow."""


@dataclass
class Observers:
    """The observers of one run."""

    run: Run
    known: list[Observer] = field(default_factory=list)

    def tell(self, what: Callable[[Observer], None]) -> None:
        """Tell all of them, even if one raises an error."""
        for observer in [*self.known]:
            try:
                what(observer)
            except Exception as error:  # noqa: BLE001 - it is the user's code, or a server that does not answer
                LOG.warning(
                    "%s failed, and the run goes on: %s",
                    type(observer).__name__,
                    error,
                    exc_info=error,
                    extra={"event": "observer failed", "run": self.run.run_id},
                )
