"""Differences between two JSON objects, so that a large one that changes little is stored once.

Objects are compared member by member, at every depth; anything else, also a list, is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# The members of a difference. Each is omitted if it is empty.
SET: Final = "set"  # members that are new or replaced, by name
IN: Final = "in"  # differences of members that are objects before and after, by name
GONE: Final = "gone"  # names of removed members

_ABSENT: Final = object()


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the difference from ``old`` to ``new``; empty if equal. Law: `applied` to ``old``, it gives ``new``."""
    put, inside = dict[str, Any](), dict[str, Any]()
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if changes := difference(before, value):
                inside[name] = changes
        elif type(value) is not type(before) or value != before:
            put[name] = value
    gone = [name for name in old if name not in new]
    return {key: part for key, part in ((SET, put), (IN, inside), (GONE, gone)) if part}


def applied(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new object. It shares unchanged parts with ``old``; ``old`` stays as it is."""
    gone = frozenset(changes.get(GONE, ()))
    result = {name: value for name, value in old.items() if name not in gone}
    result.update(changes.get(SET, {}))
    result.update((name, applied(old[name], inner)) for name, inner in changes.get(IN, {}).items())
    return result
