"""The history of an Iceberg table: its snapshots, by pyiceberg. A place is the id of a snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.store_settings import learn
from rowtime.core.stores import ObjectPlace, named, on_store
from rowtime.runtime.iceberg_catalog import ask_the_store, opened, place_in
from rowtime.runtime.sources.file_list import NumberedFile
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

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FORMATS: Final = (1, 2)
_LOCAL: Final = re.compile(r"(file:)?/+")


class IcebergHistory:
    """The table ``name`` of a catalog that pyiceberg knows, or that options describe."""

    def __init__(self, catalog: str, given: Mapping[str, str], name: str) -> None:
        self._catalog_name, self._given, self._name = catalog, given, name
        self.called = f"the Iceberg table {name}"
        self._catalog: Any = None
        self._table: Any = None

    def look(self, version: int | None = None) -> Look | None:
        """Return the table, now or in a version."""
        table = self._table = self._opened()
        if table is None:
            return None
        about = table.metadata
        if about.format_version not in _FORMATS:
            raise unreadable(self.called, f"has format version {about.format_version}")
        self._check_names(about.schemas)
        if version is None:
            snapshot, schema = table.current_snapshot(), table.schema()
        else:
            snapshot = self._snapshot(version)
            schema = next(
                (candidate for candidate in about.schemas if candidate.schema_id == snapshot.schema_id), table.schema()
            )
        place = NOTHING if snapshot is None else snapshot.snapshot_id
        return Look(str(about.table_uuid), place, self._columns(schema), self._partitions)

    def whole(self, place: int) -> Sequence[NumberedFile]:
        """Return the files of a snapshot, by the numbers of those that first had their rows, with these times."""
        if place == NOTHING:
            return ()
        times = {item.snapshot_id: item.timestamp_ms for item in self._table.snapshots()}
        oldest = min(times.values())
        first = {item.sequence_number: item.timestamp_ms for item in self._table.snapshots() if item.sequence_number}
        files = []
        for manifest in self._snapshot(place).manifests(self._table.io):
            if manifest.content.name != "DATA":
                if manifest.has_added_files() or manifest.has_existing_files():
                    raise unreadable(self.called, "has files of deleted rows")
                continue
            for entry in manifest.fetch_manifest_entry(self._table.io):
                at = times.get(entry.snapshot_id, oldest)  # for a compacted file, that of its newest row
                file = self._file(entry.data_file, entry.snapshot_id, min(at, first.get(entry.sequence_number, at)))
                files.append((entry.sequence_number or 0, file))
        return [file for _, file in sorted(files, key=lambda one: one[0])]

    def since(self, place: int) -> Iterator[Version]:
        """Yield the snapshots after a place, by their ancestry."""
        after = self._after(place)
        if after and self._parent(after[-1]) != place:
            what = f"no snapshot leads from {place} to the current one: some have expired, or it was rolled back"
            raise gone(self.called, what)
        yield from map(self._version, reversed(after))

    def behind(self, place: int) -> int:
        """Return how many snapshots follow; the metadata of the table lists them."""
        return len(self._after(place))

    def _after(self, place: int) -> list[Any]:
        """Return the snapshots from the current one back to a place, or to the last one that is known."""
        snapshot, after = self._table.current_snapshot(), []
        while snapshot is not None and snapshot.snapshot_id != place:
            after.append(snapshot)
            parent = self._parent(snapshot)
            snapshot = None if parent in (place, NOTHING) else self._table.snapshot_by_id(parent)
        return after

    @staticmethod
    def _parent(snapshot: Any) -> int:
        return NOTHING if snapshot.parent_snapshot_id is None else int(snapshot.parent_snapshot_id)

    def mark(self, place: int) -> str:  # noqa: ARG002 - the contract's
        """Return nothing: the id of a snapshot is unique."""
        return ""

    def before(self, place: int) -> int:
        """Return the snapshot before one."""
        parent = self._snapshot(place).parent_snapshot_id
        return NOTHING if parent is None else int(parent)

    def _version(self, snapshot: Any) -> Version:
        operation = str(snapshot.summary.operation.value) if snapshot.summary else "append"
        if operation == "replace":
            return Version(snapshot.snapshot_id, ())
        if operation != "append":
            return Version(snapshot.snapshot_id, (), f"({operation}) removed or replaced rows")
        io, of = self._table.io, snapshot.snapshot_id
        added = [manifest for manifest in snapshot.manifests(io) if manifest.added_snapshot_id == of]
        entries = (entry for manifest in added for entry in manifest.fetch_manifest_entry(io))
        new = (entry for entry in entries if entry.status.name == "ADDED" and entry.snapshot_id == of)
        return Version(of, [self._file(entry.data_file, of, snapshot.timestamp_ms) for entry in new])

    def _file(self, file: Any, version: int, millis: int) -> NumberedFile:
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415 - an extra

        schema, values = self._table.schema(), {}
        for nth, field in enumerate(self._table.specs()[file.spec_id].fields):
            name = schema.find_column_name(field.source_id)
            if name is not None and isinstance(field.transform, IdentityTransform):
                value, kind = file.partition[nth], schema.find_type(field.source_id)
                values[name] = None if value is None else field.transform.to_human_string(kind, value)
        size, path = file.file_size_in_bytes, self._path(file.file_path)
        return NumberedFile(path, millis * MILLI, size, version=version, values=values)

    def _columns(self, schema: Any) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - not for those who only plan

        try:
            return from_arrow_schema(schema.as_arrow(), prefer_timestamp_ntz=True)
        except Exception as error:
            raise unreadable(self.called, f"has a type that Spark does not have ({error})") from error

    @property
    def _partitions(self) -> tuple[str, ...]:
        fields = (field for spec in self._table.specs().values() for field in spec.fields)
        names = (
            self._table.schema().find_column_name(one.source_id) for one in fields if str(one.transform) == "identity"
        )
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def _check_names(self, schemas: Sequence[Any]) -> None:
        """Check the names: files are read by column names, so each column must have had one name and vice versa."""
        names: dict[int, str] = {}
        for field in (field for schema in schemas for field in schema.fields):
            if names.setdefault(field.field_id, field.name) != field.name:
                raise unreadable(self.called, f"has renamed its column {names[field.field_id]} to {field.name}")
        if twice := next((name for name in names.values() if [*names.values()].count(name) > 1), None):
            raise unreadable(self.called, f"has dropped its column {twice} and has another of this name")

    def _snapshot(self, place: int) -> Any:
        snapshot = self._table.snapshot_by_id(place)
        if snapshot is None:
            raise no_version(self.called, place, "it has no snapshot of this id")
        return snapshot

    def _path(self, path: str) -> str:
        """Return a file's name as used everywhere in rowtime."""
        if on_store(path):
            return str(named(path))
        if not _LOCAL.match(path):
            raise unreadable(self.called, f"has files elsewhere ({path})")
        return _LOCAL.sub("/", path, count=1)

    def _opened(self) -> Any:
        try:
            from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise no_package(self.called, "pyiceberg", "iceberg") from error
        try:
            if self._catalog is None:
                self._catalog = opened(self._catalog_name, self._given)
            table = self._catalog.load_table(self._name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            ask_the_store(error, self._catalog)
            raise unreached(self.called, error) from error
        self._learn(table.location())
        return table

    def _learn(self, location: str) -> None:
        """Give the catalog's settings for the bucket to Spark, which reads the files."""
        place = place_in(location, self._catalog.properties, self.called)
        if isinstance(place, ObjectPlace):
            learn(place.bucket.url, place.bucket.settings)
