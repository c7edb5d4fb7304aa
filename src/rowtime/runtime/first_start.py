"""The first start of a script: its definitions and drops take effect when that start succeeds.

Streams are defined, and the rows of the script inserted, before the first tick runs, because the tick reads them. Until
that tick is committed, a record in the home says so (`client.starts`). With it everything is undone if the start fails
or dies, so that a corrected script starts as if there had been no other. Streams to which somebody else has written in
the meantime stay. Streams are dropped after that tick. A later start defines the script's changes in the same way,
until it has opened the checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from rowtime.client.home import Home
from rowtime.client.starts import Start, begin, settle_all
from rowtime.client.writer import EVERYONE
from rowtime.plan.program import Program
from rowtime.runtime.acting_statements import DONE, DROPPED, perform, performed, writer_of
from rowtime.sql.statements import EndStream, SetBound
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import make_folder


@dataclass
class FirstStart:
    """The changes of a start outside its checkpoint, until it is settled."""

    program: Program
    home: Home
    checkpoint: Checkpoint
    start: Start | None = None

    def __enter__(self) -> Self:
        """Define the streams of the script."""
        program, home, last = self.program, self.home, self.checkpoint.journal.last()
        settle_all(home, self.checkpoint.folder if self.checkpoint.driven else None)
        defines = {stream.name: stream.as_json() for stream in program.defines}
        dropped = performed(program, self.checkpoint) or (self.checkpoint.folder / DROPPED).exists()
        drops = () if last is not None or dropped else program.drops
        if drops or any(home.definition(name) != after for name, after in defines.items()):
            start = {
                "checkpoint": str(self.checkpoint.folder),
                "tick": -1 if last is None else last["tick"],
                "runs": bool(program.sinks),
                "writers": self._writers(),
            }
            self.start = begin(home, start, defines, drops)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Undo the changes if the start has failed; one that runs no first tick has succeeded."""
        if error is not None or not self.program.sinks or self.checkpoint.journal.last() is not None:
            self.settle(succeeded=error is None)

    def perform(self) -> None:
        """Apply the statements of the script that have not taken effect yet."""
        perform(self.program, self.home, self.checkpoint)

    def settle(self, *, succeeded: bool) -> None:
        """Keep the changes of the start if it ``succeeded`` or has committed a tick, else undo them."""
        start, self.start = self.start, None
        if start is None:
            return
        if succeeded and self.program.drops and self.checkpoint.journal.last() is None:
            make_folder(self.checkpoint.folder)
            (self.checkpoint.folder / DROPPED).touch()  # the next start drops nothing
        start.settle(succeeded=succeeded)
        if not succeeded and self.checkpoint.journal.last() is None:
            (self.checkpoint.folder / DONE).unlink(missing_ok=True)

    def _writers(self) -> list[str]:
        """Return the writers of the statements that take effect once."""
        actions = self.program.actions
        if not actions:
            return []
        named = {action.writer for action in actions if isinstance(action, SetBound | EndStream) and action.writer}
        make_folder(self.checkpoint.folder)
        return [writer_of(self.checkpoint), EVERYONE, *sorted(named)]
