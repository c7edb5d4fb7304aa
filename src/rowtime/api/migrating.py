"""The public function for migration: from a checkpoint's folder to a pipeline with the new script."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rowtime.api.pipeline import Pipeline
from rowtime.audit.migration import Migrated, migrated


def migrate(checkpoint: str | Path, pipeline: Pipeline, *, take_over: Collection[str] = ()) -> Migrated:
    """Let the changed script of a pipeline continue a checkpoint whose state does not fit it.

    The new script reads everything that the checkpoint has read, and one tick replaces the old state and rows; until it
    is committed, nothing changes. A pump with its old name and target must be in ``take_over`` (or in ``ALTER PUMP …
    TAKE OVER``): its new rows follow the existing ones, and rows below their bound are refused as ``OUT_OF_ORDER``. A
    pump with a new name and a new target gets the whole history.

    Raises a ``RowtimeError``: R404 while the pipeline runs, R405 without a tick, R408 if the last tick is not delivered
    yet, R447 if a sink is neither taken over nor new, R448 if some of the input is gone, R449 if there is nothing to
    compute again, and R440 to R442 for targets of another pump.
    """
    return migrated(pipeline, checkpoint, take_over)
