"""Who uses a stream of a home: the pipelines whose checkpoints are in the home, as their stored plans say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rowtime.core.errors import Problem

CHECKPOINTS: Final = "checkpoints"  # below a home: the checkpoints of scripts that name no other
REPLACED: Final = (
    "Give this script a home of its own: --home DIR. Or choose another name for the stream. Otherwise change the other "
    "script too."
)
DROPPED: Final = "Leave the stream as it is while they are used. Otherwise start them with new checkpoints."


@dataclass(frozen=True)
class User:
    """A pipeline that defines or uses a stream; ``defines``: its script has a CREATE STREAM for it."""

    checkpoint: Path
    defines: bool


def users(home: Path, name: str) -> Iterator[User]:
    """Yield the pipelines with a checkpoint in a home that use a stream; none whose plan cannot be read."""
    created = (
        rf"\bCREATE\s+(OR\s+REPLACE\s+)?(FOREIGN\s+)?STREAM\s+(IF\s+NOT\s+EXISTS\s+)?[`\"]?{re.escape(name)}(?!\w)"
    )
    for path in sorted((home / CHECKPOINTS).glob("*/plan.json")):
        try:
            plan = json.loads(path.read_text(encoding="utf-8"))
            uses = any(_names(operator, name) for operator in plan["operators"])
            defines = bool(re.search(created, plan["sql"], re.IGNORECASE))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if uses or defines:
            yield User(path.parent, defines)


def replacing(home: Path, name: str, own: Path) -> Problem | None:
    """Return a warning (R223) about the other pipelines of a stream whose definition a script replaces.

    ``own``: the checkpoint of the script.
    """
    others = [user for user in users(home, name) if user.checkpoint.absolute() != own.absolute()]
    if not others:
        return None
    defining = [str(user.checkpoint) for user in others if user.defines]
    reading = [str(user.checkpoint) for user in others if not user.defines]
    refused = "its script defines the stream otherwise, and is refused (R203) or replaces it again"
    parts = [f"{place} ({refused})" for place in defining] + [
        f"{place} (it reads the stream, and may be refused)" for place in reading
    ]
    what = f"the stream {name} gets another definition, which breaks other checkpoints: {', '.join(parts)}"
    return Problem("R223", what, hint=REPLACED, warns=True)


def dropping(home: Path, name: str, own: Path, *, log: bool) -> Problem | None:
    """Return a warning (R223) about the other pipelines of a stream that a script drops; ``log``: with its rows.

    A pipeline whose script defines the stream can do without a definition, but not without the rows that it has read.
    """
    others = [user for user in users(home, name) if user.checkpoint.absolute() != own.absolute()]
    broken = [user.checkpoint for user in others if log or not user.defines]
    if not broken:
        return None
    lost = "its rows are removed, too" if log else "their scripts do not define it"
    what = f"the stream {name} is dropped, which breaks other checkpoints: {', '.join(map(str, broken))} ({lost})"
    return Problem("R223", what, hint=DROPPED, warns=True)


def _names(operator: Mapping[str, Any], name: str) -> bool:
    """Return True for a stream of this name, and for a sink that writes to it."""
    fields = operator["fields"]
    if operator["kind"] == "stream":
        return bool(operator["name"] == name)
    options = fields.get("options") or []
    return operator["kind"] == "sink" and fields.get("format") == "log" and ["stream", name] in options
