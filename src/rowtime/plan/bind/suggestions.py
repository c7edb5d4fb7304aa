"""Hints for a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Return a hint with the nearest known name, or with all of them."""
    names = list(candidates)
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"There are: {', '.join(names[:20])}." if names else "Nothing is defined yet; begin with CREATE STREAM."
