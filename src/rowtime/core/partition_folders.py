"""The folders of a partitioned directory, which have names as Spark and Hive give them: ``day=2026-01-02/land=DE``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from rowtime.core.stores import Place

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""What stands for NULL in the name of a folder."""
ESCAPED: Final = "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 32)))
LONGEST: Final = 255  # bytes of a name
_ESCAPES: Final = str.maketrans({one: f"%{ord(one):02X}" for one in ESCAPED})


def folder_of(names: Sequence[str], values: Sequence[str | None]) -> str:
    """The folder of the rows that have these values."""
    pairs = zip(names, values, strict=True)
    return "/".join(f"{escaped(name)}={NULL if value is None else escaped(value)}" for name, value in pairs)


def escaped(text: str) -> str:
    """A name or a value as it is in the name of a folder."""
    return text.translate(_ESCAPES)


def inside(file: Place, count: int) -> str:
    """The path of a file below a directory with so many columns of partitions."""
    return "/".join(str(file).split("/")[-1 - count :])


def values_of(path: str) -> list[str | None]:
    """The values of the folders in such a path."""
    found = (folder.partition("=")[2] for folder in path.split("/")[:-1])
    return [None if value == NULL else unquote(value) for value in found]


def is_partition(folder: Path) -> bool:
    """True for a folder that may be one of a partition."""
    return "=" in folder.name and folder.is_dir()
