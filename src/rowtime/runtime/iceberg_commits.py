"""Commits to an Iceberg catalog whose answer is lost, or which refuses a request that it has already executed.

pyiceberg takes a refusal as proof that nothing was committed, and removes the files of the commit. If a proxy has sent
the request twice, the second one is refused because of the first. So after each error the table is read: does it have
the snapshot, or the identity, of the request?
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any


class Commits:
    """The commits of a ``catalog`` of pyiceberg; `commit_table` replaces its method."""

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
