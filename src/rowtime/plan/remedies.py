"""Remedies: how to release rows that are held, depending on their source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rowtime.core.clock import NOBODY
from rowtime.plan.bind.ledger import LEDGER
from rowtime.plan.finite import is_finite
from rowtime.plan.formats.files import DIRECTORIES

TIME: Final = "<time>"
"""Placeholder in a command for a time that the user has to give."""
CHECKPOINT: Final = "<checkpoint>"
"""Placeholder for the checkpoint that is inspected."""


@dataclass(frozen=True)
class Way:
    """One remedy: what to do (``words``), the ``statement`` for it, and the rest of the sentence (``after``).

    ``lasting``: what cannot be undone; empty if everything can. ``command``: the arguments of ``rowtime`` for it.
    """

    words: str
    statement: str = ""
    after: str = ""
    lasting: str = ""
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.words}{self.statement}{self.after}{f' ({self.lasting})' if self.lasting else ''}"


@dataclass(frozen=True)
class Advice:
    """Why something waits, and the ways to release it."""

    why: str
    ways: tuple[Way, ...]

    def __str__(self) -> str:
        ways = [*map(str, self.ways)]
        return f"{self.why}: {', '.join(ways[:-1])}{', or ' if ways[1:] else ''}{ways[-1]}"


def or_end(stream: str) -> Way:
    """Return the way to end a stream."""
    return Way("end it for good: ", f"ALTER STREAM {stream} END", lasting=FOR_GOOD)


@dataclass(frozen=True)
class Remedy:
    """What releases the rows that a writer holds.

    ``silent``: none of its items has moved the clock yet. ``promoted``: only the writer's rows and its end move the
    clock. ``alone``: no other writer holds the stream, so this one is never set aside. ``bound``: the statement that
    sets the bound of its event time, if one can.
    """

    stream: str
    writer: str
    format: str
    silent: bool
    promoted: bool
    bound: str
    alone: bool

    def advice(self, *, started: bool, stalled: bool) -> Advice:
        """Return all ways that help; those that cannot be undone only if the bound has been still for long."""
        end = (or_end(self.stream),) if stalled else ()
        if not started and self.format == "log":
            return Advice(f"nobody has written to {self.stream} yet", (Way("insert rows"), *end))
        if self.format == LEDGER.format:
            return Advice(
                "the ledger gets a row with each tick that counts rows", (Way("send a row to another stream"),)
            )
        if self.writer == NOBODY:
            return Advice(
                f"every writer of {self.stream} has left, and another one may join", (Way(f"send it {self._row}"), *end)
            )
        others = self._others() if stalled else ()
        if self.format in DIRECTORIES:
            why = "no file has a row that counts yet" if self.silent else "it may have earlier rows"
            return Advice(why, (Way(f"add a file with {self._row}"), *others))
        why = f"{self._who} has sent nothing that counts yet" if self.silent else f"{self._who} may send earlier rows"
        return Advice(why, (Way(f"send it {self._row}"), *others))

    @property
    def _who(self) -> str:
        if self.format == "kafka" and "/" in self.writer:
            topic, number = self.writer.rsplit("/", 1)
            return f"partition {int(number)} of topic {topic}"
        return "it"

    @property
    def _row(self) -> str:
        what = "record" if self.format == "kafka" else "row"
        return f"a {'' if self.silent else 'later '}{what}{' with an event time' if self.promoted else ''}"

    def _others(self) -> Iterator[Way]:
        again = " to the script, and start again"
        if not self.alone:
            idle = f"ALTER STREAM {self.stream} SET (IDLE AFTER INTERVAL '10' SECOND);"
            yield Way("set it aside while it is silent: stop, add ", idle, again)
        if self.bound:
            yield Way("promise that nothing earlier will come: stop, add ", self.bound, again, EARLIER)
        if self.format == "kafka":
            header = "send it a record with the header rowtime-bound: "
            yield (
                Way(f"{header}end if it has ended", lasting=FOR_GOOD)
                if self.promoted
                else Way(f"{header}<time>", lasting=EARLIER)
            )
        elif self.format == "log":
            yield self._typed()
        elif is_finite(self.format):
            yield Way("if no file will follow, run once with --end", lasting=FOR_GOOD)

    def _typed(self) -> Way:
        time, lasting = ("end", FOR_GOOD) if self.promoted else (f"'{TIME}'", EARLIER)
        command = ("bound", self.stream, time.strip("'"), "--writer", self.writer)
        writer = self.writer.replace("'", "'\"'\"'")  # quoted for a shell, whatever the name contains
        statement = f"rowtime bound {self.stream} {time} --writer '{writer}'"
        return Way("type ", statement, lasting=lasting, command=command)


FOR_GOOD: Final = "this cannot be undone: every later row is refused"
EARLIER: Final = "this cannot be undone: earlier rows are refused from then on"
