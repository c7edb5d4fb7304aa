"""Combines small files of a Delta table into larger ones, in one version that changes no row.

deltalake has a compaction of its own, but it does not detect that another writer has replaced the same files meanwhile:
both commit, and every row exists twice (1.6.6; Spark's OPTIMIZE counts as another writer). So rowtime writes the log
entry itself: it is created under the next number if there is none, as the protocol demands; and if others were faster,
only if they have not changed the files and columns of the table. In each partition, successive files are combined into
one, in the order in which they came.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.partition_folders import folder_of
from rowtime.core.stores import Place, content_of
from rowtime.runtime.sinks.delta_files import TableFile, files_of, has_deleted_rows, rows_of, size_of, statistics
from rowtime.runtime.sinks.lake import Conflict
from rowtime.runtime.sinks.lake_files import NewFile, packed
from rowtime.state.files import make_folder, write_new

LOG: Final = "_delta_log"
_TARGET: Final = "delta.targetFileSize"
_LARGE: Final = 100 << 20  # bytes, deltalake's default
_CHECKPOINTS: Final = 100  # versions between two checkpoints of the log, deltalake's default
_TRIES: Final = 20  # commits of faster writers, as for a tick
_PLAIN: Final = "/!$&'()*+,-.:;=@_~"  # characters that stand for themselves in the log


@dataclass(frozen=True)
class _Larger:
    """A file that replaces old ones; ``path``: as in the log."""

    file: NewFile
    path: str
    old: Sequence[TableFile]


def compacted(table: Any, place: Place) -> int:
    """Combine small files of a table (of deltalake, as it is now) into large ones; return their number.

    Raises `Conflict` if others have changed the same files meanwhile. Then nothing is left behind; if a commit ends
    without an answer, the new files stay, because the log may have them.
    """
    larger: list[_Larger] = []
    try:
        for group in _groups(table):
            larger.extend(_written(table, place, group))
        data = _entry(table, larger)
    except BaseException:
        _remove(larger)
        raise
    if larger:
        try:
            _commit(table, place, larger, data)
        except Conflict:
            _remove(larger)
            raise
    return sum(len(new.old) for new in larger)


def spare(table: Any) -> int:
    """Return how many files of a table `compacted` would combine into larger ones."""
    return sum(map(len, _groups(table)))


def _remove(larger: Sequence[_Larger]) -> None:
    for new in larger:
        new.file.remove()


# -- selection ---------------------------------------------------------------------------


def _groups(table: Any) -> Iterator[list[TableFile]]:
    """Yield successive files of one partition that together have the right size."""
    most = int(_settings(table).get(_TARGET, _LARGE))
    partitions: dict[tuple[str | None, ...], list[TableFile]] = {}
    for file in () if has_deleted_rows(table) else files_of(table):
        if file.size < most / 2:
            partitions.setdefault(tuple(file.values.values()), []).append(file)
    for files in partitions.values():
        yield from packed(files, lambda one: one.size, most)


def _settings(table: Any) -> Mapping[str, str]:
    settings: Mapping[str, str] = table.metadata().configuration
    return settings


# -- rows --------------------------------------------------------------------------------


def _written(table: Any, place: Place, group: Sequence[TableFile]) -> Iterator[_Larger]:
    """Yield one new file with the rows of some files; nothing if these are not in the types of the table."""
    values = group[0].values
    schema = pa.schema(field for field in pa.schema(table.schema().to_arrow()) if field.name not in values)
    folder = folder_of([*values], [*values.values()])
    path = f"{folder}/" * bool(folder) + f"part-{uuid.uuid4().hex}-compacted.zstd.parquet"
    make_folder((place / path).parent)
    new = NewFile(place / path, schema)
    try:
        for old in group:
            _copy(place / unquote(old.path), new, schema, old.rows)
        new.close()
    except pa.ArrowException:
        new.remove()
        return
    except BaseException:
        new.remove()
        raise
    yield _Larger(new, quote(path, _PLAIN), group)


def _copy(file: Place, new: NewFile, schema: pa.Schema, expected: int | None) -> None:
    count = 0
    for rows in rows_of(file, schema):
        new.write(rows)
        count += rows.num_rows
    if expected not in (None, count):
        raise OSError(f"{file} was to have {expected:,} rows, and has {count:,}")


# -- commit ------------------------------------------------------------------------------


def _commit(table: Any, place: Place, larger: Sequence[_Larger], data: bytes) -> None:
    """Create the entry of the next free version. Raises `Conflict`."""
    version = table.version()
    replaced = {unquote(old.path) for new in larger for old in new.old}
    for number in range(version + 1, version + 1 + _TRIES):
        entry = place / LOG / f"{number:020}.json"
        try:
            write_new(entry, data)
        except FileExistsError:
            _check(entry, replaced)
        else:
            every = int(_settings(table).get("delta.checkpointInterval", _CHECKPOINTS))
            if (number + 1) % every == 0:
                table.update_incremental()
                table.create_checkpoint()
            return
    raise Conflict


def _check(entry: Place, replaced: set[str]) -> None:
    """Raise `Conflict` if another writer's version has changed the files, or the table's definition."""
    for line in entry.read_bytes().splitlines():
        action = json.loads(line)
        touched = unquote(action["remove"]["path"]) in replaced if "remove" in action else False
        if touched or "metaData" in action or "protocol" in action:
            raise Conflict


def _entry(table: Any, larger: Sequence[_Larger]) -> bytes:
    """Return the content of the version: who made it and how, the added and the removed files."""
    now = time.time_ns() // 1_000_000
    old = [file for part in larger for file in part.old]
    commit_info = {
        "timestamp": now,
        "operation": "OPTIMIZE",
        "operationParameters": {"predicate": "[]"},
        "readVersion": table.version(),
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": {"numAddedFiles": str(len(larger)), "numRemovedFiles": str(len(old))},
        "engineInfo": "rowtime",
        "txnId": str(uuid.uuid4()),
    }
    gone = {"deletionTimestamp": now, "dataChange": False, "extendedFileMetadata": True}
    actions = [
        {"commitInfo": commit_info},
        *({"remove": {"path": part.path, **gone, "partitionValues": part.values, "size": part.size}} for part in old),
        *({"add": _added(part)} for part in larger),
    ]
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


def _added(new: _Larger) -> Mapping[str, Any]:
    size, modified = size_of(new.file.place)
    values = new.old[0].values
    stats = statistics(pq.ParquetFile(content_of(new.file.place)).metadata, [*values])
    file_values = {"partitionValues": values, "size": size, "modificationTime": modified}
    return {"path": new.path, **file_values, "dataChange": False, "stats": json.dumps(stats)}
