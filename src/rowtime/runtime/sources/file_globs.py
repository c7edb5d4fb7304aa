"""Which files below a folder belong to a stream: those that match the glob in its path, and its glob of names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from rowtime.plan.formats.files import names_of

_SIGNS: Final = frozenset("*?[{")
UNFINISHED: Final = ".tmp"
"""Suffix of files that are still being written."""


@dataclass(frozen=True)
class Chosen:
    """Files below ``folder``: one glob per folder level in ``parts``, and matching names.

    ``unfinished``: the stream also wants files whose names say that they are still being written.
    """

    folder: str
    parts: tuple[Callable[[str], bool], ...]
    named: Callable[[str], bool]
    unfinished: bool = False

    @classmethod
    def of(cls, folder: Path, glob: str, name: str) -> Self:
        """Return one for a glob below a folder, which may be empty, and one for the names of files."""
        parts = tuple(names_of(part) for part in glob.split("/")) if glob else ()
        return cls(str(folder), parts, names_of(name), any(pattern.endswith(UNFINISHED) for pattern in (glob, name)))

    def has(self, path: str) -> bool:
        """Return True for a file that belongs to the stream."""
        name = path.rpartition("/")[2]
        if not self.named(name) or (name.endswith(UNFINISHED) and not self.unfinished):
            return False
        below = self._below(path)
        return len(below) >= len(self.parts) and self._fits(below)

    def enters(self, folder: str) -> bool:
        """Return True for a folder that may have such files."""
        return self._fits(self._below(folder))

    def _fits(self, below: list[str]) -> bool:
        return all(fits(part) for fits, part in zip(self.parts, below, strict=False))

    def _below(self, path: str) -> list[str]:
        """Return the names on the path from the folder; none for a stream of one file."""
        return path.removeprefix(self.folder).strip("/").split("/")


def below_glob(path: Path) -> tuple[Path, str]:
    """Return the folder to search, and the glob below it; a path that exists as written has none."""
    if path.exists():
        return path, ""
    parts = path.parts
    first = next((n for n, part in enumerate(parts) if _SIGNS & {*part}), len(parts))
    return Path(*parts[:first]), "/".join(parts[first:])
