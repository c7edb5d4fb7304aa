"""The reason why a stream cannot read a file, in words.

Before a file is read, its footer shows whether it is complete and whether Spark can read its columns' types as the
declared ones, and its footer or header whether it has the rowtime: this needs no Spark job. If a job fails
nevertheless, the whole file is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.errors import causes
from rowtime.runtime.sources.csv_header import by_header
from rowtime.runtime.sources.file_places import DAMAGED, footer
from rowtime.runtime.sources.nanoseconds import TIMES
from rowtime.runtime.sources.parquet_rows import in_nanoseconds
from rowtime.runtime.sources.partition_values import fault_of, in_folders

_INTEGERS = {"TINYINT": 8, "BYTE": 8, "SMALLINT": 16, "SHORT": 16, "INT": 32, "INTEGER": 32, "BIGINT": 64, "LONG": 64}
_PARTS = "part-"  # prefix of files that Spark and rowtime write; the folders have the columns that such files lack
_BLOCK = 1 << 20  # bytes of a compressed text that are read at once
# Error classes of Spark about a file that another try cannot overcome.
UNREAD = "FAILED_READ_FILE"
_CAUSE = re.compile(r"^Caused by: ([\w.$]+): (?!\[FAILED_READ_FILE)(.*)$", re.MULTILINE)
_PASSING = re.compile(r"java\.(io|net|nio)\.|java\.lang\.(Interrupted|OutOfMemory|Thread)|org\.apache\.hadoop\.")
_LASTING = ("CANNOT_READ_FILE_FOOTER", "PARQUET_COLUMN_DATA_TYPE_MISMATCH", "UNSUPPORTED_FILE_SYSTEM")


@dataclass(frozen=True)
class Expected:
    """What files of a kind should have: columns of these types, in Spark's words; ``needed`` is required.

    A NULL in another column only says that a value is not known; without the column that gives the rowtime, all rows
    would get the time of their file, which is no earlier than any of theirs, and the rows of later files would be late.
    Below ``folder``, if that is given, a column may be in the names of folders alone. Only ``partitions`` of those,
    with their types, are read there. ``copied``: files with nanoseconds are read from copies that Spark can read.
    """

    kind: str
    types: Mapping[str, str]
    needed: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    partitions: Mapping[str, str] = field(default_factory=dict)
    copied: bool = False

    def values_of(self, path: str) -> dict[str, str | None]:
        """Return the values of the partition columns, which the folders of a file give."""
        return in_folders(self.folder, path, self.partitions) if self.partitions else {}

    def fault_of(self, path: str) -> str | None:
        """Return the fault that the folders, the footer or the header of a file show; ``None`` if there is none."""
        if self.partitions and (wrong := fault_of(self.values_of(path), self.partitions)):
            return wrong
        try:
            if self.kind == "parquet":
                metadata = footer(path)
                names = metadata.schema.to_arrow_schema().names
                return next(self._faults_of_footer(metadata), None) or self._in_folders(path, names)
            if self.kind == "csv" and self.needed:
                [names] = by_header([path], self.options)
                if names and (lacking := self._lacking(names)):
                    return lacking
        except DAMAGED as error:
            return first_line(error)
        return self._in_folders(path, ()) if path.rpartition("/")[2].startswith(_PARTS) else None

    def _in_folders(self, path: str, names: Sequence[str]) -> str | None:
        """Return a fault if a declared column that the file lacks is in the name of a folder."""
        if not self.folder or "=" not in path:
            return None
        folders = path.removeprefix(f"{self.folder}/").split("/")[:-1]
        given = {unquote(folder.partition("=")[0]).lower() for folder in folders if "=" in folder}
        given -= {name.lower() for name in names}
        column = next((name for name in self.types if name.lower() in given), None)
        return (
            f"its column {column} is in the name of its folder, which the stream does not name in PARTITIONED BY"
            if column
            else None
        )

    def _faults_of_footer(self, metadata: pq.FileMetaData) -> Iterator[str]:
        yield from _faults_of_types(metadata, self.types, copied=self.copied)
        lacking = self._lacking(metadata.schema.to_arrow_schema().names) if self.needed else None
        if lacking:
            yield lacking

    def _lacking(self, names: Sequence[str]) -> str | None:
        if self.needed.lower() in map(str.lower, names):
            return None
        return f"it has no column {self.needed}, which gives the rowtime; it has {', '.join(names) or 'none'}"


def damage_of(kind: str, path: str) -> str | None:
    """Return the fault found by reading a whole file; ``None`` if Arrow can read it."""
    try:
        if kind == "parquet":
            with pq.ParquetFile(path) as file:
                for _ in file.iter_batches():
                    pass
        else:
            with pa.input_stream(path) as stream:  # it recognizes compressed files by their names, like Spark
                while stream.read(_BLOCK):
                    pass
    except DAMAGED as error:
        return first_line(error)
    return None


def lasting(text: str) -> str | None:
    """Return Spark's message about a file, if another try would give it again: not for errors of the file system."""
    for line in text.splitlines():
        if any(name in line for name in _LASTING):
            return line.partition("] ")[2].partition(" SQLSTATE")[0] or line
    _, failed, causes = text.partition(UNREAD)
    cause = _CAUSE.search(causes) if failed else None
    return f"Spark: {cause[2].strip()}" if cause is not None and not _PASSING.match(cause[1]) else None


