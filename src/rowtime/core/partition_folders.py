"""The folders of a partitioned directory, named as in Spark and Hive: ``day=2026-01-02/land=DE``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from rowtime.core.stores import Place

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder name for NULL."""
ESCAPED: Final = "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 32)))
LONGEST: Final = 255  # bytes of a name
_ESCAPES: Final = str.maketrans({one: f"%{ord(one):02X}" for one in ESCAPED})


def folder_of(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return the folder of the rows that have these values."""
    pairs = zip(names, values, strict=True)
    return "/".join(f"{escaped(name)}={NULL if value is None else escaped(value)}" for name, value in pairs)


def escaped(text: str) -> str:
    """Return a name or a value as it is written in the name of a folder."""
    return text.translate(_ESCAPES)


def inside(file: Place, count: int) -> str:
    """Return the path of a file relative to a directory that is partitioned by ``count`` columns."""
    return "/".join(str(file).split("/")[-1 - count :])


def values_of(path: str) -> list[str | None]:
    """Return the partition values in such a path."""
    values = (folder.partition("=")[2] for folder in path.split("/")[:-1])
    return [None if value == NULL else unquote(value) for value in values]


def is_partition(folder: Path) -> bool:
    """Return True if a folder may be one of a partition."""
    return "=" in folder.name and folder.is_dir()
