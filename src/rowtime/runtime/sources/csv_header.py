"""The first line of CSV files that have names in it: Spark goes by place, people by name."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping

import pyarrow as pa

_TRUE = "true"


def by_header(paths: Iterable[str], options: Mapping[str, str]) -> dict[tuple[str, ...], list[str]]:
    """The files of each header, in their order; those without one have ``()``."""
    given = {name.lower(): value for name, value in options.items()}
    found: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        names = _names(path, given) if given.get("header", "").lower() == _TRUE else ()
        found.setdefault(names, []).append(path)
    return found


def _names(path: str, options: Mapping[str, str]) -> tuple[str, ...]:
    with pa.input_stream(path) as stream:  # which knows compressed files by their names, as Spark does
        line = _line(stream).decode(options.get("encoding", options.get("charset", "utf-8")), errors="replace")
    line = line.removeprefix("\ufeff").rstrip("\r\n")
    separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
    if len(separator) != 1:
        return tuple(part.strip('"') for part in line.split(separator))
    return tuple(next(csv.reader([line], delimiter=separator, quotechar=options.get("quote", '"') or None), ()))


def _line(stream: pa.NativeFile) -> bytes:
    """The bytes up to the first line's end."""
    found = b""
    while b"\n" not in found and (block := stream.read(4096)):
        found += block
    return found.partition(b"\n")[0]
