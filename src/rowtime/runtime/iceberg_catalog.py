"""Catalogs of Iceberg tables, and the stores of their tables.

A bucket is configured once: pyiceberg, the tasks that write and Spark, which reads, all use `settings_in`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from rowtime.core.store_settings import StoreSettings, settings_of
from rowtime.core.stores import Bucket, ObjectPlace, Place, on_store, place_of
from rowtime.plan.formats.lake import CATALOG

_IO: Final = "py-io-impl"
_OURS: Final = "rowtime.runtime.iceberg_io.StoreIO"
_THEIRS: Final = ("abfs", "wasb", "az:")  # stores for which pyiceberg prefers another library to Arrow
_LOCAL: Final = ("file:", "/")
_LOST: Final = re.compile(r"Path does not exist '([^/']+)/")
_CREATED_TWICE: Final = re.compile(r"already exists|duplicate key")  # as SQLite, MySQL and PostgreSQL say
_PAUSES: Final = (0.05, 0.2, 0.5)  # seconds
_NAMES: Final = {
    "endpoint": ("s3.endpoint",),
    "region": ("s3.region", "client.region"),
    "access_key_id": ("s3.access-key-id", "client.access-key-id"),
    "secret_access_key": ("s3.secret-access-key", "client.secret-access-key"),
    "session_token": ("s3.session-token", "client.session-token"),
}
"""The settings of a bucket, with pyiceberg's names."""
_KEYS: Final = ("access_key_id", "secret_access_key", "session_token")  # they belong together


def given_in(options: Mapping[str, str]) -> dict[str, str]:
    """Return the catalog options of a stream or a table."""
    return {name[len(CATALOG) :]: value for name, value in options.items() if name.lower().startswith(CATALOG)}


def opened(name: str, given: Mapping[str, str]) -> Any:
    """Return a catalog by name. Raises ``ImportError`` without pyiceberg, and whatever pyiceberg raises."""
    catalog = _loaded(name, given)
    if not str(catalog.properties.get("warehouse", "")).startswith(_THEIRS):
        catalog.properties.setdefault(_IO, _OURS)
    catalog.commit_table = Commits(catalog).commit_table  # tables call it
    return catalog


def _loaded(name: str, given: Mapping[str, str]) -> Any:
    """Load a catalog.

    An SQL catalog creates its tables when it is opened first, and fails if another program has just created them.
    Then it is loaded again.
    """
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra

    for pause in _PAUSES:
        try:
            return load_catalog(name, **given)
        except Exception as error:
            if not _CREATED_TWICE.search(str(error)):
                raise
            time.sleep(pause)
    return load_catalog(name, **given)


def settings_in(properties: Mapping[str, str], bucket: str) -> StoreSettings:
    """Return the settings of a bucket (``s3://bucket``): from a catalog's properties, else as for other buckets."""
    settings = settings_of(bucket).given()
    if not bucket.startswith("s3:"):
        return StoreSettings()
    given = {}
    for setting, names in _NAMES.items():
        value = next((properties[name] for name in names if properties.get(name)), "")
        if value:
            given[setting] = value
    if not set(_KEYS).isdisjoint(given):
        settings = {name: value for name, value in settings.items() if name not in _KEYS}
    return StoreSettings(**{**settings, **given})


def as_properties(settings: StoreSettings) -> dict[str, str]:
    """Return the settings of a bucket with pyiceberg's names."""
    return {_NAMES[name][0]: value for name, value in settings.given().items()}


def place_in(location: str, properties: Mapping[str, str], what: str) -> Place | None:
    """Return the folder of a location, with its catalog's settings for the bucket.

    ``None`` if it is neither in a file system nor in a known store. Raises what `place_of` does.
    """
    if location.startswith(_LOCAL):
        return place_of("/" + location.removeprefix("file:").lstrip("/"), what)
    if not on_store(location) or location.startswith("memory:"):
        return None
    place = place_of(location, what)
    assert isinstance(place, ObjectPlace)
    return ObjectPlace(Bucket(place.bucket.url, settings_in(properties, place.bucket.url)), place.key)


def ask_the_store(error: Exception, catalog: Any) -> None:
    """Raise what is wrong with a bucket (R581 to R583), if an error is about files.

    It is the bucket of the ``catalog``, or of the file that pyiceberg misses.
    """
    if catalog is None or not isinstance(error, OSError):
        return
    home, lost = str(catalog.properties.get("warehouse", "")), _LOST.search(str(error))
    for location in filter(None, (home, f"s3://{lost[1]}" if lost else "")):
        place = place_in(location, catalog.properties, "the warehouse")
        if isinstance(place, ObjectPlace):
            any(True for _ in place.iterdir())


class Commits:
    """The commits of a ``catalog`` of pyiceberg; `commit_table` replaces its method.

    pyiceberg takes a refusal as proof that nothing was committed, and removes the files of the commit. If the answer is
    lost, or a proxy has sent the request twice, that is wrong. So after each error the table is read: does it have the
    snapshot, or the identity, of the request?
    """

    def __init__(self, catalog: Any) -> None:
        self._catalog, self._commit = catalog, catalog.commit_table

    def commit_table(self, table: Any, requirements: Sequence[Any], updates: Sequence[Any]) -> Any:
        """Commit to a table. Raises pyiceberg's error if the table does not have the changes."""
        from pyiceberg.table import CommitTableResponse  # noqa: PLC0415 - an extra

        try:
            return self._commit(table, requirements, updates)
        except Exception:
            with suppress(Exception):  # then the outcome is unknown, and the error is raised
                loaded = self._catalog.load_table(table.name())
                if _has(loaded.metadata, updates):
                    return CommitTableResponse(
                        metadata=loaded.metadata, **{"metadata-location": loaded.metadata_location}
                    )
            raise


def _has(metadata: Any, updates: Sequence[Any]) -> bool:
    """Return True if a table has what only these updates can have given it: an identity or a snapshot."""
    by_action = {update.action: update for update in updates}
    if "assign-uuid" in by_action:
        return bool(metadata.table_uuid == by_action["assign-uuid"].uuid)
    if "add-snapshot" in by_action:
        return metadata.snapshot_by_id(by_action["add-snapshot"].snapshot.snapshot_id) is not None
    return False
