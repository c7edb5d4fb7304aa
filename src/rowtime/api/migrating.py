"""Migration as users call it: of a checkpoint by its folder, to the script of a pipeline."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rowtime.api.pipeline import Pipeline
from rowtime.audit.migration import Migrated, migrated


def migrate(checkpoint: str | Path, pipeline: Pipeline, *, take_over: Collection[str] = ()) -> Migrated:
    """Let the script of a pipeline go on with a checkpoint whose state does not fit it.

    All that the checkpoint has read is read again by this script, and its state and its rows replace the old state in
    one tick; until that is committed nothing has changed. Each pump either has the name and the target that it had,
    and stands in ``take_over`` (or in ``ALTER PUMP … TAKE OVER``): its rows follow those that are there, and what lies
    below their bound is refused as ``OUT_OF_ORDER``. Or its name and its target are new, and get the whole history.

    Raises a ``RowtimeError``: R404 while the pipeline runs, R405 without a tick, R408 where the last tick is not handed
    over, R447 where it is not said what becomes of a sink, R448 where not all input is retained, R449 where there is
    nothing to compute again; and those of targets that are another pump's (R440 to R442).
    """
    return migrated(pipeline, checkpoint, take_over)
