"""The history of a lake table for a stream: versions one after the other, and the files that each has added.

`lake.LakeSource` turns it into a stream; a module for each format reads its log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pyspark.sql.types import StructType

from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.runtime.sources.file_list import NumberedFile

NOTHING: Final = -1
"""The place before the first version of a table."""
MILLI: Final = 1000  # µs; logs count milliseconds


@dataclass(frozen=True)
class Look:
    """The present table: its unique ``identity``, its newest version and its columns."""

    identity: str
    place: int
    columns: StructType
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Version:
    """One version of a table: the files that it has added, in their order.

    ``changed``: how it changed or removed existing rows, in words; empty for a version that has only appended.
    """

    place: int
    files: Sequence[NumberedFile]
    changed: str = ""


class History(Protocol):
    """The versions of one table. A ``place`` is the number of a version (Delta) or the id of a snapshot (Iceberg).

    ``called``: the table in words.
    """

    called: str

    def look(self, version: int | None = None) -> Look | None:
        """Return the table, now or in a version; ``None`` if it does not exist.

        Raises ``Refused``: R575 if it cannot be read, R578 if there is no such version.
        """
        ...

    def whole(self, place: int) -> Sequence[NumberedFile]:
        """Return all files of a version, in the order in which their rows came, as far as the log still tells.

        Raises ``Refused`` (R578) if there is no such version.
        """
        ...

    def since(self, place: int) -> Iterator[Version]:
        """Yield the versions after a place, up to that of the last look. Raises ``Refused`` (R576) if one is lost."""
        ...

    def behind(self, place: int) -> int:
        """Return how many versions there are after a place, up to that of the last look, without reading them."""
        ...

    def mark(self, place: int) -> str:
        """Return what tells a version from another with the same place; empty if its place does, or if it is gone."""
        ...

    def before(self, place: int) -> int:
        """Return the place before a version, or `NOTHING`. Raises ``Refused`` (R578) if there is no such version."""
        ...


def unreached(called: str, error: Exception) -> Failure:
    """Return R501: the log of a table cannot be read now."""
    message = str(error).split("\n", 1)[0]
    hint = "Check that it is complete, who may read it, and the network. The tick is repeated."
    return Failure(Problem("R501", f"{called} cannot be read: {message}", hint=hint))


def missing(called: str) -> Failure:
    """Return R501: there is no table."""
    return Failure(Problem("R501", f"{called} does not exist", hint="Create the table, or correct the path."))


def gone(called: str, what: str) -> Refused:
    """Return R576: the next version is no longer available."""
    hint = (
        "Restore it from a copy. Or start with a new checkpoint, which reads the table as it is now, or from a "
        "version that still exists (startingVersion)."
    )
    return refuse("R576", f"{called} no longer has the next version: {what}", hint)


def unreadable(called: str, what: str) -> Refused:
    """Return R575: the table has a feature that rowtime cannot read."""
    return refuse("R575", f"{called} {what}, which rowtime does not read", "Read a copy of the table without it.")


def no_version(called: str, wanted: int, versions: str) -> Refused:
    """Return R578: an option names a version that does not exist."""
    return refuse("R578", f"{called} has no version {wanted}: {versions}", "Name one that it has.")


def no_package(called: str, package: str, extra: str) -> Refused:
    """Return R560: the library of a format is not installed."""
    what = f"reading {called} needs the package {package}, which is not installed"
    return refuse("R560", what, f"Install it: pip install 'rowtime[{extra}]'.")
