"""Finds the source of a module by its files, without importing it or the packages around it."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, FileFinder, FrozenImporter, ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

_OF_PYTHON: Final = (BuiltinImporter, FrozenImporter, PathFinder)


@dataclass(frozen=True)
class Source:
    """The file of a module and its bytes, ``None`` if it is not written in Python; ``package``: its ``__init__``."""

    file: str
    content: bytes | None
    package: bool = False


def source_of(folder: str, module: str) -> Source | None:
    """Return the source of a module as `imported.load` would find it; ``None`` if the files do not tell.

    Raises ``ModuleNotFoundError`` if it is nowhere.
    """
    if module.partition(".")[0] in sys.builtin_module_names:
        return None
    places: Iterable[str] | None = [folder, *sys.path]
    names, spec, above = module.split("."), None, None
    for name in names:
        spec = _within(places or (), name) or (_by_others(name) if above is None else None)
        if spec is None:
            if module in sys.modules or (above is not None and _moves(above)):
                return None
            raise ModuleNotFoundError(f"No module named {module!r}")
        places, above = spec.submodule_search_locations, spec
    return None if spec is None or spec.loader is None else _read(spec, names[-1])


def _within(places: Iterable[str], name: str) -> ModuleSpec | None:
    """Return what the first of some folders or archives has under a name; folders without ``__init__`` come last."""
    portions: list[str] = []
    for place in places:
        finder = pkgutil.get_importer(place)
        if finder is None:
            continue
        if isinstance(finder, FileFinder):
            finder.invalidate_caches()  # a file may be a moment old
        spec = finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        if spec is not None:
            portions += spec.submodule_search_locations or ()
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def _by_others(name: str) -> ModuleSpec | None:
    """Return what other finders of this Python know: those of packages that are installed in place."""
    for finder in sys.meta_path:
        if finder not in _OF_PYTHON and (spec := finder.find_spec(name, None)) is not None:
            return spec
    return None


def _moves(spec: ModuleSpec) -> bool:
    """Return True if code of a module may say which modules are below it."""
    content = None if spec.loader is None else _read(spec, spec.name).content
    return content is not None and (b"__path__" in content or b"sys.modules" in content)


def _read(spec: ModuleSpec, name: str) -> Source:
    file = spec.origin or name
    if not file.endswith(".py"):
        return Source(file, None)
    package = spec.submodule_search_locations is not None
    try:
        return Source(file, spec.loader.get_data(file), package)  # type: ignore[union-attr]  # a loader of files
    except (AttributeError, OSError):
        with suppress(OSError):
            return Source(file, Path(file).read_bytes(), package)
        return Source(file, None, package)
