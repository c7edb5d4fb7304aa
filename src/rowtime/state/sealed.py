"""JSON files that show whether they are complete: the last member is a checksum of everything before it."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

from rowtime.core.errors import refuse
from rowtime.core.stores import Place
from rowtime.plan.stored import OTHER_VERSION
from rowtime.state.files import damaged

FORMAT = 3  # since a checkpoint may have several plans, and each entry names its own
WITH_BASES = 4  # of a journal entry that is stored as a difference from another object; older versions refuse it
READ = (FORMAT, WITH_BASES)
_SEAL = re.compile(rb',"sum":"([0-9a-f]{8})"\}')
_SEALED = len(b',"sum":"00000000"}')


def sealed(value: Mapping[str, Any], indent: int | None = None, number: int = FORMAT) -> bytes:
    """Return a JSON object, with its format and its checksum."""
    separators = (",", ":") if indent is None else None
    text = json.dumps({"format": number, **value}, separators=separators, indent=indent)
    body = text[:-1].rstrip().encode()
    return body + b',"sum":"%08x"}' % zlib.crc32(body)


def unsealed(path: Place) -> dict[str, Any]:
    """Return the content of a sealed file.

    Raises ``Refused`` (R402) for another format, however that is sealed, and ``Failure`` (R406) if the file is not as
    it was written.
    """
    data = path.read_bytes()
    content = _parsed(data)
    if content.get("format", FORMAT) not in READ:
        what = f"the checkpoint has format {content['format']}, this version reads formats {READ[0]} to {READ[-1]}"
        raise refuse("R402", what, OTHER_VERSION)
    seal = _SEAL.fullmatch(data[-_SEALED:])
    if seal is None or zlib.crc32(data[:-_SEALED]) != int(seal[1], 16):
        raise damaged(f"{path} has changed since rowtime wrote it: its checksum differs")
    return content


def _parsed(data: bytes) -> dict[str, Any]:
    """Return the object, if it has a number as its format; else an empty one."""
    try:
        content = json.loads(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) and isinstance(content.get("format"), int) else {}
