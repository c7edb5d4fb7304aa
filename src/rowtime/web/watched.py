"""The pipelines that a console watches: given ones, and all below a home directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rowtime.client.home import Home
from rowtime.client.home_users import CHECKPOINTS
from rowtime.core.stores import ObjectPlace, Place, place_of
from rowtime.web.records import Records


@dataclass(frozen=True)
class Pipeline:
    """One pipeline; ``key`` is its name in addresses, ``name`` its name for people."""

    key: str
    name: str
    records: Records

    @property
    def place(self) -> Place:
        """Return the place of its checkpoint."""
        return self.records.place


class Watched:
    """The pipelines by key. Those below the home come and go, so they are listed each time.

    ``home``: where named streams are; ``given``: checkpoints, as folders or URLs; if one is invalid, its page says so.
    ``variables``: the values of ``${name}`` in their scripts, for EXPLAIN and traces. ``imports``: a trace may import
    the Python modules that a script names.
    """

    def __init__(
        self,
        home: Home,
        given: Sequence[str],
        variables: Mapping[str, str] | None = None,
        *,
        imports: bool = False,
    ) -> None:
        self.home, self._given, self.variables = home, tuple(given), dict(variables or {})
        self.imports = imports
        self._known: dict[str, Pipeline] = {}

    @property
    def pipelines(self) -> Sequence[Pipeline]:
        """Return the given ones first, then those of the home by name."""
        by_key = {pipeline.key: pipeline for pipeline in map(self._pipeline, self._places())}
        return [*by_key.values()]

    def get(self, key: str) -> Pipeline | None:
        """Return the pipeline of a key, if it exists."""
        return next((pipeline for pipeline in self.pipelines if pipeline.key == key), None)

    def _places(self) -> Iterator[Place]:
        yield from (place_of(text) for text in self._given)
        below = self.home.path / CHECKPOINTS
        if not self._given and below.is_dir():
            paths = [path for path in below.iterdir() if not path.name.startswith(".")]
            yield from sorted(path for path in paths if isinstance(path, ObjectPlace) or path.is_dir())

    def _pipeline(self, place: Place) -> Pipeline:
        where = str(place.absolute() if isinstance(place, Path) else place)
        key = _key(place.name, where)
        if key not in self._known:
            self._known[key] = Pipeline(key, place.name or where, Records(place))
        return self._known[key]


def _key(name: str, where: str) -> str:
    """Return a name that is valid in an address, the same at each start."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:40].strip("-")
    return f"{plain or 'pipeline'}-{hashlib.sha256(where.encode(errors='surrogatepass')).hexdigest()[:6]}"
