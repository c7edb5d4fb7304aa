"""Options of lake tables: the place of a table, how rows are written, and its partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from rowtime.core.errors import Place, Problem, Refused
from rowtime.plan.formats import contract as takes
from rowtime.plan.formats.contract import Format, Option, options_of, unused
from rowtime.plan.formats.files import (
    KEY,
    MODE,
    ORDERED,
    PARQUET_COMPRESSION,
    PARTITIONS,
    READS_TO_END,
    ROWTIME_COLUMN,
)
from rowtime.sql.intervals import duration_of
from rowtime.sql.script import parse_expression

LAKES: Final = frozenset({"delta", "iceberg"})
INTERVAL: Final = "commit.interval"
FILES: Final = "optimize.files"
STARTS: Final = "startingVersion"
"""The first version that a stream reads; for Iceberg the id of a snapshot. ``latest``: only new versions."""
SKIPS: Final = "skipChangeCommits"
"""True: skip versions that change or remove rows. Both formats use the names of Delta's own source."""
VERSION: Final = "versionAsOf"
"""The version that a static table has."""


_MISREAD: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]^|\\#?\x00-\x1f]")
CATALOG: Final = "catalog."
"""Prefix of options for the catalog itself; pyiceberg knows them."""


def _qualified(value: str) -> str:
    """Accept a name with its namespace."""
    return "" if all(value.split(".")[1:]) and "." in value.strip(".") else "a table in a namespace, such as db.visits"


def path_of_delta(value: str) -> str:
    """Accept a path that deltalake opens: it decodes a path like a URL, and some characters have a meaning there."""
    wanted = "a path without [ ] ^ | \\ # ? and without % before two hexadecimal digits, which deltalake cannot open"
    path = unquote(value) if value.lower().startswith("file:") else value
    return wanted if _MISREAD.search(path) else takes.some(value)


def _version(value: str) -> str:
    """Accept a version, or the word for new versions."""
    return "" if value.isdecimal() or value.lower() == "latest" else "a version, such as 12, or latest"


def duration(value: str) -> str:
    """Accept a fixed duration, such as 1 minute."""
    return "" if micros_of(value) else "a duration, such as 30 seconds or 1 minute"


def micros_of(value: str) -> int:
    """Return a duration in µs; 0 for anything else."""
    try:
        duration = duration_of(parse_expression(f"INTERVAL {value}"))
    except Refused:
        return 0
    return max(0, duration or 0)


_COMMON: Final = (
    MODE,
    replace(KEY, meaning=f"{KEY.meaning}; they are NOT NULL"),
    Option(
        PARTITIONS,
        takes.some,
        meaning="columns of which each file has one value, the same as PARTITIONED BY",
        default="none",
        values="names of columns, separated by commas",
        side="sink",
    ),
    Option(
        INTERVAL,
        duration,
        meaning="ticks are gathered into at most one version per interval",
        default="every tick is a version",
        side="sink",
    ),
    Option(
        FILES,
        takes.whole(2),
        meaning="the table is compacted when this many of its files could be combined",
        default="never",
        side="sink",
    ),
    PARQUET_COMPRESSION,
    replace(ROWTIME_COLUMN, default="source: none, the rowtime is the time of the version; sink: `rowtime`"),
    replace(ORDERED, default="`false` in mode `append`"),
    READS_TO_END,
    Option(
        STARTS,
        _version,
        meaning="the first version that is read, for Iceberg the id of a snapshot; `latest`: versions after the "
        "first start",
        default="the table as it is, then new versions",
        side="source",
    ),
    Option(
        SKIPS,
        takes.boolean,
        meaning="`true`: versions that change or remove rows are skipped instead of refused",
        default="`false`",
        side="source",
    ),
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


def _of_catalog(name: str, _: Sequence[str]) -> str | None:
    return None if name.lower().startswith(CATALOG) else f"iceberg has no option {name}"


_PLACE: Final = (
    Option("catalog", takes.some, meaning="the name of the catalog, as pyiceberg knows it", default="required"),
    Option(
        "table",
        _qualified,
        meaning="the table with its namespace; a sink creates it if it is missing",
        default="required",
    ),
)
_SETTINGS: Final = Option(
    f"{CATALOG}…",
    takes.anything,
    meaning="settings of the catalog, which override or extend those of pyiceberg's configuration: `catalog.uri`, …",
    default="`~/.pyiceberg.yaml` and the environment",
)
_AS_OF: Final = Option(
    VERSION, takes.whole(0), meaning="the version that is read", default="the version at the first start", side="table"
)
_PATH: Final = Option(
    "path", path_of_delta, meaning="the folder of the table, on a file system or in a bucket", default="required"
)
DELTA: Final = Format("delta", options_of(_PATH, *_COMMON))
ICEBERG: Final = Format("iceberg", options_of(*_PLACE, *_COMMON), _of_catalog, (_SETTINGS,))
STATIC: Final = {
    "delta": Format("delta", options_of(_PATH, _AS_OF)),
    "iceberg": Format("iceberg", options_of(*_PLACE, _AS_OF), _of_catalog, (_SETTINGS,)),
}
"""Static tables of a lake."""


def place_problems(kind: str, given: Iterable[str], place: Place) -> Iterator[Problem]:
    """Yield what is missing (R207, R504) from the place of a lake table; ``given``: the names of the options."""
    names = {name.lower() for name in given}
    if kind == "delta" and "path" not in names:
        yield Problem("R207", "a delta table needs a path", place, "Add OPTIONS (path '/data/visits').")
    for name in ("catalog", "table") if kind == "iceberg" else ():
        if name not in names:
            hint = "OPTIONS (catalog 'name', table 'db.visits', …)"
            yield Problem("R504", f"the option {name} is missing", place, hint)
