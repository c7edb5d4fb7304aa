"""Asks TLC whether the behaviours of real pipelines are behaviours of the model (`Replay.tla`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from reliability.model.checker import output, quoted
from reliability.model.journals import Behaviour
from rowtime.core.errors import Failure, Problem

_ACCEPTED: Final = re.compile(r'<<"accepted", (\d+)>>')
_REACHED: Final = re.compile(r'<<"reached", (\d+), (\d+), (\d+)>>')
_KIND: Final = attrgetter("kind", "place")


def refused(behaviours: Sequence[Behaviour]) -> list[str]:
    """Return the behaviours that the model does not have, each with how far it gets."""
    found: list[str] = []
    for (kind, place), group in groupby(sorted(behaviours, key=_KIND), _KIND):
        found += _refused(kind, place, [*group])
    return found


def _refused(kind: str, place: str, behaviours: Sequence[Behaviour]) -> list[str]:
    text = output("Replay", _configuration(kind, place, behaviours), ("Behaviours", _module(behaviours)))
    if "No error has been found" not in text:
        raise Failure(Problem("R901", f"TLC could not replay: {text[-2000:]}"))
    accepted = {int(number) for number in _ACCEPTED.findall(text)}
    reached = {int(number): (int(entries), int(commits)) for number, entries, commits in _REACHED.findall(text)}
    return [
        _said(one, *reached.get(number, (0, 0))) for number, one in enumerate(behaviours, 1) if number not in accepted
    ]


def _said(one: Behaviour, entries: int, commits: int) -> str:
    return (
        f"{one.name}: no behaviour of the model ({one.kind}, {one.place}): it goes as far as {entries} of "
        f"{len(one.entries)} entries and {commits} of {len(one.commits)} commits: {[dict(e) for e in one.entries]}, "
        f"{list(one.commits)}, handed over up to {one.published}"
    )


def _configuration(kind: str, place: str, behaviours: Sequence[Behaviour]) -> str:
    entries = [entry for one in behaviours for entry in one.entries]
    lines = [
        "SPECIFICATION ReplaySpec",
        "CHECK_DEADLOCK FALSE",
        "CONSTRAINT Fits",
        "CONSTANTS p = p  Drivers = {p}  Off = {}  Sizes = {0, 1}",
        f"CONSTANTS Kind = {quoted(kind)}  Place = {quoted(place)}  Env = {{{quoted('gather')}}}",
        f"CONSTANTS Rows = {max((entry['rows'] for entry in entries), default=0)}",
        f"CONSTANTS Attempts = {max((len(one.entries) for one in behaviours), default=0)}",
        f"CONSTANTS Epochs = {max((entry['epoch'] for entry in entries), default=0)}",
    ]
    return "\n".join(lines) + "\n"


def _module(behaviours: Sequence[Behaviour]) -> str:
    told = ",\n".join(map(_told, behaviours))
    return f"---- MODULE Behaviours ----\nEXTENDS Naturals, Sequences\nTraces == <<\n{told}\n>>\n====\n"


def _told(one: Behaviour) -> str:
    entries = ", ".join(map(_entry, one.entries))
    commits = ", ".join(map(str, one.commits))
    return f"[journal |-> <<{entries}>>, sink |-> <<{commits}>>, published |-> {one.published}]"


def _entry(entry: Mapping[str, int]) -> str:
    return "[" + ", ".join(f"{name} |-> {value}" for name, value in entry.items()) + "]"
