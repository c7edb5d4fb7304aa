"""Divides a range of files: whole files, or row groups of Parquet files if these are few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rowtime.runtime.sources.contract import Slice, in_shares
from rowtime.runtime.sources.file_places import row_groups, rows_of
from rowtime.runtime.sources.parquet_rows import Groups
from rowtime.runtime.sources.partition_values import FEW_FILES


def shares_of(part: Slice, many: int, *, parquet: bool) -> Iterator[Slice]:
    """Yield parts of a range in at most ``many`` shares of about equal size: in rows, or of text in bytes."""
    files = part.detail["files"]
    paths = [path for _, path, _ in files]
    if not parquet:
        sizes = [[Path(path).stat().st_size] for path in paths]
    elif len(files) < FEW_FILES:
        sizes = row_groups(paths)
    else:
        sizes = [[rows] for rows in rows_of(paths)]
    units = [(at, group, size) for at, of_file in enumerate(sizes) for group, size in enumerate(of_file)]
    for share in in_shares(units, [size for *_, size in units], many):
        groups: dict[int, list[int]] = {}
        for at, group, _ in share:
            groups.setdefault(at, []).append(group)
        split = {at: (of[0], of[-1] + 1) for at, of in groups.items() if len(of) < len(sizes[at])}
        detail = {
            **part.detail,
            "files": [files[at] for at in groups],
            "groups": {str(files[at][0]): of for at, of in split.items()},
        }
        rows = sum(size for *_, size in share) if parquet else part.rows
        if share:
            yield replace(part, rows=rows, detail=detail)


def groups_of(part: Slice, number: int) -> Groups | None:
    """Return which row groups of the file with a number are read; ``None`` for all."""
    groups: Groups | None = part.detail.get("groups", {}).get(str(number))
    return groups


def paths_of(part: Slice) -> Sequence[str]:
    """Return the paths of the files of a range."""
    return [path for _, path, _ in part.detail["files"]]
