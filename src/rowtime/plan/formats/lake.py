"""Options of lake tables: where a table is, how rows get into it, and into which partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from rowtime.core.errors import Place, Problem, Refused
from rowtime.plan.finite import ENDS
from rowtime.plan.formats import contract as takes
from rowtime.plan.formats.contract import Format, Option, options_of, taking, unused
from rowtime.plan.formats.files import ORDERED, PARQUET_CODECS, PARTITIONS, ROWTIME_COLUMN
from rowtime.sql.intervals import duration_of
from rowtime.sql.script import parse_expression

LAKES: Final = frozenset({"delta", "iceberg"})
INTERVAL: Final = "commit.interval"
FILES: Final = "optimize.files"
STARTS: Final = "startingVersion"
"""The first version that a stream reads; of Iceberg the id of a snapshot. ``latest``: what comes from now on."""
SKIPS: Final = "skipChangeCommits"
"""True: versions that change or remove rows give none. The names are those of Delta's own source, for both formats."""
VERSION: Final = "versionAsOf"
"""The version that a static table has."""


_MISREAD: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]^|\\#?\x00-\x1f]")
CATALOG: Final = "catalog."
"""Begins the names of options that describe the catalog itself; pyiceberg knows them."""


def _qualified(value: str) -> str:
    """A name with its namespace."""
    return "" if all(value.split(".")[1:]) and "." in value.strip(".") else "a table in a namespace, such as db.visits"


def path_of_delta(value: str) -> str:
    """A path that the package deltalake opens: it decodes a path like a URL, and takes other signs for parts of one."""
    wanted = "a path without [ ] ^ | \\ # ? and without % before two hexadecimal digits, which deltalake cannot open"
    found = unquote(value) if value.lower().startswith("file:") else value
    return wanted if _MISREAD.search(found) else takes.some(value)


def _version(value: str) -> str:
    """A version, or the word for those that come."""
    return "" if value.isdecimal() or value.lower() == "latest" else "a version, such as 12, or latest"


def duration(value: str) -> str:
    """A fixed time, as 1 minute."""
    return "" if micros_of(value) else "a duration, such as 30 seconds or 1 minute"


def micros_of(value: str) -> int:
    """µs; 0 for what is none."""
    try:
        found = duration_of(parse_expression(f"INTERVAL {value}"))
    except Refused:
        return 0
    return max(0, found or 0)


_COMMON: Final = (
    *taking(takes.anything, "mode", "key"),  # `LakeOptions` looks at them
    Option(PARTITIONS, takes.some),
    Option(INTERVAL, duration),
    Option(FILES, takes.whole(2)),
    Option("compression", takes.one_of(*PARQUET_CODECS)),
    ROWTIME_COLUMN,
    ORDERED,
    Option(ENDS, takes.anything),  # `check_ends` looks at it
    Option(STARTS, _version),
    Option(SKIPS, takes.boolean),
    *unused("skipChangeCommits decides what happens to a version that changes rows", "ignoreChanges", "ignoreDeletes"),
    *unused(
        "skipChangeCommits decides what happens to a snapshot that changes rows",
        *("streaming-skip-overwrite-snapshots", "streaming-skip-delete-snapshots"),
    ),
    *unused("startingVersion says where a stream begins", "startingTimestamp", "stream-from-timestamp"),
    *unused("a tick takes as many files as its limits say", "maxFilesPerTrigger", "maxBytesPerTrigger"),
    *unused("a stream has the rows that were appended", "readChangeFeed", "readChangeData", alike=("false",)),
    *unused("lost data must not be skipped", "failOnDataLoss", alike=("true",)),
)
DELTA: Final = Format("delta", options_of(Option("path", path_of_delta), *_COMMON))


def _of_catalog(name: str, _: Sequence[str]) -> str | None:
    return None if name.lower().startswith(CATALOG) else f"iceberg has no option {name}"


_PLACE: Final = (Option("catalog", takes.some), Option("table", _qualified))
_AS_OF: Final = Option(VERSION, takes.whole(0))
ICEBERG: Final = Format("iceberg", options_of(*_PLACE, *_COMMON), _of_catalog)
STATIC: Final = {
    "delta": Format("delta", options_of(Option("path", path_of_delta), _AS_OF)),
    "iceberg": Format("iceberg", options_of(*_PLACE, _AS_OF), _of_catalog),
}
"""Static tables of a lake."""


def place_problems(kind: str, given: Iterable[str], place: Place) -> Iterator[Problem]:
    """What is missing (R207, R504) of where a lake table is; ``given``: the names of the options."""
    names = {name.lower() for name in given}
    if kind == "delta" and "path" not in names:
        yield Problem("R207", "a delta table needs a path", place, "Add OPTIONS (path '/data/visits').")
    for name in ("catalog", "table") if kind == "iceberg" else ():
        if name not in names:
            hint = "OPTIONS (catalog 'name', table 'db.visits', …)"
            yield Problem("R504", f"the option {name} is missing", place, hint)
