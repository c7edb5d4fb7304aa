"""Ownership of a target: one pump of one checkpoint, recorded in the target before its first row (semantics 10).

Beside the rows of a pump is a record of the checkpoint that the pump belongs to. Law: of two checkpoints that have a
pump with the same name and target, at most one writes there; after a takeover the former one never writes again. So
rows are neither mistaken for repeats of another pump's, nor written beside them by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from shlex import quote
from typing import Any, Final, NamedTuple

from rowtime.core.counts import counted
from rowtime.core.errors import Refused, refuse
from rowtime.core.stores import ObjectPlace, Place, place_of
from rowtime.core.time import to_text
from rowtime.state.files import make_folder, write_over
from rowtime.state.journal import Journal
from rowtime.state.sealed import sealed, unsealed

RECORD: Final = ".owner"


class Proof(NamedTuple):
    """What identifies the content of a target: the number of its ``rows``, and a ``link`` that only it has."""

    rows: int
    link: str


@dataclass(frozen=True)
class Claim:
    """The claim of a pump on its target: its name, its checkpoint, and its journal's knowledge.

    ``sent``: how many rows its target has by the journal, at least and at most (a tick may not have been delivered);
    ``None`` if the journal does not know the pump. ``next_row``: the number of the next row in the journal, ``tick``:
    its last tick; ``proof``: the content of the target before it, if the journal knows that; ``link``: what identifies
    the content after it. ``at``: the time of day, µs UTC. ``called``: the pump's name in a statement, if it is another
    one; ``shared``: the target is a topic, in which another pump name is not another place.
    """

    pump: str
    identity: str
    place: str
    at: int
    sent: tuple[int, int] | None = None
    take_over: bool = False
    next_row: int = 0
    called: str = ""
    shared: bool = False
    proof: Proof | None = None
    link: str = ""
    tick: int = -1

    @property
    def least(self) -> int:
        """Return how many rows the target has at least."""
        return 0 if self.sent is None else self.sent[0]

    def knows(self, link: str) -> bool:
        """Return True for the link of a target that has the rows of the last tick, or those before it."""
        return self.proof is None or link in (self.proof.link, self.link)

    @property
    def statement(self) -> str:
        """Return the pump as ``ALTER PUMP`` names it."""
        return self.called or self.pump


@dataclass(frozen=True)
class Contents:
    """What a target has of a pump: ``rows`` (``None``: unknown), the writer's clock, and in words.

    ``others``: no record names its pump, and other pumps are recorded in the target. ``next_row``: the number after
    those of its rows, if that is not their count. ``empty``: it is known to have nothing.
    """

    rows: int | None
    clock: int | None
    words: str
    others: bool = False
    empty: bool = False
    next_row: int | None = None


@dataclass(frozen=True)
class Record:
    """The pump of a checkpoint as the owner of its rows in a target.

    ``base``: how many rows existed before, so that numbers continue after them; ``clock`` (µs UTC): no row below it
    follows. ``before``: the checkpoints that it has taken over from.
    """

    pump: str
    identity: str
    place: str
    since: int
    base: int = 0
    clock: int | None = None
    before: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def tag(self) -> str:
        """Return the tag in the names of the pump's files."""
        return tag_of(self.identity, self.pump)

    def write(self, folder: Place) -> None:
        """Make the record durable; nothing is written if it is there unchanged."""
        if read(folder) != self:
            make_folder(folder)
            write_over(folder / RECORD, sealed(asdict(self)))

    def instead(self, folder: ObjectPlace, before: Record | None) -> None:
        """Replace another record, where there are no locks; ``Refused`` (R442) if a third one was written."""
        mine, identities = sealed(asdict(self)), {self.identity, "" if before is None else before.identity}

        def same() -> None:
            owner_now = read(folder)
            if ("" if owner_now is None else owner_now.identity) not in identities:
                raise running(Claim(self.pump, self.identity, self.place, self.since), str(folder))

        (folder / RECORD).replace(mine, judge=same)


def tag_of(identity: str, pump: str) -> str:
    """Return a short name for a pump of a checkpoint."""
    return sha256(f"{identity}/{pump}".encode()).hexdigest()[:8]


def read(folder: Place) -> Record | None:
    """Return the record in a folder, if it has one; raises ``Failure`` (R406) if it is damaged."""
    path = folder / RECORD
    if not path.exists():
        return None
    content = unsealed(path)
    return Record(**{name: content[name] for name in Record.__dataclass_fields__ if name in content})


def owner(folder: Place, claim: Claim, target: str, look: Callable[[], Contents | None]) -> Record:
    """Return the record with which a pump may write; it is not written yet. ``look`` returns what is there.

    Raises ``Refused``: R440 if another pump's rows are there, R441 after a takeover by another checkpoint.
    """
    return entitled(read(folder), claim, target, look)


