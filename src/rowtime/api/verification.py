"""The public function for verification: of a checkpoint by its folder, with the pipeline of its script."""

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


def verify(  # noqa: PLR0913 - what a pipeline may need besides its checkpoint
    checkpoint: str | Path | ObjectPlace,
    pipeline: Pipeline | None = None,
    *,
    spark: SparkSession | None = None,
    home: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    received: Mapping[str, pa.Table] | None = None,
) -> Verified:
    """Run the recorded input of a checkpoint as one batch, and compare the result with the rows that were written.

    The checkpoint has the script and the values of its variables, except secrets. ``pipeline``: what the script needs
    from Python. ``variables``: secrets, or other values. ``conf``: as in `Pipeline`. ``received``: the rows that
    functions were given, by sink, as in ``Batch.table``. For sinks other than directories and stream logs only the
    number of rows is compared. Raises a ``RowtimeError``: R405 if there is nothing to verify, R407 and the errors of
    the sources if the input cannot be read again, R408 while the last tick is not delivered yet.
    """
    place = Checkpoint(place_of(checkpoint))
    if place.plan is None:
        raise refuse(
            "R405", f"{checkpoint} has no tick to verify", "Give the checkpoint folder of a pipeline that has run."
        )
    run_again = pipeline or Pipeline(spark, home=home, conf=conf).sql(
        place.plan.sql, {**place.plan.values, **(variables or {})}
    )
    return verified(place, run_again, received or {})
