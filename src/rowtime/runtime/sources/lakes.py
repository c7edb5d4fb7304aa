"""Lake tables that are read: as streams, and as static tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.core.shared_paths import local
from rowtime.runtime.sources.delta_history import DeltaHistory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowtime.runtime.sources.table_history import History


def history_of(kind: str, options: Mapping[str, str]) -> History:
    """The history of the table that options name."""
    assert kind == "delta"
    return DeltaHistory(local(options["path"], "the path of the table"))
