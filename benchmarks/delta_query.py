"""The one query by Spark's streaming engine into a Delta table: ``python delta_query.py JSON``, run by that Spark.

``source`` is a folder of Parquet files of the ``schema``; a batch takes ``files`` of them. Each of the ``rounds``
writes a table ``out-N`` below ``place``; the session has ``conf`` and ``settings``. It prints the milliseconds of each
batch that had rows as JSON, one list per round.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main(text: str) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - of another environment

    asked = json.loads(text)
    made = SparkSession.builder.master("local[2]")
    for name, value in {**asked["settings"], **asked["conf"]}.items():
        made = made.config(name, value)
    spark = made.getOrCreate()
    print(json.dumps([_batches(spark, asked, number) for number in range(asked["rounds"])]))


def _batches(spark: Any, asked: dict[str, Any], number: int) -> list[float]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    rows = spark.readStream.schema(asked["schema"]).option("maxFilesPerTrigger", asked["files"])
    timed = rows.parquet(asked["source"]).withWatermark("ev", "10 seconds")
    groups = timed.groupBy(F.window("ev", "1 minute"), "k").agg(F.count("*").alias("c"), F.sum("v").alias("sv"))
    told = groups.select(F.col("window.start").alias("w"), "k", "c", "sv").writeStream.format("delta")
    begun = told.option("checkpointLocation", f"{asked['place']}/checkpoint-{number}").trigger(availableNow=True)
    query = begun.start(f"{asked['place']}/out-{number}")
    query.awaitTermination()
    return [one["durationMs"]["triggerExecution"] for one in query.recentProgress if one["numInputRows"]]


if __name__ == "__main__":
    main(*sys.argv[1:])
