"""Which files below a folder belong to a stream: those of a glob in its path, and of names that it chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from rowtime.plan.formats.files import names_of

_SIGNS: Final = frozenset("*?[{")
UNFINISHED: Final = ".tmp"
"""Ends the names of files that are still being written."""


@dataclass(frozen=True)
class Chosen:
    """Files below ``folder``: in or below what ``parts`` mean, one for each folder, and with the names that are meant.

    ``unfinished``: the stream asks for files whose names say that they are still being written.
    """

    folder: str
    parts: tuple[Callable[[str], bool], ...]
    named: Callable[[str], bool]
    unfinished: bool = False

    @classmethod
    def of(cls, folder: Path, glob: str, name: str) -> Self:
        """By a glob below a folder, which may be empty, and one for the names of files."""
        parts = tuple(names_of(part) for part in glob.split("/")) if glob else ()
        return cls(str(folder), parts, names_of(name), any(one.endswith(UNFINISHED) for one in (glob, name)))

    def has(self, path: str) -> bool:
        """True for a file that belongs to the stream."""
        name = path.rpartition("/")[2]
        if not self.named(name) or (name.endswith(UNFINISHED) and not self.unfinished):
            return False
        below = self._below(path)
        return len(below) >= len(self.parts) and self._fits(below)

    def enters(self, folder: str) -> bool:
        """True for a folder that may have such files."""
        return self._fits(self._below(folder))

    def _fits(self, below: list[str]) -> bool:
        return all(fits(part) for fits, part in zip(self.parts, below, strict=False))

    def _below(self, path: str) -> list[str]:
        """The names on the way from the folder; a stream of one file has none to choose."""
        return path.removeprefix(self.folder).strip("/").split("/")


def below_glob(path: Path) -> tuple[Path, str]:
    """The folder to look into, and the glob below it; a path that is there as it is written has none."""
    if path.exists():
        return path, ""
    parts = path.parts
    first = next((n for n, part in enumerate(parts) if _SIGNS & {*part}), len(parts))
    return Path(*parts[:first]), "/".join(parts[first:])