def messages_of(error: BaseException | None) -> str:
    """Return the messages of an error and its causes, also Java's; paths also in the spelling outside of URLs."""
    parts: list[str] = []
    for inner in causes(error):
        parts.append(str(inner))
        cause = getattr(inner, "_origin", None)  # of a Spark error: Java's
        while cause is not None:
            parts.append(f"Caused by: {cause.toString()}")
            cause = cause.getCause()
    text = "\n".join(parts)
    return f"{text}\n{unquote(text)}"


def first_line(error: BaseException) -> str:
    """Return the first line of a message of Arrow or the operating system."""
    text = str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().split("\n", 1)[0].rstrip(".") or type(error).__name__


def _faults_of_types(metadata: pq.FileMetaData, wanted: Mapping[str, str], *, copied: bool) -> Iterator[str]:
    schema = metadata.schema.to_arrow_schema()
    for name, declared in wanted.items():
        fields = [stored for stored in schema if stored.name.lower() == name.lower()]
        if len(fields) > 1:
            yield f"it has the column {name} twice: {', '.join(stored.name for stored in fields)}"
        for stored in fields:
            cut = copied and declared.upper() in TIMES
            if (in_nanoseconds(metadata, stored) and not cut) or not _reads(stored.type, declared.upper()):
                yield f"its column {stored.name} has type {stored.type}, and the stream declares {declared}"


def _reads(kind: pa.DataType, declared: str) -> bool:
    """Return False if Spark certainly does not read values of a type as the declared one."""
    if declared in _INTEGERS and pa.types.is_integer(kind):
        width = kind.bit_width if pa.types.is_signed_integer(kind) else 2 * kind.bit_width
        return bool(width <= _INTEGERS[declared])
    return not any(is_one(kind) for is_one in _NEVER.get(declared, ()))


_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
_OTHERS = (pa.types.is_nested, pa.types.is_string, pa.types.is_large_string)
_NEVER: Mapping[str, Sequence[Callable[[pa.DataType], bool]]] = {
    **dict.fromkeys(_INTEGERS, (*_OTHERS, pa.types.is_floating, pa.types.is_boolean, pa.types.is_timestamp)),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL"), (*_OTHERS, pa.types.is_boolean, pa.types.is_temporal)),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"), (*_OTHERS, *_NUMBERS)),
    "BOOLEAN": (*_OTHERS, pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal),
    "DATE": (*_OTHERS, pa.types.is_floating, pa.types.is_boolean),
    "STRING": (pa.types.is_nested, pa.types.is_primitive),
}
"""The types in a file that are never read as a declared one; Spark decides about all others."""
