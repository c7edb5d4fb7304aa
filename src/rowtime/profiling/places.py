"""The SQL that reads a source which is named on a command line: a script, files, a lake table or a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowtime.api.relations import named
from rowtime.client.home import Home
from rowtime.core.errors import refuse
from rowtime.core.stores import on_store
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_ENDINGS: Final = {
    "parquet": "parquet", "pq": "parquet", "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"
}  # fmt: skip
_PACKED: Final = (".gz", ".bz2", ".zst")
_CSV: Final = {"header": "true"}


@dataclass(frozen=True)
class Place:
    """A script, ``text``, to profile. ``declares``: it consists of CREATE STREAM for a place that is no stream yet."""

    text: str
    declares: str = ""


def place_of_source(source: str, home: Home, spark: Callable[[], SparkSession]) -> Place:
    """Return the script of a source: a file of SQL, a folder, file or glob, a Delta table, or a stream of the home.

    ``spark`` returns the session that reads the columns of files. Raises ``Refused`` (R620) for anything else.
    """
    path = Path(source)
    if path.suffix.lower() == ".sql" and path.is_file():
        return Place(path.read_text(encoding="utf-8-sig"))
    if on_store(source) or (path / "_delta_log").is_dir():
        return _declared(source, "delta", {}, _delta_columns(source))
    if path.exists() or "*" in source:
        kind, options = _format(source, path)
        schema = spark().read.options(**options, **_inferring(kind)).format(kind).load(str(path.absolute())).schema
        return _declared(source, kind, options, schema)
    if source.lower() in Home.names(home):
        return Place(f"SELECT STREAM * FROM {named(source)}")  # noqa: S608 - a quoted name
    hint = home.elsewhere(source) or "Give a script (.sql), a folder or file of Parquet, CSV or JSON, a Delta table, …"
    raise refuse("R620", f"{source} is no file, folder, table or stream of {home.path}", hint)


def _delta_columns(source: str) -> StructType:
    from rowtime.runtime.sources.lakes import history_of  # noqa: PLC0415 - only a table needs its package
    from rowtime.runtime.sources.table_history import missing  # noqa: PLC0415

    history = history_of("delta", {"path": source})
    look = history.look()
    if look is None:
        raise missing(history.called)
    return look.columns


def _format(source: str, path: Path) -> tuple[str, dict[str, str]]:
    """Return the format of files by the endings of their names, with the options that Spark needs."""
    endings = {ending_of(name) for name in _names(path)} - {""}
    if len(endings) != 1:
        have = f"files of the formats {', '.join(sorted(endings))}" if endings else "no file of Parquet, CSV or JSON"
        hint = "Name the files: a glob such as 'folder/*.csv', or a script with CREATE STREAM … USING."
        raise refuse("R620", f"{source} has {have}", hint)
    return format_of_ending(endings.pop())


def format_of_ending(ending: str) -> tuple[str, dict[str, str]]:
    """Return the format of files whose names end like this (`ending_of`), with the options that Spark needs."""
    options = dict(_CSV) if _ENDINGS[ending] == "csv" else {}
    return _ENDINGS[ending], {**options, **({"sep": "\t"} if ending == "tsv" else {})}


def _names(path: Path) -> Iterator[str]:
    if path.is_file() or "*" in path.name:
        yield path.name
        return
    root = next((one for one in (path, *path.parents) if "*" not in str(one)), path)
    yield from (file.name for file in root.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))


def ending_of(name: str) -> str:
    """Return the ending of a file's name that says its format, such as ``csv``; empty for others."""
    for packed in _PACKED:
        name = name.removesuffix(packed)
    ending = name.rpartition(".")[2].lower()
    return ending if ending in _ENDINGS else ""


def _inferring(kind: str) -> dict[str, str]:
    return {"inferSchema": "true"} if kind == "csv" else {"inferTimestamp": "true"} if kind == "json" else {}


def _declared(source: str, kind: str, options: dict[str, str], schema: StructType) -> Place:
    """Return the script that declares the files or the table, and reads them."""
    word = "table" if kind == "delta" else "files"
    stem = re.sub(r"\W+", "_", source.rstrip("/").rpartition("/")[2].split(".")[0]).strip("_").lower()
    name = f"{stem or 'the'}_{word}"
    name = f"_{name}" if name[0].isdigit() else name
    declaration = declaration_of(name, source, kind, options, schema)
    return Place(f"{declaration};\nSELECT STREAM * FROM {name}", f"{declaration};")


def declaration_of(name: str, source: str, kind: str, options: Mapping[str, str], schema: StructType) -> str:
    """Return the CREATE STREAM of files or a table of Spark's format ``kind``."""
    columns = (f"{named(field.name)} {_kind(field.dataType.simpleString())}" for field in schema.fields)
    place = source if on_store(source) else str(Path(source).absolute())
    pairs = ", ".join(f"{_option(key)} {literal(value)}" for key, value in {"path": place, **options}.items())
    return f"CREATE STREAM {named(name)} (\n  {f',{chr(10)}  '.join(columns)}\n) USING {kind} OPTIONS ({pairs})"


def _option(key: str) -> str:
    return key if key.isidentifier() else f"'{key}'"


def _kind(kind: str) -> str:
    """Return the type of a column of a stream; a time without a zone is one in UTC."""
    return kind.replace("timestamp_ntz", "timestamp").upper() if "struct" not in kind else kind
