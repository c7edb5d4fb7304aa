"""Every class of operators: imports the modules of all folders, so that no list has to be maintained."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Final

from rowtime import operators
from rowtime.operators.contract import Operator

for _module in pkgutil.walk_packages(operators.__path__, f"{operators.__name__}."):
    if _module.name != __name__:
        importlib.import_module(_module.name)


def _below(base: type) -> set[type[Operator]]:
    return {base}.union(*map(_below, base.__subclasses__()))


OPERATORS: Final[tuple[type[Operator], ...]] = tuple(
    sorted((one for one in _below(Operator) if not inspect.isabstract(one)), key=lambda one: (one.kind, one.__name__))
)
"""The classes of which plans consist, by their kinds."""
