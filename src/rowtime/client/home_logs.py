"""The logs of a home: in its folder ``logs``, each in a place that can be removed or set aside as a whole.

    <home>/logs/<name>/                  the log of a stream, and on a disk
    <home>/logs/.aside-<start>/<name>/   one that a start has set aside

Nothing can be renamed in a bucket. There an object says which folder is the log, and which ones starts have set aside:

    <home>/logs/<name>.json              {"log": "<name>.3f…", "aside": {"<start>": "<name>"}}

Without it the log is the folder with the name of the stream. A folder that was a log before is never one again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rowtime.client.file_names import escape
from rowtime.client.log_bucket import LogBucket
from rowtime.core.shared_paths import sync
from rowtime.core.stores import ObjectPlace, Place


class Logs(Protocol):
    """The logs of a home, by the names of their streams; each ``start`` has a unique name."""

    def path(self, name: str) -> Place:
        """Return where a log is or would be."""
        ...

    def remove(self, name: str) -> None:
        """Remove a log, if it exists; its readers find that it is missing."""
        ...

    def put_aside(self, name: str, start: str) -> None:
        """Set a log aside, if it exists: the stream starts anew."""
        ...

    def aside(self, name: str, start: str) -> bool:
        """Return True if a start has set this log aside."""
        ...

    def put_back(self, name: str, start: str) -> None:
        """Restore a log that was set aside; the one since then is removed."""
        ...

    def forget(self, start: str) -> None:
        """Remove the logs that a start has set aside."""
        ...


def logs_of(home: Place) -> Logs:
    """Return the logs of a home."""
    return BucketLogs(home / "logs") if isinstance(home, ObjectPlace) else FolderLogs(home / "logs")


class FolderLogs:
    """Logs on a disk."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def path(self, name: str) -> Path:
        """Return where a log is or would be."""
        return self._place / escape(name.lower())

    def remove(self, name: str) -> None:
        """Remove a log. It is renamed first, so that no reader sees half a log."""
        log = self.path(name)
        if log.exists():
            doomed = Path(tempfile.mkdtemp(prefix=".dropped-", dir=self._place))
            log.rename(doomed / "log")
            shutil.rmtree(doomed)

    def put_aside(self, name: str, start: str) -> None:
        """Rename a log."""
        if self.path(name).exists():
            aside = self._aside(name, start)
            aside.parent.mkdir(exist_ok=True)
            self.path(name).rename(aside)
            sync(self._place)

    def aside(self, name: str, start: str) -> bool:
        """Return True if a start has set this log aside."""
        return self._aside(name, start).exists()

    def put_back(self, name: str, start: str) -> None:
        """Rename it back."""
        self.remove(name)
        self._aside(name, start).rename(self.path(name))

    def forget(self, start: str) -> None:
        """Remove the logs that a start has set aside."""
        shutil.rmtree(self._place / f".aside-{start}", ignore_errors=True)

    def _aside(self, name: str, start: str) -> Path:
        return self._place / f".aside-{start}" / self.path(name).name


@dataclass(frozen=True)
class _StreamObject:
    """The content of a stream's object; ``log`` and ``aside`` are names of folders."""

    log: str
    aside: Mapping[str, str] = field(default_factory=dict)


class BucketLogs:
    """Logs in a bucket."""

    def __init__(self, place: ObjectPlace) -> None:
        self._place = place

    def path(self, name: str) -> ObjectPlace:
        """Return where a log is or would be."""
        return self._place / self._content(name).log

    def remove(self, name: str) -> None:
        """Switch the log to another folder, and remove the objects of the one before."""
        content = self._content(name)
        if (self._place / content.log).is_dir():
            self._switch(name, self._anew(name), content.aside)
            self._clear(content.log)

    def put_aside(self, name: str, start: str) -> None:
        """Switch the log to another folder."""
        content = self._content(name)
        if (self._place / content.log).is_dir():
            self._switch(name, self._anew(name), {**content.aside, start: content.log})

    def aside(self, name: str, start: str) -> bool:
        """Return True if a start has set this log aside."""
        return start in self._content(name).aside

    def put_back(self, name: str, start: str) -> None:
        """Switch the log back to the former folder."""
        content = self._content(name)
        aside = {**content.aside}
        self._switch(name, aside.pop(start), aside)
        self._clear(content.log)

    def forget(self, start: str) -> None:
        """Remove the logs that a start has set aside."""
        for place in self._place.glob("*.json"):
            content = _read(place)
            if content is not None and start in content.aside:
                self._clear(content.aside[start])
                left = {other: log for other, log in content.aside.items() if other != start}
                place.replace(_text(content.log, left))

    def _object(self, name: str) -> ObjectPlace:
        return self._place / f"{escape(name.lower())}.json"

    def _content(self, name: str) -> _StreamObject:
        return _read(self._object(name)) or _StreamObject(escape(name.lower()))

    def _switch(self, name: str, log: str, aside: Mapping[str, str]) -> None:
        self._object(name).replace(_text(log, aside))

    def _anew(self, name: str) -> str:
        return f"{escape(name.lower())}.{uuid.uuid4().hex[:12]}"

    def _clear(self, folder: str) -> None:
        LogBucket(self._place / folder).drop()


def _read(place: ObjectPlace) -> _StreamObject | None:
    content: dict[str, Any] = {}
    with suppress(FileNotFoundError):
        content = json.loads(place.read_bytes())
    return _StreamObject(content["log"], content["aside"]) if content else None


def _text(log: str, aside: Mapping[str, str]) -> bytes:
    return json.dumps({"log": log, "aside": dict(aside)}).encode()
