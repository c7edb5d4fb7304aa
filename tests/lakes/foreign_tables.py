"""Lake tables of both formats as another program changes them: it fills them, removes them and restores them."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from rowtime.core.stores import ObjectPlace, place_of
from rowtime.runtime.iceberg_catalog import opened
from rowtime.runtime.store_access import deltalake_settings

Undo = Callable[[], None]


class Foreign(Protocol):
    """A table with the column ``n`` below a place, a folder or a bucket."""

    using: str

    def append(self, numbers: list[int], name: str = "n") -> None:
        """Add rows; a missing table is created."""
        ...

    def numbers(self) -> list[int]:
        """The rows, sorted."""
        ...

    def remove(self) -> Undo:
        """Move the table away."""
        ...

    def discard(self) -> None:
        """Delete the table with its files."""
        ...

    def vacuum(self) -> Undo:
        """Remove the files that the version before the newest has and the newest has not."""
        ...

    def current(self) -> str:
        """The newest version."""
        ...


@dataclass
class Delta:
    """The table at ``url``."""

    url: str

    @property
    def using(self) -> str:
        return f"delta OPTIONS (path '{self.url}'{{more}})"

    def append(self, numbers: list[int], name: str = "n") -> None:
        write_deltalake(
            self.url, pa.table({name: pa.array(numbers, pa.int64())}), mode="append", storage_options=self._how
        )

    def numbers(self) -> list[int]:
        return sorted(self._opened().to_pyarrow_table()["n"].to_pylist())

    def remove(self) -> Undo:
        kept = {path: path.read_bytes() for path in self._files()}
        place = place_of(self.url)
        if isinstance(place, Path):
            shutil.rmtree(place)
        for path in kept if isinstance(place, ObjectPlace) else ():
            path.unlink()
        return lambda: _put_back(kept)

    def discard(self) -> None:
        self.remove()

    def vacuum(self) -> Undo:
        self._opened().optimize.compact()
        kept = {path: path.read_bytes() for path in self._files()}
        self._opened().vacuum(0, dry_run=False, enforce_retention_duration=False)
        return lambda: _put_back({path: data for path, data in kept.items() if not path.exists()})

    def current(self) -> str:
        return str(self._opened().version())

    def _files(self) -> list[Any]:
        return [path for path in place_of(self.url).rglob("*") if path.is_file()]

    def _opened(self) -> DeltaTable:
        return DeltaTable(self.url, storage_options=self._how)

    @property
    def _how(self) -> dict[str, str]:
        return deltalake_settings(place_of(self.url))


def _put_back(kept: dict[Any, bytes]) -> None:
    for path, data in kept.items():
        if isinstance(path, ObjectPlace):
            path.upload(data)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@dataclass
class Iceberg:
    """The table ``db.<name>`` of a catalog in a folder, whose warehouse is at ``url``."""

    folder: Path
    url: str
    name: str

    @property
    def using(self) -> str:
        catalog = f"catalog 'here', catalog.type 'sql', catalog.uri '{self._told['uri']}'"
        return f"iceberg OPTIONS (table 'db.{self.name}', {catalog}, catalog.warehouse '{self.url}'{{more}})"

    def append(self, numbers: list[int], name: str = "n") -> None:
        rows, catalog = pa.table({name: pa.array(numbers, pa.int64())}), self._catalog
        catalog.create_namespace_if_not_exists("db")
        catalog.create_table_if_not_exists(f"db.{self.name}", rows.schema).append(rows)

    def numbers(self) -> list[int]:
        return sorted(self._table.scan().to_arrow()["n"].to_pylist())

    def remove(self) -> Undo:
        return self._dropped()

    def discard(self) -> None:
        place = place_of(self.url.removeprefix("file://")) / "db"
        self.remove()
        if isinstance(place, Path):
            shutil.rmtree(place)
        for path in [*place.rglob()] if isinstance(place, ObjectPlace) else []:
            path.unlink()

    def lose_bucket(self, bucket: str) -> Undo:
        """Change the catalog so that the table is in another bucket."""
        there = self._table.metadata_location
        self._say(f"{bucket}/{there.split('/', 3)[3]}")
        return lambda: self._say(there)

    def _say(self, metadata: str) -> None:
        with sqlite3.connect(f"{self.folder}/catalog.db") as catalog:
            catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", [metadata])

    def vacuum(self) -> Undo:
        last = self._table.current_snapshot().snapshot_id
        self.append([])
        undo = self._dropped(self._table.metadata_location)
        undo()
        self._table.maintenance.expire_snapshots().by_id(last).commit()
        return undo

    def current(self) -> str:
        return str(self._table.current_snapshot().snapshot_id)

    def _dropped(self, known: str = "") -> Undo:
        where, name = known or self._table.metadata_location, f"db.{self.name}"
        if not known:
            self._catalog.drop_table(name)

        def back() -> None:
            if self._catalog.table_exists(name):
                self._catalog.drop_table(name)
            self._catalog.register_table(name, where)

        return back

    @property
    def _table(self) -> Any:
        return self._catalog.load_table(f"db.{self.name}")

    @property
    def _catalog(self) -> Any:
        return opened("here", self._told)

    @property
    def _told(self) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": self.url}


def change_log(folder: Path, kind: str, changes: Mapping[str, Any]) -> None:
    """Change the actions of a kind in the first version of a Delta table."""
    entry = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        action.get(kind, {}).update(changes)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def readers(*features: str) -> dict[str, Any]:
    """The protocol of a table with features that readers must support."""
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}


def vector_of_the_first_row() -> dict[str, Any]:
    """The log entry of a file whose first row was deleted: a bitmap with one container and one value."""
    bits = struct.pack("<IQIIIHHIH2x", 1681511377, 1, 0, 12346, 1, 0, 0, 16, 0)
    theirs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    ours = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    text = base64.b85encode(bits).decode().translate(str.maketrans(ours, theirs))
    return {"deletionVector": {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(bits), "cardinality": 1}}
