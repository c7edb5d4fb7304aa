"""Verification as users call it: of a checkpoint by its folder, with the pipeline that its script makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from rowtime.api.pipeline import Pipeline
from rowtime.audit.verify import Verified, verified
from rowtime.core.errors import refuse
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.state.checkpoint import Checkpoint


def verify(  # noqa: PLR0913 - what a pipeline may need beside its checkpoint
    checkpoint: str | Path | ObjectPlace,
    pipeline: Pipeline | None = None,
    *,
    spark: SparkSession | None = None,
    home: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    received: Mapping[str, pa.Table] | None = None,
) -> Verified:
    """Run the recorded input of a checkpoint as one batch, and compare it with what was written.

    The script is that of the checkpoint, which knows the values of its variables but for secrets; what it needs from
    Python comes with the ``pipeline``. ``variables``: secrets, or other values. ``conf``: as `Pipeline` takes it.
    ``received``: the rows that functions were given, by sink, as their ``Batch.table`` had them; other sinks than
    directories and stream logs are only counted.
    Raises a ``RowtimeError``: R405 where there is nothing to verify, R407 and those of the sources where the input
    cannot be read again, R408 where the last tick is still being handed over.
    """
    place = Checkpoint(place_of(checkpoint))
    if place.plan is None:
        raise refuse(
            "R405", f"{checkpoint} has no tick to verify", "Give the checkpoint folder of a pipeline that has run."
        )
    made = pipeline or Pipeline(spark, home=home, conf=conf).sql(
        place.plan.sql, {**place.plan.values, **(variables or {})}
    )
    return verified(place, made, received or {})
