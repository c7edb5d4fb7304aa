"""Small files of a Delta table become parts of larger ones, in one version that changes no row.

deltalake has a compaction of its own, but does not see that somebody else has replaced the same files meanwhile: both
commit, and every row is there twice (1.6.6; OPTIMIZE of Spark counts as somebody else). So the entry of the log is
ours: it is created under the next number if there is none, as the protocol asks, and where others were faster, only
if they have left the files and the columns of the table alone. Of each partition, files that follow each other are
written into one, in the order in which they came.
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
_LARGE: Final = 100 << 20  # bytes, as deltalake takes where a table does not say it
_CHECKPOINTS: Final = 100  # versions from one checkpoint of the log to the next, as above
_TRIES: Final = 20  # commits that other writers were faster than, as of a tick
_PLAIN: Final = "/!$&'()*+,-.:;=@_~"  # characters that stand for themselves in the log


@dataclass(frozen=True)
class _Larger:
    """A file in place of old ones; ``path``: as the log has it."""

    file: NewFile
    path: str
    old: Sequence[TableFile]


def compacted(table: Any, place: Place) -> int:
    """Write small files of a table (of deltalake, as it is now) into large ones; how many there were.

    Raises `Conflict` if others have changed the same files meanwhile. Then nothing is left behind; where a commit ends
    without an answer, the new files stay, for the log may have them.
    """
    made: list[_Larger] = []
    try:
        for group in _groups(table):
            made.extend(_written(table, place, group))
        data = _entry(table, made)
    except BaseException:
        _remove(made)
        raise
    if made:
        try:
            _commit(table, place, made, data)
        except Conflict:
            _remove(made)
            raise
    return sum(len(one.old) for one in made)


def spare(table: Any) -> int:
    """How many files of a table `compacted` would write into larger ones."""
    return sum(map(len, _groups(table)))


def _remove(made: Sequence[_Larger]) -> None:
    for one in made:
        one.file.remove()


# -- which files -------------------------------------------------------------------------


def _groups(table: Any) -> Iterator[list[TableFile]]:
    """Files of one partition that together are one of the right size, in the order in which they came."""
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


# -- their rows --------------------------------------------------------------------------


def _written(table: Any, place: Place, group: Sequence[TableFile]) -> Iterator[_Larger]:
    """The rows of some files in one, which is in its place; nothing if they are not in the types of the table."""
    values = group[0].values
    schema = pa.schema(one for one in pa.schema(table.schema().to_arrow()) if one.name not in values)
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


def _copy(file: Place, new: NewFile, schema: pa.Schema, known: int | None) -> None:
    count = 0
    for rows in rows_of(file, schema):
        new.write(rows)
        count += rows.num_rows
    if known not in (None, count):
        raise OSError(f"{file} was to have {known:,} rows, and has {count:,}")


# -- the version -------------------------------------------------------------------------


def _commit(table: Any, place: Place, made: Sequence[_Larger], data: bytes) -> None:
    """Create the entry of the next version that nobody else has. Raises `Conflict`."""
    version = table.version()
    replaced = {unquote(old.path) for one in made for old in one.old}
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
    """Raise `Conflict` if a version of somebody else has touched the files, or what the table is."""
    for line in entry.read_bytes().splitlines():
        action = json.loads(line)
        touched = unquote(action["remove"]["path"]) in replaced if "remove" in action else False
        if touched or "metaData" in action or "protocol" in action:
            raise Conflict


def _entry(table: Any, made: Sequence[_Larger]) -> bytes:
    """What the version says: who made it and how, the files that come and those that go."""
    now = time.time_ns() // 1_000_000
    old = [file for one in made for file in one.old]
    told = {
        "timestamp": now,
        "operation": "OPTIMIZE",
        "operationParameters": {"predicate": "[]"},
        "readVersion": table.version(),
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": {"numAddedFiles": str(len(made)), "numRemovedFiles": str(len(old))},
        "engineInfo": "rowtime",
        "txnId": str(uuid.uuid4()),
    }
    gone = {"deletionTimestamp": now, "dataChange": False, "extendedFileMetadata": True}
    actions = [
        {"commitInfo": told},
        *({"remove": {"path": one.path, **gone, "partitionValues": one.values, "size": one.size}} for one in old),
        *({"add": _added(one)} for one in made),
    ]
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


def _added(one: _Larger) -> Mapping[str, Any]:
    size, modified = size_of(one.file.place)
    values = one.old[0].values
    stats = statistics(pq.ParquetFile(content_of(one.file.place)).metadata, [*values])
    told = {"partitionValues": values, "size": size, "modificationTime": modified}
    return {"path": one.path, **told, "dataChange": False, "stats": json.dumps(stats)}
