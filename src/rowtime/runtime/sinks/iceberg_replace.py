"""Replaces files of an Iceberg table in a snapshot, and reads a file in batches: with private parts of pyiceberg.

pyiceberg has no public way to either. No other module uses what is not public there, and a test compares each part that
is used here with that of the version for which this module was written
(``tests/lakes/test_private_parts_of_libraries.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyiceberg.exceptions import ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile, ManifestWriter
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.table.update.validate import _validate_data_files_exist, _validate_no_new_deletes_for_data_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO

_PROPERTIES: Final = {"rowtime.operation": "optimize"}


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


def batches(table: Table, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files one after the other, in the present columns of the table."""
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    for file in files:  # the public methods load the rows of a whole file
        yield from scan._record_batches_from_scan_tasks_and_deletes([FileScanTask(file)], {})  # noqa: SLF001
