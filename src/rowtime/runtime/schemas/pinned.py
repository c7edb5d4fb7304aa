"""The schemas with which records of a topic were read, as a checkpoint stores them.

The input of a tick is a function of its records and of the schemas of their ids. So each id is looked up once, before
the tick, and the answer is stored in the checkpoint: the schema in a file, its checksum in the journal; also that an id
is unknown. If a registry is changed, emptied or removed later, earlier input stays the same.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rowtime.core.errors import Failure, Problem
from rowtime.core.stores import Place
from rowtime.runtime.schemas.registry import Registry, Schema
from rowtime.state.files import make_folder, write_over

KEY: Final = "schemas"  # in a source's notes in the journal: the checksum by id; null for an unknown id
PATIENCE: Final = (0.5, 1.0, 2.0)  # seconds: a clustered registry may know a new id a moment later

Pinned = Mapping[str, str | None]


class PinnedSchemas:
    """The schemas of one stream. ``notes``: its folder in the checkpoint."""

    def __init__(self, registry: Registry, notes: Place, pause: Callable[[float], object] = time.sleep) -> None:
        self.registry, self._folder, self._pause = registry, notes / "schemas", pause
        self._kept: dict[str, Schema] = {}

    def completed(self, numbers: Iterable[int], pins: Pinned) -> Pinned:
        """Return the known schemas with ``numbers`` added. Raises ``Failure`` (R501)."""
        missing = [number for number in sorted(set(numbers)) if str(number) not in pins]
        return {**pins, **{str(number): self._fetched(number) for number in missing}}

    def schema(self, number: str, pins: Pinned) -> Schema | None:
        """Return the schema of a known id; ``None`` for an id that the registry did not have."""
        sum_of = pins[number]
        if sum_of is None:
            return None
        if sum_of not in self._kept:
            self._kept[sum_of] = self._stored(number, sum_of)
        return self._kept[sum_of]

    def _fetched(self, number: int) -> str | None:
        schema = self.registry.by_id(number)
        for seconds in PATIENCE:
            if schema is not None:
                break
            self._pause(seconds)
            schema = self.registry.by_id(number)
        if schema is None:
            return None
        content = _content(schema)
        make_folder(self._folder)
        write_over(self._folder / f"{_sum(content)}.json", content)
        return _sum(content)

    def _stored(self, number: str, sum_of: str) -> Schema:
        file = self._folder / f"{sum_of}.json"
        content = file.read_bytes() if file.exists() else b""
        if _sum(content) != sum_of:  # an id never changes its meaning, so the registry still has it
            schema = self.registry.by_id(int(number))
            content = b"" if schema is None else _content(schema)
        if _sum(content) != sum_of:
            what = f"the checkpoint stored the schema {number} in {file}, but this file is missing or has changed"
            raise Failure(Problem("R501", what, hint="Restore the file, or the schema in the registry."))
        return Schema.of_json(json.loads(content))


def _content(schema: Schema) -> bytes:
    return json.dumps(schema.as_json(), sort_keys=True).encode()


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def known_of(state: Mapping[str, Any]) -> Pinned:
    """Return the ids in the notes of a source."""
    pins: Pinned = state.get(KEY, {})
    return pins
