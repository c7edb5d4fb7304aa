"""The first line of CSV files with names in it: Spark goes by position, users by name."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping

import pyarrow as pa

_TRUE = "true"


def by_header(paths: Iterable[str], options: Mapping[str, str]) -> dict[tuple[str, ...], list[str]]:
    """Return the files of each header, in order; those without one have ``()``."""
    given = {name.lower(): value for name, value in options.items()}
    by_names: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        names = _names(path, given) if given.get("header", "").lower() == _TRUE else ()
        by_names.setdefault(names, []).append(path)
    return by_names


def _names(path: str, options: Mapping[str, str]) -> tuple[str, ...]:
    with pa.input_stream(path) as stream:  # it recognizes compressed files by their names, like Spark
        line = _line(stream).decode(options.get("encoding", options.get("charset", "utf-8")), errors="replace")
    line = line.removeprefix("\ufeff").rstrip("\r\n")
    separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
    if len(separator) != 1:
        return tuple(part.strip('"') for part in line.split(separator))
    return tuple(next(csv.reader([line], delimiter=separator, quotechar=options.get("quote", '"') or None), ()))


def _line(stream: pa.NativeFile) -> bytes:
    """Return the bytes up to the first line's end."""
    head = b""
    while b"\n" not in head and (block := stream.read(4096)):
        head += block
    return head.partition(b"\n")[0]
