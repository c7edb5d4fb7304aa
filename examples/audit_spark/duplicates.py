"""Clicks of which some are sent twice, counted in windows of five minutes: a chain of two operators with state."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def job(spark: SparkSession, clicks: DataFrame) -> DataFrame:
    once = clicks.withWatermark("at", "2 minutes").dropDuplicates(["id", "at"])
    return once.groupBy(F.window("at", "5 minutes")).count().select("window.start", "count")
