"""Combines small files of an Iceberg table into larger ones, in one snapshot of the operation `replace`.

pyiceberg knows this operation, but never executes it. Readers ignore such a snapshot: no row changes. In each
partition, successive files are combined into one, batch by batch. The new file gets the data sequence number of the
newest of them, so rows keep the order in which snapshots added them, and other writers' deletes still apply to the same
rows.

If others commit meanwhile, pyiceberg tries again from their snapshot, and `Replace` checks that the old files still
exist and that nobody has deleted rows of them. Only `IcebergTable` imports this module: pyiceberg is an extra.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, parquet_file_to_data_file, schema_to_pyarrow
from pyiceberg.manifest import (
    DataFile,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
)
from pyiceberg.table import FileScanTask, Table, TableProperties, Transaction
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.table.update.validate import _validate_data_files_exist, _validate_no_new_deletes_for_data_files

from rowtime.core.stores import Place
from rowtime.runtime.sinks.lake_files import NewFile, packed

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

_SMALL: Final = 3 / 4  # of the target size: larger files stay as they are
_TRIES: Final = 20  # commits of faster writers, as for a tick
_PROPERTIES: Final = {"rowtime.operation": "optimize"}


@dataclass(frozen=True)
class _Larger:
    """A file that replaces ``old`` ones; ``number``: the sequence number of the newest of them."""

    file: NewFile
    old: Sequence[DataFile]
    number: int | None


class Replace(_OverwriteFiles):
    """Replaces files by others that have the same rows."""

    def __init__(self, transaction: Transaction, io: FileIO) -> None:
        super().__init__(Operation.REPLACE, transaction, io, snapshot_properties=_PROPERTIES)
        self._spec = transaction.table_metadata.default_spec_id
        self._numbers: dict[str, int | None] = {}

    def put(self, new: DataFile, old: Sequence[DataFile], number: int | None) -> None:
        """Replace some files by another; ``number``: its sequence number."""
        for file in old:
            self.delete_data_file(file)
        self.append_data_file(new)
        self._numbers[new.file_path] = number

    def _manifests(self) -> list[ManifestFile]:
        if self._transaction.table_metadata.default_spec_id != self._spec:
            raise ValidationException("the partitions of the table have been changed")
        self._build_delete_files_partition_predicate()
        removed = self._deleted_entries()
        with self._writer() as writer:
            for file in self._added_data_files:
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=self._numbers[file.file_path],
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        manifests = [writer.to_manifest_file()]
        with self._writer() as writer:
            for entry in removed:
                writer.add_entry(entry)
        return [*manifests, writer.to_manifest_file(), *self._existing_manifests()]

    def _writer(self) -> ManifestWriter:
        return self.new_manifest_writer(self.spec(self._spec))

    def _summary(self, snapshot_properties: Mapping[str, str] = _PROPERTIES) -> Summary:
        self._operation = Operation.OVERWRITE  # pyiceberg collects metrics for the operations that it executes itself
        summary = super()._summary(dict(snapshot_properties))
        self._operation = Operation.REPLACE
        return Summary(self._operation, **summary.additional_properties)

    def _validate_concurrency(self) -> None:
        """Allow any appends of others. Raises `ValidationException` if they have changed the replaced files."""
        window, table = self._commit_window, self._transaction._table  # noqa: SLF001 - as the class above
        if window is None or window.is_empty() or window.head is None:
            return
        assert window.base is not None
        _validate_data_files_exist(table, window.head, self._deleted_data_files, window.base)
        _validate_no_new_deletes_for_data_files(table, window.head, None, self._deleted_data_files, window.base)


def compacted(table: Table, folder: Place, spelled: Callable[[Place], str]) -> int:
    """Combine small files of a table into large ones below a ``folder``; return their number.

    ``spelled`` returns a file's name in the metadata of the table. Raises pyiceberg's `CommitFailedException` and
    `ValidationException` if others were faster, and then leaves nothing behind.
    """
    groups = list(_groups(table))
    larger: list[_Larger] = []
    try:
        larger.extend(_written(table, folder, group) for group in groups)
        files = [parquet_file_to_data_file(table.io, table.metadata, spelled(new.file.place)) for new in larger]
        fit = [(file, new) for file, new in zip(files, larger, strict=True) if file.partition == new.old[0].partition]
    except BaseException:
        _remove(larger)
        raise
    _remove([new for new in larger if new not in [kept for _, kept in fit]])
    if not fit:
        return 0
    properties = {**table.metadata.properties, TableProperties.COMMIT_NUM_RETRIES: str(_TRIES)}
    table.metadata = table.metadata.model_copy(update={"properties": properties})  # known to this process only
    try:
        with table.transaction() as changes:
            replace = Replace(changes, table.io)
            for file, new in fit:
                replace.put(file, new.old, new.number)
            replace.commit()
    except (CommitFailedException, ValidationException):
        _remove([new for _, new in fit])
        raise
    return sum(len(new.old) for _, new in fit)


def spare(table: Table) -> int:
    """Return how many files of a table `compacted` would combine into larger ones."""
    return sum(map(len, _groups(table)))


def _groups(table: Table) -> Iterator[list[ManifestEntry]]:
    """Yield files of one partition that together have the right size, in the order in which their rows came."""
    most = int(
        table.properties.get(
            TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT
        )
    )
    partitions: dict[Any, list[ManifestEntry]] = {}
    for entry in sorted(_entries(table), key=lambda one: one.sequence_number or 0):
        if entry.data_file.file_size_in_bytes < _SMALL * most:
            partitions.setdefault(entry.data_file.partition, []).append(entry)
    for entries in partitions.values():
        yield from packed(entries, lambda one: one.data_file.file_size_in_bytes, most)


def _entries(table: Table) -> Iterator[ManifestEntry]:
    """Yield the data files without deleted rows."""
    snapshot = table.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot is not None else []
    if any(one.content != ManifestContent.DATA for one in manifests):
        whole = {task.file.file_path for task in table.scan().plan_files() if not task.delete_files}
    else:
        whole = None
    for manifest in manifests:
        if manifest.content != ManifestContent.DATA or manifest.partition_spec_id != table.metadata.default_spec_id:
            continue
        for entry in manifest.fetch_manifest_entry(table.io):
            file = entry.data_file
            if file.file_format == FileFormat.PARQUET and (whole is None or file.file_path in whole):
                yield entry


def _written(table: Table, folder: Place, group: Sequence[ManifestEntry]) -> _Larger:
    """Return one new file with the rows of some files."""
    schema, old = schema_to_pyarrow(table.schema()), [entry.data_file for entry in group]
    new = NewFile(folder / f"compacted-{uuid.uuid4().hex}.parquet", schema)
    try:
        _fill(new, table, old)
    except BaseException:
        new.remove()
        raise
    numbers = [entry.sequence_number for entry in group if entry.sequence_number is not None]
    return _Larger(new, old, max(numbers, default=None) or None)


def _fill(new: NewFile, table: Table, old: Sequence[DataFile]) -> None:
    count, expected = 0, sum(file.record_count for file in old)
    schema = schema_to_pyarrow(table.schema())
    for rows in _batches(table, old):
        new.write(pa.Table.from_batches([rows]).cast(schema))
        count += rows.num_rows
    if count != expected:
        raise ValueError(f"{len(old)} files were to have {expected:,} rows, and have {count:,}")
    new.close()


def _batches(table: Table, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files one after the other, in the present columns of the table."""
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    for file in files:  # the public methods load the rows of a whole file
        yield from scan._record_batches_from_scan_tasks_and_deletes([FileScanTask(file)], {})  # noqa: SLF001


def _remove(larger: Sequence[_Larger]) -> None:
    for new in larger:
        new.file.remove()
