"""Finds functions and classes by module and name; the module may be in the folder that a program runs in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any


def load(folder: str, module: str, name: str) -> Any:
    """Return the object ``name`` of a module; it may have dots. ``folder`` is searched too, as `python -m` does."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


_once = cache(load)


@dataclass(frozen=True)
class Imported:
    """A function that is imported when it is called: in a worker, which does not know the folder."""

    folder: str
    module: str
    name: str

    def __call__(self, *values: Any) -> Any:
        """Return the function's result."""
        return _once(self.folder, self.module, self.name)(*values)
