"""The first start of a script: what it defines takes effect when that start succeeds.

Streams are defined, and the rows of the script inserted, before the first tick runs, for the tick reads them. If the
run fails before a tick has been committed, all of that is taken back, so that the corrected script starts as if there
had been no other. Streams to which somebody else has written in the meantime stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rowtime.client import stream_log
from rowtime.core.errors import Refused
from rowtime.runtime.once import DONE, WRITER, define, perform, writer_of

if TYPE_CHECKING:
    from rowtime.client.home import Home
    from rowtime.plan.program import Program
    from rowtime.state.checkpoint import Checkpoint


@dataclass(frozen=True)
class FirstStart:
    """What a start changes outside its checkpoint; ``before``: the definitions that were there."""

    program: Program
    home: Home
    checkpoint: Checkpoint
    before: Mapping[str, dict[str, Any] | None]
    done: bool

    @classmethod
    def of(cls, program: Program, home: Home, checkpoint: Checkpoint) -> FirstStart:
        """Before anything is changed."""
        before = {stream.name: home.definition(stream.name) for stream in program.defines}
        return cls(program, home, checkpoint, before, (checkpoint.folder / DONE).exists())

    def __enter__(self) -> Self:
        """Define the streams of the script."""
        try:
            define(self.program, self.home, self.checkpoint)
        except BaseException:
            self.undo()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take that back if the start has failed; where another driver runs here, it is that one's."""
        running = isinstance(error, Refused) and any(problem.code == "R404" for problem in error.problems)
        if error is not None and not running:
            self.undo()

    def perform(self) -> None:
        """Carry out the statements of the script, what is not done yet."""
        perform(self.program, self.home, self.checkpoint)

    def undo(self) -> None:
        """Take back what the start has changed, unless a tick has been committed or it changed nothing."""
        if self.done or self.checkpoint.journal.last() is not None:
            return
        for stream in self.program.defines:
            if self.home.definition(stream.name) == stream.as_json() and not self._written_by_others(stream.name):
                self._restore(stream.name)
        (self.checkpoint.folder / DONE).unlink(missing_ok=True)

    def _written_by_others(self, stream: str) -> bool:
        ours = {writer_of(self.checkpoint)} if (self.checkpoint.folder / WRITER).exists() else set()
        return any(name not in ours for name in stream_log.last(self.home.log_path(stream)))

    def _restore(self, stream: str) -> None:
        before = self.before[stream]
        if before is None:
            self.home.drop(stream)
        else:
            self.home.define(stream, before, replace=True)
