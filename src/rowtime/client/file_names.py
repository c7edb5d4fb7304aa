"""Names of streams, writers and sinks as components of paths."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from rowtime.core.errors import refuse

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST: Final = 200  # bytes; file systems allow 255, and a suffix must fit as well


def escape(name: str) -> str:
    """Return a name as one safe component of a path: all but ``[a-z0-9_-]`` is percent-encoded.

    Law: ``unescape(escape(name)) == name``; no two names share a path, not even if the file system ignores case. Raises
    ``Refused`` (R207) for names that fit no file name.
    """
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise refuse("R207", f"{name!r} is not valid Unicode, so it cannot be a name") from None
    escaped = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in encoded)
    if not 0 < len(escaped) <= _LONGEST:
        raise refuse(
            "R207",
            f"the name {name[:40]!r} is {'too long' if escaped else 'empty'}",
            f"A name has 1 to {_LONGEST} bytes; each byte other than a-z, 0-9, _ and - counts three times.",
        )
    return escaped


def unescape(component: str) -> str:
    """Return the name that ``escape`` turned into this component of a path."""
    return unquote(component)
