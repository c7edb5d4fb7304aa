"""Functions and classes by the names of their modules, which may lie in the folder that a program runs in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any


def found(folder: str, module: str, name: str) -> Any:
    """What a module calls ``name``, which may have dots; ``folder`` is looked in as well, as `python -m` does."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


_once = cache(found)


@dataclass(frozen=True)
class Imported:
    """A function that is imported where it is called: in a worker, which was not told of the folder."""

    folder: str
    module: str
    name: str

    def __call__(self, *values: Any) -> Any:
        """What the function gives."""
        return _once(self.folder, self.module, self.name)(*values)