def entitled(record: Record | None, claim: Claim, target: str, look: Callable[[], Contents | None]) -> Record:
    """Return the same, if the target has this record. Raises as `owner`."""
    if record is not None and record.identity == claim.identity:
        return record
    new = Record(claim.pump, claim.identity, claim.place, claim.at)
    if record is not None:
        if claim.identity in {former["identity"] for former in record.before}:
            raise fenced(record, target, shared=claim.shared)
        if not claim.take_over and not _never_began(record, look()):
            raise _other(claim, target, f"the pipeline of {record.place}", look())
    content = look()
    if record is None and content is not None:
        if _proves(claim, content):
            return new
        if not (content.others or claim.take_over):
            raise _other(claim, target, "a pipeline that left no record", content)
    return _after(new, record, content)


def _never_began(record: Record, content: Contents | None) -> bool:
    """Return True if a pump has written nothing, and its checkpoint's start failed before its first tick."""
    nothing = content is None or content.empty or content.rows == 0
    if not nothing:
        return False
    place = place_of(record.place)
    return (place / "identity").exists() and Journal(place / "journal").last() is None


def check_owner(folder: Place, mine: Record, target: str) -> None:
    """Raise ``Refused`` (R441) if a record is no longer the pump's."""
    record = read(folder)
    if record is not None and record.identity != mine.identity:
        raise fenced(record, target)


def changed(pump: str, target: str, rows: int, state: str) -> Refused:
    """Return R564: a target does not have the rows that it was given; ``state``: what it has, in words."""
    what = f"the pump {pump} has written {counted(rows, 'rows')} to {target}, which {state}"
    hint = (
        "It was removed, created again or restored from another copy. Rowtime does not write its rows again. "
        "Restore it, or start with a new --checkpoint and a new target, which reads the streams from the start."
    )
    return refuse("R564", what, hint)


def running(claim: Claim, target: str) -> Refused:
    """Return R442: another process has the pump's place in the target."""
    hint = "Stop that pipeline first, or give this pump another name."
    return refuse("R442", f"another pipeline that is running writes to {target} as the pump {claim.pump}", hint)


def _proves(claim: Claim, content: Contents) -> bool:
    if claim.sent is None:
        return False
    least, most = claim.sent
    return most > 0 if content.rows is None else least <= content.rows <= most


def _after(new: Record, record: Record | None, content: Contents | None) -> Record:
    """Return a record that takes over from another one: numbers continue after the present rows."""
    before: list[Mapping[str, Any]] = []
    if record is not None:
        before = [*record.before, {"identity": record.identity, "place": record.place, "since": record.since}]
    if content is None:
        return replace(new, before=before)
    base = content.rows or 0 if content.next_row is None else content.next_row
    return replace(new, base=base, clock=content.clock, before=before)


def _other(claim: Claim, target: str, whose: str, content: Contents | None) -> Refused:
    words = "no rows yet" if content is None else content.words
    be = "is" if words.startswith("1 ") else "are"
    what = (
        f"{target} is written by another pump {claim.pump}: there {be} {words}, by {whose}. "
        "This checkpoint has written none of it"
    )
    pump = claim.statement
    name = spelled(pump)
    if claim.shared:
        hint = (
            "Continue with that pipeline's checkpoint; or write into another topic; or let this pump take over with "
            f"ALTER PUMP {name} TAKE OVER (rowtime run … --take-over {quote(pump)}): its rows follow the existing "
            "ones, and the other pipeline stops."
        )
        return refuse("R440", what, hint)
    hint = (
        "Continue with that pipeline's checkpoint; or give this pump another name, so that its rows are written next "
        "to the others; "
        f"or let it take over with ALTER PUMP {name} TAKE OVER (rowtime run … --take-over {quote(claim.pump)}): "
        "its rows follow the existing ones, nothing is removed, and the other pipeline can no longer write there."
    )
    return refuse("R440", what, hint)


def spelled(pump: str) -> str:
    """A pump as statements name it."""
    return pump if pump.isidentifier() else '"' + pump.replace('"', '""') + '"'


def fenced(record: Record, target: str, *, shared: bool = False) -> Refused:
    """Return R441: the checkpoint of a record has taken over; ``shared``: as in `Claim`."""
    what = f"the pipeline of {record.place} has taken over {target} from this one (pump {record.pump})"
    since = to_text(record.since)
    if shared:
        hint = f"It did so at {since}. Continue with that pipeline, or write to another topic with a new --checkpoint."
        return refuse("R441", what, hint)
    hint = f"It did so at {since}. Continue with that pipeline, or give this pump another name."
    return refuse("R441", what, hint)
