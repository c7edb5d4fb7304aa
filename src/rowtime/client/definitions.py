"""The plain JSON of a stream's definition, with a checksum as its last member; an invalid file is refused when read."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

# A type, a union of types, [Wanted], (Wanted, …) or {member: Wanted}: a name with ? may be missing, * is any name.
Wanted = Any

_SHAPE: Final[Mapping[str, Wanted]] = {
    "kind": str,
    "start": str,
    "stop?": str | None,
    "by?": str | None,
    "adjusts?": bool,
    "rows?": int | None,
    "every?": int | None,
    "delay?": int,
    "imports?": str | None,
    "resolution?": str | None,
    "beyond?": int | None,
    "fields?": [str],
}
_EVENT_TIME: Final[Mapping[str, Wanted]] = {
    "column": str,
    "unit?": str | None,
    "lag?": int,
    "gap?": int,
    "mode?": str,
    "beyond?": int | None,
}
DEFINITION: Final[Mapping[str, Wanted]] = {
    "columns": [{"name": str, "type": str, "nullable?": bool}],
    "format?": str | None,
    "options?": {"*": str},
    "idle_after?": int | None,
    "checks?": [str],
    "orders?": [(str, str, str)],
    "early?": int | None,
    "resync?": int,
    "ahead?": int | None,
    "event_time?": _EVENT_TIME,
    "shape?": _SHAPE,
}

_SEAL: Final = re.compile(r',\s*"sum": "([0-9a-f]{8})"\s*\}\s*')


def text_of(definition: Mapping[str, Any]) -> str:
    """Return the text of a definition's file."""
    body = json.dumps(definition, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{body},\n  "sum": "{zlib.crc32(body.encode()):08x}"\n}}'


def definition_of(text: str) -> dict[str, Any]:
    """Return the definition in a file; one of an older version has no checksum. Raises ``ValueError``."""
    content = json.loads(text)
    if isinstance(content, dict) and (given := content.pop("sum", None)) is not None:
        seal = _SEAL.fullmatch(text, max(0, text.rfind(",")))
        if seal is None or f"{zlib.crc32(text[: seal.start()].encode()):08x}" != given:
            raise ValueError("it has changed since rowtime wrote it: its checksum differs")
    if wrong := fault(content):
        raise ValueError(wrong)
    return dict(content)


def fault(value: object, wanted: Wanted = DEFINITION, at: str = "the definition") -> str:
    """Return the first fault; empty if there is none."""
    if isinstance(wanted, Mapping):
        return _fault_of_members(value, wanted, at)
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list) or (isinstance(wanted, tuple) and len(value) != len(wanted)):
            return f"{at} is not a list{f' of {len(wanted)}' if isinstance(wanted, tuple) else ''}"
        parts = wanted if isinstance(wanted, tuple) else wanted * len(value)
        faults = (
            fault(element, part, f"{at}[{n}]") for n, (element, part) in enumerate(zip(value, parts, strict=True))
        )
        return next(filter(None, faults), "")
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return "" if fits and _is_text(value) else f"{at} is {value!r:.60}"


def _is_text(value: object) -> bool:
    """Return False for a string that no file can hold: half of a UTF-16 pair."""
    return not isinstance(value, str) or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _fault_of_members(value: object, wanted: Mapping[str, Wanted], at: str) -> str:
    if not isinstance(value, dict):
        return f"{at} is not an object"
    wanted = dict.fromkeys(value, wanted["*"]) if "*" in wanted else wanted
    names = {key.rstrip("?"): key for key in wanted}
    odd = next((key for key in value if key not in names or not _is_text(key)), None)
    missing = next((name for name, key in names.items() if name == key and name not in value), None)
    if odd is not None or missing is not None:
        return f"{at} has no {missing}" if missing else f"{at} has {odd!r:.60}, which this version does not know"
    return next(filter(None, (fault(part, wanted[names[key]], f"{at}: {key}") for key, part in value.items())), "")
