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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.io.pyarrow import parquet_file_to_data_file, schema_to_pyarrow
from pyiceberg.manifest import DataFile, FileFormat, ManifestContent, ManifestEntry
from pyiceberg.table import Table, TableProperties

from rowtime.core.stores import Place
from rowtime.runtime.sinks.iceberg_replace import Replace, batches
from rowtime.runtime.sinks.lake_files import NewFile, packed

_SMALL: Final = 3 / 4  # of the target size: larger files stay as they are
_TRIES: Final = 20  # commits of faster writers, as for a tick


@dataclass(frozen=True)
class _Larger:
    """A file that replaces ``old`` ones; ``number``: the sequence number of the newest of them."""

    file: NewFile
    old: Sequence[DataFile]
    number: int | None


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
    for rows in batches(table, old):
        new.write(pa.Table.from_batches([rows]).cast(schema))
        count += rows.num_rows
    if count != expected:
        raise ValueError(f"{len(old)} files were to have {expected:,} rows, and have {count:,}")
    new.close()


def _remove(larger: Sequence[_Larger]) -> None:
    for new in larger:
        new.file.remove()
