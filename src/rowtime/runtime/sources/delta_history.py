"""The history of a Delta table: the entries of its log, as lines of JSON, and deltalake for whole versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import ObjectPlace, Place
from rowtime.runtime.sources.file_list import NumberedFile
from rowtime.runtime.sources.file_places import each
from rowtime.runtime.sources.table_history import (
    MILLI,
    NOTHING,
    Look,
    Version,
    gone,
    no_package,
    no_version,
    unreached,
    unreadable,
)
from rowtime.runtime.store_access import asking, deltalake_settings

_LOG: Final = "_delta_log"
_READS: Final = frozenset(("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "columnMapping"))
"""Features that readers have to know; the last two only if the table does not use them."""
_UNKNOWN: Final = ("nsupported", "not supported")

Action = Mapping[str, Any]
Stamp = tuple[object, ...]


class DeltaHistory:
    """The Delta table of a folder, on a disk or in a store."""

    def __init__(self, path: Place) -> None:
        self._path = path
        self.called = f"the Delta table {path}"
        self._look: Look | None = None
        self._stamp: Stamp = ()

    def look(self, version: int | None = None) -> Look | None:
        """Return the table, now or in a version; without opening it if nothing has happened since the last look."""
        before = self._look if version is None else None
        same = before is not None and self._stamp and self._stamp == self._stamp_of(before.place)
        if before is not None and same and not self._entry(before.place + 1).exists():
            return before
        table = self._opened(version)
        if table is None:
            self._look = None
            return None
        from pyspark.sql.types import StructType  # noqa: PLC0415 - not for those who only plan

        self._check(table)
        metadata = table.metadata()
        columns = StructType.fromJson(json.loads(table.schema().to_json()))
        self._look = Look(str(metadata.id), table.version(), columns, tuple(metadata.partition_columns))
        self._stamp = self._stamp_of(table.version())
        return self._look

    def whole(self, place: int) -> Sequence[NumberedFile]:
        """Return the files of a version, by the versions that first had their rows; unknown ones come first.

        A compacted file has the place of the oldest of its files in its partition.
        """
        table = self._opened(place)
        if table is None or table.version() != place:
            raise no_version(self.called, place, "its log does not have it")
        self._check(table)
        origins = self._origins(place)
        files = []
        for add in self._added(table):
            values = {name: _text(value) for name, value in (add.get("partition") or {}).items()}
            file = self._file(add["path"], add["size_bytes"], add["modification_time"], values)
            version, nth = origins.get(add["path"], (NOTHING, add["modification_time"]))
            files.append(((version, nth, add["path"]), file))
        return [file for _, file in sorted(files, key=lambda one: one[0])]

    def since(self, place: int) -> Iterator[Version]:
        """Yield the versions after a place, from their entries in the log."""
        assert self._look is not None
        if self._look.place < place:
            raise gone(self.called, f"version {place} was read, and its newest is {self._look.place}: it was restored")
        for version in range(place + 1, self._look.place + 1):
            actions = self._actions(version)
            if actions is None:
                raise gone(self.called, f"version {version} is no longer in its log")
            yield self._version(version, actions)

    def behind(self, place: int) -> int:
        """Return the difference of the numbers."""
        assert self._look is not None
        return max(0, self._look.place - place)

    def mark(self, place: int) -> str:
        """Return a hash of the entry of a version: a table that was restored may have another one."""
        try:
            return blake2b(self._entry(place).read_bytes(), digest_size=8).hexdigest()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise unreached(self.called, error) from error

    def before(self, place: int) -> int:
        """Return the number before."""
        assert self._look is not None
        if place > self._look.place:
            raise no_version(self.called, place, f"its newest is {self._look.place}")
        return place - 1

    def _version(self, version: int, actions: Sequence[tuple[str, Action]]) -> Version:
        commit = next((action for kind, action in actions if kind == "commitInfo"), {})
        added = [action for kind, action in actions if kind == "add" and action.get("dataChange", True)]
        removed = sum(kind == "remove" and action.get("dataChange", True) for kind, action in actions)
        if removed:
            return Version(version, (), f"{commit.get('operation', 'a commit')} removed or replaced {removed} files")
        at = commit.get("inCommitTimestamp") or commit.get("timestamp")
        files = []
        for add in added:
            if add.get("deletionVector"):
                raise unreadable(self.called, f"has a deletion vector in version {version}")
            values = {name: value or None for name, value in (add.get("partitionValues") or {}).items()}
            files.append(self._file(add["path"], add["size"], at or add["modificationTime"], values, version))
        return Version(version, files)

    def _file(
        self, path: str, size: int, millis: int, values: Mapping[str, str | None], version: int = 0
    ) -> NumberedFile:
        name = unquote(path)
        if "://" in name or name.startswith("file:"):
            scheme, _, rest = name.partition(":")
            if scheme != "file":
                raise unreadable(self.called, f"has files elsewhere ({name})")
            name = "/" + rest.lstrip("/")
        return NumberedFile(str(self._path / name), millis * MILLI, size, version=version, values=values)

    def _added(self, table: Any) -> list[dict[str, Any]]:
        """Return the log's data about all files of a version."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415 - an extra

        try:
            with asking(self._path):
                return self._added_files(table)
        except DeltaError as error:
            raise self._failure(error) from error

    def _added_files(self, table: Any) -> list[dict[str, Any]]:
        marked = "deletionVectors" in (table.protocol().reader_features or ())
        if marked and pa.table(table.deletion_vectors()).num_rows:
            raise unreadable(self.called, "has deletion vectors")
        return [*pa.table(table.get_add_actions(flatten=False)).to_pylist()]

    def _failure(self, error: Exception) -> Failure | Refused:
        """Return R575 for features that deltalake does not know, which another try does not change, else R501."""
        message = str(error).split("\n", 1)[0]
        if any(word in message for word in _UNKNOWN):
            return unreadable(self.called, f"has what the package deltalake does not know ({message})")
        return unreached(self.called, error)

    def _origins(self, place: int) -> dict[str, tuple[int, int]]:
        """Return by path the version that first had a file's rows and its number in there, as far as the log tells."""
        origins: dict[str, tuple[int, int]] = {}
        numbers = (int(path.stem) for path in self._log.glob("*.json") if path.stem.isdecimal())
        versions = sorted(version for version in numbers if version <= place)
        entries = each(self._actions, versions, stored=isinstance(self._path, ObjectPlace))
        for version, actions in zip(versions, entries, strict=True):
            oldest: dict[str, tuple[int, int]] = {}
            for kind, action in actions or ():
                if kind == "remove" and action["path"] in origins:
                    key, at = _partition(action), origins[action["path"]]
                    oldest[key] = min(oldest.get(key, at), at)
            for nth, (kind, action) in enumerate(actions or ()):
                if kind == "add":
                    origins[action["path"]] = oldest.get(_partition(action), (version, nth))
        return origins

    def _actions(self, version: int) -> list[tuple[str, Action]] | None:
        """Return the actions of a log entry, in order; ``None`` if it does not exist."""
        try:
            lines = self._entry(version).read_text().splitlines()
            return [pair for line in lines if line.strip() for pair in json.loads(line).items()]
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise unreached(self.called, error) from error

    def _opened(self, version: int | None = None) -> Any:
        try:
            from deltalake import DeltaTable  # noqa: PLC0415 - an extra
            from deltalake.exceptions import DeltaError, TableNotFoundError  # noqa: PLC0415
        except ImportError as error:
            raise no_package(self.called, "deltalake", "delta") from error
        if not self._log.is_dir():
            return None
        try:
            with asking(self._path):
                return DeltaTable(str(self._path), version=version, storage_options=deltalake_settings(self._path))
        except TableNotFoundError:
            return None
        except DeltaError as error:
            failure = self._failure(error)
            if version is not None and not isinstance(failure, Refused):
                raise no_version(self.called, version, str(error).split("\n", 1)[0]) from error
            raise failure from error

    def _check(self, table: Any) -> None:
        """Raise ``Refused`` (R575) for features that readers have to know."""
        protocol, settings = table.protocol(), table.metadata().configuration
        if unknown := sorted(set(protocol.reader_features or ()) - _READS):
            raise unreadable(self.called, f"has the feature {unknown[0]}")
        if settings.get("delta.columnMapping.mode", "none") != "none":
            raise unreadable(self.called, "maps the names of its columns (delta.columnMapping.mode)")

    def _stamp_of(self, version: int) -> Stamp:
        """Return what identifies an entry of the log; empty if it does not exist."""
        entry = self._entry(version)
        if isinstance(entry, ObjectPlace):
            return tuple(sorted((entry.tag() or {}).items()))
        try:
            about = entry.stat()
        except OSError:
            return ()
        return about.st_ino, about.st_mtime_ns, about.st_size

    @property
    def _log(self) -> Place:
        return self._path / _LOG

    def _entry(self, version: int) -> Place:
        return self._log / f"{version:020}.json"


def _partition(action: Action) -> str:
    return json.dumps(action.get("partitionValues") or {}, sort_keys=True)


def _text(value: Any) -> str | None:
    """Return the value of a partition as Delta's log writes it."""
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
